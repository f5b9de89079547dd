/*
 * conv_args.h - what kernels of convolutions take, their tiles and shared memory; see args.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_CONV_ARGS_H
#define CHEX_CUDA_KERNELS_CONV_ARGS_H

#include "cuda/kernels/norm_args.h"

/* ---- convolutions (gemm.h) ---------------------------------------------------------------------------------- */

/* Bytes of a partial sum of so many splits, beside values of `size` bytes (partial.h). */
#define PARTIAL_SIZE(splits, size) ((splits) > 1 ? (size) : 4u)

/*
 * out(n, y, x, o) = sum over ky, kx, i of w(o, ky, kx, i) * in(n, y * stride + ky - pad_h, x * stride + kx - pad_w, i).
 * forward: reads x and w, writes y.  data: x becomes the gradient, of y's, or what it has is added to.  weights:
 * partial becomes the gradient of w, a sum for each of the splits, over what lies between split * steps_each and
 * (split + 1) * steps_each steps of GEMM_DEEP pixels.
 *
 * With norm.gamma: forward and weights read x through `norm` (a pixel outside is 0 behind the normalisation).  data:
 * the product is dy of the normalisation; x (+)= gamma * g, and `sums` are those of g and g * xhat, of the `in`
 * channels; `values` is x itself, as x lies.  forward with sums.partial: those of y, rounded, of the `out` channels;
 * without them y may have a bias, and ReLU behind it.
 * Blocks of sums are blocks down, of tiles_each tiles each; rows of images of weight 0 are no part of a sum.
 *
 * Steps of weights are those of pixels of x, or, with a stride beyond 1, of y.  by_width and by_height divide by sides
 * of what a kernel counts: of x for data and for weights with stride 1, else of y.
 */
struct conv_divisor {
    unsigned multiplier, shift;
};
struct conv_args {
    void *x;       /* [images * height * width][x_ld] */
    void *y;       /* [images * out_height * out_width][y_ld] */
    const void *w; /* [out][kernel_h][kernel_w][in] */
    void *partial; /* [splits][out][kernel_h][kernel_w][in], of PARTIAL_SIZE bytes each */
    unsigned images, height, width, out_height, out_width;
    unsigned in, out, x_ld, y_ld; /* channels; the stem's x_ld is less than in */
    unsigned kernel_h, kernel_w, stride, pad_h, pad_w;
    unsigned add;                            /* data: to what x has */
    unsigned steps_each;                     /* weights */
    unsigned tiles_each;                     /* forward, data: tiles down of a block */
    struct conv_divisor by_width, by_height; /* with steps_each and tiles_each filled by who chooses a form */
    struct norm_view norm;                   /* of x */
    const void *values;                      /* data with norm */
    struct channel_sums sums;
    const float *weight; /* [images], with sums; NULL: all 1 */
    const float *bias;   /* forward: [out], or NULL */
    unsigned relu;       /* forward without sums: of y */
};
/* Both gradients of one convolution in one launch: they read y, and neither reads what the other writes. */
struct conv_pair_args {
    struct conv_args data, weights;
};
#define GEMM_DEEP          32
#define GEMM_STAGES        3
#define GEMM_NORM_CHANNELS 2048 /* at most, of a forward convolution that reads x through `norm` */

/*
 * X(name, rows, columns, warp rows, warp columns): the forms of a tile.  Rows are pixels (weights: input channels, of
 * 1x1 output channels), columns are output channels (data: input channels; weights: those of all taps, of 1x1 input
 * channels).  All kinds of products have GEMM_TILES, but weights of larger kernels, whose rows are few, have
 * GEMM_TAP_TILES.
 */
#define GEMM_TILES(X)            \
    X(128x128, 128, 128, 32, 64) \
    X(96x128, 96, 128, 48, 64)   \
    X(64x128, 64, 128, 32, 64)   \
    X(64x64, 64, 64, 32, 32)     \
    X(128x32, 128, 32, 32, 32)
#define GEMM_TAP_TILES(X)      \
    X(128x96, 128, 96, 32, 48) \
    X(64x96, 64, 96, 32, 48)   \
    X(32x128, 32, 128, 32, 32)
/* X(name, of data, of weights): both gradients in one launch, with forms of the same number of threads. */
#define GEMM_PAIRS(X)                              \
    X(128x128, 128, 128, 32, 64, 128, 128, 32, 64) \
    X(64x128, 64, 128, 32, 64, 64, 128, 32, 64)    \
    X(64x64, 64, 64, 32, 32, 64, 64, 32, 32)       \
    X(128x32, 128, 32, 32, 32, 128, 32, 32, 32)
#define GEMM_TAP_PAIRS(X)                                \
    X(128x128_128x96, 128, 128, 32, 64, 128, 96, 32, 48) \
    X(96x128_128x96, 96, 128, 48, 64, 128, 96, 64, 48)   \
    X(64x128_128x96, 64, 128, 32, 64, 128, 96, 64, 48)   \
    X(64x64_128x96, 64, 64, 32, 32, 128, 96, 64, 48)     \
    X(64x64_64x96, 64, 64, 32, 32, 64, 96, 32, 48)
#define GEMM_THREADS(rows, columns, warp_rows, warp_columns) ((rows) / (warp_rows) * ((columns) / (warp_columns)) * 32)

/* Shared memory of a block, for values of `size` bytes: the stages, and then the tile as it leaves. */
#define GEMM_STAGE_BYTES(rows, columns, size) (GEMM_STAGES * ((rows) + (columns)) * GEMM_DEEP * (size))
#define GEMM_OUT_BYTES(rows, columns, size)   ((rows) * ((columns) + 8) * (size))
#define GEMM_SHARED(rows, columns, size)                                         \
    (GEMM_STAGE_BYTES(rows, columns, size) > GEMM_OUT_BYTES(rows, columns, size) \
         ? GEMM_STAGE_BYTES(rows, columns, size)                                 \
         : GEMM_OUT_BYTES(rows, columns, size))

/*
 * conv_halo.cu: rows and columns of its tile, lines of x with the halo, taps, and values that are 0.  Two stages of
 * lines and of weights of all taps.
 */
#define HALO_ROWS         128
#define HALO_COLUMNS      32
#define HALO_LINES        244 /* the halo of 3 x 3 in rows of up to 57 pixels */
#define HALO_TAPS         9
#define HALO_ZEROS        64
#define HALO_SHARED(size) ((2 * (HALO_LINES + HALO_TAPS * HALO_COLUMNS) * GEMM_DEEP + HALO_ZEROS) * (size))

/* And behind it the table of `norm`: of all input channels (forward), or of those of the tile. */
#define GEMM_TABLE_FORWARD(in)      NORM_TABLE_BYTES(((in) + GEMM_DEEP - 1) / GEMM_DEEP * GEMM_DEEP, 2)
#define GEMM_TABLE_DATA(columns)    NORM_TABLE_BYTES(columns, 4)
#define GEMM_TABLE_WEIGHTS(columns) NORM_TABLE_BYTES(columns, 2)

/* ---- dgrad and wgrad of a pointwise convolution in one pass (both.h) ---------------------------------------- */

/*
 * What else flows into x, at the end of a dense block: x is also read through another normalisation, of the same mean
 * and variance, and a mean over windows of down x across pixels, which lie side by side.  dy is the gradient of the
 * means, channel by channel of x; of pixels that are in no window, and of images of weight 0, nothing flows back.
 */
struct both_end {
    const void *dy;            /* [images * height * width][dy_ld] */
    const float *gamma, *beta; /* [in] of that normalisation */
    struct channel_sums sums;  /* of g and g * xhat, of the `in` channels, as conv.sums */
    unsigned dy_ld;            /* 0: nothing else */
    unsigned height, width;    /* of the means */
    unsigned down, across;
    unsigned relu;
};
/*
 * kernel 1 x 1, stride 1, no padding.  As CONV_DATA: x (+)= gamma * g, or (+)= the product where norm.gamma is NULL;
 * `values` is x itself as x lies, `sums` those of g and g * xhat, of the `in` channels (partial NULL: none).  As
 * CONV_WEIGHTS: partial becomes the gradient of w, a sum for each stripe.  A stripe has steps_each tiles of BOTH_PIXELS
 * pixels; both sums have a block for each stripe.  The gradient of pixels of images of weight 0 counts as 0.  With
 * end.dy_ld, norm.gamma and norm.mean are there, and x becomes the sum of both gradients; nothing is added to.
 *
 * Grid: slices of `columns` input channels, stripes.  stages: tiles that are in shared memory at a time, 1 or 2.
 */
struct conv_both_args {
    struct conv_args conv;
    struct norm_finish finish;
    struct both_end end;
    unsigned stages;
};
#define BOTH_PIXELS  64
#define BOTH_OUT     128  /* output channels, at most */
#define BOTH_IMAGES  1024 /* at most */
#define BOTH_THREADS 256
/* X(name, input channels of a block, blocks of a multiprocessor that registers are enough for, with `end`). */
#define BOTH_FORMS(X)      \
    X(64x64, 64, 2, 0)     \
    X(64x128, 128, 1, 0)   \
    X(end_64x64, 64, 1, 1) \
    X(end_64x128, 128, 1, 1)
/*
 * Shared memory: of a stage A, values and x of a tile, and which of its pixels count, with `end` also which pixels of
 * dy are theirs; beside it weights, tables.
 */
#define BOTH_STAGE_BYTES(columns, end, size) \
    (BOTH_PIXELS * (2 * BOTH_OUT + (columns)) * (size) + BOTH_PIXELS * ((end) ? 5u : 1u))
#define BOTH_NORM_FIGURES(end) ((end) ? 8 : 5)
#define BOTH_TABLE_BYTES(columns, end)                                                                     \
    (NORM_TABLE_BYTES(BOTH_OUT, NORM_FINISH_FIGURES) + NORM_TABLE_BYTES(columns, BOTH_NORM_FIGURES(end)) + \
     BOTH_IMAGES / 8)
#define BOTH_SHARED(columns, end, size, stages) \
    (BOTH_OUT * (columns) * (size) + BOTH_TABLE_BYTES(columns, end) + (stages)*BOTH_STAGE_BYTES(columns, end, size))

#endif
