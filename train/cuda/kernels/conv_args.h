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
 * y(n, oy, ox, o) = sum over ky, kx, i of w(o, ky, kx, i) * x(n, oy * stride + ky - pad_h, ox * stride + kx - pad_w, i)
 *
 * Shapes of all kinds: x and dx have images, height, width and `in` channels; y and dy have images, out_height,
 * out_width and `out` channels.  Slabs have leading dimensions x_ld and y_ld.  The stem's pixels overlap, so its x_ld
 * is less than `in`.  w is [out][kernel_h][kernel_w][in].
 *
 * by_width and by_height divide a pixel number by the sides of the tensor whose pixels the kernel enumerates: y for
 * fprop, dx for dgrad; for wgrad x if the stride is 1, otherwise dy.  They are set when a tile shape is chosen.
 */
struct conv_divisor {
    unsigned multiplier, shift;
};
struct conv_shape {
    unsigned images, height, width, out_height, out_width;
    unsigned in, out, x_ld, y_ld;
    unsigned kernel_h, kernel_w, stride, pad_h, pad_w;
    struct conv_divisor by_width, by_height;
};
/*
 * y = x * w, the sum above.
 *
 * If norm.gamma is set, x is normalised on load; padding is 0 after BN.  If sums.partial is set, each CTA also writes
 * one row of sums of the rounded y, of the `out` channels, without images of weight 0.  Only without sums, y may be
 * relu(x * w + bias).
 */
struct fprop_args {
    struct conv_shape shape;
    const void *x, *w;
    void *y;
    struct norm_view norm;
    struct channel_sums sums;
    const float *weight; /* [images], with sums; NULL: all 1 */
    const float *bias;   /* [out], or NULL */
    unsigned relu;
    unsigned tiles_each; /* tiles of a CTA, one below the other */
};
/*
 * dx(n, iy, ix, i) = sum over ky, kx, o of w(o, ky, kx, i) * dy(n, oy, ox, o)
 *     for all oy, ox with iy = oy * stride + ky - pad_h and ix = ox * stride + kx - pad_w
 *
 * If norm.gamma is set, the convolution read x through that BN, and the product is dy of the BN.  Then dx = gamma * g
 * (g: the product under the ReLU mask), and each CTA writes one row of sums of g and g * xhat, of the `in` channels,
 * without images of weight 0.
 */
struct dgrad_args {
    struct conv_shape shape;
    const void *dy, *w;
    void *dx;
    const void *x; /* with norm: the input of the BN, with the layout of dx */
    struct norm_view norm;
    struct channel_sums sums; /* with norm; partial NULL: none */
    const float *weight;      /* [images], with norm; NULL: all 1 */
    unsigned add;             /* add to dx instead of overwriting it */
    unsigned tiles_each;      /* tiles of a CTA, one below the other */
};
/*
 * dw(o, ky, kx, i) = sum over n, oy, ox of dy(n, oy, ox, o) * x(n, iy, ix, i)
 *     where iy = oy * stride + ky - pad_h and ix = ox * stride + kx - pad_w
 *
 * If norm.gamma is set, x is normalised on load.  Split s of k sums the k-steps from s * k_steps to (s + 1) * k_steps -
 * 1, each of GEMM_DEEP pixels: pixels of x, or of dy if the stride is larger than 1.
 */
struct wgrad_args {
    struct conv_shape shape;
    const void *x, *dy;
    void *partial; /* [splits][out][kernel_h][kernel_w][in], of PARTIAL_SIZE bytes each */
    struct norm_view norm;
    unsigned k_steps; /* of a split */
};
/* dgrad and wgrad of one convolution in one launch.  Both read dy; neither reads the output of the other. */
struct conv_pair_args {
    struct dgrad_args dgrad;
    struct wgrad_args wgrad;
};
#define GEMM_DEEP          32
#define GEMM_STAGES        3
#define GEMM_NORM_CHANNELS 2048 /* at most, for fprop with norm.gamma */

/*
 * X(name, rows, columns, warp rows, warp columns): the tile shapes of C; gemm.h says what rows and columns are.
 * wgrad of kernels larger than 1x1 has few rows: GEMM_TAP_TILES, for the stem GEMM_STEM_TILES; all others GEMM_TILES.
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
#define GEMM_STEM_TILES(X) X(64x128, 64, 128, 32, 64) /* wgrad of pixels that overlap (conv_stem.cu) */
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

/*
 * dgrad_halo.h: the tile shapes of dgrad, X(name, rows, columns, warp rows, warp columns), and of launches with wgrad,
 * X(name, tile shape of dgrad, of wgrad).  Shared memory has the weights of all taps, a block of zeros and the lines of
 * dy, which the tile and its flags overwrite.
 */
#define HALO_DGRAD_TILES(X)    \
    X(256x64, 256, 64, 32, 64) \
    X(128x64, 128, 64, 32, 32)
#define HALO_PAIRS(X)                                  \
    X(256x64_128x96, 256, 64, 32, 64, 128, 96, 32, 48) \
    X(128x64_128x96, 128, 64, 32, 32, 128, 96, 32, 48)
#define HALO_LINES_OF(rows) ((rows) + HALO_LINES - HALO_ROWS)
#define HALO_DGRAD_LINES_BYTES(rows, columns, size)                                          \
    (HALO_LINES_OF(rows) * GEMM_DEEP * (size) > GEMM_OUT_BYTES(rows, columns, size) + (rows) \
         ? HALO_LINES_OF(rows) * GEMM_DEEP * (size)                                          \
         : GEMM_OUT_BYTES(rows, columns, size) + (rows))
#define HALO_DGRAD_SHARED(rows, columns, size) \
    ((HALO_TAPS * GEMM_DEEP * (columns) + HALO_ZEROS) * (size) + HALO_DGRAD_LINES_BYTES(rows, columns, size))

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
    struct channel_sums sums;  /* of g and g * xhat, of the `in` channels, as dgrad.sums */
    unsigned dy_ld;            /* 0: there is no second gradient */
    unsigned height, width;    /* of the output of the pool */
    unsigned down, across;
    unsigned relu;
};
/*
 * dgrad and wgrad of a kernel of 1x1 with stride 1 and no padding (one_pass.h).
 *
 *   dx(p, i) = sum over o of w(o, i) * dy(p, o);  dw(o, i) = sum over p of dy(p, o) * x(p, i);  p: pixels of all images
 *
 * `dgrad` has the arguments of both: wgrad reads its x, which is set with and without norm, its norm and its dy.  A CTA
 * processes tiles_each tiles of ONE_PASS_PIXELS pixels; it writes one partial sum of dw, and one row of dgrad.sums and
 * of end.sums.  Gradients of images of weight 0 count as 0.  If end.dy_ld is set, norm.gamma and norm.mean must be set,
 * and dx is overwritten with the sum of both gradients.
 *
 * Grid: slices of `columns` input channels, CTAs along the pixels.  stages: number of tiles in shared memory at a time,
 * 1 or 2.
 */
struct one_pass_args {
    struct dgrad_args dgrad;
    void *partial; /* [CTAs along the pixels][out][in], of PARTIAL_SIZE bytes each */
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
