/*
 * cuda_gemm.h - convolutions as one product: C[M][N] = sum over k of op_a(A)[M][k] op_b(B)[k][N]
 *
 *            rows M           columns N           k                        A lies by    B lies by
 *   forward  output pixels    output channels     taps x input channels    M            N
 *   data     input pixels     input channels      taps x output channels   M            k ("turned")
 *   weights  output channels  taps x input ch.    output pixels            k            k
 *
 * No operand is ever laid out: an address function says for each piece of eight values where it lies, or that it is
 * outside and zero.  A block computes a tile of C; its warps share the tile, GEMM_DEEP of k at a time, of which
 * GEMM_STAGES are in flight.  Piece q of line l lies at q ^ (something of l), so that the eight lines that ldmatrix
 * reads meet all banks.
 *
 * A prologue sees x through a normalisation that nobody wrote (forward A, weights B).  An epilogue leaves sums of
 * channels with what it stores (forward), or makes of the product the gradient of a normalisation and its sums (data).
 * `weights` writes partial sums, which sum_all adds in a fixed order: no atomics, the same bits in every run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_GEMM_H
#define CHEX_CUDA_GEMM_H

#include "cuda/cuda_norm.h"
#include "cuda/cuda_tile.h"

namespace
{
enum gemm_kind { GEMM_FORWARD, GEMM_DATA, GEMM_WEIGHTS };

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
        unsigned turn = PIECES >= 8 ? line & 7 : line / 2 & 3;

        return (line * PIECES + (piece ^ turn)) * 8;
    }
};

struct gemm_pixel {
    unsigned image, y, x;
};

DEVICE gemm_pixel
gemm_split(unsigned pixel, unsigned height, unsigned width)
{
    unsigned row = pixel / width;

    return {row / height, row % height, pixel - row * width};
}

/* Where the input pixel of an output pixel and a tap lies; false: outside. */
template <bool POINTWISE>
DEVICE bool
gemm_input_pixel(const conv_args &a, unsigned output, unsigned tap, size_t *input)
{
    if (POINTWISE) {
        *input = output;
        return true;
    }
    gemm_pixel p = gemm_split(output, a.out_height, a.out_width);
    unsigned y = p.y * a.stride + tap / a.kernel_w - a.pad_h, x = p.x * a.stride + tap % a.kernel_w - a.pad_w;

    *input = ((size_t)p.image * a.height + y) * a.width + x;
    return y < a.height && x < a.width; /* below 0 is far above */
}

/* Which output pixel met an input pixel at a tap; false: none. */
template <bool POINTWISE>
DEVICE bool
gemm_output_pixel(const conv_args &a, unsigned input, unsigned tap, size_t *output)
{
    if (POINTWISE) {
        *output = input;
        return true;
    }
    gemm_pixel p = gemm_split(input, a.height, a.width);
    unsigned y = p.y + a.pad_h - tap / a.kernel_w, x = p.x + a.pad_w - tap % a.kernel_w;
    bool met = y % a.stride == 0 && x % a.stride == 0;

    y /= a.stride;
    x /= a.stride;
    *output = ((size_t)p.image * a.out_height + y) * a.out_width + x;
    return met && y < a.out_height && x < a.out_width;
}

/* Which tile of a product, and which of its splits. */
struct gemm_tile_at {
    unsigned down, across, split;
};

/* What a block works on. */
struct gemm_work {
    unsigned rows, columns, row0, column0; /* all of them; where the tile begins */
    gemm_tile_at at;
    unsigned tap;        /* weights: of the tile */
    unsigned first, end; /* steps of k */
    unsigned chunks;     /* forward, data: steps of a tap */
};

template <int KIND, typename TILE>
DEVICE gemm_work
gemm_work_of(const conv_args &a, const gemm_tile_at &at)
{
    gemm_work w;
    unsigned taps = a.kernel_h * a.kernel_w, inputs = a.images * a.height * a.width;
    unsigned outputs = a.images * a.out_height * a.out_width, tiles;

    w.at = at;
    w.row0 = at.down * TILE::ROWS;
    w.tap = 0;
    w.first = 0;
    if (KIND == GEMM_WEIGHTS) {
        tiles = (a.in + TILE::COLUMNS - 1) / TILE::COLUMNS;
        w.rows = a.out;
        w.columns = a.in;
        w.tap = at.across / tiles;
        w.column0 = at.across % tiles * TILE::COLUMNS;
        w.chunks = 0;
        w.first = at.split * a.steps_each;
        w.end = min((outputs + GEMM_DEEP - 1) / GEMM_DEEP, w.first + a.steps_each);
        w.end = max(w.end, w.first);
    } else {
        w.rows = KIND == GEMM_FORWARD ? outputs : inputs;
        w.columns = KIND == GEMM_FORWARD ? a.out : a.in;
        w.column0 = at.across * TILE::COLUMNS;
        w.chunks = ((KIND == GEMM_FORWARD ? a.in : a.out) + GEMM_DEEP - 1) / GEMM_DEEP;
        w.end = w.chunks * taps;
    }
    return w;
}

/* The address of a piece of A in a step, or false. */
template <int KIND, bool POINTWISE>
DEVICE bool
gemm_address_a(const conv_args &a, const gemm_work &w, unsigned step, unsigned line, unsigned piece, const value_t **at)
{
    unsigned tap = KIND == GEMM_WEIGHTS || POINTWISE ? 0 : step / w.chunks;
    unsigned channel = (POINTWISE ? step : step - tap * w.chunks) * GEMM_DEEP + piece * 8;
    size_t pixel;
    bool inside;

    if (KIND == GEMM_WEIGHTS) {
        pixel = (size_t)step * GEMM_DEEP + line;
        channel = w.row0 + piece * 8;
        *at = (const value_t *)a.y + pixel * a.y_ld + channel;
        return pixel < (size_t)a.images * a.out_height * a.out_width && channel < a.out;
    }
    inside = w.row0 + line < w.rows;
    if (KIND == GEMM_FORWARD) {
        inside = gemm_input_pixel<POINTWISE>(a, w.row0 + line, tap, &pixel) && inside && channel < a.in;
        *at = (const value_t *)a.x + pixel * a.x_ld + channel;
    } else {
        inside = gemm_output_pixel<POINTWISE>(a, w.row0 + line, tap, &pixel) && inside && channel < a.out;
        *at = (const value_t *)a.y + pixel * a.y_ld + channel;
    }
    return inside;
}

template <int KIND, bool POINTWISE>
DEVICE bool
gemm_address_b(const conv_args &a, const gemm_work &w, unsigned step, unsigned line, unsigned piece, const value_t **at)
{
    unsigned taps = POINTWISE ? 1 : a.kernel_h * a.kernel_w;
    unsigned tap = KIND == GEMM_WEIGHTS || POINTWISE ? 0 : step / w.chunks;
    unsigned first = (POINTWISE ? step : step - tap * w.chunks) * GEMM_DEEP, out, in;
    size_t pixel;
    bool inside;

    if (KIND == GEMM_WEIGHTS) {
        unsigned output = step * GEMM_DEEP + line;

        in = w.column0 + piece * 8;
        inside = gemm_input_pixel<POINTWISE>(a, output, w.tap, &pixel);
        *at = (const value_t *)a.x + pixel * a.x_ld + in;
        return inside && output < a.images * a.out_height * a.out_width && in < a.in;
    }
    out = KIND == GEMM_FORWARD ? w.column0 + line : first + line;
    in = KIND == GEMM_FORWARD ? first + piece * 8 : w.column0 + piece * 8;
    *at = (const value_t *)a.w + ((size_t)out * taps + tap) * a.in + in;
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

/* Two sums of the eight columns of each thread, over the rows of the tile in a fixed order, to partial. */
template <typename TILE>
DEVICE void
gemm_sum_rows(const float *first, const float *second, float *shared, const channel_sums &to, const gemm_work &w)
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
    for (unsigned i = threadIdx.x; i < ROW; i += TILE::THREADS) {
        unsigned which = i / TILE::COLUMNS, half = i / (TILE::COLUMNS / 2) % 2;
        unsigned column = w.column0 + i % (TILE::COLUMNS / 2) / 4 * 8 + half * 4 + i % 4;
        float sum = 0;

#pragma unroll
        for (unsigned k = 0; k < EACH; k++)
            sum += shared[k * ROW + i];
        if (column < w.columns)
            to.partial[((size_t)w.at.down * 2 + which) * to.channels + column] = sum;
    }
}

/* As it is, or added to what lies there. */
template <typename TILE>
DEVICE void
gemm_store(const value_t *shared, value_t *to, unsigned ld, bool add, const gemm_work &w)
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
        store8(at, v);
    }
}

/* Forward: y, and sums of y - pivot and its square. */
template <typename TILE>
DEVICE void
gemm_store_summed(const conv_args &a, unsigned char *shared_bytes, const gemm_work &w)
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
    gemm_sum_rows<TILE>(sum, squares, (float *)(void *)shared_bytes, a.sums, w);
}

/* Data: the product is dy; x (+)= gamma * g, where g is dy if the normalised value is positive; sums of g, g xhat. */
template <typename TILE>
DEVICE void
gemm_store_masked(const conv_args &a, unsigned char *shared_bytes, const norm_table &t, const gemm_work &w)
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
        gemm_sum_rows<TILE>(by_one, by_x, (float *)(void *)shared_bytes, a.sums, w);
}

template <int KIND, typename TILE, bool POINTWISE>
DEVICE void
gemm(const conv_args &a, unsigned char *shared_bytes, const gemm_tile_at &tile_at)
{
    enum { TURNED_A = KIND == GEMM_WEIGHTS, TURNED_B = KIND != GEMM_FORWARD };
    enum {
        DOWN = TILE::WARP_ROWS / 16,
        ACROSS = TILE::WARP_COLUMNS / 16,
        WARPS_ACROSS = TILE::COLUMNS / TILE::WARP_COLUMNS
    };
    typedef gemm_operand<TILE::ROWS, TURNED_A> operand_a;
    typedef gemm_operand<TILE::COLUMNS, TURNED_B> operand_b;
    enum { STAGE = (TILE::ROWS + TILE::COLUMNS) * GEMM_DEEP };
    /* x as operand: pieces of each thread, which are beside each other in lines */
    enum {
        X_LINES = KIND == GEMM_FORWARD ? (int)operand_a::TALL : (int)operand_b::TALL,
        X_PIECES = KIND == GEMM_FORWARD ? (int)operand_a::PIECES : (int)operand_b::PIECES,
        SEEN = X_LINES * X_PIECES / TILE::THREADS
    };
    value_t *shared = (value_t *)(void *)shared_bytes;
    const gemm_work w = gemm_work_of<KIND, TILE>(a, tile_at);
    unsigned warp = threadIdx.x / 32, m0 = warp / WARPS_ACROSS * TILE::WARP_ROWS;
    unsigned n0 = warp % WARPS_ACROSS * TILE::WARP_COLUMNS, step;
    bool idle = w.row0 + m0 >= w.rows || w.column0 + n0 >= w.columns; /* a warp that is beyond the product */
    const norm_table table = {(float *)(void *)(shared_bytes + GEMM_SHARED(TILE::ROWS, TILE::COLUMNS, sizeof(value_t))),
                              KIND == GEMM_FORWARD ? w.chunks * (GEMM_DEEP / 8) : TILE::COLUMNS / 8};
    unsigned inside = 0; /* a bit for each piece of x of this thread, SEEN for each step that is loaded */
    tile_sum sum[DOWN][ACROSS];

#pragma unroll
    for (unsigned i = 0; i < DOWN; i++)
#pragma unroll
        for (unsigned j = 0; j < ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e++)
                sum[i][j].at[e] = 0;

    /* One step's operands on their way to its stage. */
    auto load = [&](unsigned at) {
        value_t *to_a = shared + (at - w.first) % GEMM_STAGES * STAGE, *to_b = to_a + TILE::ROWS * GEMM_DEEP;
        const value_t *from;

#pragma unroll
        for (unsigned i = threadIdx.x; i < operand_a::TALL * operand_a::PIECES; i += TILE::THREADS) {
            unsigned line = i / operand_a::PIECES, piece = i % operand_a::PIECES;
            bool there = gemm_address_a<KIND, POINTWISE>(a, w, at, line, piece, &from);

            copy8(to_a + operand_a::place(line, piece), there ? from : (const value_t *)a.y, there);
            if (KIND == GEMM_FORWARD && !POINTWISE)
                inside = inside << 1 | there;
        }
#pragma unroll
        for (unsigned i = threadIdx.x; i < operand_b::TALL * operand_b::PIECES; i += TILE::THREADS) {
            unsigned line = i / operand_b::PIECES, piece = i % operand_b::PIECES;
            bool there = gemm_address_b<KIND, POINTWISE>(a, w, at, line, piece, &from);

            copy8(to_b + operand_b::place(line, piece), there ? from : (const value_t *)a.y, there);
            if (KIND == GEMM_WEIGHTS && !POINTWISE)
                inside = inside << 1 | there;
        }
    };
    /*
     * Prologue: the pieces of x that this thread copied are seen through the normalisation, before the others read
     * them.  What is outside stays 0; of pointwise products it meets nothing but zeros.
     */
    auto see = [&](unsigned at) {
        value_t *in = shared + (at - w.first) % GEMM_STAGES * STAGE;
        unsigned piece = threadIdx.x % X_PIECES, line = threadIdx.x / X_PIECES;
        unsigned channel = piece * 8 + (KIND != GEMM_FORWARD ? 0 : (POINTWISE ? at : at % w.chunks) * GEMM_DEEP);
        float scale[8], shift[8];

        static_assert(TILE::THREADS % X_PIECES == 0 && SEEN * GEMM_STAGES <= 32, "one piece of all lines of a thread");
        norm_load8(scale, table, NORM_SCALE, channel);
        norm_load8(shift, table, NORM_SHIFT, channel);
#pragma unroll
        for (unsigned i = 0; i < SEEN; i++) {
            unsigned l = line + i * (TILE::THREADS / X_PIECES);
            value_t *x = in + (KIND == GEMM_FORWARD ? operand_a::place(l, piece)
                                                    : TILE::ROWS * GEMM_DEEP + operand_b::place(l, piece));
            value8 v;

            if (!POINTWISE && !(inside >> (SEEN * (GEMM_STAGES - 1) - 1 - i) & 1))
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
    if (a.norm.gamma) { /* the last stage is not in use yet */
        double *scratch = (double *)(void *)(shared + (GEMM_STAGES - 1) * STAGE);
        bool first = w.at.down == 0 && w.at.split == 0;

        static_assert(STAGE * sizeof(value_t) >= NORM_SCRATCH, "sums fit into a stage");
        if (KIND == GEMM_FORWARD)
            norm_make<2>(a.norm, 0, a.in, table, scratch, first && w.at.across == 0);
        else
            norm_make<KIND == GEMM_DATA ? 4 : 2>(a.norm, w.column0, min((unsigned)TILE::COLUMNS, a.in - w.column0),
                                                 table, scratch, first && w.tap == 0);
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

#pragma unroll
    for (unsigned i = 0; i < DOWN; i++)
#pragma unroll
        for (unsigned j = 0; j < ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e += 2) {
                unsigned row = m0 + i * 16 + tile_row(e), column = n0 + j * 16 + tile_column(e);
                const float *two = sum[i][j].at + e;

                if (KIND != GEMM_WEIGHTS)
                    store2(shared + row * gemm_leaving<TILE>::WIDE + column, two[0], two[1]);
                else if (w.row0 + row < w.rows && w.column0 + column < w.columns)
                    *(float2 *)(void *)(a.partial +
                                        (((size_t)w.at.split * a.out + w.row0 + row) * (a.kernel_h * a.kernel_w) +
                                         w.tap) *
                                            a.in +
                                        w.column0 + column) = {two[0], two[1]};
            }
    if (KIND == GEMM_FORWARD && a.sums.partial)
        gemm_store_summed<TILE>(a, shared_bytes, w);
    else if (KIND == GEMM_FORWARD)
        gemm_store<TILE>(shared, (value_t *)a.y, a.y_ld, false, w);
    else if (KIND == GEMM_DATA && a.norm.gamma)
        gemm_store_masked<TILE>(a, shared_bytes, table, w);
    else if (KIND == GEMM_DATA)
        gemm_store<TILE>(shared, (value_t *)a.x, a.x_ld, a.add, w);
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
template <typename TILE, bool POINTWISE>
DEVICE void
gemm_pair(const conv_pair_args &a, unsigned char *shared)
{
    const conv_args &d = a.data, &w = a.weights;
    unsigned down = (w.out + TILE::ROWS - 1) / TILE::ROWS, block = blockIdx.x;
    unsigned across = w.kernel_h * w.kernel_w * ((w.in + TILE::COLUMNS - 1) / TILE::COLUMNS);
    unsigned data = (d.images * d.height * d.width + TILE::ROWS - 1) / TILE::ROWS *
                    ((d.in + TILE::COLUMNS - 1) / TILE::COLUMNS);

    if (block < gridDim.x - data) {
        gemm<GEMM_WEIGHTS, TILE, POINTWISE>(w, shared, {block % down, block / down % across, block / down / across});
        return;
    }
    block -= gridDim.x - data;
    across = (d.in + TILE::COLUMNS - 1) / TILE::COLUMNS;
    gemm<GEMM_DATA, TILE, POINTWISE>(d, shared, {block / across, block % across, 0});
}
} // namespace

/* Blocks of a multiprocessor at least: half of the registers for each, which is too few on sm_70. */
#if DEVICE_ARCH >= 800
#define GEMM_BLOCKS 2
#else
#define GEMM_BLOCKS 1
#endif

/* A kernel for one form of tile, and one for kernels of 1 x 1 with stride 1 and no padding. */
#define GEMM_KERNEL(name, type, call, rows, columns, warp_rows, warp_columns)             \
    KERNEL(name, type, GEMM_THREADS(rows, columns, warp_rows, warp_columns), GEMM_BLOCKS) \
    {                                                                                     \
        typedef gemm_tile<rows, columns, warp_rows, warp_columns> gemm_form;              \
        SHARED_BYTES(shared);                                                             \
        call;                                                                             \
    }
#define GEMM_KERNELS(kind, name, ...)                                                                       \
    GEMM_KERNEL(name, conv_args, (gemm<kind, gemm_form, false>(a, shared, gemm_here<kind>())), __VA_ARGS__) \
    GEMM_KERNEL(name##_pointwise, conv_args, (gemm<kind, gemm_form, true>(a, shared, gemm_here<kind>())), __VA_ARGS__)
#define GEMM_PAIR_KERNELS(name, ...)                                                         \
    GEMM_KERNEL(name, conv_pair_args, (gemm_pair<gemm_form, false>(a, shared)), __VA_ARGS__) \
    GEMM_KERNEL(name##_pointwise, conv_pair_args, (gemm_pair<gemm_form, true>(a, shared)), __VA_ARGS__)

#endif
