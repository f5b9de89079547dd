/*
 * prologue.h - prologues: apply BN and ReLU to x in shared memory, before the product
 *
 *   x = relu(x * scale + shift);  scale = gamma / sqrt(variance + epsilon),  shift = beta - scale * mean
 *
 * A kernel with norm.gamma normalises x after its copy to shared memory.  The normalised tensor is never stored.  Each
 * thread normalises the pieces that it copied, so no barrier is needed before.  begin_prologue() computes scale and
 * shift of the channels in the first tile of a CTA; their table follows the stages in shared memory.  x is A of fprop
 * and wgrad, and B of wgrad of 1x1.  The main loop of dgrad reads no x: its epilogue uses the table for the ReLU mask.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_PROLOGUE_H
#define CHEX_CUDA_KERNELS_PROLOGUE_H

#include "cuda/kernels/loader.h"
#include "cuda/kernels/norm.h"

namespace
{
/* The table of `channels` channels, after the stages. */
template <typename STAGE>
DEVICE norm_table
norm_table_at(unsigned char *shared, unsigned channels)
{
    typedef typename STAGE::TILE TILE;

    return {(float *)(void *)(shared + GEMM_SHARED(TILE::ROWS, TILE::COLUMNS, sizeof(value_t))), channels / 8};
}

/* Scratch memory to reduce fresh sums: the last stage, which the first copies do not use. */
template <typename STAGE>
DEVICE double *
norm_scratch_at(unsigned char *shared)
{
    static_assert(STAGE::VALUES * sizeof(value_t) >= NORM_SCRATCH, "sums fit into a stage");
    return (double *)(void *)((value_t *)(void *)shared + (GEMM_STAGES - 1) * STAGE::VALUES);
}

/* Pieces that this thread copied, channels first .. of the table; inside(i): is its i-th piece in the image? */
template <typename OPERAND, int THREADS, typename INSIDE>
DEVICE void
normalise_operand(value_t *operand, const norm_table &table, unsigned first, bool relu, INSIDE inside)
{
    unsigned piece = threadIdx.x % OPERAND::PIECES, line = threadIdx.x / OPERAND::PIECES;
    float scale[8], shift[8];

    static_assert(THREADS % OPERAND::PIECES == 0 && OPERAND::ALL % THREADS == 0, "a thread has one piece of lines");
    norm_load8(scale, table, NORM_SCALE, first + piece * 8);
    norm_load8(shift, table, NORM_SHIFT, first + piece * 8);
#pragma unroll
    for (unsigned i = 0; i < OPERAND::ALL / THREADS; i++) {
        value_t *x = operand + OPERAND::offset(line + i * (THREADS / OPERAND::PIECES), piece);
        value8 v;

        if (!inside(i))
            continue;
        load8(v, x);
        norm_see8(v, scale, shift, relu);
        store8(x, v);
    }
}

/* ---- fprop ------------------------------------------------------------------------------------------------------- */

struct fprop_prologue {
    norm_table table;
    unsigned chunks, chunk; /* kernels larger than 1x1: of a tap; of the next step */
};

template <typename STAGE>
DEVICE void
begin_prologue(const fprop_prologue &p, const fprop_args &a, const gemm_work &w, unsigned char *shared)
{
    norm_make<2>(a.norm, 0, a.shape.in, p.table, norm_scratch_at<STAGE>(shared),
                 w.at.down == 0 && w.at.split == 0 && w.at.across == 0);
}

/* A piece outside the image stays 0: padding is not normalised. */
template <typename STAGE, bool POINTWISE>
DEVICE void
apply_prologue(fprop_prologue &p, const fprop_loader<STAGE, POINTWISE> &l, const fprop_args &a, unsigned step,
               value_t *stage)
{
    enum { EACH = STAGE::A_EACH };
    unsigned chunk = POINTWISE ? step : p.chunk;

    if (!a.norm.gamma)
        return;
    if (!POINTWISE)
        p.chunk = p.chunk + 1 < p.chunks ? p.chunk + 1 : 0;
    normalise_operand<typename STAGE::A, STAGE::TILE::THREADS>(
        stage, p.table, chunk * GEMM_DEEP, a.norm.relu,
        [&](unsigned i) { return POINTWISE || (l.inside >> (EACH * (STAGES - 1) - 1 - i) & 1); });
}

/* ---- dgrad ------------------------------------------------------------------------------------------------------- */

struct dgrad_prologue {
    norm_table table; /* with mean and inverse, for the epilogue */
};

template <typename STAGE>
DEVICE void
begin_prologue(const dgrad_prologue &p, const dgrad_args &a, const gemm_work &w, unsigned char *shared)
{
    norm_make<4>(a.norm, w.column0, min((unsigned)STAGE::TILE::COLUMNS, a.shape.in - w.column0), p.table,
                 norm_scratch_at<STAGE>(shared), w.at.down == 0 && w.at.split == 0);
}

template <typename LOADER>
DEVICE void
apply_prologue(dgrad_prologue &, const LOADER &, const dgrad_args &, unsigned, value_t *)
{
}

/* ---- wgrad ------------------------------------------------------------------------------------------------------- */

template <bool POINTWISE> struct wgrad_prologue {
    norm_table table;
};

/* The channels of the tile: its rows, of 1x1 its columns. */
template <typename STAGE, bool POINTWISE>
DEVICE void
begin_prologue(const wgrad_prologue<POINTWISE> &p, const wgrad_args &a, const gemm_work &w, unsigned char *shared)
{
    typedef typename STAGE::TILE TILE;
    unsigned first = POINTWISE ? w.column0 : w.row0, most = POINTWISE ? TILE::COLUMNS : TILE::ROWS;

    norm_make<2>(a.norm, first, min(most, a.shape.in - first), p.table, norm_scratch_at<STAGE>(shared),
                 (POINTWISE ? w.at.down : w.at.across) == 0 && w.at.split == 0);
}

/* x outside the image, or of a pixel that does not count, meets zeros of y. */
template <typename STAGE, bool POINTWISE>
DEVICE void
apply_prologue(wgrad_prologue<POINTWISE> &p, const wgrad_loader<STAGE, POINTWISE> &, const wgrad_args &a, unsigned,
               value_t *stage)
{
    auto all = [](unsigned) { return true; };

    if (!a.norm.gamma)
        return;
    if constexpr (POINTWISE)
        normalise_operand<typename STAGE::B, STAGE::TILE::THREADS>(stage + STAGE::B_AT, p.table, 0, a.norm.relu, all);
    else
        normalise_operand<typename STAGE::A, STAGE::TILE::THREADS>(stage, p.table, 0, a.norm.relu, all);
}
} // namespace

#endif
