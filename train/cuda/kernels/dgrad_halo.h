/*
 * dgrad_halo.h - dgrad of 3x3 kernels with an output as large as the input; keeps dy with its halo in shared memory
 *
 * As in conv_halo.cu, the rows of a tile are consecutive pixels, and at each tap they read the same pixels of dy, moved
 * by a constant.  dy has at most GEMM_DEEP channels, as a layer of DenseNet.  So a tile is one step: a CTA loads its
 * pixels of dy and their halo, and multiplies all nine taps from shared memory.  A row whose tap is outside the image
 * reads zeros.  The weights are loaded once per CTA, for all of its tiles.  The epilogue is that of gemm.h.
 *
 * Shared memory: weights [9][GEMM_DEEP][columns], zeros, lines of dy, and the table of the BN.  The tile overwrites the
 * lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_DGRAD_HALO_H
#define CHEX_CUDA_KERNELS_DGRAD_HALO_H

#include "cuda/kernels/gemm.h"

namespace
{
template <typename TILE> struct dgrad_halo {
    typedef gemm_operand<HALO_LINES_OF(TILE::ROWS), false> dy;
    typedef gemm_operand<TILE::COLUMNS, true> weights; /* one after the other, for each tap */
    enum { WEIGHTS = HALO_TAPS * GEMM_DEEP, ZEROS_AT = WEIGHTS * TILE::COLUMNS, LINES_AT = ZEROS_AT + HALO_ZEROS };

    static_assert(LINES_AT % HALO_ZEROS == 0, "zeros use the banks of the lines that they replace");
    static_assert(NORM_SCRATCH <= HALO_DGRAD_LINES_BYTES(TILE::ROWS, TILE::COLUMNS, sizeof(value_t)), "room for sums");
};

template <typename TILE>
DEVICE void
load_halo_weights(const dgrad_args &a, unsigned column0, value_t *to)
{
    typedef typename dgrad_halo<TILE>::weights weights;
    unsigned piece = threadIdx.x % weights::PIECES, column = column0 + piece * 8;

    for (unsigned line = threadIdx.x / weights::PIECES; line < dgrad_halo<TILE>::WEIGHTS;
         line += TILE::THREADS / weights::PIECES) {
        const value_t *from;
        bool inside = find_weights(a.shape, a.w, HALO_TAPS, line / GEMM_DEEP, line % GEMM_DEEP, column, &from);

        copy8(to + weights::offset(line, piece), inside ? from : (const value_t *)a.w, inside);
    }
}

/* The pixels of a tile and `before` pixels on each side. */
template <typename TILE>
DEVICE void
load_halo_lines(const dgrad_args &a, const gemm_work &w, unsigned before, value_t *to)
{
    typedef typename dgrad_halo<TILE>::dy dy;
    unsigned piece = threadIdx.x % dy::PIECES, channel = piece * 8;

    for (unsigned line = threadIdx.x / dy::PIECES; line < TILE::ROWS + 2 * before; line += TILE::THREADS / dy::PIECES) {
        unsigned pixel = w.row0 + line - before; /* a negative pixel wraps around to a huge value */
        bool there = pixel < w.rows && channel < a.shape.out;

        copy8(to + dy::offset(line, piece),
              there ? (const value_t *)a.dy + (size_t)pixel * a.shape.y_ld + channel : (const value_t *)a.dy, there);
    }
}

/* Bit 3 * ky + kx: is the pixel of dy that this pixel of dx needs at a tap inside the image? */
DEVICE unsigned
halo_taps_inside(const conv_shape &s, unsigned pixel, unsigned pixels)
{
    gemm_pixel p = gemm_split<GEMM_DGRAD>(s, pixel);
    unsigned columns = (p.x + 1 < s.width ? 1u : 0u) | 2u | (p.x > 0 ? 4u : 0u);

    if (pixel >= pixels)
        return 0;
    return (p.y + 1 < s.height ? columns : 0u) | columns << 3 | (p.y > 0 ? columns << 6 : 0u);
}

/* Multiplies all taps. */
template <typename TILE>
DEVICE void
multiply_halo(const dgrad_args &a, const value_t *values, const gemm_work &w, const gemm_warp &warp,
              gemm_sums<TILE> &sum)
{
    typedef dgrad_halo<TILE> halo;
    unsigned moved = warp.row0 + 2 * (a.shape.width + 1), inside = 0; /* moved: the line of row 0 at tap 0 */
    const value_t *weights = values;

#pragma unroll
    for (unsigned i = 0; i < TILE::DOWN; i++)
        inside |= halo_taps_inside(a.shape, w.row0 + warp.row0 + i * 16 + tile_line_a(), w.rows) << 16 * i;
#pragma unroll 1
    for (unsigned ky = 0; ky < 3; ky++) {
#pragma unroll
        for (unsigned n = 0; n < 3 * GEMM_DEEP / 16; n++) {
            unsigned kx = n / (GEMM_DEEP / 16), k = n % (GEMM_DEEP / 16);

            multiply_sixteen<false, true>(
                sum,
                [&](unsigned i, unsigned line, unsigned piece) {
                    unsigned at = halo::dy::offset(moved - kx + i * 16 + line, piece);

                    at = inside & 1u << (16 * i + kx) ? halo::LINES_AT + at : halo::ZEROS_AT + at % HALO_ZEROS;
                    return values + (at ^ k * 16); /* piece 2 * k + piece */
                },
                [&](unsigned j, unsigned line, unsigned piece) {
                    return weights + halo::weights::offset(line, (warp.column0 + j * 16) / 8 + piece) +
                           n * 16 * TILE::COLUMNS;
                });
        }
        inside >>= 3; /* of the next ky */
        moved -= a.shape.width;
        weights += 3 * GEMM_DEEP * TILE::COLUMNS;
    }
}

template <typename TILE>
DEVICE void
dgrad_halo_tile(const dgrad_args &a, value_t *values, const norm_table &table, const gemm_tile_at &at,
                gemm_totals<TILE> &totals)
{
    const gemm_work w = work_of<TILE>(a, at);
    const gemm_warp warp = gemm_warp_of<TILE>(w);
    value_t *lines = values + dgrad_halo<TILE>::LINES_AT;
    unsigned char *tile = (unsigned char *)(void *)lines;
    gemm_sums<TILE> sum;

    load_halo_lines<TILE>(a, w, a.shape.width + 1, lines);
    copy_commit();
    clear_sums(sum);
    copy_wait<0>();
    __syncthreads();
    if (!warp.idle)
        multiply_halo<TILE>(a, values, w, warp, sum);
    __syncthreads(); /* the tile overwrites the lines */
    sums_to_shared<TILE>(tile, warp.row0, warp.column0, sum);
    if (a.norm.gamma)
        store_masked<TILE>(a, tile, table, w, totals);
    else
        store_tile<TILE>(tile, (value_t *)a.dx, a.shape.x_ld, a.add, false, w);
}

template <typename TILE>
DEVICE void
dgrad_with_halo(const dgrad_args &a, unsigned char *shared, const gemm_tile_at &at)
{
    const conv_shape &s = a.shape;
    value_t *values = (value_t *)(void *)shared;
    const norm_table table = {(float *)(void *)(shared + HALO_DGRAD_SHARED(TILE::ROWS, TILE::COLUMNS, sizeof(value_t))),
                              TILE::COLUMNS / 8};
    unsigned column0 = at.across * TILE::COLUMNS;
    gemm_totals<TILE> totals = {};

    load_halo_weights<TILE>(a, column0, values);
    copy_commit();
    for (unsigned i = threadIdx.x; i < HALO_ZEROS; i += TILE::THREADS)
        values[dgrad_halo<TILE>::ZEROS_AT + i] = to_value(0);
    if (a.norm.gamma)
        norm_make<4>(a.norm, column0, min((unsigned)TILE::COLUMNS, s.in - column0), table,
                     (double *)(void *)(values + dgrad_halo<TILE>::LINES_AT), at.down == 0);
    each_tile<TILE>(at, a.tiles_each, s.images * s.height * s.width,
                    [&](const gemm_tile_at &tile, bool) { dgrad_halo_tile<TILE>(a, values, table, tile, totals); });
    if (a.sums.partial)
        store_sums<TILE>(totals, a.sums, at, s.in);
}
} // namespace

#endif
