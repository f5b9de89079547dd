/*
 * pool_args.h - arguments of pools, and of BN kernels that are fused with other operations; see args.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_POOL_ARGS_H
#define CHEX_CUDA_KERNELS_POOL_ARGS_H

#include "cuda/kernels/norm_args.h"

/* ---- pools, sums of two branches (pool.cu) ------------------------------------------------------------------ */

#define POOL_THREADS 256
/*
 * A pool over kernel x kernel.  Pixels outside the image are ignored by a max pool, and count as zeros in an average
 * pool.  The gradient of a maximum goes to the first of equal values.  The gradient is a gather: each input evaluates
 * the windows that contain it.
 */
struct pool_args {
    const void *x; /* also an input of max_pool_gradient */
    void *y;
    const void *dy;
    void *dx;
    unsigned images, height, width, out_height, out_width, channels;
    unsigned x_ld, y_ld, dy_ld, dx_ld;
    unsigned kernel, stride, pad, add; /* add: accumulate into dx */
};
/* y(image, channel) = mean over `pixels` pixels; dx = dy / pixels. */
struct mean_pool_args {
    const void *x;
    void *y; /* [images][y_ld] */
    const void *dy;
    void *dx;
    unsigned images, pixels, channels, x_ld, y_ld, dy_ld, dx_ld, add;
};
/* y = relu(x + x2); g = dy where y > 0; dx (+)= g, dx2 (+)= g.  pixels: of all images. */
struct branches_args {
    const void *x, *x2;
    void *y;
    const void *dy;
    void *dx, *dx2;
    unsigned pixels, channels, x_ld, x2_ld, y_ld, dy_ld, dx_ld, dx2_ld, relu, add, add2;
};

/* ---- normalisations fused with other operations (finalize.cu, norm_pool.cu) ------------------------------ */

/*
 * Kernels that process a slab have a grid of groups of NORM_CHANNELS channels, and any number of CTAs along the pixels.
 * The CTAs use a grid-stride loop over NORM_ROWS pixels at a time.
 */
#define NORM_ROWS (NORM_THREADS / 4)

/*
 * Reduces rows of partial sums to fewer rows: row b of `to` is the sum of rows b * each .. (b + 1) * each - 1 of
 * `from`, with each = from.blocks / to.blocks rounded up, in a fixed order.  Grid: to.blocks, groups of NORM_CHANNELS
 * channels.
 */
#define REDUCE_SHARED (NORM_THREADS / 16 * 2 * NORM_CHANNELS * 8)
struct reduce_sums_args {
    struct channel_sums from, to;
};
/* For norm_finalize (finalize.cu). */
#define FINALIZE_SHARED (NORM_SCRATCH + NORM_TABLE_BYTES(NORM_CHANNELS, FINALIZE_FIGURES))
/*
 * Backward of a BN whose output is stored (norm_apply): A (+)= gamma * g, and its partial sums.  Images of weight 0 are
 * left out.  Grid: sums.blocks, groups of NORM_CHANNELS channels.
 */
#define NORM_VIEW_SHARED (NORM_SCRATCH + NORM_TABLE_BYTES(NORM_CHANNELS, 4))
struct norm_mask_args {
    const void *x, *dy;
    void *gradient; /* A */
    struct norm_view norm;
    struct channel_sums sums;
    const float *weight; /* [images]; NULL: all 1 */
    unsigned images, pixels, channels, x_ld, dy_ld, gradient_ld, add;
};
/*
 * The running statistics of all BNs in a micro-batch, computed by CTAs of the loss.  A statistic over fewer than
 * NORM_LEAST values is not updated.
 */
#define NORM_LEAST 2 /* GRAPH_NORM_LEAST of graph.h */
struct running_entry {
    const float *mean, *variance;
    size_t running_mean, running_variance; /* indices of floats in `running` */
    unsigned pixels, channels;
    unsigned first_block; /* one CTA has HEAD_THREADS channels */
};
struct norm_running_args {
    const struct running_entry *entry; /* [entries], in device memory */
    float *running;
    const struct batch_block *block;
    unsigned entries;
    float momentum;
};
/*
 * Reduces the wgrad partial sums of several convolutions in one launch:
 *
 *   gradient(o, i, ky, kx) = state->unscale * (sum over the splits) + (block->number > 0 ? gradient : 0)
 *
 * For the stem, [out][3][7][7], this is the transpose of what pack_weights computes.
 *
 *   partial   [splits][out][taps][in]; for the stem [splits][out][4][STEM_IN]
 *
 * A CTA has SUM_EIGHTS groups of eight adjacent inputs of an output, with all their taps; SUM_PARTS threads share the
 * splits of each group.  For the stem a CTA has SUM_STEM weights [out][ky][kx].  cuda_sum_blocks() of launch.h returns
 * the CTAs of an entry.  At most PACK_THREADS taps.
 */
#define SUM_PARTS(taps, splits) \
    ((splits) <= 8 || (taps) > PACK_THREADS / 16 ? 1u : (splits) <= 32 ? 4u : (taps) > 1 ? 8u : 16u)
#define SUM_EIGHTS(taps, splits) (PACK_THREADS / ((taps)*SUM_PARTS(taps, splits)))
#define SUM_STEM                 32
#define SUM_SHARED               (PACK_FOUND + PACK_THREADS * 3 * 16) /* an extra 16 bytes for each tap and part */
struct splits_entry {
    const void *partial; /* aligned to 16 bytes */
    size_t gradient;     /* index of a float in the arena of gradients */
    unsigned out, in, taps, splits, stem;
    unsigned first_block; /* as in pack_entry */
};
struct sum_all_args {
    const struct splits_entry *entry; /* [entries], in device memory */
    float *gradient;
    const struct batch_block *block;
    const struct step_state *state;
    unsigned entries;
};
/*
 * A BN fused with the pool after it: max (3 x 3, stride 2, padding 1), average (2 x 2, stride 2, no padding), or mean
 * (of all pixels).  The pool works on the BN's output before rounding; images of weight 0 give 0.  With sums.partial,
 * the max pool also writes the partial sums of its rounded output.
 *
 * For training, fprop of a max pool writes the winner of each window: the position 3 * row + column, 0 to 8, of its
 * maximum.  It is the first of equal values, or the last NaN, and always a pixel inside the image.
 *
 *   winners   unsigned [images * out_height * out_width][channels / 8]; four bits per channel, the first one lowest
 *
 * Backward: A (+)= gamma * g, and its partial sums, where g is the gradient of the pool under the ReLU mask.  The
 * gradient of a maximum goes to the winner.  dy may be finalized in the prologue.
 *
 * Grid: fprop has any number of CTAs, which share the outputs (mean: one image at a time, so `images` CTAs are best).
 * Backward has sums.blocks CTAs, which share squares of 2 x 2 inputs (mean: pixels).  The second dimension is groups of
 * NORM_CHANNELS channels.
 */
#define NORM_POOL_SHARED (NORM_VIEW_SHARED + NORM_TABLE_BYTES(NORM_CHANNELS, FINALIZE_FIGURES))
struct norm_pool_args {
    struct pool_args pool; /* x and dx belong to the BN's input: dx is A; mean: kernel 0, y and dy [images][ld] */
    struct norm_view norm;
    struct channel_sums sums;      /* of backward; of y in a max fprop, or none */
    const float *weight;           /* [images]; NULL: all 1 */
    unsigned *winners;             /* of max; NULL: fprop does not write them */
    struct finalize_view finalize; /* finalizes dy, in backward of max */
};

#endif
