/*
 * queue.h - the bounded queue between threads that read images and threads that decode them
 *
 * An entry is one encoded image and where it belongs.  A producer reserves an entry for a number of bytes, fills it and
 * pushes it; a consumer pops it, uses it and gives it back.  Both bounds hold however many threads there are: the
 * number of entries, and the bytes reserved by all of them; an image larger than that bound is in the queue alone.
 *
 *     producer                                         consumer
 *     while ((e = queue_reserve(q, size)) != NULL) {   while ((e = queue_pop(q)) != NULL) {
 *         ... fill e ...                                   ... use e ...
 *         queue_push(q, e);  or  queue_return(q, e);       queue_return(q, e);
 *     }                                                }
 *     queue_close(q);
 *
 * Any thread may call these functions.  A call that waits returns NULL soon after the run has failed or was stopped.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_QUEUE_H
#define CHEX_LIB_QUEUE_H

#include "base/memory.h"
#include "base/threads.h"

#define QUEUE_PATH 4096

struct queue_entry {
    uint32_t row;             /* of the label file */
    uint32_t shard, index;    /* the slot */
    char path[QUEUE_PATH];    /* of the file, or of the archive that holds it */
    struct buffer bytes;      /* reused from image to image */
    struct chex_error reason; /* status other than CHEX_OK: why the image could not be read; there are no bytes then */

    /* internal: */
    uint64_t reserved;
    struct queue_entry *next;
};

struct queue;

/* For threads of this run.  NULL when out of memory.  queue_free() frees all entries, wherever they are. */
struct queue *queue_new(struct threads *threads, unsigned entries, uint64_t max_bytes);
void queue_free(struct queue *q); /* NULL is allowed */

/* Wait for an entry and room for `size` bytes.  Its buffer is empty, and not yet of that size.  NULL: the run ends. */
struct queue_entry *queue_reserve(struct queue *q, uint64_t size);
/* Append it to the queue.  What was reserved beyond bytes.size is free again. */
void queue_push(struct queue *q, struct queue_entry *e);
/* Wait for the oldest entry.  NULL: the queue is closed and empty, or the run ends. */
struct queue_entry *queue_pop(struct queue *q);
/* Give an entry back, used or not. */
void queue_return(struct queue *q, struct queue_entry *e);

/* No more entries will be pushed. */
void queue_close(struct queue *q);
/* The queue was closed, and all entries were popped. */
bool queue_is_drained(struct queue *q);

/*
 * For a process that cannot start a thread: queue_push() calls `consume` instead of appending, and then returns the
 * entry.
 */
void queue_consume(struct queue *q, void (*consume)(void *context, struct queue_entry *e), void *context);

#endif
