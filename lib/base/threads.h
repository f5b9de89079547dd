/*
 * threads.h - threads that run a loop, while the calling thread waits and shows progress
 *
 *     threads_init(&t);
 *     if (threads_start(&t, n, loop, context) == 0)
 *         threads_call(&t, loop, context);       no thread can be started: run the loop here
 *     status = threads_end(&t, err);
 *
 * A loop asks threads_running() before each item.  The first failure, or a stop, ends all loops after the items at
 * hand.  Of several failures that of the lowest item is returned, so the message does not depend on the threads.
 *
 * parallel_for() is the loop over numbers.  queue.h hands items from loops that read to loops that work.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_THREADS_H
#define CHEX_LIB_THREADS_H

#include "base/error.h"

#include <pthread.h>
#include <stdatomic.h>

/* Seconds between two ticks, and before a waiting thread sees a stop or a failure. */
#define THREADS_WAIT 0.2

struct threads {
    /* Set from anywhere, a signal handler too, to end the run; NULL: never. */
    const atomic_bool *stop;
    /* Called by the calling thread every THREADS_WAIT seconds, and once at the end; NULL: never. */
    void (*tick)(void *context);
    void *context;

    /* internal: */
    pthread_t caller;
    double ticked;
    atomic_bool failed;
    struct thread *started;
    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t ended;
    unsigned running;
    uint64_t failed_item;
    struct chex_error error;
};

/* *item: the item at hand, for the order of errors; UINT64_MAX: none. */
typedef enum chex_status thread_loop(void *context, uint64_t *item, struct chex_error *err);

/* The first three members are set, all others zero. */
void threads_init(struct threads *t);
/* Start up to `count` threads, with all signals blocked: the calling thread gets them.  Returns how many started. */
unsigned threads_start(struct threads *t, unsigned count, thread_loop *loop, void *context);
/* Run the loop in the calling thread. */
void threads_call(struct threads *t, thread_loop *loop, void *context);
/* False once a thread has failed or a stop was asked for.  Ticks, if it is time and this is the calling thread. */
bool threads_running(struct threads *t);
/* Note a failure, as if a loop had returned it. */
void threads_fail(struct threads *t, uint64_t item, const struct chex_error *why);
/* Wait for all threads.  A stop alone is no error here: the caller knows whether anything was left undone. */
enum chex_status threads_end(struct threads *t, struct chex_error *err);

/* A condition on a clock that never jumps; and a wait for it of THREADS_WAIT at most. */
void threads_cond_init(pthread_cond_t *cond);
void threads_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);

/* ---- the same work on many items ------------------------------------------------------------------------------- */

/* Items are numbers 0 .. count - 1, handed out in that order.  The result must not depend on the thread of an item. */
struct parallel {
    size_t count;
    unsigned threads; /* at most; at least the calling thread works */
    enum chex_status (*work)(void *context, void *worker, size_t item, struct chex_error *err);

    /* What a thread keeps from item to item: `worker`.  Both NULL where there is nothing. */
    void *(*worker_new)(void *context); /* NULL when out of memory */
    void (*worker_free)(void *worker);
    void *context;

    void (*tick)(void *context, size_t done); /* as in struct threads; done counts finished items */
    const atomic_bool *stop;                  /* ends the run after the items at hand: CHEX_ERR_STOPPED */

    unsigned threads_used; /* out */
};

enum chex_status parallel_for(struct parallel *p, struct chex_error *err);

#endif
