/*
 * predict_batches.h - micro-batches between the threads that decode images and the thread that scores them
 *
 * Decoding threads put images into micro-batches in the order of arrival.  The scoring thread takes the full ones, and
 * at the end the last one.  A few micro-batches are in memory, so batches_put() waits if scoring is slower.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PREDICT_BATCHES_H
#define CHEX_TOOLS_PREDICT_BATCHES_H

#include "base/threads.h"

#include <stddef.h>
#include <stdint.h>

struct micro_batch {
    unsigned count;  /* images; at most the size given to batches_new() */
    uint32_t *row;   /* of each image */
    uint8_t *pixels; /* of each image, one after the other */
};

struct batches;

/* NULL when out of memory.  threads: a waiting call ends when they end. */
struct batches *batches_new(struct threads *threads, unsigned size, size_t image_bytes);
void batches_free(struct batches *b); /* NULL is allowed */

/* Copy an image into a micro-batch.  Any thread.  Returns false if the run is ending. */
bool batches_put(struct batches *b, uint32_t row, const uint8_t *pixels);
/* Promise that no more images will be put. */
void batches_close(struct batches *b);

/* Wait for the next micro-batch.  One thread.  NULL: after the last, or if the run is ending. */
const struct micro_batch *batches_take(struct batches *b);
/* Give the oldest micro-batch back that was taken. */
void batches_return(struct batches *b);

#endif
