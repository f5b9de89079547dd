/*
 * gemm_tile.h - the shape of a tile, its operands in shared memory, and the work of a CTA
 *
 * A CTA computes a tile of C[M][N] = sum over k of A[M][k] B[k][N].  Each warp computes a part of the tile.  A k-step
 * has GEMM_DEEP values of k.  Shared memory has GEMM_STAGES stages; each holds A and B of one k-step.  The main loop
 * uses STAGES of them: all, or two before sm_80, where the next step is in registers during a product.  A thread copies
 * eight adjacent values at a time, called a piece.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_GEMM_TILE_H
#define CHEX_CUDA_KERNELS_GEMM_TILE_H

#include "cuda/kernels/device.h"
#include "cuda/kernels/tile.h"

namespace
{
template <int ROWS_, int COLUMNS_, int WARP_ROWS_, int WARP_COLUMNS_> struct gemm_tile {
    enum {
        ROWS = ROWS_,
        COLUMNS = COLUMNS_,
        WARP_ROWS = WARP_ROWS_,
        WARP_COLUMNS = WARP_COLUMNS_,
        DOWN = WARP_ROWS / 16, /* squares of 16 x 16 of a warp */
        ACROSS = WARP_COLUMNS / 16,
        THREADS = GEMM_THREADS(ROWS_, COLUMNS_, WARP_ROWS_, WARP_COLUMNS_)
    };
};

/*
 * An operand in shared memory: lines of GEMM_DEEP values (k runs fastest), or transposed, GEMM_DEEP lines of LINES
 * values.  tile_swizzle() avoids bank conflicts.
 */
template <int LINES, bool TRANSPOSED_> struct gemm_operand {
    enum { TRANSPOSED = TRANSPOSED_, PIECES = TRANSPOSED ? LINES / 8 : GEMM_DEEP / 8 };
    enum { TALL = TRANSPOSED ? GEMM_DEEP : LINES, ALL = TALL * PIECES };

    DEVICE unsigned offset(unsigned line, unsigned piece)
    {
        static_assert(PIECES % 4 == 0, "a line meets at least half of the banks");
        return (line * PIECES + (piece ^ tile_swizzle<PIECES % 8 == 0>(line))) * 8;
    }
};

enum { STAGES = HAS_ASYNC_COPY ? GEMM_STAGES : 2 };

/* A stage: A, then B. */
template <typename TILE_, bool A_TRANSPOSED, bool B_TRANSPOSED> struct gemm_stage {
    typedef TILE_ TILE;
    typedef gemm_operand<TILE::ROWS, A_TRANSPOSED> A;
    typedef gemm_operand<TILE::COLUMNS, B_TRANSPOSED> B;
    enum { B_AT = TILE::ROWS * GEMM_DEEP, VALUES = (TILE::ROWS + TILE::COLUMNS) * GEMM_DEEP };
    enum { A_EACH = A::ALL / TILE::THREADS, B_EACH = (B::ALL + TILE::THREADS - 1) / TILE::THREADS }; /* of a thread */

    static_assert(A::ALL % TILE::THREADS == 0, "all threads have as many pieces of A");
};

/* The position of a tile in C, and which of the splits of k. */
struct gemm_tile_at {
    unsigned down, across, split;
};

/* The tile that a CTA computes, and its k-steps. */
struct gemm_work {
    unsigned rows, columns, row0, column0; /* of C; where the tile begins */
    gemm_tile_at at;
    unsigned tap;        /* wgrad with a stride: of the tile */
    unsigned first, end; /* steps of k */
    unsigned chunks;     /* fprop, dgrad: steps of a tap */
    unsigned counted;    /* wgrad: pixels to sum over */
};

/* The part of the tile that a warp computes; idle: all of it is outside C. */
struct gemm_warp {
    unsigned row0, column0;
    bool idle;
};

template <typename TILE>
DEVICE gemm_warp
gemm_warp_of(const gemm_work &w)
{
    enum { WARPS_ACROSS = TILE::COLUMNS / TILE::WARP_COLUMNS };
    unsigned warp = threadIdx.x / 32;
    unsigned row0 = warp / WARPS_ACROSS * TILE::WARP_ROWS, column0 = warp % WARPS_ACROSS * TILE::WARP_COLUMNS;

    return {row0, column0, w.row0 + row0 >= w.rows || w.column0 + column0 >= w.columns};
}

/* The sums of a warp. */
template <typename TILE> using gemm_sums = tile_sum[TILE::DOWN][TILE::ACROSS];

/* fprop and dgrad: rows of C are `pixels`, columns `channels`; k is the `depth` channels of all taps. */
template <typename TILE>
DEVICE gemm_work
work_over_taps(const conv_shape &s, unsigned pixels, unsigned channels, unsigned depth, const gemm_tile_at &at)
{
    unsigned chunks = (depth + GEMM_DEEP - 1) / GEMM_DEEP;

    return {
        pixels, channels, at.down * TILE::ROWS, at.across * TILE::COLUMNS, at, 0, 0, chunks * (s.kernel_h * s.kernel_w),
        chunks, 0};
}

template <typename TILE>
DEVICE gemm_work
work_of(const fprop_args &a, const gemm_tile_at &at)
{
    const conv_shape &s = a.shape;

    return work_over_taps<TILE>(s, s.images * s.out_height * s.out_width, s.out, s.in, at);
}

template <typename TILE>
DEVICE gemm_work
work_of(const dgrad_args &a, const gemm_tile_at &at)
{
    const conv_shape &s = a.shape;

    return work_over_taps<TILE>(s, s.images * s.height * s.width, s.in, s.out, at);
}

/* Rows of C are output channels if the kernel is 1x1; otherwise input channels, and columns outputs of all taps. */
template <typename TILE, bool POINTWISE>
DEVICE gemm_work
wgrad_work(const wgrad_args &a, const gemm_tile_at &at)
{
    const conv_shape &s = a.shape;
    unsigned taps = s.kernel_h * s.kernel_w, tap = 0, column0 = at.across * TILE::COLUMNS;
    unsigned counted = s.images * (s.stride == 1 ? s.height * s.width : s.out_height * s.out_width);
    unsigned first = at.split * a.k_steps;
    unsigned end = min((counted + GEMM_DEEP - 1) / GEMM_DEEP, first + a.k_steps);

    if (!POINTWISE && s.stride != 1) { /* a tile has one tap */
        unsigned tiles = (s.out + TILE::COLUMNS - 1) / TILE::COLUMNS;

        tap = at.across / tiles;
        column0 = at.across % tiles * TILE::COLUMNS;
    }
    return {POINTWISE ? s.out : s.in,
            POINTWISE       ? s.in
            : s.stride == 1 ? taps * s.out
                            : s.out,
            at.down * TILE::ROWS,
            column0,
            at,
            tap,
            first,
            max(end, first),
            0,
            counted};
}
} // namespace

#endif
