/*
 * cuda_gemm.h - convolutions as one product: C[M][N] = sum over k of op_a(A)[M][k] op_b(B)[k][N]
 *
 *            rows M           columns N                k                        A lies by    B lies by
 *   forward  output pixels    output channels          taps x input channels    M            N
 *   data     input pixels     input channels           taps x output channels   M            k ("turned")
 *   weights  input channels   taps x output channels   pixels                   k            k
 *     of 1x1 output channels  input channels           pixels                   k            k
 *
 * No operand is ever laid out: an address function (cuda_pixels.h) says for each piece of eight values where it lies,
 * or that it is outside and zero.  A block computes a tile of C; its warps share the tile, GEMM_DEEP of k at a time, of
 * which GEMM_STAGES are in flight.  Piece q of line l lies at q ^ (something of l), so that the eight lines that
 * ldmatrix reads meet all banks.
 *
 * A prologue sees x through a normalisation that nobody wrote (A, of 1x1 weights B).  An epilogue leaves sums of
 * channels with what it stores (forward), or makes of the product the gradient of a normalisation and its sums (data);
 * a block has tiles_each tiles of these, one after the other, and leaves one sum of all.
 * `weights` writes partial sums, which sum_all adds in a fixed order: no atomics, the same bits in every run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_GEMM_H
#define CHEX_CUDA_GEMM_H

#include "cuda/cuda_norm.h"
#include "cuda/cuda_pixels.h"
#include "cuda/cuda_tile.h"

namespace
{
template <int ROWS_, int COLUMNS_, int WARP_ROWS_, int WARP_COLUMNS_> struct gemm_tile {
    enum {
        ROWS = ROWS_,
        COLUMNS = COLUMNS_,
        WARP_ROWS = WARP_ROWS_,
        WARP_COLUMNS = WARP_COLUMNS_,
        THREADS = GEMM_THREADS(ROWS_, COLUMNS_, WARP_ROWS_, WARP_COLUMNS_)
    };
};

/* An operand of `lines` x GEMM_DEEP in shared memory, or turned, GEMM_DEEP x `lines`. */
template <int LINES, bool TURNED> struct gemm_operand {
    enum { PIECES = TURNED ? LINES / 8 : GEMM_DEEP / 8, TALL = TURNED ? GEMM_DEEP : LINES };

    DEVICE unsigned place(unsigned line, unsigned piece)
    {
        unsigned turn = PIECES % 8 == 0 ? line & 7 : line / 2 & 3;

        return (line * PIECES + (piece ^ turn)) * 8;
    }
};

/* Which tile of a product, and which of its splits. */
struct gemm_tile_at {
    unsigned down, across, split;
};

/* What a block works on, a tile at a time. */
struct gemm_work {
    unsigned rows, columns, row0, column0; /* all of them; where the tile begins */
    gemm_tile_at at;
    unsigned tap;        /* weights with a stride: of the tile */
    unsigned first, end; /* steps of k */
    unsigned chunks;     /* forward, data: steps of a tap */
    unsigned counted;    /* weights: pixels */
};

template <int KIND, typename TILE, bool POINTWISE>
DEVICE gemm_work
gemm_work_of(const conv_args &a, const gemm_tile_at &at)
{
    gemm_work w;
    unsigned taps = a.kernel_h * a.kernel_w, inputs = a.images * a.height * a.width;
    unsigned outputs = a.images * a.out_height * a.out_width;

    w.at = at;
    w.row0 = at.down * TILE::ROWS;
    w.column0 = at.across * TILE::COLUMNS;
    w.tap = w.first = w.counted = 0;
    if (KIND == GEMM_WEIGHTS) {
        w.rows = POINTWISE ? a.out : a.in;
        w.columns = POINTWISE ? a.in : a.stride == 1 ? taps * a.out : a.out;
        if (!POINTWISE && a.stride != 1) {
            unsigned tiles = (a.out + TILE::COLUMNS - 1) / TILE::COLUMNS;

            w.tap = at.across / tiles;
            w.column0 = at.across % tiles * TILE::COLUMNS;
        }
        w.chunks = 0;
        w.counted = a.stride == 1 ? inputs : outputs;
        w.first = at.split * a.steps_each;
        w.end = min((w.counted + GEMM_DEEP - 1) / GEMM_DEEP, w.first + a.steps_each);
        w.end = max(w.end, w.first);
    } else {
        w.rows = KIND == GEMM_FORWARD ? outputs : inputs;
        w.columns = KIND == GEMM_FORWARD ? a.out : a.in;
        w.chunks = ((KIND == GEMM_FORWARD ? a.in : a.out) + GEMM_DEEP - 1) / GEMM_DEEP;
        w.end = w.chunks * taps;
    }
    return w;
}

/* The address of a piece of A in a step, or false; `l`: of forward and data, but for 1x1. */
template <int KIND, bool POINTWISE>
DEVICE bool
gemm_address_a(const conv_args &a, const gemm_work &w, unsigned step, const gemm_cursor &c, const gemm_line &l,
               unsigned line, unsigned piece, const value_t **at)
{
    unsigned channel = (KIND == GEMM_WEIGHTS ? w.row0 : (POINTWISE ? step : c.chunk) * GEMM_DEEP) + piece * 8;
    unsigned pixel = KIND == GEMM_WEIGHTS ? step * GEMM_DEEP + line : w.row0 + line;
    bool inside = pixel < (KIND == GEMM_WEIGHTS ? w.counted : w.rows);

    if (!POINTWISE)
        inside = KIND == GEMM_WEIGHTS ? gemm_counted_x(a, pixel, w.tap, &pixel) && inside
                                      : gemm_meets<KIND>(a, l, c, &pixel); /* a line behind the last is nowhere */
    if (KIND == GEMM_FORWARD || (KIND == GEMM_WEIGHTS && !POINTWISE)) {
        *at = (const value_t *)a.x + (size_t)pixel * a.x_ld + channel;
        return inside && channel < a.in;
    }
    *at = (const value_t *)a.y + (size_t)pixel * a.y_ld + channel;
    return inside && channel < a.out;
}

/* The same of B; `column`: of weights, but for 1x1. */
template <int KIND, bool POINTWISE>
DEVICE bool
gemm_address_b(const conv_args &a, const gemm_work &w, unsigned step, const gemm_cursor &c,
               const gemm_tap_column &column, unsigned line, unsigned piece, const value_t **at)
{
    unsigned first = (POINTWISE ? step : c.chunk) * GEMM_DEEP, pixel = step * GEMM_DEEP + line, out, in;
    bool inside = pixel < w.counted;

    if (KIND == GEMM_WEIGHTS && POINTWISE) {
        in = w.column0 + piece * 8;
        *at = (const value_t *)a.x + (size_t)pixel * a.x_ld + in;
        return inside && in < a.in;
    }
    if (KIND == GEMM_WEIGHTS) {
        inside = gemm_counted_y(a, pixel, column, &pixel) && inside;
        *at = (const value_t *)a.y + (size_t)pixel * a.y_ld + column.channel;
        return inside && column.channel < a.out;
    }
    out = KIND == GEMM_FORWARD ? w.column0 + line : first + line;
    in = KIND == GEMM_FORWARD ? first + piece * 8 : w.column0 + piece * 8;
    *at = (const value_t *)a.w + ((size_t)out * (POINTWISE ? 1 : a.kernel_h * a.kernel_w) + c.tap) * a.in + in;
    return out < a.out && in < a.in;
}

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

/*
 * A partial sum of two columns side by side, and of all rows of a warp's tiles that a lane has; two(i, e): those of row
 * tile_row(e) of tile i.
 */
template <bool POINTWISE, int DOWN, typename F>
DEVICE void
gemm_leave_partial(const conv_args &a, const gemm_work &w, unsigned row0, unsigned column, F two)
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
            float *to = a.partial;

            if (row >= w.rows)
                continue;
            if (POINTWISE) {
                *(float2 *)(void *)(to + ((size_t)w.at.split * a.out + row) * a.in + out) = {from[0], from[1]};
                continue;
            }
            to += (((size_t)w.at.split * a.out + out) * taps + tap) * a.in + row;
            to[0] = from[0];
            to[(size_t)taps * a.in] = from[1];
        }
}

/* Sums of a warp, whose columns begin at `first` of the tile. */
template <int DOWN, int ACROSS>
DEVICE void
gemm_begin_with_bias(const conv_args &a, const gemm_work &w, unsigned first, tile_sum (&sum)[DOWN][ACROSS])
{
#pragma unroll
    for (unsigned j = 0; j < ACROSS; j++)
#pragma unroll
        for (unsigned e = 0; e < 8; e++) {
            unsigned column = w.column0 + first + j * 16 + tile_column(e);
            float begin = column < w.columns ? a.bias[column] : 0;

#pragma unroll
            for (unsigned i = 0; i < DOWN; i++)
                sum[i][j].at[e] = begin;
        }
}

/* A tile; the first of a block makes the table. */
template <int KIND, typename TILE, bool POINTWISE>
DEVICE void
gemm_one(const conv_args &a, unsigned char *shared_bytes, const gemm_tile_at &tile_at, bool first_tile,
         gemm_totals<TILE> &totals)
{
    enum { TURNED_A = KIND == GEMM_WEIGHTS, TURNED_B = KIND != GEMM_FORWARD };
    enum { OF_TAPS = KIND == GEMM_WEIGHTS && !POINTWISE, X_IS_A = KIND == GEMM_FORWARD || OF_TAPS };
    enum {
        DOWN = TILE::WARP_ROWS / 16,
        ACROSS = TILE::WARP_COLUMNS / 16,
        WARPS_ACROSS = TILE::COLUMNS / TILE::WARP_COLUMNS
    };
    typedef gemm_operand<TILE::ROWS, TURNED_A> operand_a;
    typedef gemm_operand<TILE::COLUMNS, TURNED_B> operand_b;
    enum { STAGE = (TILE::ROWS + TILE::COLUMNS) * GEMM_DEEP };
    enum { /* pieces of each thread */
           ALL_A = operand_a::TALL * operand_a::PIECES,
           ALL_B = operand_b::TALL * operand_b::PIECES,
           EACH_A = ALL_A / TILE::THREADS,
           EACH_B = (ALL_B + TILE::THREADS - 1) / TILE::THREADS
    };
    /* x as operand: pieces of each thread, which are beside each other in lines */
    enum {
        X_PIECES = X_IS_A ? (int)operand_a::PIECES : (int)operand_b::PIECES,
        SEEN = (X_IS_A ? (int)ALL_A : (int)ALL_B) / TILE::THREADS,
        X_AT = X_IS_A ? 0 : TILE::ROWS * GEMM_DEEP
    };
    enum { LINES = KIND != GEMM_WEIGHTS && !POINTWISE ? (int)EACH_A : 1, TAP_COLUMNS = OF_TAPS ? (int)EACH_B : 1 };
    value_t *shared = (value_t *)(void *)shared_bytes;
    const gemm_work w = gemm_work_of<KIND, TILE, POINTWISE>(a, tile_at);
    unsigned warp = threadIdx.x / 32, m0 = warp / WARPS_ACROSS * TILE::WARP_ROWS;
    unsigned n0 = warp % WARPS_ACROSS * TILE::WARP_COLUMNS, step;
    bool idle = w.row0 + m0 >= w.rows || w.column0 + n0 >= w.columns; /* a warp that is beyond the product */
    const norm_table table = {(float *)(void *)(shared_bytes + GEMM_SHARED(TILE::ROWS, TILE::COLUMNS, sizeof(value_t))),
                              KIND == GEMM_FORWARD ? w.chunks * (GEMM_DEEP / 8)
                              : OF_TAPS            ? TILE::ROWS / 8
                                                   : TILE::COLUMNS / 8};
    unsigned inside = 0; /* a bit for each piece of x of this thread, SEEN for each step that is loaded */
    unsigned seen_chunk = 0;
    gemm_cursor cursor = {0, 0, 0, 0};
    gemm_line lines[LINES];
    gemm_tap_column columns[TAP_COLUMNS];
    tile_sum sum[DOWN][ACROSS];

    static_assert(ALL_A % TILE::THREADS == 0, "all threads have pieces of A");
    static_assert(TILE::THREADS % X_PIECES == 0 && SEEN * GEMM_STAGES <= 32, "one piece of all lines of a thread");
#pragma unroll
    for (unsigned i = 0; i < DOWN; i++)
#pragma unroll
        for (unsigned j = 0; j < ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e++)
                sum[i][j].at[e] = 0;
    if (KIND != GEMM_WEIGHTS && !POINTWISE) {
#pragma unroll
        for (unsigned n = 0; n < LINES; n++)
            lines[n] = gemm_line_of<KIND>(a, w.row0 + (threadIdx.x + n * TILE::THREADS) / (unsigned)operand_a::PIECES,
                                          w.rows);
    }
    if (OF_TAPS) {
#pragma unroll
        for (unsigned n = 0; n < TAP_COLUMNS; n++)
            columns[n] = gemm_column_of(
                a, w.column0 + (threadIdx.x + n * TILE::THREADS) % (unsigned)operand_b::PIECES * 8, w.tap);
    }

    /* One step's operands on their way to its stage; steps come in their order. */
    auto load = [&](unsigned at) {
        value_t *to_a = shared + (at - w.first) % GEMM_STAGES * STAGE, *to_b = to_a + TILE::ROWS * GEMM_DEEP;
        const value_t *from;

#pragma unroll
        for (unsigned n = 0; n < EACH_A; n++) {
            unsigned i = threadIdx.x + n * TILE::THREADS;
            unsigned line = i / (unsigned)operand_a::PIECES, piece = i % (unsigned)operand_a::PIECES;
            bool there = gemm_address_a<KIND, POINTWISE>(a, w, at, cursor, lines[LINES > 1 ? n : 0], line, piece,
                                                         &from);

            copy8(to_a + operand_a::place(line, piece), there ? from : (const value_t *)a.y, there);
            if (KIND == GEMM_FORWARD && !POINTWISE)
                inside = inside << 1 | there;
        }
#pragma unroll
        for (unsigned n = 0; n < EACH_B; n++) {
            unsigned i = threadIdx.x + n * TILE::THREADS;
            unsigned line = i / (unsigned)operand_b::PIECES, piece = i % (unsigned)operand_b::PIECES;
            bool there;

            if (ALL_B % TILE::THREADS != 0 && i >= ALL_B)
                break;
            there = gemm_address_b<KIND, POINTWISE>(a, w, at, cursor, columns[TAP_COLUMNS > 1 ? n : 0], line, piece,
                                                    &from);
            copy8(to_b + operand_b::place(line, piece), there ? from : (const value_t *)a.y, there);
        }
        if (KIND != GEMM_WEIGHTS && !POINTWISE)
            gemm_advance(cursor, w.chunks, a.kernel_w);
    };
    /*
     * Prologue: the pieces of x that this thread copied are seen through the normalisation, before the others read
     * them.  What is outside stays 0 (forward), or meets nothing but zeros.
     */
    auto see = [&](unsigned at) {
        value_t *in = shared + (at - w.first) % GEMM_STAGES * STAGE + X_AT;
        unsigned piece = threadIdx.x % X_PIECES, line = threadIdx.x / X_PIECES;
        unsigned channel = piece * 8 + (KIND != GEMM_FORWARD ? 0 : (POINTWISE ? at : seen_chunk) * GEMM_DEEP);
        float scale[8], shift[8];

        if (KIND == GEMM_FORWARD && !POINTWISE)
            seen_chunk = seen_chunk + 1 < w.chunks ? seen_chunk + 1 : 0;
        norm_load8(scale, table, NORM_SCALE, channel);
        norm_load8(shift, table, NORM_SHIFT, channel);
#pragma unroll
        for (unsigned i = 0; i < SEEN; i++) {
            unsigned l = line + i * (TILE::THREADS / X_PIECES);
            value_t *x = in + (X_IS_A ? operand_a::place(l, piece) : operand_b::place(l, piece));
            value8 v;

            if (KIND == GEMM_FORWARD && !POINTWISE && !(inside >> (SEEN * (GEMM_STAGES - 1) - 1 - i) & 1))
                continue;
            load8(v, x);
            norm_see8(v, scale, shift, a.norm.relu);
            store8(x, v);
        }
    };
    auto multiply = [&](unsigned at) {
        const value_t *in_a = shared + (at - w.first) % GEMM_STAGES * STAGE, *in_b = in_a + TILE::ROWS * GEMM_DEEP;

#pragma unroll
        for (unsigned k = 0; k < GEMM_DEEP / 16; k++) {
            tile ta[DOWN], tb[ACROSS];

#pragma unroll
            for (unsigned i = 0; i < DOWN; i++)
                tile_load_a<TURNED_A>(ta[i], [&](unsigned line, unsigned piece) {
                    return in_a + (TURNED_A ? operand_a::place(k * 16 + line, (m0 + i * 16) / 8 + piece)
                                            : operand_a::place(m0 + i * 16 + line, k * 2 + piece));
                });
#pragma unroll
            for (unsigned j = 0; j < ACROSS; j++)
                tile_load_b<TURNED_B>(tb[j], [&](unsigned line, unsigned piece) {
                    return in_b + (TURNED_B ? operand_b::place(k * 16 + line, (n0 + j * 16) / 8 + piece)
                                            : operand_b::place(n0 + j * 16 + line, k * 2 + piece));
                });
#pragma unroll
            for (unsigned i = 0; i < DOWN; i++)
#pragma unroll
                for (unsigned j = 0; j < ACROSS; j++)
                    tile_multiply_as<TURNED_A, TURNED_B>(sum[i][j], ta[i], tb[j]);
        }
    };

    for (step = w.first; step < w.first + GEMM_STAGES - 1; step++) {
        if (step < w.end)
            load(step);
        else
            inside <<= SEEN;
        copy_commit();
    }
    if (KIND == GEMM_FORWARD && a.bias)
        gemm_begin_with_bias(a, w, n0, sum);
    if (a.norm.gamma && first_tile) { /* the last stage is not in use yet */
        double *scratch = (double *)(void *)(shared + (GEMM_STAGES - 1) * STAGE);
        bool first = w.at.down == 0 && w.at.split == 0;

        static_assert(STAGE * sizeof(value_t) >= NORM_SCRATCH, "sums fit into a stage");
        if (KIND == GEMM_FORWARD)
            norm_make<2>(a.norm, 0, a.in, table, scratch, first && w.at.across == 0);
        else if (OF_TAPS)
            norm_make<2>(a.norm, w.row0, min((unsigned)TILE::ROWS, a.in - w.row0), table, scratch,
                         w.at.across == 0 && w.at.split == 0);
        else
            norm_make<KIND == GEMM_DATA ? 4 : 2>(a.norm, w.column0, min((unsigned)TILE::COLUMNS, a.in - w.column0),
                                                 table, scratch, first);
    }
    for (step = w.first; step < w.end; step++) {
        copy_wait<GEMM_STAGES - 2>();
        if (KIND != GEMM_DATA && a.norm.gamma)
            see(step);
        __syncthreads(); /* this step is there for all, and the one before is read by all */
        if (step + GEMM_STAGES - 1 < w.end)
            load(step + GEMM_STAGES - 1);
        else
            inside <<= SEEN;
        copy_commit();
        if (!idle)
            multiply(step);
    }
    copy_wait<0>();
    __syncthreads();

    if constexpr (KIND == GEMM_WEIGHTS) {
#pragma unroll
        for (unsigned j = 0; j < ACROSS; j++)
#pragma unroll
            for (unsigned half = 0; half < 8; half += 4)
                gemm_leave_partial<POINTWISE, DOWN>(a, w, m0, n0 + j * 16 + tile_column(half),
                                                    [&](unsigned i, unsigned e) { return sum[i][j].at + half + e; });
    } else {
#pragma unroll
        for (unsigned i = 0; i < DOWN; i++)
#pragma unroll
            for (unsigned j = 0; j < ACROSS; j++)
#pragma unroll
                for (unsigned e = 0; e < 8; e += 2)
                    store2(shared + (m0 + i * 16 + tile_row(e)) * gemm_leaving<TILE>::WIDE + n0 + j * 16 +
                               tile_column(e),
                           sum[i][j].at[e], sum[i][j].at[e + 1]);
        if (KIND == GEMM_FORWARD && a.sums.partial)
            gemm_store_summed<TILE>(a, shared_bytes, w, totals);
        else if (KIND == GEMM_FORWARD)
            gemm_store<TILE>(shared, (value_t *)a.y, a.y_ld, false, a.relu, w);
        else if (a.norm.gamma)
            gemm_store_masked<TILE>(a, shared_bytes, table, w, totals);
        else
            gemm_store<TILE>(shared, (value_t *)a.x, a.x_ld, a.add, false, w);
    }
}

/* The tiles of a block: at.down counts blocks. */
template <int KIND, typename TILE, bool POINTWISE>
DEVICE void
gemm(const conv_args &a, unsigned char *shared, const gemm_tile_at &at)
{
    unsigned rows = KIND == GEMM_FORWARD ? a.images * a.out_height * a.out_width : a.images * a.height * a.width;
    unsigned first = at.down * a.tiles_each, end = min(first + a.tiles_each, (rows + TILE::ROWS - 1) / TILE::ROWS);
    gemm_totals<TILE> totals;

#pragma unroll
    for (unsigned n = 0; n < gemm_totals<TILE>::EACH; n++)
        totals.at[n] = 0;
    if constexpr (KIND == GEMM_WEIGHTS) {
        gemm_one<KIND, TILE, POINTWISE>(a, shared, at, true, totals);
    } else {
#pragma unroll 1
        for (unsigned down = first; down < end; down++) {
            if (down > first)
                __syncthreads(); /* the tile before has left */
            gemm_one<KIND, TILE, POINTWISE>(a, shared, {down, at.across, 0}, down == first, totals);
        }
        if (a.sums.partial)
            gemm_leave_sums<TILE>(totals, a.sums, at, KIND == GEMM_FORWARD ? a.out : a.in);
    }
}

/*
 * Blocks begin in the order of their numbers.  Tiles of the same pixels follow each other, so pixels come from memory
 * once and the weights, of which there are few, again and again from the cache.
 */
template <int KIND>
DEVICE gemm_tile_at
gemm_here()
{
    unsigned block = blockIdx.y * gridDim.x + blockIdx.x;

    if (KIND == GEMM_WEIGHTS)
        return {blockIdx.x, blockIdx.y, blockIdx.z};
    return {block / gridDim.y, block % gridDim.y, 0};
}

/* Both gradients of one convolution: blocks of the weights first, which are long, then those of the data. */
template <typename OF_DATA, typename OF_WEIGHTS, bool POINTWISE>
DEVICE void
gemm_pair(const conv_pair_args &a, unsigned char *shared)
{
    const conv_args &d = a.data, &w = a.weights;
    unsigned rows = POINTWISE ? w.out : w.in, columns = POINTWISE ? w.in : w.out, block = blockIdx.x;
    unsigned taps = w.kernel_h * w.kernel_w, down = (rows + OF_WEIGHTS::ROWS - 1) / OF_WEIGHTS::ROWS;
    unsigned across = w.stride == 1 ? (taps * columns + OF_WEIGHTS::COLUMNS - 1) / OF_WEIGHTS::COLUMNS
                                    : taps * ((columns + OF_WEIGHTS::COLUMNS - 1) / OF_WEIGHTS::COLUMNS);
    unsigned of_data = (d.in + OF_DATA::COLUMNS - 1) / OF_DATA::COLUMNS;
    unsigned data = (d.images * d.height * d.width + OF_DATA::ROWS - 1) / OF_DATA::ROWS;

    static_assert((int)OF_DATA::THREADS == (int)OF_WEIGHTS::THREADS, "one block for both");
    data = (data + d.tiles_each - 1) / d.tiles_each * of_data;
    if (block < gridDim.x - data) {
        gemm<GEMM_WEIGHTS, OF_WEIGHTS, POINTWISE>(w, shared,
                                                  {block % down, block / down % across, block / down / across});
        return;
    }
    block -= gridDim.x - data;
    gemm<GEMM_DATA, OF_DATA, POINTWISE>(d, shared, {block / of_data, block % of_data, 0});
}
} // namespace

/* Blocks of a multiprocessor at least: half of the registers for each, which is too few on sm_70. */
#if DEVICE_ARCH >= 800
#define GEMM_BLOCKS 2
#else
#define GEMM_BLOCKS 1
#endif

#define GEMM_KERNEL(name, type, threads, call) \
    KERNEL(name, type, threads, GEMM_BLOCKS)   \
    {                                          \
        SHARED_BYTES(shared);                  \
        call;                                  \
    }
/* One product, and both gradients of one convolution. */
#define GEMM_ONE_KERNEL(name, kind, pointwise, ...)         \
    GEMM_KERNEL(name, conv_args, GEMM_THREADS(__VA_ARGS__), \
                (gemm<kind, gemm_tile<__VA_ARGS__>, pointwise>(a, shared, gemm_here<kind>())))
#define GEMM_PAIR_KERNEL(name, pointwise, r, c, wr, wc, ...)      \
    GEMM_KERNEL(name, conv_pair_args, GEMM_THREADS(r, c, wr, wc), \
                (gemm_pair<gemm_tile<r, c, wr, wc>, gemm_tile<__VA_ARGS__>, pointwise>(a, shared)))

#endif
