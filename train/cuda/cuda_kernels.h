/*
 * cuda_kernels.h - the kernels, and the struct that each takes: for C and for CUDA
 *
 * Activations are slabs: value (pixel, channel) of all images at [pixel * ld + channel], channels fastest, so a slice
 * of channels is a pointer and its ld.  Channels and lds are multiples of 8, and pointers of 16 bytes.  Weights are
 * packed as [out][kernel y][kernel x][in].  Values are those of CUDA_VALUE, sums and statistics float.
 *
 * Each kernel is there once for each type of value, with its name behind its own: conv_forward_64x64_fp16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_H
#define CHEX_CUDA_KERNELS_H

#ifndef __CUDACC_RTC__
#include <stddef.h>
#include <stdint.h>
#else
typedef unsigned char uint8_t;
#endif

/* ---- convolutions (cuda_gemm.h) ---------------------------------------------------------------------------------- */

/*
 * out(n, y, x, o) = sum over ky, kx, i of w(o, ky, kx, i) * in(n, y * stride + ky - pad, x * stride + kx - pad, i).
 * forward: reads x and w, writes y.  data: x becomes the gradient, of y's.  weights: partial becomes the gradient of
 * w, a sum for each of the splits, over what lies between split * steps_each and (split + 1) * steps_each steps of
 * GEMM_DEEP pixels.
 */
struct conv_args {
    void *x;        /* [images * height * width][x_ld] */
    void *y;        /* [images * out_height * out_width][y_ld] */
    const void *w;  /* [out][kernel][kernel][in] */
    float *partial; /* [splits][out][kernel][kernel][in] */
    unsigned images, height, width, out_height, out_width;
    unsigned in, out, x_ld, y_ld; /* channels */
    unsigned kernel, stride, pad;
    unsigned steps_each;
};
#define GEMM_DEEP   32
#define GEMM_STAGES 3

/*
 * X(name, rows, columns, warp rows, warp columns): the forms of a tile.  Rows are pixels (weights: output channels),
 * columns are output channels (data, weights: input channels).
 */
#define GEMM_TILES(X)            \
    X(128x128, 128, 128, 32, 64) \
    X(64x128, 64, 128, 32, 64)   \
    X(64x64, 64, 64, 32, 32)     \
    X(128x32, 128, 32, 32, 32)
#define GEMM_THREADS(rows, columns, warp_rows, warp_columns) ((rows) / (warp_rows) * ((columns) / (warp_columns)) * 32)

/* Shared memory of a block, for values of `size` bytes: the stages, and then the tile as it leaves. */
#define GEMM_STAGE_BYTES(rows, columns, size) (GEMM_STAGES * ((rows) + (columns)) * GEMM_DEEP * (size))
#define GEMM_OUT_BYTES(rows, columns, size)   ((rows) * ((columns) + 8) * (size))
#define GEMM_SHARED(rows, columns, size)                                         \
    (GEMM_STAGE_BYTES(rows, columns, size) > GEMM_OUT_BYTES(rows, columns, size) \
         ? GEMM_STAGE_BYTES(rows, columns, size)                                 \
         : GEMM_OUT_BYTES(rows, columns, size))

/* ---- what lies between master weights and packed ones (cuda_pack.cu) --------------------------------------------- */

#define PACK_THREADS 256
/* packed(o, ky, kx, i) = master(o, i, ky, kx) */
struct pack_weights_args {
    const float *master;
    void *packed;
    unsigned out, in, taps; /* taps: kernel * kernel */
};
/* gradient(o, i, ky, kx) = scale * (sum of the splits, in their order) + (keep ? gradient : 0) */
struct sum_splits_args {
    const float *partial;
    float *gradient;
    unsigned out, in, taps, splits, keep;
    float scale;
};

/* ---- batch normalisation (cuda_norm.cu) -------------------------------------------------------------------------- */

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
/* mean, variance (biased), 1 / sqrt(variance + epsilon), and gamma, beta as scale and shift; running statistics. */
struct norm_finish_args {
    const float *partial, *pivot, *gamma, *beta;
    const float *weight;
    float *mean, *inverse;                  /* [channels] */
    float *scale, *shift;                   /* y = x * scale + shift */
    float *running_mean, *running_variance; /* NULL: as they are */
    unsigned images, pixels, channels, blocks;
    float epsilon, momentum;
};
/* y = x * scale + shift, then ReLU; x and y may be the same slab. */
struct norm_apply_args {
    const void *x;
    void *y;
    const float *scale, *shift;
    unsigned pixels, channels, x_ld, y_ld, relu; /* pixels: of all images */
};
/* With g = dy where y > 0 (or no ReLU): sums of g and of g * (x - mean) * inverse, as norm_sums. */
struct norm_gradient_sums_args {
    const void *x, *y, *dy;
    const float *mean, *inverse;
    float *partial; /* [blocks][2][channels] */
    unsigned pixels, channels, x_ld, y_ld, dy_ld, relu, each;
};
/* dbeta, dgamma from the sums, and the two factors of the gradient of data. */
struct norm_gradient_finish_args {
    const float *partial;
    const float *weight;
    float *dgamma, *dbeta;     /* added to where keep is set */
    float *by_beta, *by_gamma; /* sums / count */
    unsigned images, pixels, channels, blocks, keep;
    float scale; /* of dgamma and dbeta */
};
/* dx (+)= gamma * inverse * (g - by_beta - xhat * by_gamma); images of weight 0 have no part in the means. */
struct norm_gradient_args {
    const void *x, *y, *dy;
    void *dx;
    const float *mean, *inverse, *gamma, *by_beta, *by_gamma, *weight;
    unsigned images, pixels, channels, x_ld, y_ld, dy_ld, dx_ld, relu, add;
};

/* ---- pools, sums of two branches (cuda_pool.cu) ------------------------------------------------------------------ */

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

/* ---- the head (cuda_head.cu) ------------------------------------------------------------------------------------- */

#define HEAD_THREADS 256
/* z(n, o) = sum over i of w(o, i) * x(n, i) + bias(o); gradients likewise.  z and its gradient are float. */
struct linear_args {
    const void *x;     /* [images][x_ld] */
    const float *w;    /* [out][in], master weights */
    const float *bias; /* [out] */
    float *z;          /* [images][out] */
    const float *dz;
    void *dx;          /* [images][dx_ld] */
    float *dw, *dbias; /* = scale * sum, added to where keep is set */
    unsigned images, in, out, x_ld, dx_ld, keep;
    float scale;
};
/* As train/math/loss.h; dz is multiplied by *loss_scale, the loss is not.  One block. */
struct loss_args {
    const float *z;
    const uint8_t *label;         /* [images][out] */
    const float *weight;          /* [images] */
    const float *positive_weight; /* [out]; NULL: all 1 */
    float *dz;
    double *loss;            /* the sum over the batch, added to where keep is set */
    const float *loss_scale; /* NULL: 1 */
    unsigned images, out, focal, keep;
    float gamma;
    double scale;
};

/* ---- a step (cuda_step.cu) --------------------------------------------------------------------------------------- */

#define STEP_THREADS 256
#define STEP_EACH    4096 /* gradients that a block squares */

/* What the host says for a step, copied by a node of the graph. */
struct step_block {
    double rate, clip; /* clip 0: never */
};
/* What goes on from step to step, and into a checkpoint. */
struct step_state {
    double applied;           /* steps that changed something: t of Adam */
    float loss_scale;         /* of the next step; 1 without one */
    unsigned good;            /* steps since it changed */
    double norm;              /* of the gradients of this step, unscaled, before clipping */
    unsigned apply;           /* does this step change anything? */
    float factor;             /* of the gradients: clipping and 1 / loss scale */
    float rate, root, shrink; /* of Adam: rate / correction, 1 / sqrt(correction), AdamW's decay */
};
/* partial[block]: sum of squares of STEP_EACH gradients, in double. */
struct gradient_squares_args {
    const float *gradient;
    double *partial;
    unsigned count;
};
/*
 * Not finite: nothing is applied and the loss scale, where there is one, falls by half, to least at the lowest; after
 * `grow` good steps it doubles, to most at the highest.  One thread.
 */
struct step_decide_args {
    const double *partial;
    const struct step_block *block;
    struct step_state *state;
    unsigned blocks, scaled, grow; /* scaled: there is a loss scale */
    float least, most;
    double beta1, beta2, decay; /* decay: AdamW's, else 0 */
};
/* As train/math/optimizer.h; sgd: momentum, moment2 NULL.  decay: that which is added to the gradient (Adam, SGD). */
struct optimizer_args {
    const struct step_state *state;
    float *parameter;
    const float *gradient;
    float *moment1, *moment2, *average; /* average NULL: none */
    unsigned count, sgd;
    float beta1, beta2, epsilon, momentum, decay, keep; /* keep: of the average */
};

#endif
