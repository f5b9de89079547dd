/*
 * queue.h - the bounded queue between threads that read images and threads that decode them
 *
 * An entry is an encoded image with its slot, or the pixels of another data set's record.  A producer reserves an entry
 * for a number of bytes, fills it and pushes it.  A consumer pops it, uses it and returns it.  The queue limits the
 * number of entries and the total of reserved bytes, for any number of threads.  An image larger than the limit of
 * bytes is in the queue on its own.
 *
 *     producer                                         consumer
 *     while ((e = queue_reserve(q, size)) != NULL) {   while (queue_pop(q, &e, 1) > 0) {
 *         ... fill e ...                                   ... use e ...
 *         queue_push(q, e);  or  queue_return(q, e);       queue_return(q, e);
 *     }                                                }
 *     queue_close(q);
 *
 * Any thread may call these functions.  A waiting call returns NULL soon after the run has failed or was stopped.
 *
 * A producer that found no entry waits until half of them are unused: it sleeps and wakes once for several
 * images, not once for each.
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
    char path[QUEUE_PATH];    /* of the file, or of the archive that contains it */
    struct buffer bytes;      /* reused for every image */
    uint32_t width, height;   /* if not 0: bytes has pixels, uint8 [height][width] */
    struct chex_error reason; /* if its status is not CHEX_OK: why the image could not be read; bytes is empty */

    /* Internal: */
    uint64_t reserved;
    struct queue_entry *next;
};

struct queue;

/*
 * Make a queue for the threads of a run; 1 or more of them, `consumers`, pop.  NULL when out of memory.  queue_free()
 * also frees all entries in use.
 */
struct queue *queue_new(struct threads *threads, unsigned consumers, unsigned entries, uint64_t max_bytes);
void queue_free(struct queue *q); /* NULL is allowed */

/*
 * Wait for an entry and room for `size` bytes.  Its buffer is empty, and may still be smaller.  NULL: the run is
 * ending.
 */
struct queue_entry *queue_reserve(struct queue *q, uint64_t size);
/* Append the entry to the queue.  Reserved bytes beyond bytes.size are released. */
void queue_push(struct queue *q, struct queue_entry *e);
/*
 * Wait for the oldest entry, and take up to `most` entries that are in the queue then, but not more than two where the
 * other consumers would get fewer.  Returns their number; 0: the queue is closed and empty, or the run is ending.
 */
unsigned queue_pop(struct queue *q, struct queue_entry **e, unsigned most);
/* Return an entry to the queue, whether it was used or not. */
void queue_return(struct queue *q, struct queue_entry *e);
/* Return several at once, so that a thread that waits for room wakes up once for them. */
void queue_return_all(struct queue *q, struct queue_entry *const *e, unsigned count);

/* Promise that no more entries will be pushed. */
void queue_close(struct queue *q);
/* Returns whether the queue was closed and all entries were popped. */
bool queue_is_drained(struct queue *q);

/*
 * For a process that cannot start threads: queue_push() calls `consume` instead of appending, and then returns the
 * entry to the queue.
 */
void queue_consume(struct queue *q, void (*consume)(void *context, struct queue_entry *e), void *context);

#endif
