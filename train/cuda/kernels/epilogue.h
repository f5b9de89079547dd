/*
 * epilogue.h - epilogues: store a tile of a product
 *
 * The tile goes from registers to shared memory as rounded values (sums_to_shared()), so that whole rows of global
 * memory are written.
 *
 *   fprop   stores y; with sums, adds y - pivot and its square to the sums of the channel, for the next BN
 *   dgrad   stores dx, or adds to it.  With norm, the product is dy of that BN: g = product where y > 0, else 0;
 *           dx (+)= gamma * g, and g and g * xhat are added to the sums of the channel, for BN backward
 *   wgrad   stores dw, or if k is split (split-K), the partial sum of this split
 *
 * Per-channel sums stay in registers from tile to tile (gemm_totals).  At its end, a CTA stores one row of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_EPILOGUE_H
#define CHEX_CUDA_KERNELS_EPILOGUE_H

#include "cuda/kernels/gemm_tile.h"
#include "cuda/kernels/norm.h"
#include "cuda/kernels/partial.h"

namespace
{
/*
 * The tile in shared memory: rows of WIDE values.  A thread stores one piece of every EACH-th row.  Eight lanes read at
 * once and use all banks: if they have two rows, these are four rows apart.
 */
template <typename TILE> struct epilogue_rows {
    enum { PIECES = TILE::COLUMNS / 8, WIDE = TILE::COLUMNS + 8, EACH = TILE::THREADS / PIECES };

    DEVICE unsigned first_row()
    {
        unsigned row = threadIdx.x / PIECES;

        static_assert(TILE::THREADS % PIECES == 0 && EACH % 8 == 0, "a piece for each thread");
        return PIECES >= 8 ? row : (row & ~5u) | (row & 1) << 2 | (row >> 2 & 1);
    }
};

/* The sums of a warp, rounded, to row0, column0 of the tile in shared memory. */
template <typename TILE, int DOWN, int ACROSS>
DEVICE void
sums_to_shared(unsigned char *shared, unsigned row0, unsigned column0, const tile_sum (&sum)[DOWN][ACROSS])
{
#pragma unroll
    for (unsigned i = 0; i < DOWN; i++)
#pragma unroll
        for (unsigned j = 0; j < ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e += 2)
                store2((value_t *)(void *)shared + (row0 + i * 16 + tile_row(e)) * epilogue_rows<TILE>::WIDE + column0 +
                           j * 16 + tile_column(e),
                       sum[i][j].at[e], sum[i][j].at[e + 1]);
}

/* Makes flags after the tile: is this row a pixel of an image whose weight is not 0? */
template <typename TILE>
DEVICE unsigned char *
flag_counted_rows(const float *weight, const gemm_work &w, unsigned char *shared, unsigned pixels)
{
    unsigned char *counts = shared + GEMM_OUT_BYTES(TILE::ROWS, TILE::COLUMNS, sizeof(value_t));

    static_assert(GEMM_OUT_BYTES(TILE::ROWS, TILE::COLUMNS, sizeof(value_t)) + TILE::ROWS <=
                      GEMM_SHARED(TILE::ROWS, TILE::COLUMNS, sizeof(value_t)),
                  "room for flags after the tile");
    for (unsigned row = threadIdx.x; row < TILE::ROWS; row += TILE::THREADS)
        counts[row] = w.row0 + row < w.rows && (!weight || weight[(w.row0 + row) / pixels] != 0.0f);
    return counts;
}

/* Two sums of each column over the tiles of a CTA so far; a thread has every THREADS-th of [2][columns]. */
template <typename TILE> struct gemm_totals {
    enum { EACH = (2 * TILE::COLUMNS + TILE::THREADS - 1) / TILE::THREADS };
    float at[EACH];
};

/* Add two sums of the eight columns of each thread over the rows of the tile, in a fixed order. */
template <typename TILE>
DEVICE void
add_rows(const float *first, const float *second, float *shared, gemm_totals<TILE> &totals)
{
    enum { PIECES = epilogue_rows<TILE>::PIECES, EACH = epilogue_rows<TILE>::EACH, ROW = 2 * TILE::COLUMNS };
    unsigned piece = threadIdx.x % PIECES;
    /* [EACH][first, second][low, high half of a piece][PIECES][4] */
    float4 *at = (float4 *)(void *)(shared + threadIdx.x / PIECES * ROW) + piece;

    static_assert(EACH * ROW * sizeof(float) <= GEMM_SHARED(TILE::ROWS, TILE::COLUMNS, sizeof(value_t)), "room");
    __syncthreads(); /* the tile is read */
    at[0] = {first[0], first[1], first[2], first[3]};
    at[PIECES] = {first[4], first[5], first[6], first[7]};
    at[2 * PIECES] = {second[0], second[1], second[2], second[3]};
    at[3 * PIECES] = {second[4], second[5], second[6], second[7]};
    __syncthreads();
#pragma unroll
    for (unsigned n = 0; n < gemm_totals<TILE>::EACH; n++) {
        unsigned i = threadIdx.x + n * TILE::THREADS;
        float sum = 0;

        if (i >= ROW)
            break;
#pragma unroll
        for (unsigned k = 0; k < EACH; k++)
            sum += shared[k * ROW + i];
        totals.at[n] += sum;
    }
}

/* At the end of a CTA: stores its sums as row at.down of the partial sums. */
template <typename TILE>
DEVICE void
store_sums(const gemm_totals<TILE> &totals, const channel_sums &to, const gemm_tile_at &at, unsigned columns)
{
#pragma unroll
    for (unsigned n = 0; n < gemm_totals<TILE>::EACH; n++) {
        unsigned i = threadIdx.x + n * TILE::THREADS;
        unsigned which = i / TILE::COLUMNS, half = i / (TILE::COLUMNS / 2) % 2;
        unsigned column = at.across * TILE::COLUMNS + i % (TILE::COLUMNS / 2) / 4 * 8 + half * 4 + i % 4;

        if (i < 2 * TILE::COLUMNS && column < columns)
            to.partial[((size_t)at.down * 2 + which) * to.channels + column] = totals.at[n];
    }
}

/* Store the tile.  `add`: add it to the old values.  `relu`: negative values become 0. */
template <typename TILE>
DEVICE void
store_tile(const unsigned char *shared_bytes, value_t *to, unsigned ld, bool add, bool relu, const gemm_work &w)
{
    enum { PIECES = epilogue_rows<TILE>::PIECES, WIDE = epilogue_rows<TILE>::WIDE, EACH = epilogue_rows<TILE>::EACH };
    const value_t *shared = (const value_t *)(const void *)shared_bytes;
    unsigned piece = threadIdx.x % PIECES, column = w.column0 + piece * 8;

    __syncthreads();
    for (unsigned row = epilogue_rows<TILE>::first_row(); row < TILE::ROWS && column < w.columns; row += EACH) {
        value_t *at = to + (size_t)(w.row0 + row) * ld + column;
        value8 v, old;

        if (w.row0 + row >= w.rows)
            break;
        load8(v, shared + row * WIDE + piece * 8);
        if (add) {
            float sum[8], more[8];

            load8(old, at);
            unpack8(sum, old);
            unpack8(more, v);
#pragma unroll
            for (unsigned e = 0; e < 8; e++)
                sum[e] += more[e];
            pack8(v, sum);
        }
        if (relu) {
            float y[8];

            unpack8(y, v);
#pragma unroll
            for (unsigned e = 0; e < 8; e++)
                y[e] = y[e] < 0 ? 0 : y[e]; /* NaN stays NaN */
            pack8(v, y);
        }
        store8(at, v);
    }
}

/* fprop: store y, and add up y - pivot and its square. */
template <typename TILE>
DEVICE void
store_with_sums(const fprop_args &a, unsigned char *shared_bytes, const gemm_work &w, gemm_totals<TILE> &totals)
{
    enum { PIECES = epilogue_rows<TILE>::PIECES, WIDE = epilogue_rows<TILE>::WIDE, EACH = epilogue_rows<TILE>::EACH };
    const value_t *shared = (const value_t *)(void *)shared_bytes;
    const unsigned char *counts = flag_counted_rows<TILE>(a.weight, w, shared_bytes,
                                                          a.shape.out_height * a.shape.out_width);
    unsigned piece = threadIdx.x % PIECES, column = w.column0 + piece * 8;
    float sum[8], squares[8], pivot[8];

#pragma unroll
    for (unsigned e = 0; e < 8; e++) {
        sum[e] = squares[e] = 0;
        pivot[e] = column < w.columns ? norm_pivot(a.sums.running_mean[column + e]) : 0;
    }
    __syncthreads();
    for (unsigned row = epilogue_rows<TILE>::first_row(); row < TILE::ROWS && column < w.columns; row += EACH) {
        value8 v;
        float y[8];

        if (w.row0 + row >= w.rows)
            break;
        load8(v, shared + row * WIDE + piece * 8);
        store8((value_t *)a.y + (size_t)(w.row0 + row) * a.shape.y_ld + column, v);
        unpack8(y, v);
        if (counts[row]) {
#pragma unroll
            for (unsigned e = 0; e < 8; e++) {
                float d = y[e] - pivot[e];

                sum[e] += d;
                squares[e] = fmaf(d, d, squares[e]);
            }
        }
    }
    add_rows<TILE>(sum, squares, (float *)(void *)shared_bytes, totals);
}

/*
 * dgrad: the product is dy of a normalisation with ReLU.  g = dy where the normalised value is positive, else 0.
 * dx (+)= gamma * g; add up g and g * xhat.
 */
template <typename TILE>
DEVICE void
store_masked(const dgrad_args &a, unsigned char *shared_bytes, const norm_table &t, const gemm_work &w,
             gemm_totals<TILE> &totals)
{
    enum { PIECES = epilogue_rows<TILE>::PIECES, WIDE = epilogue_rows<TILE>::WIDE, EACH = epilogue_rows<TILE>::EACH };
    const value_t *shared = (const value_t *)(void *)shared_bytes;
    const unsigned char *counts = flag_counted_rows<TILE>(a.weight, w, shared_bytes, a.shape.height * a.shape.width);
    unsigned piece = threadIdx.x % PIECES, column = w.column0 + piece * 8;
    float by_one[8], by_x[8], gamma[8], scale[8], shift[8], mean[8];

#pragma unroll
    for (unsigned e = 0; e < 8; e++) {
        by_one[e] = by_x[e] = 0;
        gamma[e] = column < w.columns ? a.norm.gamma[column + e] : 0;
    }
    norm_load8(scale, t, NORM_SCALE, piece * 8);
    norm_load8(shift, t, NORM_SHIFT, piece * 8);
    norm_load8(mean, t, NORM_MEAN, piece * 8);
    __syncthreads();
    for (unsigned row = epilogue_rows<TILE>::first_row(); row < TILE::ROWS && column < w.columns; row += EACH) {
        size_t at = (size_t)(w.row0 + row) * a.shape.x_ld + column;
        value8 v, seen, old;
        float g[8], x[8], y[8];

        if (w.row0 + row >= w.rows)
            break;
        load8(seen, (const value_t *)a.x + at);
        if (a.add)
            load8(old, (const value_t *)a.dx + at);
        load8(v, shared + row * WIDE + piece * 8);
        unpack8(g, v);
        unpack8(x, seen);
#pragma unroll
        for (unsigned e = 0; e < 8; e++)
            if (a.norm.relu && !(fmaf(x[e], scale[e], shift[e]) > 0))
                g[e] = 0;
        if (counts[row]) {
#pragma unroll
            for (unsigned e = 0; e < 8; e++) {
                by_one[e] += g[e];
                by_x[e] = fmaf(g[e], x[e] - mean[e], by_x[e]);
            }
        }
        if (a.add)
            unpack8(y, old);
#pragma unroll
        for (unsigned e = 0; e < 8; e++)
            y[e] = a.add ? fmaf(gamma[e], g[e], y[e]) : gamma[e] * g[e];
        pack8(v, y);
        store8((value_t *)a.dx + at, v);
    }
    if (!a.sums.partial)
        return;
    norm_load8(scale, t, NORM_INVERSE, piece * 8);
#pragma unroll
    for (unsigned e = 0; e < 8; e++)
        by_x[e] *= scale[e];
    add_rows<TILE>(by_one, by_x, (float *)(void *)shared_bytes, totals);
}

/* Does this CTA sum over all of k? */
DEVICE bool
is_unsplit(const wgrad_args &a, const gemm_work &w)
{
    return a.k_steps >= (w.counted + GEMM_DEEP - 1) / GEMM_DEEP;
}

/*
 * The whole sum, as floats, from registers.  A lane has two neighbouring columns at a time, in DOWN * 2 rows of its
 * warp; two(i, e) are those of row tile_row(e) of square i.
 */
template <bool POINTWISE, int DOWN, typename F>
DEVICE void
store_two_columns(const wgrad_args &a, const gemm_work &w, unsigned row0, unsigned column, F two)
{
    unsigned taps = a.shape.kernel_h * a.shape.kernel_w, out = w.column0 + column, tap = w.tap;

    if (out >= w.columns)
        return;
    if (!POINTWISE && a.shape.stride == 1) {
        tap = out / a.shape.out;
        out -= tap * a.shape.out;
    }
#pragma unroll
    for (unsigned i = 0; i < DOWN; i++)
#pragma unroll
        for (unsigned e = 0; e < 4; e += 2) {
            unsigned row = w.row0 + row0 + i * 16 + tile_row(e);
            const float *from = two(i, e);
            float *to = (float *)a.partial;

            if (row >= w.rows)
                continue;
            if (POINTWISE) {
                *(float2 *)(void *)(to + (size_t)row * a.shape.in + out) = {from[0], from[1]};
                continue;
            }
            to += ((size_t)out * taps + tap) * a.shape.in + row;
            to[0] = from[0];
            to[(size_t)taps * a.shape.in] = from[1];
        }
}

template <typename TILE, bool POINTWISE>
DEVICE void
store_unsplit(const wgrad_args &a, const gemm_work &w, const gemm_warp &warp, const gemm_sums<TILE> &sum)
{
#pragma unroll
    for (unsigned j = 0; j < TILE::ACROSS; j++)
#pragma unroll
        for (unsigned half = 0; half < 8; half += 4)
            store_two_columns<POINTWISE, TILE::DOWN>(a, w, warp.row0, warp.column0 + j * 16 + tile_column(half),
                                                     [&](unsigned i, unsigned e) { return sum[i][j].at + half + e; });
}

/*
 * The partial sum of a split.  The tile goes to shared memory as lines of input channels, which are neighbours in
 * global memory: its rows if the kernel is 1x1, otherwise its columns.
 */
template <typename TILE, bool POINTWISE> struct partial_lines {
    enum {
        LINES = POINTWISE ? TILE::ROWS : TILE::COLUMNS,
        PIECES = (POINTWISE ? TILE::COLUMNS : TILE::ROWS) / 8,
        WIDE = PIECES * 8 + 8
    };
};

/* Two neighbouring columns of a row of the tile. */
template <typename TILE, bool POINTWISE>
DEVICE void
put_partial(partial_t *shared, unsigned row, unsigned column, const float *two)
{
    enum { WIDE = partial_lines<TILE, POINTWISE>::WIDE };

    if (POINTWISE) {
        partial_store2(shared + row * WIDE + column, two[0], two[1]);
        return;
    }
    shared[column * WIDE + row] = partial_of(two[0]);
    shared[(column + 1) * WIDE + row] = partial_of(two[1]);
}

template <typename TILE, bool POINTWISE>
DEVICE void
copy_partial(const wgrad_args &a, const gemm_work &w, const partial_t *shared)
{
    typedef partial_lines<TILE, POINTWISE> lines;
    unsigned taps = a.shape.kernel_h * a.shape.kernel_w;

    static_assert((int)lines::LINES * (int)lines::WIDE * sizeof(partial_t) <=
                      GEMM_SHARED(TILE::ROWS, TILE::COLUMNS, sizeof(value_t)),
                  "room for the tile");
    for (unsigned i = threadIdx.x; i < lines::LINES * lines::PIECES; i += TILE::THREADS) {
        unsigned line = i / lines::PIECES, piece = i % lines::PIECES, tap = w.tap;
        unsigned out = (POINTWISE ? w.row0 : w.column0) + line, in = (POINTWISE ? w.column0 : w.row0) + piece * 8;

        if (out >= (POINTWISE ? w.rows : w.columns) || in >= a.shape.in)
            continue;
        if (!POINTWISE && a.shape.stride == 1) {
            tap = out / a.shape.out;
            out -= tap * a.shape.out;
        }
        partial_store8((partial_t *)a.partial + (((size_t)w.at.split * a.shape.out + out) * taps + tap) * a.shape.in +
                           in,
                       partial_load8(shared + line * lines::WIDE + piece * 8));
    }
}

template <typename TILE, bool POINTWISE>
DEVICE void
store_partial(const wgrad_args &a, const gemm_work &w, const gemm_warp &warp, const gemm_sums<TILE> &sum,
              partial_t *shared)
{
#pragma unroll
    for (unsigned i = 0; i < TILE::DOWN; i++)
#pragma unroll
        for (unsigned j = 0; j < TILE::ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e += 2)
                put_partial<TILE, POINTWISE>(shared, warp.row0 + i * 16 + tile_row(e),
                                             warp.column0 + j * 16 + tile_column(e), sum[i][j].at + e);
    __syncthreads();
    copy_partial<TILE, POINTWISE>(a, w, shared);
}
} // namespace

#endif
