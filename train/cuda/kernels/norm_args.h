/*
 * norm_args.h - what kernels of normalisations take, and who normalises for himself; see args.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_NORM_ARGS_H
#define CHEX_CUDA_KERNELS_NORM_ARGS_H

#include "cuda/kernels/blocks.h"

/* ---- normalisations that nobody writes (norm.h) ------------------------------------------------------------- */

/*
 * A normalised tensor that one convolution or one pool reads is written nowhere.  The reader makes it of the slab while
 * loading; who writes a slab leaves sums of its channels; the gradient of a normalisation is masked, summed and added
 * where the gradient of data is made, and is finished when the writer of a slice asks for it.  For the channel c of a
 * slab, with count = block->images * pixels and the readers i of c:
 *
 *   y_i  = relu(x * scale_i + shift_i);  scale_i = gamma_i / sqrt(variance + epsilon)
 *   shift_i = beta_i - scale_i * mean
 *   g_i  = dy_i where y_i > 0 (in float, before it is rounded), else 0
 *   A    = sum over i of gamma_i g_i                      in the slab of gradients, as values
 *   by_beta  = sum over i of gamma_i sum(g_i) / count     float, of the channel
 *   by_gamma = sum over i of gamma_i sum(g_i xhat) / count
 *   dx   = (A - by_beta - xhat by_gamma) / sqrt(variance + epsilon);  0 of images of weight 0
 */

/*
 * Sums of channels as the blocks of a writer leave them, [blocks][2][channels]: of x - pivot and of its square, or of
 * g and of g * xhat; of images whose weight is not 0.  The reader adds the blocks, in double and in their order, so all
 * blocks of all readers have the same bits.  Where that is too much for each block of a reader, fold_sums makes fewer.
 */
struct channel_sums {
    float *partial;     /* NULL: none */
    const float *pivot; /* [channels]: a value near the mean; NULL for those of a gradient */
    unsigned blocks, channels;
};

/*
 * How a reader sees channels 0 .. channels - 1 of a slab.  gamma NULL: as they lie.  Channels fresh_first ..
 * fresh_first + fresh.channels - 1 have only sums yet: every block makes mean and variance of them for itself, and
 * block (0, 0, 0) writes them to mean and variance for the launches behind.
 */
struct norm_view {
    float *mean, *variance;          /* [channels], of the batch (variance biased, 0 of one value); to score: NULL */
    const float *gamma, *beta;       /* [channels]; with mean NULL scale and shift, which fold_weights has made */
    const struct batch_block *block; /* NULL to score: no fresh sums */
    struct channel_sums fresh;       /* partial NULL: none */
    unsigned fresh_first;
    unsigned pixels; /* of an image: for the count */
    unsigned relu;
    float epsilon;
};

/*
 * Shared memory of a block that sees channels through a view (norm.h): 2 or 4 floats a channel, channels by eight;
 * and while it adds fresh sums, NORM_FRESH channels at a time.
 */
#define NORM_FRESH                          128
#define NORM_TABLE_BYTES(channels, figures) (((channels) + 7) / 8 * 8 * (figures)*4)
#define NORM_SCRATCH                        8192
#define NORM_FINISH_FIGURES                 3 /* of the table that finishes a gradient: struct norm_finished */

/*
 * What a normalisation (the last reader of a slice) has left is added up, and the slice's gradient is finished.
 * For all `sums.channels` channels that it read: dbeta and dgamma (times state->unscale; added to where block->number >
 * 0).  For those beside the slice: by_beta, by_gamma (+)= gamma * sum / count.  The slice is channels first ..
 * first + channels - 1 of them: its gradient, which is A, becomes dx in place; 0 of images of weight 0.
 *
 * Grid: F + G * S blocks.  The first F = groups of NORM_CHANNELS channels of sums.channels write what belongs to a
 * channel.  Behind them S blocks of each of the G groups of the slice go through the pixels.  These add the sums of
 * their own channels too, so no block waits for another.  They read by_beta and by_gamma of the slice, which nobody
 * writes: no reader of the slice is left that could ask.
 */
struct norm_settle_args {
    struct channel_sums sums;
    const float *gamma;           /* [sums.channels] */
    float *dgamma, *dbeta;        /* [sums.channels] */
    float *by_beta, *by_gamma;    /* [sums.channels], of the slab */
    unsigned add;                 /* to by_beta and by_gamma */
    unsigned first, channels;     /* of the slice; channels 0: none */
    void *gradient;               /* of the slice's first channel */
    const void *x;                /* the same */
    const float *mean, *variance; /* [sums.channels] */
    const float *weight;          /* [images]; NULL: all 1 */
    const struct batch_block *block;
    const struct step_state *state;
    unsigned images, pixels, x_ld, gradient_ld; /* pixels: of an image */
    float epsilon;
};

/*
 * How the gradient of the slice y becomes finished while it is loaded.  values NULL: it is finished already.  Else
 * conv.y is A of the slice, and what is written above of normalisations makes dy of it, which is written nowhere.
 * by_beta and by_gamma are those of the slice, of readers that were settled (NULL: there were none).  The sums of the
 * last reader may come as they were left: then every block adds them to these, and block (0, 0, 0) writes dbeta and
 * dgamma of that reader (times state->unscale; added to where block->number > 0); nobody writes by_beta and by_gamma
 * any more.
 */
struct norm_finish {
    const void *values;           /* [pixels][values_ld], of the slice's first channel */
    const float *mean, *variance; /* [out], as all that follow */
    const float *by_beta, *by_gamma;
    struct channel_sums sums; /* of `out` channels; partial NULL: none */
    const float *gamma;       /* with sums, as dgamma, dbeta and state */
    float *dgamma, *dbeta;
    const struct step_state *state;
    const struct batch_block *block;
    unsigned values_ld;
    float epsilon;
};

/* ---- batch normalisation (norm.cu) -------------------------------------------------------------------------- */

/*
 * Sums of a slab whose writer leaves none, and a normalised tensor that is written: one before a sum of two branches,
 * or before a convolution of cuDNN.
 */
#define NORM_THREADS     256
#define NORM_CHANNELS    32                                          /* of a block that sums */
#define NORM_SUMS_SHARED (NORM_THREADS / 32 * 2 * NORM_CHANNELS * 4) /* two sums of each warp */
/*
 * Of the pixels of images whose weight is not 0: sums of x - pivot and of its square, one of each for each block.
 * pivot: a value near the mean (the running mean), so that the squares do not cancel.
 */
struct norm_sums_args {
    const void *x;
    const float *pivot;                    /* [channels] */
    const float *weight;                   /* [images]; NULL: all 1 */
    float *partial;                        /* [blocks][2][channels] */
    unsigned images, pixels, channels, ld; /* pixels: of an image */
    unsigned each;                         /* pixels, of all images, of a block */
};
/*
 * y = x seen through `norm`, and 0 of images of weight 0; x and y may be the same slab.  Grid: any number of blocks
 * across the pixels, groups of NORM_CHANNELS channels.
 */
struct norm_apply_args {
    const void *x;
    void *y;
    struct norm_view norm;
    const float *weight;                           /* [images]; NULL: all 1 */
    unsigned images, pixels, channels, x_ld, y_ld; /* pixels: of an image */
};

#endif
