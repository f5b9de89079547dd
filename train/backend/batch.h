/*
 * batch.h - a micro-batch, as the loader makes it and a backend takes it
 *
 * All of it is host memory, and is read before the call that takes it returns: a backend with memory of its own copies
 * it first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_BATCH_H
#define CHEX_TRAIN_BATCH_H

#include "backend/input.h"

#include <stdbool.h>
#include <stdint.h>

/* The numbers of input.h. */
extern const float input_mean[INPUT_CHANNELS], input_deviation[INPUT_CHANNELS];

/* The part of a source image that the network sees. */
struct crop {
    uint16_t x, y; /* left upper corner: x + input width <= source */
    bool flip;     /* left and right exchanged */
};

/*
 * An image of weight 0 is padding and counts in nothing, wherever it stands: the loss, all gradients and the statistics
 * are those of a smaller micro-batch without it, whatever its pixels.  Its logits, and its gradients in every buffer,
 * are 0.  The statistics of a channel are taken over
 *     count = images of another weight * pixels
 * values: mean, variance = squares / count, and backward the means over the batch.  The running variance takes
 * squares / (count - 1).
 *     count = 1  the variance is 0, so the normalised value is beta and no gradient flows back through it.  One value
 *                says nothing of a variance: the running statistics of this normalisation stay.  (PyTorch refuses such
 *                a batch.)
 *     no image   nothing is computed: the loss is 0, the running statistics stay, no gradient is added.
 */
struct image_store; /* of a backend: images that stay with the device */

#define STORE_NONE UINT32_MAX

struct batch {
    const uint8_t *pixels; /* [batch][source][source], 0 = black */
    const uint32_t *index; /* [batch] images of the store, or STORE_NONE: it is in pixels; NULL: all are */
    const struct image_store *store;
    const struct crop *crop; /* [batch]; score() has crops of its own */
    const uint8_t *label;    /* [batch][outputs], 0 or 1; not read by score() */
    const float *weight;     /* [batch], 0 for padding; NULL: all 1 */
    double scale;            /* loss = scale * sum: 1 / (images of weight 1 in the global batch * outputs) */
};

/* The images of a micro-batch that are no padding: their places in it, in order, to place[], and how many there are. */
unsigned batch_images(const struct batch *batch, unsigned size, unsigned *place);

#endif
