/*
 * wgrad_halo.h - wgrad of 3x3 kernels with an output as large as the input; keeps dy with its halo in shared memory
 *
 * dy has GEMM_DEEP channels, so the columns of a tile are the three taps of a row of the kernel.  For the GEMM_DEEP
 * pixels of a k-step, they read the same pixels of dy, moved by a constant and by one pixel from tap to tap.  So a
 * k-step copies these pixels and one on each side, once for all three taps.  A pixel whose tap is outside the image
 * reads zeros: a lane checks one pixel of a k-step, and a warp votes, where the general kernel checks each piece that
 * it copies.  The epilogue, the k-steps and their order are those of gemm.h, so the result has the same bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_WGRAD_HALO_H
#define CHEX_CUDA_KERNELS_WGRAD_HALO_H

#include "cuda/kernels/gemm.h"

namespace
{
template <typename TILE_> struct wgrad_halo {
    typedef TILE_ TILE;
    typedef gemm_stage<TILE, true, true> stage; /* B has the lines of dy, then, in the first stage, zeros */
    typedef gemm_operand<GEMM_DEEP + 2, false> dy;
    enum { DY_AT = stage::B_AT, ZEROS_AT = DY_AT + (GEMM_DEEP + 8) * GEMM_DEEP };

    static_assert((int)TILE::COLUMNS == 3 * GEMM_DEEP, "the taps of a row of the kernel");
    static_assert(DY_AT % HALO_ZEROS == 0 && ZEROS_AT % HALO_ZEROS == 0 && stage::VALUES % HALO_ZEROS == 0,
                  "zeros use the banks of the lines that they replace");
    static_assert(ZEROS_AT + 16 * GEMM_DEEP + HALO_ZEROS <= stage::VALUES && (int)dy::ALL <= (int)TILE::THREADS,
                  "room");
};

/* What a thread copies in each step: a piece of A_EACH lines of x, and the first dy::ALL threads one of dy. */
template <typename HALO> struct wgrad_halo_loader {
    const value_t *x, *dy;      /* of the next step */
    unsigned x_pixel, dy_pixel; /* before the first pixel it wraps around to a huge value */
    bool x_inside;
};

template <typename HALO>
DEVICE wgrad_halo_loader<HALO>
begin_halo_loader(const wgrad_args &a, const gemm_work &w)
{
    typedef typename HALO::stage::A operand_a;
    unsigned ky = w.at.across, pixel = w.first * GEMM_DEEP, channel = w.row0 + threadIdx.x % operand_a::PIECES * 8;
    unsigned x_pixel = pixel + threadIdx.x / operand_a::PIECES;
    unsigned dy_pixel = pixel + a.shape.width - ky * a.shape.width - 1 + threadIdx.x / HALO::dy::PIECES;

    return {(const value_t *)a.x + (size_t)x_pixel * a.shape.x_ld + channel,
            (const value_t *)a.dy + (ptrdiff_t)(int)dy_pixel * (ptrdiff_t)a.shape.y_ld +
                threadIdx.x % HALO::dy::PIECES * 8,
            x_pixel, dy_pixel, channel < a.shape.in};
}

template <typename HALO>
DEVICE void
load_halo_step(wgrad_halo_loader<HALO> &l, const wgrad_args &a, const gemm_work &w, value_t *stage)
{
    typedef typename HALO::stage::A operand_a;
    enum { DOWN = HALO::TILE::THREADS / operand_a::PIECES };

#pragma unroll
    for (unsigned n = 0; n < HALO::stage::A_EACH; n++) {
        bool inside = l.x_inside && l.x_pixel + n * DOWN < w.counted;

        copy8(stage + operand_a::offset(threadIdx.x / operand_a::PIECES + n * DOWN, threadIdx.x % operand_a::PIECES),
              inside ? l.x + (size_t)(n * DOWN) * a.shape.x_ld : (const value_t *)a.dy, inside);
    }
    if (threadIdx.x < HALO::dy::ALL) {
        bool inside = l.dy_pixel < w.counted;

        copy8(stage + HALO::DY_AT + HALO::dy::offset(threadIdx.x / HALO::dy::PIECES, threadIdx.x % HALO::dy::PIECES),
              inside ? l.dy : (const value_t *)a.dy, inside);
    }
    l.x += (size_t)GEMM_DEEP * a.shape.x_ld;
    l.dy += (size_t)GEMM_DEEP * a.shape.y_ld;
    l.x_pixel += GEMM_DEEP;
    l.dy_pixel += GEMM_DEEP;
}

/*
 * Bit p of at[kx]: does the output that reads pixel p of a step at tap kx of the kernel's row exist?  For pixels after
 * the last one, all lines that a bit allows are zeros.
 */
struct halo_row_taps {
    unsigned at[3];
};

DEVICE halo_row_taps
halo_row_inside(const conv_shape &s, unsigned step, unsigned ky)
{
    gemm_pixel p = gemm_split<GEMM_WGRAD>(s, step * GEMM_DEEP + lane_id());
    bool inside = p.y + 1 - ky < s.height;

    return {{__ballot_sync(0xffffffffu, inside && p.x + 1 < s.width), __ballot_sync(0xffffffffu, inside),
             __ballot_sync(0xffffffffu, inside && p.x > 0)}};
}

template <typename HALO>
DEVICE void
multiply_halo_step(const halo_row_taps &taps, const value_t *values, unsigned stage, const gemm_warp &warp,
                   gemm_sums<typename HALO::TILE> &sum)
{
    typedef typename HALO::stage::A operand_a;

#pragma unroll
    for (unsigned k = 0; k < GEMM_DEEP / 16; k++)
        multiply_sixteen<true, true>(
            sum,
            [&](unsigned i, unsigned line, unsigned piece) {
                return values + stage + operand_a::offset(line, (warp.row0 + i * 16) / 8 + piece) +
                       k * 16 * HALO::TILE::ROWS;
            },
            [&](unsigned j, unsigned line, unsigned piece) {
                unsigned column = warp.column0 + j * 16, kx = column / GEMM_DEEP;
                unsigned inside = kx == 0 ? taps.at[0] : kx == 1 ? taps.at[1] : taps.at[2];
                unsigned at = HALO::dy::offset(line + 2 - kx, column % GEMM_DEEP / 8 + piece);

                at = inside & 1u << k * 16 << line ? stage + HALO::DY_AT + at : HALO::ZEROS_AT + at % HALO_ZEROS;
                return values + at + k * 16 * GEMM_DEEP;
            });
}

/* Normalises the pieces that this thread copied. */
template <typename HALO>
DEVICE void
normalise_halo_step(value_t *stage, const float *scale, const float *shift, bool relu)
{
    typedef typename HALO::stage::A operand_a;
    enum { DOWN = HALO::TILE::THREADS / operand_a::PIECES };

#pragma unroll
    for (unsigned n = 0; n < HALO::stage::A_EACH; n++) {
        value_t *x = stage +
                     operand_a::offset(threadIdx.x / operand_a::PIECES + n * DOWN, threadIdx.x % operand_a::PIECES);
        value8 v;

        load8(v, x);
        norm_see8(v, scale, shift, relu);
        store8(x, v);
    }
}

template <typename TILE>
DEVICE void
wgrad_halo_tile(const wgrad_args &a, unsigned char *shared, const gemm_tile_at &at)
{
    typedef wgrad_halo<TILE> halo;
    typedef typename halo::stage stage;
    const gemm_work w = wgrad_work<TILE, false>(a, at);
    const gemm_warp warp = gemm_warp_of<TILE>(w);
    wgrad_prologue<false> prologue = {norm_table_at<stage>(shared, TILE::ROWS)};
    wgrad_halo_loader<halo> loader = begin_halo_loader<halo>(a, w);
    value_t *values = (value_t *)(void *)shared;
    float scale[8], shift[8];
    gemm_sums<TILE> sum;
    unsigned now = 0, next = GEMM_STAGES - 1; /* stages */

    clear_sums(sum);
    for (unsigned i = threadIdx.x; i < HALO_ZEROS; i += TILE::THREADS)
        values[halo::ZEROS_AT + i] = values[halo::ZEROS_AT + 16 * GEMM_DEEP + i] = to_value(0);
    for (unsigned n = 0; n < GEMM_STAGES - 1; n++) {
        if (w.first + n < w.end)
            load_halo_step<halo>(loader, a, w, values + n * stage::VALUES);
        copy_commit();
    }
    if (a.norm.gamma) {
        begin_prologue<stage>(prologue, a, w, shared);
        norm_load8(scale, prologue.table, NORM_SCALE, threadIdx.x % stage::A::PIECES * 8);
        norm_load8(shift, prologue.table, NORM_SHIFT, threadIdx.x % stage::A::PIECES * 8);
    }
#pragma unroll 1
    for (unsigned step = w.first; step < w.end; step++) {
        const halo_row_taps taps = halo_row_inside(a.shape, step, w.at.across);

        copy_wait<GEMM_STAGES - 2>();
        if (a.norm.gamma)
            normalise_halo_step<halo>(values + now * stage::VALUES, scale, shift, a.norm.relu);
        __syncthreads();
        if (step + GEMM_STAGES - 1 < w.end)
            load_halo_step<halo>(loader, a, w, values + next * stage::VALUES);
        copy_commit();
        if (!warp.idle)
            multiply_halo_step<halo>(taps, values, now * stage::VALUES, warp, sum);
        now = now + 1 < GEMM_STAGES ? now + 1 : 0;
        next = next + 1 < GEMM_STAGES ? next + 1 : 0;
    }
    copy_wait<0>();
    __syncthreads(); /* the epilogue overwrites the stages */
    if (is_unsplit(a, w))
        store_unsplit<TILE, false>(a, w, warp, sum);
    else
        store_partial<TILE, false>(a, w, warp, sum, (partial_t *)(void *)shared);
}
} // namespace

#endif
