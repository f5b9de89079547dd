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
 * A prologue on A and an epilogue on C have their places (load, store), and are the identity so far.  `weights` writes
 * partial sums, which sum_splits adds in a fixed order: no atomics, the same bits in every run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_GEMM_H
#define CHEX_CUDA_GEMM_H

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

/* What a block works on. */
struct gemm_work {
    unsigned rows, columns, row0, column0; /* all of them; where the tile begins */
    unsigned tap;                          /* weights: of the tile */
    unsigned first, end;                   /* steps of k */
    unsigned chunks;                       /* forward, data: steps of a tap */
};

template <int KIND, typename TILE>
DEVICE gemm_work
gemm_work_of(const conv_args &a)
{
    gemm_work w;
    unsigned taps = a.kernel_h * a.kernel_w, inputs = a.images * a.height * a.width;
    unsigned outputs = a.images * a.out_height * a.out_width, tiles;

    w.row0 = blockIdx.x * TILE::ROWS;
    w.tap = 0;
    w.first = 0;
    if (KIND == GEMM_WEIGHTS) {
        tiles = (a.in + TILE::COLUMNS - 1) / TILE::COLUMNS;
        w.rows = a.out;
        w.columns = a.in;
        w.tap = blockIdx.y / tiles;
        w.column0 = blockIdx.y % tiles * TILE::COLUMNS;
        w.chunks = 0;
        w.first = blockIdx.z * a.steps_each;
        w.end = min((outputs + GEMM_DEEP - 1) / GEMM_DEEP, w.first + a.steps_each);
        w.end = max(w.end, w.first);
    } else {
        w.rows = KIND == GEMM_FORWARD ? outputs : inputs;
        w.columns = KIND == GEMM_FORWARD ? a.out : a.in;
        w.column0 = blockIdx.y * TILE::COLUMNS;
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

/* Values leave through shared memory, so that whole rows are written: an epilogue would see them there. */
template <typename TILE>
DEVICE void
gemm_store(value_t *shared, value_t *to, unsigned ld, bool add, const gemm_work &w)
{
    enum { PIECES = TILE::COLUMNS / 8, WIDE = TILE::COLUMNS + 8 };

    __syncthreads();
    for (unsigned i = threadIdx.x; i < TILE::ROWS * PIECES; i += TILE::THREADS) {
        unsigned row = i / PIECES, piece = i % PIECES;
        value_t *at = to + (size_t)(w.row0 + row) * ld + w.column0 + piece * 8;
        value8 v, old;

        if (w.row0 + row >= w.rows || w.column0 + piece * 8 >= w.columns)
            continue;
        load8(v, shared + row * WIDE + piece * 8);
        if (add) {
            load8(old, at);
#pragma unroll
            for (unsigned e = 0; e < 8; e++)
                v.at[e] = to_value(to_float(old.at[e]) + to_float(v.at[e]));
        }
        store8(at, v);
    }
}

template <int KIND, typename TILE, bool POINTWISE>
DEVICE void
gemm(const conv_args &a, unsigned char *shared_bytes)
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
    value_t *shared = (value_t *)(void *)shared_bytes;
    const gemm_work w = gemm_work_of<KIND, TILE>(a);
    unsigned warp = threadIdx.x / 32, m0 = warp / WARPS_ACROSS * TILE::WARP_ROWS;
    unsigned n0 = warp % WARPS_ACROSS * TILE::WARP_COLUMNS, step;
    bool idle = w.row0 + m0 >= w.rows || w.column0 + n0 >= w.columns; /* a warp that is beyond the product */
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
            bool inside = gemm_address_a<KIND, POINTWISE>(a, w, at, line, piece, &from);

            copy8(to_a + operand_a::place(line, piece), inside ? from : (const value_t *)a.y, inside);
        }
#pragma unroll
        for (unsigned i = threadIdx.x; i < operand_b::TALL * operand_b::PIECES; i += TILE::THREADS) {
            unsigned line = i / operand_b::PIECES, piece = i % operand_b::PIECES;
            bool inside = gemm_address_b<KIND, POINTWISE>(a, w, at, line, piece, &from);

            copy8(to_b + operand_b::place(line, piece), inside ? from : (const value_t *)a.y, inside);
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
        copy_commit();
    }
    for (step = w.first; step < w.end; step++) {
        copy_wait<GEMM_STAGES - 2>();
        __syncthreads(); /* this step is there for all, and the one before is read by all */
        if (step + GEMM_STAGES - 1 < w.end)
            load(step + GEMM_STAGES - 1);
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
            for (unsigned e = 0; e < 8; e++) {
                unsigned row = m0 + i * 16 + tile_row(e), column = n0 + j * 16 + tile_column(e);

                if (KIND != GEMM_WEIGHTS)
                    shared[row * (TILE::COLUMNS + 8) + column] = to_value(sum[i][j].at[e]);
                else if (w.row0 + row < w.rows && w.column0 + column < w.columns)
                    a.partial[(((size_t)blockIdx.z * a.out + w.row0 + row) * (a.kernel_h * a.kernel_w) + w.tap) * a.in +
                              w.column0 + column] = sum[i][j].at[e];
            }
    if (KIND == GEMM_FORWARD)
        gemm_store<TILE>(shared, (value_t *)a.y, a.y_ld, false, w);
    else if (KIND == GEMM_DATA)
        gemm_store<TILE>(shared, (value_t *)a.x, a.x_ld, a.add, w);
}
} // namespace

/* Blocks of a multiprocessor at least: half of the registers for each, which is too few on sm_70. */
#if DEVICE_ARCH >= 800
#define GEMM_BLOCKS 2
#else
#define GEMM_BLOCKS 1
#endif

/* A kernel for one form of tile, and one for kernels of 1 x 1 with stride 1 and no padding. */
#define GEMM_KERNELS(kind, name, rows, columns, warp_rows, warp_columns)                                   \
    KERNEL(name, conv_args, GEMM_THREADS(rows, columns, warp_rows, warp_columns), GEMM_BLOCKS)             \
    {                                                                                                      \
        SHARED_BYTES(shared);                                                                              \
        gemm<kind, gemm_tile<rows, columns, warp_rows, warp_columns>, false>(a, shared);                   \
    }                                                                                                      \
    KERNEL(name##_pointwise, conv_args, GEMM_THREADS(rows, columns, warp_rows, warp_columns), GEMM_BLOCKS) \
    {                                                                                                      \
        SHARED_BYTES(shared);                                                                              \
        gemm<kind, gemm_tile<rows, columns, warp_rows, warp_columns>, true>(a, shared);                    \
    }

#endif
