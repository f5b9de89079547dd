/*
 * conv_halo.cu - fprop of kernels up to 3x3 with an output as large as the input; keeps x with its halo in shared
 * memory
 *
 * The rows of a tile are consecutive pixels, across all images.  At each tap, they read the same pixels, shifted by a
 * constant.  So a CTA loads its pixels, and `before` pixels on each side, once per 32 channels, and applies BN and ReLU
 * once; gemm.h does both for each tap.  A row whose tap is outside the image reads zeros.  The outer loop runs over the
 * channels, the inner one over the taps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/gemm.h"

namespace
{
typedef gemm_tile<HALO_ROWS, HALO_COLUMNS, 32, 32> halo_tile;
typedef gemm_operand<HALO_LINES, false> halo_x;
typedef gemm_operand<HALO_TAPS * HALO_COLUMNS, false> halo_weights;
enum { HALO_STAGE = (HALO_LINES + HALO_TAPS * HALO_COLUMNS) * GEMM_DEEP, HALO_DOWN = halo_tile::DOWN };

/* The constants of a CTA. */
struct halo {
    value_t *shared;
    const value_t *zeros; /* HALO_ZEROS values; more than one, to avoid bank conflicts */
    unsigned before;      /* pixels of the halo on each side */
    unsigned taps, chunks;
};

DEVICE void
halo_load(const fprop_args &a, const halo &h, const gemm_work &w, unsigned chunk)
{
    value_t *to = h.shared + chunk % 2 * HALO_STAGE;
    unsigned piece = threadIdx.x % 4, channel = chunk * GEMM_DEEP + piece * 8;

    for (unsigned line = threadIdx.x / 4; line < HALO_ROWS + 2 * h.before; line += halo_tile::THREADS / 4) {
        unsigned pixel = w.row0 + line - h.before; /* a negative pixel wraps around to a huge value */
        bool there = pixel < w.rows && channel < a.shape.in;

        copy8(to + halo_x::offset(line, piece),
              there ? (const value_t *)a.x + (size_t)pixel * a.shape.x_ld + channel : (const value_t *)a.x, there);
    }
    to += HALO_LINES * GEMM_DEEP;
    for (unsigned line = threadIdx.x / 4; line < h.taps * HALO_COLUMNS; line += halo_tile::THREADS / 4) {
        unsigned out = w.column0 + line % HALO_COLUMNS, tap = line / HALO_COLUMNS;
        bool there = out < a.shape.out && channel < a.shape.in;

        copy8(to + halo_weights::offset(line, piece),
              there ? (const value_t *)a.w + ((size_t)out * h.taps + tap) * a.shape.in + channel : (const value_t *)a.w,
              there);
    }
}

/* Applies BN to the groups that this thread copied.  Padding is changed too, but no tap reads it. */
DEVICE void
halo_normalise(const fprop_args &a, const halo &h, const norm_table &table, unsigned chunk)
{
    value_t *in = h.shared + chunk % 2 * HALO_STAGE;
    unsigned piece = threadIdx.x % 4;
    float scale[8], shift[8];

    norm_load8(scale, table, NORM_SCALE, chunk * GEMM_DEEP + piece * 8);
    norm_load8(shift, table, NORM_SHIFT, chunk * GEMM_DEEP + piece * 8);
    for (unsigned line = threadIdx.x / 4; line < HALO_ROWS + 2 * h.before; line += halo_tile::THREADS / 4) {
        value_t *x = in + halo_x::offset(line, piece);
        value8 v;

        load8(v, x);
        norm_see8(v, scale, shift, a.norm.relu);
        store8(x, v);
    }
}

/* Multiplies all taps of 32 channels. */
DEVICE void
halo_multiply(const fprop_args &a, const halo &h, const gemm_line *lines, unsigned m0, unsigned chunk,
              gemm_sums<halo_tile> &sum)
{
    const value_t *in = h.shared + chunk % 2 * HALO_STAGE, *weights = in + HALO_LINES * GEMM_DEEP;
    gemm_cursor c = {0, 0, 0, 0};

#pragma unroll 1
    for (; c.tap < h.taps; gemm_advance(c, 1, a.shape.kernel_w)) {
        unsigned moved = m0 + c.ky * a.shape.width + c.kx, pixel;
        bool met[HALO_DOWN];

#pragma unroll
        for (unsigned i = 0; i < HALO_DOWN; i++)
            met[i] = gemm_meets<GEMM_FPROP>(a.shape, lines[i], c, &pixel);
#pragma unroll
        for (unsigned k = 0; k < GEMM_DEEP / 16; k++)
            multiply_sixteen<false, false>(
                sum,
                [&](unsigned i, unsigned line, unsigned piece) {
                    unsigned offset = halo_x::offset(moved + i * 16 + line, k * 2 + piece);

                    return met[i] ? in + offset : h.zeros + offset % HALO_ZEROS;
                },
                [&](unsigned j, unsigned line, unsigned piece) {
                    return weights + halo_weights::offset(c.tap * HALO_COLUMNS + j * 16 + line, k * 2 + piece);
                });
    }
}

DEVICE void
halo_one(const fprop_args &a, const halo &h, const norm_table &table, const gemm_work &w, bool first_tile,
         gemm_totals<halo_tile> &totals)
{
    unsigned char *shared = (unsigned char *)(void *)h.shared;
    unsigned m0 = threadIdx.x / 32 * 32, chunk;
    gemm_line lines[HALO_DOWN];
    gemm_sums<halo_tile> sum;

    clear_sums(sum);
#pragma unroll
    for (unsigned i = 0; i < HALO_DOWN; i++)
        lines[i] = gemm_line_of<GEMM_FPROP>(a.shape, w.row0 + m0 + i * 16 + tile_line_a(), w.rows);
    halo_load(a, h, w, 0);
    copy_commit();
    if (a.bias)
        begin_with_bias(a.bias, w, 0, sum);
    if (a.norm.gamma && first_tile) /* the second stage is still free */
        norm_make<2>(a.norm, 0, a.shape.in, table, (double *)(void *)(h.shared + HALO_STAGE),
                     w.at.down == 0 && w.at.across == 0);
    for (chunk = 0; chunk < h.chunks; chunk++) {
        copy_wait<0>();
        if (a.norm.gamma)
            halo_normalise(a, h, table, chunk);
        __syncthreads(); /* this stage is complete, and all threads have read the other one */
        if (chunk + 1 < h.chunks)
            halo_load(a, h, w, chunk + 1);
        copy_commit();
        halo_multiply(a, h, lines, m0, chunk, sum);
    }
    __syncthreads();
    sums_to_shared<halo_tile>(shared, m0, 0, sum);
    if (a.sums.partial)
        store_with_sums<halo_tile>(a, shared, w, totals);
    else
        store_tile<halo_tile>(shared, (value_t *)a.y, a.shape.y_ld, false, a.relu, w);
}

DEVICE void
halo_tiles(const fprop_args &a, unsigned char *shared, const gemm_tile_at &at)
{
    value_t *values = (value_t *)(void *)shared;
    const halo h = {values, values + 2 * HALO_STAGE, a.shape.pad_h * a.shape.width + a.shape.pad_w,
                    a.shape.kernel_h * a.shape.kernel_w, (a.shape.in + GEMM_DEEP - 1) / GEMM_DEEP};
    const norm_table table = {(float *)(void *)(shared + HALO_SHARED(sizeof(value_t))), h.chunks * (GEMM_DEEP / 8)};
    unsigned down = at.down * a.tiles_each, first = down;
    gemm_totals<halo_tile> totals = {};
    gemm_work w = work_of<halo_tile>(a, {down, at.across, 0});

    static_assert(2 * HALO_STAGE * sizeof(value_t) + HALO_ZEROS * sizeof(value_t) == HALO_SHARED(sizeof(value_t)),
                  "stages, then zeros");
    static_assert(HALO_STAGE % HALO_ZEROS == 0, "zeros use the banks of the lines that they replace");
    for (unsigned i = threadIdx.x; i < HALO_ZEROS; i += halo_tile::THREADS)
        values[2 * HALO_STAGE + i] = to_value(0);
#pragma unroll 1
    for (; down < first + a.tiles_each && w.row0 < w.rows; down++) {
        if (down > first)
            __syncthreads(); /* the previous tile has been stored */
        halo_one(a, h, table, w, down == first, totals);
        w.at.down++;
        w.row0 += HALO_ROWS;
    }
    if (a.sums.partial)
        store_sums<halo_tile>(totals, a.sums, at, a.shape.out);
}
} // namespace

GEMM_KERNEL(conv_fprop_128x32_halo, fprop_args, halo_tile::THREADS, (halo_tiles(a, shared, pixels_first())))
