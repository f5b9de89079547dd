/*
 * mainloop.h - the main loop: products of warps over all steps of k, while the loader copies the next steps
 *
 * fill_stages() starts the copies of the first STAGES - 1 steps.  run_mainloop() then waits for a step, applies the
 * prologue, starts the copy of the step STAGES - 1 later, and multiplies.  One barrier a step is enough: after it, all
 * threads see this step, and no thread reads the step whose stage the new copy overwrites.
 *
 * Before sm_80 there are no asynchronous copies.  So a thread loads its pieces of the next step into registers before
 * the product, and stores them to the other stage after it: the loads arrive during the product.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_MAINLOOP_H
#define CHEX_CUDA_KERNELS_MAINLOOP_H

#include "cuda/kernels/prologue.h"

namespace
{
template <int DOWN, int ACROSS>
DEVICE void
clear_sums(tile_sum (&sum)[DOWN][ACROSS])
{
#pragma unroll
    for (unsigned i = 0; i < DOWN; i++)
#pragma unroll
        for (unsigned j = 0; j < ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e++)
                sum[i][j].at[e] = 0;
}

/* Sums of a warp whose columns begin at `first` of the tile. */
template <int DOWN, int ACROSS>
DEVICE void
begin_with_bias(const float *bias, const gemm_work &w, unsigned first, tile_sum (&sum)[DOWN][ACROSS])
{
#pragma unroll
    for (unsigned j = 0; j < ACROSS; j++)
#pragma unroll
        for (unsigned e = 0; e < 8; e++) {
            unsigned column = w.column0 + first + j * 16 + tile_column(e);
            float begin = column < w.columns ? bias[column] : 0;

#pragma unroll
            for (unsigned i = 0; i < DOWN; i++)
                sum[i][j].at[e] = begin;
        }
}

/* sum += A B over 16 values of k; a(i, line, piece), b(j, line, piece): addresses of operands of square i, j. */
template <bool A_TRANSPOSED, bool B_TRANSPOSED, int DOWN, int ACROSS, typename A, typename B>
DEVICE void
multiply_sixteen(tile_sum (&sum)[DOWN][ACROSS], A a, B b)
{
    tile ta[DOWN], tb[ACROSS];

#pragma unroll
    for (unsigned i = 0; i < DOWN; i++)
        tile_load_a<A_TRANSPOSED>(ta[i], [&](unsigned line, unsigned piece) { return a(i, line, piece); });
#pragma unroll
    for (unsigned j = 0; j < ACROSS; j++)
        tile_load_b<B_TRANSPOSED>(tb[j], [&](unsigned line, unsigned piece) { return b(j, line, piece); });
#pragma unroll
    for (unsigned i = 0; i < DOWN; i++)
#pragma unroll
        for (unsigned j = 0; j < ACROSS; j++)
            tile_multiply_as<A_TRANSPOSED, B_TRANSPOSED>(sum[i][j], ta[i], tb[j]);
}

/* A step of a warp. */
template <typename STAGE>
DEVICE void
multiply_step(const value_t *stage, const gemm_warp &warp, gemm_sums<typename STAGE::TILE> &sum)
{
    typedef typename STAGE::A operand_a;
    typedef typename STAGE::B operand_b;

#pragma unroll
    for (unsigned k = 0; k < GEMM_DEEP / 16; k++)
        multiply_sixteen<operand_a::TRANSPOSED, operand_b::TRANSPOSED>(
            sum,
            [&](unsigned i, unsigned line, unsigned piece) {
                unsigned row = warp.row0 + i * 16;

                return stage + (operand_a::TRANSPOSED ? operand_a::offset(k * 16 + line, row / 8 + piece)
                                                      : operand_a::offset(row + line, k * 2 + piece));
            },
            [&](unsigned j, unsigned line, unsigned piece) {
                unsigned column = warp.column0 + j * 16;

                return stage + STAGE::B_AT +
                       (operand_b::TRANSPOSED ? operand_b::offset(k * 16 + line, column / 8 + piece)
                                              : operand_b::offset(column + line, k * 2 + piece));
            });
}

template <typename STAGE>
DEVICE value_t *
stage_of(unsigned char *shared, const gemm_work &w, unsigned step)
{
    return (value_t *)(void *)shared + (step - w.first) % STAGES * STAGE::VALUES;
}

template <typename STAGE>
DEVICE stage_memory
memory_of(unsigned char *shared, const gemm_work &w, unsigned step)
{
    value_t *stage = stage_of<STAGE>(shared, w, step);

    return {stage, stage + STAGE::B_AT};
}

template <typename LOADER, typename ARGS, typename TO>
DEVICE void
load_or_skip(LOADER &loader, const ARGS &a, const gemm_work &w, unsigned step, TO &to)
{
    if (step < w.end)
        load_step(loader, a, w, step, to);
    else
        skip_step(loader);
    copy_commit();
}

template <typename STAGE, typename LOADER, typename ARGS>
DEVICE void
fill_stages(LOADER &loader, const ARGS &a, const gemm_work &w, unsigned char *shared)
{
    for (unsigned step = w.first; step < w.first + STAGES - 1; step++) {
        stage_memory to = memory_of<STAGE>(shared, w, step);

        load_or_skip(loader, a, w, step, to);
    }
}

/* Multiplies a step, and loads the one that STAGES - 1 steps later is multiplied. */
template <typename STAGE, typename LOADER, typename ARGS>
DEVICE void
load_and_multiply(LOADER &loader, const ARGS &a, const gemm_work &w, const gemm_warp &warp, unsigned step,
                  unsigned char *shared, gemm_sums<typename STAGE::TILE> &sum)
{
    const value_t *stage = stage_of<STAGE>(shared, w, step);
    unsigned next = step + STAGES - 1;
    stage_memory to = memory_of<STAGE>(shared, w, next);
#if HAS_ASYNC_COPY
    load_or_skip(loader, a, w, next, to);
    if (!warp.idle)
        multiply_step<STAGE>(stage, warp, sum);
#else
    stage_registers<STAGE> registers;

    load_or_skip(loader, a, w, next, registers);
    if (!warp.idle)
        multiply_step<STAGE>(stage, warp, sum);
    if (next < w.end)
        put_step<STAGE>(to, registers);
#endif
}

template <typename STAGE, typename LOADER, typename PROLOGUE, typename ARGS>
DEVICE void
run_mainloop(LOADER &loader, PROLOGUE &prologue, const ARGS &a, const gemm_work &w, const gemm_warp &warp,
             unsigned char *shared, gemm_sums<typename STAGE::TILE> &sum)
{
    for (unsigned step = w.first; step < w.end; step++) {
        copy_wait<STAGES - 2>();
        apply_prologue(prologue, loader, a, step, stage_of<STAGE>(shared, w, step));
        __syncthreads();
        load_and_multiply<STAGE>(loader, a, w, warp, step, shared, sum);
    }
    copy_wait<0>();
    __syncthreads(); /* the epilogue overwrites the stages */
}
} // namespace

#endif
