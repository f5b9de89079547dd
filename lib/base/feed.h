/*
 * feed.h - the bounded place between threads that read images and threads that decode them
 *
 * A feed has a number of places, each for one encoded image.  A reader reserves a place for so many bytes, fills it
 * and puts it; a worker takes one, uses it and gives it back.  Both bounds hold however many threads there are: the
 * number of places, and the bytes in all of them, but for one image that is larger than the bound, which is in it
 * alone.
 *
 *     reader                                        worker
 *     p = feed_reserve(f, size)                     p = feed_take(f, true)
 *     ... fill p->bytes, p->item, p->why ...        ... use ...
 *     feed_put(f, p)  or  feed_return(f, p)         feed_return(f, p)
 *
 * Everything may be called by any thread.  Nobody waits longer than FEED_WAIT, so that a stop is seen by all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_FEED_H
#define CHEX_LIB_FEED_H

#include "base/memory.h"

#define FEED_WAIT 0.2 /* seconds */

struct feed_place {
    size_t item;
    struct buffer bytes;   /* reused from image to image */
    struct chex_error why; /* status other than CHEX_OK: the image could not be read, and bytes are none */

    uint64_t reserved; /* the feed's own */
    struct feed_place *next;
};

struct feed;

/* NULL when out of memory.  feed_free() frees the places too, wherever they are. */
struct feed *feed_new(unsigned places, uint64_t max_bytes);
void feed_free(struct feed *f); /* NULL is allowed */

/* A place for an image of `size` bytes, its buffer empty (but not yet of that size); NULL: none within FEED_WAIT. */
struct feed_place *feed_reserve(struct feed *f, uint64_t size);
/* Hand it to the workers, oldest first.  What was reserved beyond bytes.size is free again. */
void feed_put(struct feed *f, struct feed_place *p);

/* The oldest one that was put; NULL: none, with wait none within FEED_WAIT (at once after feed_close()). */
struct feed_place *feed_take(struct feed *f, bool wait);
/* Give a place back, used or not. */
void feed_return(struct feed *f, struct feed_place *p);

/* Nothing more will be put. */
void feed_close(struct feed *f);

#endif
