/*
 * threads.h - threads that run a loop, while the calling thread waits and shows progress
 *
 *     threads_init(&t);
 *     if (threads_start(&t, n, loop, context) == 0)
 *         threads_call(&t, loop, context);       no thread can be started: run the loop here
 *     status = threads_end(&t, err);
 *
 * A loop checks threads_running() before each item.  The first failure, or a stop, ends all loops after their current
 * items.  If several items fail, the error of the lowest item is returned, so the message does not depend on the
 * threads.
 *
 * parallel_for() is such a loop over numbers.  queue.h passes items from loops that read to loops that process.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_THREADS_H
#define CHEX_LIB_THREADS_H

#include "base/error.h"

#include <pthread.h>
#include <stdatomic.h>

/* Seconds between two ticks.  Also the longest time before a waiting thread notices a stop or a failure. */
#define THREADS_WAIT 0.2

struct threads {
    /* A true value ends the run; any thread or signal handler may set it.  NULL: never. */
    const atomic_bool *stop;
    /* The calling thread calls it every THREADS_WAIT seconds, and once at the end.  NULL: never. */
    void (*tick)(void *context);
    void *context;

    /* Internal: */
    pthread_t caller;
    double ticked;
    atomic_bool failed;
    struct thread *started;
    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t ended;
    unsigned running;
    uint64_t failed_item;
    struct chex_error error;
};

/* A loop.  *item: its current item, which orders errors; UINT64_MAX: none. */
typedef enum chex_status thread_loop(void *context, uint64_t *item, struct chex_error *err);

/* Before the call, set the first three members and zero all others. */
void threads_init(struct threads *t);
/*
 * Start up to `count` threads, with all signals blocked, so that the calling thread gets them.  Returns the number of
 * threads started.
 */
unsigned threads_start(struct threads *t, unsigned count, thread_loop *loop, void *context);
/* Run the loop in the calling thread. */
void threads_call(struct threads *t, thread_loop *loop, void *context);
/*
 * Returns false after a thread has failed or a stop was requested.  Ticks, if it is time and this is the calling
 * thread.
 */
bool threads_running(struct threads *t);
/* Record a failure, as if a loop had returned it. */
void threads_fail(struct threads *t, uint64_t item, const struct chex_error *why);
/* Wait for all threads.  A stop is not an error here: the caller knows whether any work was left. */
enum chex_status threads_end(struct threads *t, struct chex_error *err);

/* A condition with a monotonic clock, and a wait for it of at most THREADS_WAIT seconds. */
void threads_cond_init(pthread_cond_t *cond);
void threads_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);

/* ---- a parallel loop over numbers ------------------------------------------------------------------------------ */

/*
 * Items are the numbers 0 .. count - 1, taken in this order.  The result must not depend on which thread gets an item.
 */
struct parallel {
    size_t count;
    unsigned threads; /* the most threads; at least the calling thread works */
    enum chex_status (*work)(void *context, void *worker, size_t item, struct chex_error *err);

    /* `worker` is the data that a thread keeps for all its items.  Both functions are NULL if there is none. */
    void *(*worker_new)(void *context); /* NULL when out of memory */
    void (*worker_free)(void *worker);
    void *context;

    void (*tick)(void *context, size_t done); /* as in struct threads; done: number of finished items */
    const atomic_bool *stop;                  /* a true value ends the run after the current items: CHEX_ERR_STOPPED */

    unsigned threads_used; /* result */
};

enum chex_status parallel_for(struct parallel *p, struct chex_error *err);

#endif
