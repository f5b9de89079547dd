/*
 * gemm.h - convolutions as one product: C[M][N] = sum over k of op_a(A)[M][k] op_b(B)[k][N]
 *
 *            rows M           columns N                k                        A lies by    B lies by
 *   forward  output pixels    output channels          taps x input channels    M            N
 *   data     input pixels     input channels           taps x output channels   M            k ("turned")
 *   weights  input channels   taps x output channels   pixels                   k            k
 *     of 1x1 output channels  input channels           pixels                   k            k
 *
 * A block computes a tile of C; its warps share the tile, GEMM_DEEP of k at a time, of which GEMM_STAGES are in flight.
 * Piece q of line l lies at q ^ (something of l), so that the eight lines that ldmatrix reads meet all banks.
 *
 * A prologue sees x through a normalisation that nobody wrote (A, of 1x1 weights B).  An epilogue leaves sums of
 * channels with what it stores (forward), or makes of the product the gradient of a normalisation and its sums (data);
 * a block has tiles_each tiles of these, one after the other, and leaves one sum of all.
 * `weights` writes partial sums, which sum_all adds in a fixed order: no atomics, the same bits in every run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_GEMM_H
#define CHEX_CUDA_KERNELS_GEMM_H

#include "cuda/kernels/leave.h"

namespace
{
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
    static_assert(SEEN * GEMM_STAGES <= 32, "a flag for each piece");
    static_assert(TILE::THREADS % X_PIECES == 0, "one piece of all lines of a thread");
#pragma unroll
    for (unsigned i = 0; i < DOWN; i++)
#pragma unroll
        for (unsigned j = 0; j < ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e++)
                sum[i][j].at[e] = 0;
    if (KIND != GEMM_WEIGHTS && !POINTWISE) {
#pragma unroll
        for (unsigned n = 0; n < LINES; n++) {
            unsigned pixel = w.row0 + (threadIdx.x + n * TILE::THREADS) / (unsigned)operand_a::PIECES;

            lines[n] = gemm_line_of<KIND>(a, pixel, w.rows);
        }
    }
    if (OF_TAPS) {
#pragma unroll
        for (unsigned n = 0; n < TAP_COLUMNS; n++)
            columns[n] = gemm_column_of(
                a, w.column0 + (threadIdx.x + n * TILE::THREADS) % (unsigned)operand_b::PIECES * 8, w.tap);
    }

    /* One step's operands on their way to its stage; steps come in their order. */
    auto load = [&](unsigned at) {
        unsigned turn = (at - w.first) % GEMM_STAGES;
        value_t *to_a = shared + turn * STAGE, *to_b = to_a + TILE::ROWS * GEMM_DEEP;
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
                continue;
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
    double *scratch = (double *)(void *)(shared + (GEMM_STAGES - 1) * STAGE); /* not in use yet */
    if (a.norm.gamma && first_tile) {
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
        if (gemm_is_single(a, w)) {
#pragma unroll
            for (unsigned j = 0; j < ACROSS; j++)
#pragma unroll
                for (unsigned half = 0; half < 8; half += 4)
                    gemm_leave_single<POINTWISE, DOWN>(a, w, m0, n0 + j * 16 + tile_column(half),
                                                       [&](unsigned i, unsigned e) { return sum[i][j].at + half + e; });
            return;
        }
        partial_t *lines_of_sums = (partial_t *)(void *)shared_bytes;

#pragma unroll
        for (unsigned i = 0; i < DOWN; i++)
#pragma unroll
            for (unsigned j = 0; j < ACROSS; j++)
#pragma unroll
                for (unsigned e = 0; e < 8; e += 2)
                    gemm_put_partial<TILE, POINTWISE>(lines_of_sums, m0 + i * 16 + tile_row(e),
                                                      n0 + j * 16 + tile_column(e), sum[i][j].at + e);
        gemm_leave_partial<TILE, POINTWISE>(a, w, lines_of_sums);
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
