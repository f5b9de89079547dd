/*
 * kernels.h - the inner loops of the CPU backend, one table of functions per instruction set
 *
 * Activations are blocks of 16 channels, [image][block][pixel][16].  So the 16 channels of a pixel are one vector
 * (AVX-512), two (AVX2) or four.  kernels.c is compiled once per instruction set, with vectors of LANES floats.
 * kernels_best() selects the table at run time.
 *
 * A run of pixels is contiguous: pixels x 16 floats.  Pointers to blocks and to per-channel values are aligned to 64
 * bytes.
 *
 * Convolutions multiply floats or bf16 (math/bf16.h); sums, outputs and everything else are float.  struct products has
 * the functions that differ.  An operand of a convolution is a value of the strip of x or dy that is loaded, or a
 * packed weight.  In bf16 operands are pairs in 32-bit words:
 *
 * - conv() sums over channels, so pairs are channels: a pixel of a block is 8 pairs, which is the order of the channels
 *   anyway.  The weights of a block are [8 pairs][16 out][2].
 * - weights() sums over pixels, so pairs are pixels of a row: pair() makes [pixel pair][16][2] of x and of dy.  A row
 *   with an odd number of pixels ends with a zero.
 *
 * All tables give the same bits in bf16: a product of pairs is bf16_dot(), and the floats of kernels_fused, AVX2 and
 * AVX-512 have the same fused multiply-adds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_CPU_KERNELS_H
#define CHEX_TRAIN_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK      16 /* channels */
#define CACHE_LINE 64 /* bytes */

/*
 * Memory that is read soon.  conv() fetches it into the L2 cache while it computes: `lines` cache lines for each block
 * of weights, because a core that waits for too many lines at once stops.
 */
#define AHEAD_RUNS 80
struct ahead {
    struct {
        const char *at, *end;
    } run[AHEAD_RUNS];
    unsigned runs, now;
    size_t lines;
};

/*
 * A row of convolution outputs, for one or two blocks of output channels:
 *     y[o * y_out + p * y_step + .] = sum over b, ky, kx, i of
 *         w[o][b][ky][kx][i][.] * x[b * x_block + ky * x_row + kx * 16 + p * step + i]
 */
struct conv_row {
    const void *x;               /* operands */
    size_t x_block, x_row, step; /* operands */
    unsigned kernel_rows, kernel_columns;
    unsigned blocks;
    unsigned last; /* channels in use in the last block of x */
    const void *w; /* operands */
    size_t w_out;  /* operands between two blocks of outputs */
    float *y;
    size_t y_out, y_step; /* floats between two blocks, and between two pixels */
    unsigned outs;        /* 1 or 2 */
    size_t pixels;
    struct ahead *ahead; /* or NULL */
};

/*
 * Weight gradients between `inputs` contiguous floats and one to three blocks of outputs:
 *     dw[o][j][.] += sum over rows and columns of x[row * x_row + column * x_step + j] * dy[o * dy_out + row * dy_row
 *     + column * 16 + .]
 * If x_step is 16, the 16 k floats from a pixel on belong to k taps.  x must be readable up to a multiple of 8 inputs.
 * In bf16, x and dy are words: columns are pairs of pixels, x_step is 16, and a tile has one tap.
 */
struct weight_tile {
    const void *x;
    size_t x_row, x_step;
    const void *dy;
    size_t dy_out, dy_row;
    unsigned rows, columns;
    unsigned inputs;
    float *dw;     /* [16][16] */
    size_t dw_tap; /* floats between two groups of 16 inputs */
    size_t dw_out; /* floats between two blocks of outputs */
    unsigned outs; /* 1, 2 or 3 */
};

#define WEIGHT_OUTS_MAX 3

/* One part of gather(): operand from[pixel * step + lane] for the lanes whose mask is -1. */
struct gather {
    const void *from;
    const int32_t *mask; /* [16] */
};

/* Batch normalisation of one block: y = scale (x - mean) + beta, then an optional ReLU.  Each array is [16]. */
struct norm_block {
    const float *mean, *scale, *beta;
    bool relu;
};

/* Products of convolutions and how their operands are made: y is [pixels][16] operands. */
struct products {
    size_t size; /* bytes of an operand: 4 or 2 */

    void (*conv)(const struct conv_row *row);
    void (*weights)(const struct weight_tile *tile);
    /* Assemble y[p][.] from `count` parts. */
    void (*gather)(const struct gather *part, size_t count, size_t step, size_t pixels, void *y);
    void (*copy)(const float *x, size_t pixels, void *y);
    void (*normalise)(const struct norm_block *norm, const float *x, size_t pixels, void *y);
    /* y = k0 a + k1 (x - mean) + k2; each k is [16] */
    void (*finish)(const float *k, const float *mean, const float *a, const float *x, size_t pixels, void *y);
    /*
     * bf16, otherwise NULL: y[j][.] = (x[2 j step + .], x[(2 j + 1) step + .]) for `pairs` pairs; zero after the first
     * `pixels` pixels.
     */
    void (*pair)(const uint16_t *x, size_t step, size_t pixels, size_t pairs, uint32_t *y);
};

struct kernels {
    const char *name; /* "AVX-512" */
    size_t tile;      /* conv() is fastest if pixels is a multiple of it */
    struct products products;

    /*
     * Backward of one normalised block.  g under the ReLU mask is added: sum[.] += g, product[.] += g (x - mean), to[.]
     * += gamma g.  If `first`, `to` is overwritten.
     */
    void (*norm_gradient)(const struct norm_block *norm, const float *gamma, const float *g, const float *x,
                          size_t pixels, bool first, float *to, double *sum, double *product);

    /* sum[.] += x - pivot, squares[.] += (x - pivot)^2 */
    void (*measure)(const float *x, const float *pivot, size_t pixels, double *sum, double *squares);

    /* y += x for count floats; if first, y = x */
    void (*accumulate)(const float *x, size_t count, bool first, float *y);

    /* y = x + x2, then an optional ReLU */
    void (*add)(const float *x, const float *x2, size_t count, bool relu, float *y);

    /* g = y > 0 ? dy : 0 */
    void (*mask)(const float *y, const float *dy, size_t count, float *g);

    /*
     * One block of one image, [height][width][16].  The gradient goes to the first of equal maxima and is added to dx.
     */
    void (*max_pool)(const float *x, unsigned height, unsigned width, unsigned kernel, unsigned stride, unsigned pad,
                     float *y, unsigned out_height, unsigned out_width);
    void (*max_pool_gradient)(const float *x, unsigned height, unsigned width, unsigned kernel, unsigned stride,
                              unsigned pad, const float *dy, unsigned out_height, unsigned out_width, float *dx);
};

extern const struct kernels kernels_plain, kernels_fused;
extern const struct products products_plain;
#ifdef KERNELS_X86
extern const struct kernels kernels_avx2, kernels_avx512;
extern const struct products products_avx2;
#endif
#ifdef KERNELS_AVX512_BF16
extern const struct products products_avx512;
#endif

/* Returns the fastest table that this CPU supports; CHEX_CPU=plain, avx2 or avx512 selects one (for tests). */
const struct kernels *kernels_best(void);
/* The same for bf16.  The products of AVX-512 need a CPU with AVX-512 BF16; others use those of AVX2. */
const struct kernels *kernels_bf16(const struct products **products);

#endif
