/*
 * norm_args.h - arguments of BN kernels, and of kernels with a fused BN; see args.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_NORM_ARGS_H
#define CHEX_CUDA_KERNELS_NORM_ARGS_H

#include "cuda/kernels/blocks.h"

/* ---- fused normalisations (norm.h) -------------------------------------------------------------------------- */

/*
 * If a normalised tensor has a single consumer (a convolution or a pool), it is never stored.  The consumer applies BN
 * and ReLU in its prologue.  The producer of a slab writes per-channel partial sums in its epilogue.  In backward, the
 * dgrad epilogue of each consumer applies the ReLU mask, adds to A and writes partial sums.  When the producer of a
 * slice needs its gradient, A is finalized to dx.  For channel c of a slab, with count = block->images * pixels and the
 * BNs i that read c:
 *
 *   y_i  = relu(x * scale_i + shift_i);  scale_i = gamma_i / sqrt(variance + epsilon)
 *   shift_i = beta_i - scale_i * mean
 *   g_i  = dy_i where y_i > 0 (in float, before rounding), else 0
 *   A    = sum over i of gamma_i g_i                      in the slab of gradients, as values
 *   by_beta  = sum over i of gamma_i sum(g_i) / count     float, per channel
 *   by_gamma = sum over i of gamma_i sum(g_i xhat) / count
 *   dx   = (A - by_beta - xhat by_gamma) / sqrt(variance + epsilon);  0 for images of weight 0
 */

/*
 * Per-channel partial sums, [CTAs of the producer][2][channels]: of x - pivot and of its square, or of g and g * xhat.
 * pivot is norm_pivot(running_mean), a value near the mean.
 * Images of weight 0 are left out.  The consumer reduces the rows in double and in their order, so all CTAs of all
 * consumers get the same bits.  If that is too much work for every CTA of a consumer, a reduce_sums launch reduces the
 * rows first.
 */
struct channel_sums {
    float *partial;            /* NULL: none */
    const float *running_mean; /* [channels]; NULL for sums of a gradient */
    unsigned blocks, channels;
};

/*
 * How a consumer applies a BN to channels 0 .. channels - 1 of a slab.  gamma NULL: no BN.  Channels fresh_first ..
 * fresh_first + fresh.channels - 1 have only partial sums so far: every CTA reduces them to mean and variance, and CTA
 * (0, 0, 0) stores these for later launches.
 */
struct norm_view {
    float *mean, *variance;    /* [channels], of the batch (biased variance, 0 for a single value); NULL for scoring */
    const float *gamma, *beta; /* [channels]; with mean NULL they are scale and shift, from fold_weights */
    const struct batch_block *block; /* NULL for scoring: there are no fresh sums */
    struct channel_sums fresh;       /* partial NULL: none */
    unsigned fresh_first;
    unsigned pixels; /* of an image, for count */
    unsigned relu;
    float epsilon;
};

/*
 * Shared memory of a CTA that applies a BN (norm.h): a table of 2 or 4 floats per channel, with channels in groups of
 * eight; and scratch for reducing fresh sums, NORM_FRESH channels at a time.
 */
#define NORM_FRESH                          128
#define NORM_TABLE_BYTES(channels, figures) (((channels) + 7) / 8 * 8 * (figures)*4)
#define NORM_SCRATCH                        8192
#define FINALIZE_FIGURES                    3 /* of the table that finalizes a gradient: struct finalize_constants */

/*
 * Reduces the partial sums of a BN, the last consumer of a slice, and finalizes the gradient of the slice.  For all
 * `sums.channels` channels of that BN it writes dbeta and dgamma (times state->unscale; accumulated if block->number >
 * 0).  For those outside the slice, by_beta, by_gamma (+)= gamma * sum / count.  The slice is channels first .. first +
 * channels - 1: its gradient A is replaced by dx; images of weight 0 get 0.
 *
 * Grid: F + G * S CTAs.  The first F = groups of NORM_CHANNELS channels of sums.channels write the per-channel results.
 * Then S CTAs for each of the G groups of the slice process the pixels.  They also reduce the partial sums of their own
 * channels, so no CTA waits for another.  They read by_beta and by_gamma of the slice, which this launch does not
 * write: the slice has no further consumers.
 */
struct norm_finalize_args {
    struct channel_sums sums;
    const float *gamma;           /* [sums.channels] */
    float *dgamma, *dbeta;        /* [sums.channels] */
    float *by_beta, *by_gamma;    /* [sums.channels], of the slab */
    unsigned add;                 /* added to the existing by_beta and by_gamma */
    unsigned first, channels;     /* of the slice; channels 0: no slice */
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
 * How a consumer finalizes the gradient of slice y in its prologue.  values NULL: it is final already.  Otherwise
 * conv.y is A of the slice, and the formulas above give dy, which is never stored.  by_beta and by_gamma are the sums
 * over the BNs that were reduced already (NULL: none).  The last BN may still have partial sums: then every CTA reduces
 * them, and CTA (0, 0, 0) writes dbeta and dgamma of that BN (times state->unscale; accumulated if block->number > 0).
 * by_beta and by_gamma are not written any more.
 */
struct finalize_view {
    const void *values;           /* [pixels][values_ld]: x of the BNs, at the slice's first channel */
    const float *mean, *variance; /* [out], as all pointers below */
    const float *by_beta, *by_gamma;
    struct channel_sums sums; /* of `out` channels; partial NULL: none */
    const float *gamma;       /* used with sums, as are dgamma, dbeta and state */
    float *dgamma, *dbeta;
    const struct step_state *state;
    const struct batch_block *block;
    unsigned values_ld;
    float epsilon;
};

/* ---- batch normalisation (norm.cu) -------------------------------------------------------------------------- */

/*
 * norm_sums: partial sums of a slab whose producer writes none.  norm_apply: a BN whose output is stored, in front of
 * the sum of two branches or of a convolution of cuDNN.
 */
#define NORM_THREADS     256
#define NORM_CHANNELS    32                                          /* per CTA that sums */
#define NORM_SUMS_SHARED (NORM_THREADS / 32 * 2 * NORM_CHANNELS * 4) /* two sums per warp */
/*
 * Partial sums of x - pivot and of its square over the pixels of images with weight, one row per CTA.  pivot =
 * norm_pivot(running_mean) is near the mean, so that the squares do not cancel.
 */
struct norm_sums_args {
    const void *x;
    const float *running_mean;             /* [channels] */
    const float *weight;                   /* [images]; NULL: all 1 */
    float *partial;                        /* [blocks][2][channels] */
    unsigned images, pixels, channels, ld; /* pixels: of an image */
    unsigned each;                         /* pixels of all images per CTA */
};
/*
 * y = BN and ReLU of x; 0 for images of weight 0.  x and y may be in the same slab.  Grid: any number of CTAs along the
 * pixels, groups of NORM_CHANNELS channels.
 */
struct norm_apply_args {
    const void *x;
    void *y;
    struct norm_view norm;
    const float *weight;                           /* [images]; NULL: all 1 */
    unsigned images, pixels, channels, x_ld, y_ld; /* pixels: of an image */
};

#endif
