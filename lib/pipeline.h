/*
 * pipeline.h - the same work on many items by a few threads
 *
 * Items are numbers 0 .. count - 1, handed out in that order; what is done with them must not depend on which thread
 * does it.  The first failure ends the run: no further item is begun, and its error is returned (of several, that of
 * the lowest item, so that the message does not depend on the threads).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PIPELINE_H
#define CHEX_LIB_PIPELINE_H

#include "error.h"

#include <stdatomic.h>

struct pipeline {
    size_t count;     /* items */
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

    unsigned threads_used; /* out */
};

enum chex_status pipeline_run(struct pipeline *p, struct chex_error *err);

#endif
