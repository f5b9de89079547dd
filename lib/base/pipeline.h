/*
 * pipeline.h - the same work on many items by a few threads
 *
 * Items are numbers 0 .. count - 1, handed out in that order; what is done with them must not depend on which thread
 * does it.  The first failure ends the run: no further item is begun, and its error is returned (of several, that of
 * the lowest item, so that the message does not depend on the threads).
 *
 * Or items come from readers: threads of their own, which fetch what the workers then take with next(), in any order
 * (feed.h is the place between them).  Readers come on top of the workers, since they mostly wait.  Where no thread
 * can be started, the calling thread reads and works in turns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PIPELINE_H
#define CHEX_LIB_PIPELINE_H

#include "base/error.h"

#include <stdatomic.h>

/* Seconds: so often the calling thread ticks, and so soon a stop is seen. */
#define PIPELINE_WAIT 0.2

struct pipeline {
    size_t count;     /* items; with readers: at most so many */
    unsigned threads; /* wanted; fewer where the system gives fewer (at least the caller's own) */

    /*
     * Work on one item.  `worker` is what worker_new made for this thread.  Anything but CHEX_OK ends the run.
     */
    enum chex_status (*work)(void *context, void *worker, size_t item, struct chex_error *err);

    /* What a thread keeps from item to item; both NULL where there is nothing. */
    void *(*worker_new)(void *context); /* NULL when out of memory */
    void (*worker_free)(void *worker);
    void *context;

    /*
     * Called by the calling thread about five times a second while others work, and once at the end; NULL: never.
     * done counts finished items.
     */
    void (*tick)(void *context, size_t done);

    /* Set from anywhere, a signal handler too, to end the run after the items at hand: CHEX_ERR_STOPPED. */
    const atomic_bool *stop;

    /*
     * Readers; 0: none, and the two below are not called.  They share one stock of what is to be read, so that one
     * alone gets through all of it.
     *
     * read     one step of reader 0 .. readers - 1, a fraction of a second where possible: fetch an item, or wait for
     *          room, not longer than PIPELINE_WAIT.  *more = false: nothing is left to begin for this one.  Errors are
     *          those of the item count + reader
     * read_end no reader is at work any more: wake those who wait in next().  By any thread; may be NULL
     * next     an item for this worker; false: there is none now.  With wait, after waiting for it PIPELINE_WAIT at
     *          most (less after read_end)
     */
    unsigned readers;
    enum chex_status (*read)(void *context, unsigned reader, bool *more, struct chex_error *err);
    void (*read_end)(void *context);
    bool (*next)(void *context, void *worker, bool wait, size_t *item);

    unsigned threads_used; /* out: those that work */
};

enum chex_status pipeline_run(struct pipeline *p, struct chex_error *err);

#endif
