/*
 * leave.h - how a product of a convolution leaves its block: stored, summed, masked, or as partial sums
 *
 * Forward leaves sums of channels with what it stores; data makes of the product the gradient of a normalisation and
 * its sums; weights leave partial sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_LEAVE_H
#define CHEX_CUDA_KERNELS_LEAVE_H

#include "cuda/kernels/address.h"
#include "cuda/kernels/norm.h"
#include "cuda/kernels/partial.h"

namespace
{
/*
 * Values leave through shared memory, so that whole rows are written: a thread has one piece of every EACH-th row.  The
 * eight lanes that read at once meet all banks: where they have two rows, those are four rows apart.
 */
template <typename TILE> struct gemm_leaving {
    enum { PIECES = TILE::COLUMNS / 8, WIDE = TILE::COLUMNS + 8, EACH = TILE::THREADS / PIECES };

    DEVICE unsigned first_row()
    {
        unsigned row = threadIdx.x / PIECES;

        static_assert(TILE::THREADS % PIECES == 0 && EACH % 8 == 0, "a piece for each thread");
        return PIECES >= 8 ? row : (row & ~5u) | (row & 1) << 2 | (row >> 2 & 1);
    }
};

/* Which rows of a tile are of images whose weight is not 0: flags behind the tile. */
template <typename TILE>
DEVICE unsigned char *
gemm_counted_rows(const conv_args &a, const gemm_work &w, unsigned char *shared, unsigned pixels)
{
    unsigned char *counts = shared + GEMM_OUT_BYTES(TILE::ROWS, TILE::COLUMNS, sizeof(value_t));

    static_assert(GEMM_OUT_BYTES(TILE::ROWS, TILE::COLUMNS, sizeof(value_t)) + TILE::ROWS <=
                      GEMM_SHARED(TILE::ROWS, TILE::COLUMNS, sizeof(value_t)),
                  "flags of rows lie behind the tile");
    for (unsigned row = threadIdx.x; row < TILE::ROWS; row += TILE::THREADS)
        counts[row] = w.row0 + row < w.rows && (!a.weight || a.weight[(w.row0 + row) / pixels] != 0.0f);
    return counts;
}

/* Sums of the tiles of a block so far: [first, second][columns], of which a thread has every THREADS-th. */
template <typename TILE> struct gemm_totals {
    enum { EACH = (2 * TILE::COLUMNS + TILE::THREADS - 1) / TILE::THREADS };
    float at[EACH];
};

/* Two sums of the eight columns of each thread, over the rows of the tile in a fixed order, are added. */
template <typename TILE>
DEVICE void
gemm_sum_rows(const float *first, const float *second, float *shared, gemm_totals<TILE> &totals)
{
    enum { PIECES = gemm_leaving<TILE>::PIECES, EACH = gemm_leaving<TILE>::EACH, ROW = 2 * TILE::COLUMNS };
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

/* The block is through: its sums go to row at.down of them. */
template <typename TILE>
DEVICE void
gemm_leave_sums(const gemm_totals<TILE> &totals, const channel_sums &to, const gemm_tile_at &at, unsigned columns)
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

/* As it is, or added to what lies there, or what of it is above 0. */
template <typename TILE>
DEVICE void
gemm_store(const value_t *shared, value_t *to, unsigned ld, bool add, bool relu, const gemm_work &w)
{
    enum { PIECES = gemm_leaving<TILE>::PIECES, WIDE = gemm_leaving<TILE>::WIDE, EACH = gemm_leaving<TILE>::EACH };
    unsigned piece = threadIdx.x % PIECES, column = w.column0 + piece * 8;

    __syncthreads();
    for (unsigned row = gemm_leaving<TILE>::first_row(); row < TILE::ROWS && column < w.columns; row += EACH) {
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

/* Forward: y, and sums of y - pivot and its square. */
template <typename TILE>
DEVICE void
gemm_store_summed(const conv_args &a, unsigned char *shared_bytes, const gemm_work &w, gemm_totals<TILE> &totals)
{
    enum { PIECES = gemm_leaving<TILE>::PIECES, WIDE = gemm_leaving<TILE>::WIDE, EACH = gemm_leaving<TILE>::EACH };
    const value_t *shared = (const value_t *)(void *)shared_bytes;
    const unsigned char *counts = gemm_counted_rows<TILE>(a, w, shared_bytes, a.out_height * a.out_width);
    unsigned piece = threadIdx.x % PIECES, column = w.column0 + piece * 8;
    float sum[8], squares[8], pivot[8];

#pragma unroll
    for (unsigned e = 0; e < 8; e++) {
        sum[e] = squares[e] = 0;
        pivot[e] = column < w.columns ? a.sums.pivot[column + e] : 0;
    }
    __syncthreads();
    for (unsigned row = gemm_leaving<TILE>::first_row(); row < TILE::ROWS && column < w.columns; row += EACH) {
        value8 v;
        float y[8];

        if (w.row0 + row >= w.rows)
            break;
        load8(v, shared + row * WIDE + piece * 8);
        store8((value_t *)a.y + (size_t)(w.row0 + row) * a.y_ld + column, v);
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
    gemm_sum_rows<TILE>(sum, squares, (float *)(void *)shared_bytes, totals);
}

/* Data: the product is dy; x (+)= gamma * g, where g is dy if the normalised value is positive; sums of g, g xhat. */
template <typename TILE>
DEVICE void
gemm_store_masked(const conv_args &a, unsigned char *shared_bytes, const norm_table &t, const gemm_work &w,
                  gemm_totals<TILE> &totals)
{
    enum { PIECES = gemm_leaving<TILE>::PIECES, WIDE = gemm_leaving<TILE>::WIDE, EACH = gemm_leaving<TILE>::EACH };
    const value_t *shared = (const value_t *)(void *)shared_bytes;
    const unsigned char *counts = gemm_counted_rows<TILE>(a, w, shared_bytes, a.height * a.width);
    unsigned piece = threadIdx.x % PIECES, column = w.column0 + piece * 8;
    float by_one[8], by_x[8], gamma[8];

#pragma unroll
    for (unsigned e = 0; e < 8; e++) {
        by_one[e] = by_x[e] = 0;
        gamma[e] = column < w.columns ? a.norm.gamma[column + e] : 0;
    }
    __syncthreads();
    for (unsigned row = gemm_leaving<TILE>::first_row(); row < TILE::ROWS && column < w.columns; row += EACH) {
        size_t at = (size_t)(w.row0 + row) * a.x_ld + column;
        value8 v, seen, old;
        float g[8], x[8], y[8], figure[8], shift[8];

        if (w.row0 + row >= w.rows)
            break;
        load8(seen, (const value_t *)a.values + at);
        if (a.add)
            load8(old, (const value_t *)a.x + at);
        load8(v, shared + row * WIDE + piece * 8);
        unpack8(g, v);
        unpack8(x, seen);
        norm_load8(figure, t, NORM_SCALE, piece * 8);
        norm_load8(shift, t, NORM_SHIFT, piece * 8);
#pragma unroll
        for (unsigned e = 0; e < 8; e++)
            if (a.norm.relu && !(fmaf(x[e], figure[e], shift[e]) > 0))
                g[e] = 0;
        norm_load8(shift, t, NORM_MEAN, piece * 8);
        norm_load8(figure, t, NORM_INVERSE, piece * 8);
        if (counts[row]) {
#pragma unroll
            for (unsigned e = 0; e < 8; e++) {
                by_one[e] += g[e];
                by_x[e] = fmaf(g[e], (x[e] - shift[e]) * figure[e], by_x[e]);
            }
        }
        if (a.add)
            unpack8(y, old);
#pragma unroll
        for (unsigned e = 0; e < 8; e++)
            y[e] = a.add ? fmaf(gamma[e], g[e], y[e]) : gamma[e] * g[e];
        pack8(v, y);
        store8((value_t *)a.x + at, v);
    }
    if (a.sums.partial)
        gemm_sum_rows<TILE>(by_one, by_x, (float *)(void *)shared_bytes, totals);
}

/* Is the sum of the only split at hand? */
DEVICE bool
gemm_is_single(const conv_args &a, const gemm_work &w)
{
    return a.steps_each >= (w.counted + GEMM_DEEP - 1) / GEMM_DEEP;
}

/*
 * A single sum, of floats: two columns side by side, and all rows of a warp's tiles that a lane has; two(i, e): those
 * of row tile_row(e) of tile i.
 */
template <bool POINTWISE, int DOWN, typename F>
DEVICE void
gemm_leave_single(const conv_args &a, const gemm_work &w, unsigned row0, unsigned column, F two)
{
    unsigned taps = a.kernel_h * a.kernel_w, out = w.column0 + column, tap = w.tap;

    if (out >= w.columns)
        return;
    if (!POINTWISE && a.stride == 1) {
        tap = out / a.out;
        out -= tap * a.out;
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
                *(float2 *)(void *)(to + (size_t)row * a.in + out) = {from[0], from[1]};
                continue;
            }
            to += ((size_t)out * taps + tap) * a.in + row;
            to[0] = from[0];
            to[(size_t)taps * a.in] = from[1];
        }
}

/*
 * One of several: the tile leaves through shared memory, in lines of input channels, which lie side by side.  Those of
 * 1x1 are rows of the tile, others its columns.
 */
template <typename TILE, bool POINTWISE> struct gemm_lines {
    enum {
        LINES = POINTWISE ? TILE::ROWS : TILE::COLUMNS,
        PIECES = (POINTWISE ? TILE::COLUMNS : TILE::ROWS) / 8,
        WIDE = PIECES * 8 + 8
    };
};

/* Two columns side by side of a row of the tile. */
template <typename TILE, bool POINTWISE>
DEVICE void
gemm_put_partial(partial_t *shared, unsigned row, unsigned column, const float *two)
{
    enum { WIDE = gemm_lines<TILE, POINTWISE>::WIDE };

    if (POINTWISE) {
        partial_store2(shared + row * WIDE + column, two[0], two[1]);
        return;
    }
    shared[column * WIDE + row] = partial_of(two[0]);
    shared[(column + 1) * WIDE + row] = partial_of(two[1]);
}

template <typename TILE, bool POINTWISE>
DEVICE void
gemm_leave_partial(const conv_args &a, const gemm_work &w, const partial_t *shared)
{
    typedef gemm_lines<TILE, POINTWISE> lines;
    unsigned taps = a.kernel_h * a.kernel_w;

    static_assert((int)lines::LINES * (int)lines::WIDE * sizeof(partial_t) <=
                      GEMM_SHARED(TILE::ROWS, TILE::COLUMNS, sizeof(value_t)),
                  "room for the tile");
    __syncthreads();
    for (unsigned i = threadIdx.x; i < lines::LINES * lines::PIECES; i += TILE::THREADS) {
        unsigned line = i / lines::PIECES, piece = i % lines::PIECES, tap = w.tap;
        unsigned out = (POINTWISE ? w.row0 : w.column0) + line, in = (POINTWISE ? w.column0 : w.row0) + piece * 8;

        if (out >= (POINTWISE ? w.rows : w.columns) || in >= a.in)
            continue;
        if (!POINTWISE && a.stride == 1) {
            tap = out / a.out;
            out -= tap * a.out;
        }
        partial_store8((partial_t *)a.partial + (((size_t)w.at.split * a.out + out) * taps + tap) * a.in + in,
                       partial_load8(shared + line * lines::WIDE + piece * 8));
    }
}
} // namespace

#endif
