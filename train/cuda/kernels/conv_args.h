/*
 * conv_args.h - arguments of the kernels of convolutions, their tiles and shared memory; see args.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_CONV_ARGS_H
#define CHEX_CUDA_KERNELS_CONV_ARGS_H

#include "cuda/kernels/norm_args.h"

/* ---- convolutions (gemm.h) ---------------------------------------------------------------------------------- */

/* Bytes of an element of `partial`: a float if k is not split, otherwise `size`, that of a value (partial.h). */
#define PARTIAL_SIZE(splits, size) ((splits) > 1 ? (size) : 4u)

/*
 * out(n, y, x, o) = sum over ky, kx, i of w(o, ky, kx, i) * in(n, y * stride + ky - pad_h, x * stride + kx - pad_w, i)
 *
 *   fprop   reads x and w, writes y
 *   dgrad   reads y, the gradient of the output, and w; overwrites x with the gradient of the input, or adds it (`add`)
 *   wgrad   reads x and y; writes the gradient of w to `partial`.  Split s of k sums the steps from s * k_steps to
 *           (s + 1) * k_steps - 1, each of GEMM_DEEP pixels: pixels of x, or of y if the stride is larger than 1.
 *
 * norm.gamma is set if x is read through a BN.  fprop and wgrad apply it to x; padding is 0 after BN.  For dgrad, the
 * product is then dy of the BN: x (+)= gamma * g, and `sums` gets the sums of g and g * xhat, of the `in` channels;
 * `values` has the input of the BN, with the layout of x.  fprop with sums.partial sums the rounded y, of the `out`
 * channels; only without sums it may add a bias and apply ReLU.  Each CTA computes tiles_each tiles and writes one row
 * of sums; images of weight 0 are excluded.
 *
 * by_width and by_height divide by the width and height of x for dgrad and for wgrad with stride 1, otherwise of y.
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
    unsigned add;                            /* dgrad: add to x */
    unsigned k_steps;                        /* wgrad */
    unsigned tiles_each;                     /* fprop, dgrad: tiles of a CTA, one below the other */
    struct conv_divisor by_width, by_height; /* set with k_steps and tiles_each, when a tile shape is chosen */
    struct norm_view norm;                   /* of x */
    const void *values;                      /* dgrad with norm */
    struct channel_sums sums;
    const float *weight; /* [images], with sums; NULL: all 1 */
    const float *bias;   /* fprop: [out], or NULL */
    unsigned relu;       /* fprop without sums */
};
/* dgrad and wgrad of one convolution in one launch.  Both read y; neither reads the output of the other. */
struct conv_pair_args {
    struct conv_args data, weights;
};
#define GEMM_DEEP          32
#define GEMM_STAGES        3
#define GEMM_NORM_CHANNELS 2048 /* at most, for fprop with norm.gamma */

/*
 * X(name, rows, columns, warp rows, warp columns): the tile shapes of C; gemm.h says what rows and columns are.
 * wgrad of kernels larger than 1x1 has few rows, so it uses GEMM_TAP_TILES; all others use GEMM_TILES.
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
/* X(name, tile shape of dgrad, of wgrad) of a conv_pair_args launch; both have the same number of threads. */
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

/* Shared memory of a CTA, for values of `size` bytes: the stages, later overwritten by the tile that is stored. */
#define GEMM_STAGE_BYTES(rows, columns, size) (GEMM_STAGES * ((rows) + (columns)) * GEMM_DEEP * (size))
#define GEMM_OUT_BYTES(rows, columns, size)   ((rows) * ((columns) + 8) * (size))
#define GEMM_SHARED(rows, columns, size)                                         \
    (GEMM_STAGE_BYTES(rows, columns, size) > GEMM_OUT_BYTES(rows, columns, size) \
         ? GEMM_STAGE_BYTES(rows, columns, size)                                 \
         : GEMM_OUT_BYTES(rows, columns, size))

/*
 * conv_halo.cu: rows and columns of its tile, lines of x including the halo, taps, and a block of zeros.  It has two
 * stages, each with lines of x and the weights of all taps.
 */
#define HALO_ROWS         128
#define HALO_COLUMNS      32
#define HALO_LINES        244 /* the halo of 3 x 3 in rows of up to 57 pixels */
#define HALO_TAPS         9
#define HALO_ZEROS        64
#define HALO_SHARED(size) ((2 * (HALO_LINES + HALO_TAPS * HALO_COLUMNS) * GEMM_DEEP + HALO_ZEROS) * (size))

/* The table of `norm` follows in shared memory: of all input channels (fprop), or of those of the tile. */
#define GEMM_TABLE_FPROP(in)      NORM_TABLE_BYTES(((in) + GEMM_DEEP - 1) / GEMM_DEEP * GEMM_DEEP, 2)
#define GEMM_TABLE_DGRAD(columns) NORM_TABLE_BYTES(columns, 4)
#define GEMM_TABLE_WGRAD(columns) NORM_TABLE_BYTES(columns, 2)

/* ---- dgrad and wgrad of a pointwise convolution in one pass (one_pass.h) ---------------------------------------- */

/*
 * A second gradient of x, at the end of a dense block: x is also read through another BN, with the same mean and
 * variance, and an average pool over adjacent windows of down x across pixels.  dy is the gradient of the output of the
 * pool, with the channels of x.  It is 0 for pixels in no window and for images of weight 0.
 */
struct one_pass_end {
    const void *dy;            /* [images * height * width][dy_ld] */
    const float *gamma, *beta; /* [in] of that BN */
    struct channel_sums sums;  /* of g and g * xhat, of the `in` channels, as conv.sums */
    unsigned dy_ld;            /* 0: there is no second gradient */
    unsigned height, width;    /* of the output of the pool */
    unsigned down, across;
    unsigned relu;
};
/*
 * dgrad and wgrad of a kernel of 1x1 with stride 1 and no padding (one_pass.h).
 *
 *   dgrad   x (+)= gamma * g, or (+)= the product if norm.gamma is NULL; `values` has the input of the BN, with the
 *           layout of x; `sums` gets the sums of g and g * xhat, of the `in` channels, if its `partial` is not NULL
 *   wgrad   writes the gradient of w to `partial`, one partial sum per CTA along the pixels
 *
 * A CTA processes k_steps tiles of ONE_PASS_PIXELS pixels, and writes one row of `sums` and of end.sums.  Gradients of
 * images of weight 0 count as 0.  If end.dy_ld is set, norm.gamma and norm.mean must be set, and x is overwritten with
 * the sum of both gradients.
 *
 * Grid: slices of `columns` input channels, CTAs along the pixels.  stages: number of tiles in shared memory at a time,
 * 1 or 2.
 */
struct one_pass_args {
    struct conv_args conv;
    struct finalize_view finalize;
    struct one_pass_end end;
    unsigned stages;
};
#define ONE_PASS_PIXELS  64
#define ONE_PASS_OUT     128  /* output channels, at most */
#define ONE_PASS_IMAGES  1024 /* at most */
#define ONE_PASS_THREADS 256
/* X(name, input channels of a CTA, CTAs per multiprocessor that the registers allow, whether it supports `end`). */
#define ONE_PASS_SHAPES(X) \
    X(64x64, 64, 2, 0)     \
    X(64x128, 128, 1, 0)   \
    X(end_64x64, 64, 1, 1) \
    X(end_64x128, 128, 1, 1)
/*
 * Shared memory has the weights, the tables and the stages.  A stage has A, the values of y and x of a tile, a flag per
 * pixel whether it counts, and with `end` the position in dy for each pixel.
 */
#define ONE_PASS_STAGE_BYTES(columns, end, size) \
    (ONE_PASS_PIXELS * (2 * ONE_PASS_OUT + (columns)) * (size) + ONE_PASS_PIXELS * ((end) ? 5u : 1u))
#define ONE_PASS_NORM_FIGURES(end) ((end) ? 8 : 5)
#define ONE_PASS_TABLE_BYTES(columns, end)                                                                      \
    (NORM_TABLE_BYTES(ONE_PASS_OUT, FINALIZE_FIGURES) + NORM_TABLE_BYTES(columns, ONE_PASS_NORM_FIGURES(end)) + \
     ONE_PASS_IMAGES / 8)
#define ONE_PASS_SHARED(columns, end, size, stages)                           \
    (ONE_PASS_OUT * (columns) * (size) + ONE_PASS_TABLE_BYTES(columns, end) + \
     (stages)*ONE_PASS_STAGE_BYTES(columns, end, size))

#endif
