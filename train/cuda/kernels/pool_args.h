/*
 * pool_args.h - what kernels of pools take, and normalisations with what is beside them; see args.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_POOL_ARGS_H
#define CHEX_CUDA_KERNELS_POOL_ARGS_H

#include "cuda/kernels/norm_args.h"

/* ---- pools, sums of two branches (pool.cu) ------------------------------------------------------------------ */

#define POOL_THREADS 256
/*
 * Over kernel x kernel; what lies outside counts neither for a maximum nor, without padding, for a mean.  The
 * gradient of a maximum goes to the first of equal ones.  Gradients are gathered: an input asks the windows that it
 * is in.
 */
struct pool_args {
    const void *x; /* max_pool_gradient too */
    void *y;
    const void *dy;
    void *dx;
    unsigned images, height, width, out_height, out_width, channels;
    unsigned x_ld, y_ld, dy_ld, dx_ld;
    unsigned kernel, stride, pad, add; /* add: to what dx has */
};
/* y(image, channel) = the mean over `pixels` pixels; dx = dy / pixels. */
struct mean_pool_args {
    const void *x;
    void *y; /* [images][y_ld] */
    const void *dy;
    void *dx;
    unsigned images, pixels, channels, x_ld, y_ld, dy_ld, dx_ld, add;
};
/* y = x + x2, then ReLU; g = dy where y > 0, dx (+)= g, dx2 (+)= g; pixels: of all images. */
struct branches_args {
    const void *x, *x2;
    void *y;
    const void *dy;
    void *dx, *dx2;
    unsigned pixels, channels, x_ld, x2_ld, y_ld, dy_ld, dx_ld, dx2_ld, relu, add, add2;
};

/* ---- normalisations with what is beside them (settle.cu, norm_pool.cu) --------------------------------- */

/*
 * Kernels that go through a slab have groups of NORM_CHANNELS channels across, and down the pixels any number of
 * blocks, which stride over the grid: NORM_ROWS pixels at a time.
 */
#define NORM_ROWS (NORM_THREADS / 4)

/*
 * Fewer blocks of sums: block b of `to` is the sum of the blocks b * each .. (b + 1) * each - 1 of `from`, each =
 * from.blocks / to.blocks rounded up, in an order that depends on numbers alone.  Grid: to.blocks, groups of
 * NORM_CHANNELS channels.
 */
#define FOLD_SHARED (NORM_THREADS / 16 * 2 * NORM_CHANNELS * 8)
struct fold_sums_args {
    struct channel_sums from, to;
};
/* Of norm_settle (settle.cu). */
#define SETTLE_SHARED (NORM_SCRATCH + NORM_TABLE_BYTES(NORM_CHANNELS, NORM_FINISH_FIGURES))
/*
 * Backward of a normalisation that was written (norm_apply): A (+)= gamma * g, and its sums.  Images of weight 0 have
 * none.  Grid: sums.blocks, groups of NORM_CHANNELS channels.
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
 * Running statistics of all normalisations of a micro-batch, by blocks of the loss; they move unless the count is below
 * NORM_LEAST.
 */
#define NORM_LEAST 2 /* GRAPH_NORM_LEAST of graph.h */
struct running_entry {
    const float *mean, *variance;
    size_t running_mean, running_variance; /* floats of `running` */
    unsigned pixels, channels;
    unsigned first_block; /* blocks of HEAD_THREADS channels */
};
struct norm_running_args {
    const struct running_entry *entry; /* [entries], in device memory */
    float *running;
    const struct batch_block *block;
    unsigned entries;
    float momentum;
};
/*
 * Gradients of weights of several convolutions in one launch: gradient(o, i, ky, kx) = state->unscale * (sum of the
 * splits) + (block->number > 0 ? gradient : 0); of the stem, [out][3][7][7], what pack_weights does, turned round.
 * partial: [splits][out][taps][in], of the stem [splits][out][4][STEM_IN].
 *
 * A block has SUM_EIGHTS times eight neighbouring inputs of an output, with all their taps, and SUM_PARTS threads share
 * the splits of each; of the stem SUM_STEM weights [out][ky][kx].  Blocks of an entry: cuda_sum_blocks() of
 * launch.h.  At most PACK_THREADS taps.
 */
#define SUM_PARTS(taps, splits) \
    ((splits) <= 8 || (taps) > PACK_THREADS / 16 ? 1u : (splits) <= 32 ? 4u : (taps) > 1 ? 8u : 16u)
#define SUM_EIGHTS(taps, splits) (PACK_THREADS / ((taps)*SUM_PARTS(taps, splits)))
#define SUM_STEM                 32
#define SUM_SHARED               (PACK_THREADS * 3 * 16) /* a row of four floats more for each tap and part */
struct splits_entry {
    const void *partial; /* by 16 bytes */
    size_t gradient;     /* float of the arena of gradients */
    unsigned out, in, taps, splits, stem;
    unsigned first_block; /* as of pack_entry */
};
struct sum_all_args {
    const struct splits_entry *entry; /* [entries], in device memory */
    float *gradient;
    const struct batch_block *block;
    const struct step_state *state;
    unsigned entries;
};
/*
 * A normalisation and the pool behind it in one: max (3 x 3, stride 2, padding 1), average (2 x 2, stride 2, no
 * padding), mean (of all pixels).  Of values before they are rounded; 0 of images of weight 0.  With sums.partial max
 * leaves those of what it writes, rounded.  Backward:
 * A (+)= gamma * g with its sums, where g is the pool's gradient of data under the mask; the gradient of a maximum goes
 * to the first of equal ones, and dy may be finished while it is loaded.
 *
 * Grid: forward, any number of blocks, which share the outputs (mean: an image at a time, so `images` are best);
 * backward sums.blocks, which share squares of 2 x 2 inputs (mean: pixels).  Across groups of NORM_CHANNELS channels.
 */
#define NORM_POOL_SHARED (NORM_VIEW_SHARED + 4 * NORM_CHANNELS * 4) /* the last: to finish dy */
struct norm_pool_args {
    struct pool_args pool; /* x, dx: of the normalisation's input: dx is A; mean: kernel 0, y and dy [images][ld] */
    struct norm_view norm;
    struct channel_sums sums;  /* backward; max forward: of y, or none */
    const float *weight;       /* [images]; NULL: all 1 */
    struct norm_finish finish; /* of dy, backward of max */
};

#endif
