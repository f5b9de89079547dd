/*
 * kernels.h - the inner loops of the CPU backend, one table for each instruction set
 *
 * The model to keep in mind: activations lie in blocks of 16 channels, [image][block][pixel][16], so that one value of
 * all channels of a block is one vector (AVX-512), two (AVX2) or four.  kernels.c is compiled once for each
 * instruction set, with vectors of LANES floats; kernels_best() picks the table for the machine at run time.
 *
 * A pixel run is contiguous: pixels x 16 floats.  Pointers to blocks and per-channel values are aligned to 64 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_CPU_KERNELS_H
#define CHEX_TRAIN_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK 16 /* channels */

/*
 * A row of outputs of a convolution, for one or two blocks of output channels:
 *     y[o][p][.] = sum over b, ky, kx, i of w[o][b][ky][kx][i][.] * x[b * x_block + ky * x_row + kx * 16 + p * step +
 *     i]
 */
struct conv_row {
    const float *x;
    size_t x_block, x_row, step; /* floats */
    unsigned kernel, blocks;
    unsigned last; /* channels that count in the last block of x */
    const float *w;
    size_t w_out; /* floats from one block of outputs to the next */
    float *y;
    size_t y_out;
    unsigned outs; /* 1 or 2 */
    size_t pixels;
};

/*
 * Gradients of the weights between `inputs` floats that lie side by side and one to three blocks of outputs:
 *     dw[o][j][.] += sum over rows and columns of x[row * x_row + column * x_step + j] * dy[o * dy_out + row * dy_row +
 *     column * 16 + .]
 * With x_step = 16 the 16 k floats from a pixel on are those of k taps.  x can be read up to a multiple of 8 inputs.
 */
struct weight_tile {
    const float *x;
    size_t x_row, x_step;
    const float *dy;
    size_t dy_out, dy_row;
    unsigned rows, columns;
    unsigned inputs;
    float *dw;     /* [16][16] */
    size_t dw_tap; /* floats from 16 inputs to the next 16 */
    size_t dw_out; /* floats from one block of outputs to the next */
    unsigned outs; /* 1, 2 or 3 */
};

#define WEIGHT_OUTS_MAX 3

/* Floats of a row of an image that a patch takes: from[pixel * step + lane] where mask is -1. */
struct gather {
    const float *from;
    const int32_t *mask; /* [16] */
};

/* Batch normalisation of one block: y = scale (x - mean) + beta, then ReLU where asked; each [16]. */
struct norm_block {
    const float *mean, *scale, *beta;
    bool relu;
};

struct kernels {
    const char *name; /* "AVX-512" */
    size_t tile;      /* pixels that conv() likes a multiple of */

    void (*conv)(const struct conv_row *row);
    void (*weights)(const struct weight_tile *tile);
    /* y[p][.] is put together from `count` parts. */
    void (*gather)(const struct gather *part, size_t count, size_t step, size_t pixels, float *y);
    void (*normalise)(const struct norm_block *norm, const float *x, size_t pixels, float *y);

    /*
     * The gradient g of a normalised block comes in: where its ReLU let through, sum[.] += g, product[.] += g (x -
     * mean), and to[.] += gamma g, or = where `first`.
     */
    void (*norm_gradient)(const struct norm_block *norm, const float *gamma, const float *g, const float *x,
                          size_t pixels, bool first, float *to, double *sum, double *product);

    /* y = k0 a + k1 (x - mean) + k2, each of the k [16] */
    void (*finish)(const float *k, const float *mean, const float *a, const float *x, size_t pixels, float *y);

    /* sum[.] += x - pivot, squares[.] += (x - pivot)^2 */
    void (*measure)(const float *x, const float *pivot, size_t pixels, double *sum, double *squares);

    /* y += x, or = where first; count floats */
    void (*accumulate)(const float *x, size_t count, bool first, float *y);

    /* y = x + x2, then ReLU where asked */
    void (*add)(const float *x, const float *x2, size_t count, bool relu, float *y);

    /* g = y > 0 ? dy : 0 */
    void (*mask)(const float *y, const float *dy, size_t count, float *g);

    /*
     * One block of one image, in [height][width][16]; the gradient goes to the first of equal maxima, dx is added to.
     */
    void (*max_pool)(const float *x, unsigned height, unsigned width, unsigned kernel, unsigned stride, unsigned pad,
                     float *y, unsigned out_height, unsigned out_width);
    void (*max_pool_gradient)(const float *x, unsigned height, unsigned width, unsigned kernel, unsigned stride,
                              unsigned pad, const float *dy, unsigned out_height, unsigned out_width, float *dx);
};

extern const struct kernels kernels_plain;
#ifdef KERNELS_X86
extern const struct kernels kernels_avx2, kernels_avx512;
#endif

/* The best that this machine runs; CHEX_CPU=plain, avx2 or avx512 asks for one (tests). */
const struct kernels *kernels_best(void);

#endif
