/*
 * batch.h - a micro-batch: the loader produces it, a backend consumes it
 *
 * All pointers are to host memory.  A call reads them before it returns; a backend with its own memory copies them
 * first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_BATCH_H
#define CHEX_TRAIN_BATCH_H

#include "backend/crop.h"
#include "backend/input.h"

#include <stdbool.h>
#include <stdint.h>

/* The constants of input.h. */
extern const float input_mean[INPUT_CHANNELS], input_deviation[INPUT_CHANNELS];

/*
 * An image of weight 0 is padding, at any index.  The loss, all gradients and the statistics are those of a smaller
 * micro-batch without it, for any pixels.  Its logits, and its gradients in every buffer, are 0.  The statistics of a
 * channel are over
 *     count = images with nonzero weight * pixels
 * values: mean, variance = squares / count, and in backward the means over the batch.  The running variance uses
 * squares / (count - 1).
 *     count = 1  the variance is 0, so the normalised value is beta and no gradient flows back.  A single value has no
 *     variance, so the running statistics of this normalisation do not change.  (PyTorch rejects such a batch.)
 *     no image   nothing is computed: the loss is 0, the running statistics do not change, no gradient is added.
 *
 * An unknown label has no loss and no gradient.  The backend counts the labels of a step over all micro-batches and
 * ranks.  At the end of the step it multiplies loss and gradients by labels / known labels, so they are means over the
 * known labels.  Without an unknown label this changes no bit.  A step without any known label has the loss 0 and the
 * gradient 0; it is applied like any other step, so moments and weight decay still change the parameters.
 */
/*
 * Mix-up (Zhang et al., ICLR 2018): if mix[i] is not 0, image i is mixed with its partner, image i + 1, after both were
 * cropped and changed as their own crops say.  The level of a pixel is
 *     (own * (MIX_ONE - m) + partner * m + MIX_ONE / 2) / MIX_ONE, rounded down, with m = mix[i] * MIX_ONE
 * Integers only, so all backends compute the same levels.  mix[i] is a multiple of 1 / MIX_ONE from 0 to 1.  loss.h has
 * the loss.  The partner of the last image has no label and no weight of its own, and a partner may be padding: its
 * pixels count all the same.
 */
struct image_store; /* of a backend: images in device memory */

#define STORE_NONE UINT32_MAX

struct batch {
    const uint8_t *pixels; /* [images][source][source], 0 = black; images: batch, with mix batch + 1 */
    /* [images]: image of the store, or STORE_NONE for an image in `pixels`; NULL: all are in `pixels` */
    const uint32_t *index;
    const struct image_store *store;
    const struct crop *crop; /* [images]; score_start() has its own crops */
    const uint8_t *label;    /* [batch][outputs], as in loss.h; not read by score_start() */
    const float *weight;     /* [batch], 0 for padding; NULL: all 1 */
    const float *mix;        /* [batch], for plan_options.mixup; NULL: no image is mixed; not read by score_start() */
    double scale;            /* of the loss: 1 / (images of weight 1 in the global batch * outputs) */
};

/* Write the indices of all images without padding to place[], in order; returns their number. */
unsigned batch_images(const struct batch *batch, unsigned size, unsigned *place);

#endif
