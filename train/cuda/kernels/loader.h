/*
 * loader.h - loaders: the copies of A and B from global memory to a stage of shared memory, or to registers
 *
 * No matrix is ever stored (implicit GEMM).  A loader computes for each piece of eight values where it is in x, y or
 * the weights, or that it is outside the image and zero.  The copy to shared memory is asynchronous on sm_80 and later.
 * Before, load_step() loads into registers, and put_step() stores them.
 *
 *            A [M][k]                              B [k][N]
 *   fprop    x, pixels of y moved by a tap         weights
 *   dgrad    y, pixels of x moved back by a tap    weights, transposed
 *   wgrad    x, transposed: pixels are k           y, transposed, moved back by the tap of each column
 *     1x1    y, transposed                         x, transposed
 *
 * begin_loader() once for a tile; then load_step() or, after the last step, skip_step(), in the order of the steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_LOADER_H
#define CHEX_CUDA_KERNELS_LOADER_H

#include "cuda/kernels/gemm_tile.h"
#include "cuda/kernels/pixels.h"

namespace
{
/* Where the pieces of a step go: to a stage of shared memory, or to the registers of their thread. */
struct stage_memory {
    value_t *a, *b;
};
template <typename STAGE> struct stage_registers {
    value8 a[STAGE::A_EACH], b[STAGE::B_EACH];
};

template <typename OPERAND>
DEVICE void
load_piece(value_t *operand, unsigned, unsigned line, unsigned piece, const value_t *from, bool inside)
{
    copy8(operand + OPERAND::offset(line, piece), from, inside);
}
template <typename OPERAND>
DEVICE void
load_piece(value8 *operand, unsigned n, unsigned, unsigned, const value_t *from, bool inside)
{
    fetch8(operand[n], from, inside);
}

/* Calls f(n, line, piece) for each piece of an operand that this thread has. */
template <typename OPERAND, int THREADS, typename F>
DEVICE void
each_piece(F f)
{
#pragma unroll
    for (unsigned n = 0; n < (OPERAND::ALL + THREADS - 1) / THREADS; n++) {
        unsigned i = threadIdx.x + n * THREADS;

        if (OPERAND::ALL % THREADS == 0 || i < OPERAND::ALL)
            f(n, i / (unsigned)OPERAND::PIECES, i % (unsigned)OPERAND::PIECES);
    }
}

/*
 * Loads the pieces of an operand that this thread has.  find(n, line, piece, &from) returns whether its n-th piece is
 * inside, and where; `readable` is any address for those that are not.
 */
template <typename OPERAND, int THREADS, typename TO, typename FIND>
DEVICE void
load_operand(TO *to, const void *readable, FIND find)
{
    each_piece<OPERAND, THREADS>([&](unsigned n, unsigned line, unsigned piece) {
        const value_t *from;
        bool inside = find(n, line, piece, &from);

        load_piece<OPERAND>(to, n, line, piece, inside ? from : (const value_t *)readable, inside);
    });
}

/* Stores a step that load_step() loaded into registers. */
template <typename STAGE>
DEVICE void
put_step(const stage_memory &to, const stage_registers<STAGE> &from)
{
    enum { THREADS = STAGE::TILE::THREADS };

    each_piece<typename STAGE::A, THREADS>(
        [&](unsigned n, unsigned line, unsigned piece) { store8(to.a + STAGE::A::offset(line, piece), from.a[n]); });
    each_piece<typename STAGE::B, THREADS>(
        [&](unsigned n, unsigned line, unsigned piece) { store8(to.b + STAGE::B::offset(line, piece), from.b[n]); });
}

/* Weights of a tap: eight input channels of an output. */
DEVICE bool
find_weights(const conv_shape &s, const void *w, unsigned taps, unsigned tap, unsigned out, unsigned in,
             const value_t **from)
{
    *from = (const value_t *)w + ((size_t)out * taps + tap) * s.in + in;
    return out < s.out && in < s.in;
}

/* Lines of A are pixels.  Their positions are computed once for a tile; at each tap they only move. */
template <int KIND, typename STAGE>
DEVICE void
begin_lines(const conv_shape &s, const gemm_work &w, gemm_line (&lines)[STAGE::A_EACH])
{
#pragma unroll
    for (unsigned n = 0; n < STAGE::A_EACH; n++)
        lines[n] = gemm_line_of<KIND>(s, w.row0 + (threadIdx.x + n * STAGE::TILE::THREADS) / (unsigned)STAGE::A::PIECES,
                                      w.rows);
}

/* ---- fprop ------------------------------------------------------------------------------------------------------- */

template <typename STAGE, bool POINTWISE> struct fprop_loader {
    gemm_line lines[STAGE::A_EACH];
    gemm_cursor cursor;
    unsigned inside; /* kernels larger than 1x1: a bit for each piece of x, A_EACH for each step in flight */

    static_assert(STAGE::A_EACH * STAGES <= 32, "a bit for each piece");
};

template <typename STAGE, bool POINTWISE>
DEVICE void
begin_loader(fprop_loader<STAGE, POINTWISE> &l, const fprop_args &a, const gemm_work &w)
{
    l.cursor = {0, 0, 0, 0};
    l.inside = 0;
    if (!POINTWISE)
        begin_lines<GEMM_FPROP, STAGE>(a.shape, w, l.lines);
}

template <typename STAGE, bool POINTWISE, typename TO>
DEVICE void
load_step(fprop_loader<STAGE, POINTWISE> &l, const fprop_args &a, const gemm_work &w, unsigned step, TO &to)
{
    enum { THREADS = STAGE::TILE::THREADS };
    unsigned first = (POINTWISE ? step : l.cursor.chunk) * GEMM_DEEP;

    load_operand<typename STAGE::A, THREADS>(
        to.a, a.x, [&](unsigned n, unsigned line, unsigned piece, const value_t **from) {
            unsigned channel = first + piece * 8, pixel = w.row0 + line;
            bool inside = POINTWISE ? pixel < w.rows : gemm_meets<GEMM_FPROP>(a.shape, l.lines[n], l.cursor, &pixel);

            *from = (const value_t *)a.x + (size_t)pixel * a.shape.x_ld + channel;
            inside = inside && channel < a.shape.in;
            if (!POINTWISE)
                l.inside = l.inside << 1 | inside;
            return inside;
        });
    load_operand<typename STAGE::B, THREADS>(
        to.b, a.x, [&](unsigned, unsigned line, unsigned piece, const value_t **from) {
            return find_weights(a.shape, a.w, POINTWISE ? 1 : a.shape.kernel_h * a.shape.kernel_w, l.cursor.tap,
                                w.column0 + line, first + piece * 8, from);
        });
    if (!POINTWISE)
        gemm_advance(l.cursor, w.chunks, a.shape.kernel_w);
}

template <typename STAGE, bool POINTWISE>
DEVICE void
skip_step(fprop_loader<STAGE, POINTWISE> &l)
{
    l.inside <<= STAGE::A_EACH;
}

/* ---- dgrad ------------------------------------------------------------------------------------------------------- */

template <typename STAGE, bool POINTWISE> struct dgrad_loader {
    gemm_line lines[STAGE::A_EACH];
    gemm_cursor cursor;
};

template <typename STAGE, bool POINTWISE>
DEVICE void
begin_loader(dgrad_loader<STAGE, POINTWISE> &l, const dgrad_args &a, const gemm_work &w)
{
    l.cursor = {0, 0, 0, 0};
    if (!POINTWISE)
        begin_lines<GEMM_DGRAD, STAGE>(a.shape, w, l.lines);
}

template <typename STAGE, bool POINTWISE, typename TO>
DEVICE void
load_step(dgrad_loader<STAGE, POINTWISE> &l, const dgrad_args &a, const gemm_work &w, unsigned step, TO &to)
{
    enum { THREADS = STAGE::TILE::THREADS };
    unsigned first = (POINTWISE ? step : l.cursor.chunk) * GEMM_DEEP;

    load_operand<typename STAGE::A, THREADS>(
        to.a, a.dy, [&](unsigned n, unsigned line, unsigned piece, const value_t **from) {
            unsigned channel = first + piece * 8, pixel = w.row0 + line;
            bool inside = POINTWISE ? pixel < w.rows : gemm_meets<GEMM_DGRAD>(a.shape, l.lines[n], l.cursor, &pixel);

            *from = (const value_t *)a.dy + (size_t)pixel * a.shape.y_ld + channel;
            return inside && channel < a.shape.out;
        });
    load_operand<typename STAGE::B, THREADS>(
        to.b, a.dy, [&](unsigned, unsigned line, unsigned piece, const value_t **from) {
            return find_weights(a.shape, a.w, POINTWISE ? 1 : a.shape.kernel_h * a.shape.kernel_w, l.cursor.tap,
                                first + line, w.column0 + piece * 8, from);
        });
    if (!POINTWISE)
        gemm_advance(l.cursor, w.chunks, a.shape.kernel_w);
}

template <typename STAGE, bool POINTWISE>
DEVICE void
skip_step(dgrad_loader<STAGE, POINTWISE> &)
{
}

/* ---- wgrad ------------------------------------------------------------------------------------------------------- */

/* Kernels larger than 1x1. */
template <typename STAGE, bool POINTWISE> struct wgrad_loader {
    gemm_tap_column columns[STAGE::B_EACH];
};

template <typename STAGE>
DEVICE void
begin_loader(wgrad_loader<STAGE, false> &l, const wgrad_args &a, const gemm_work &w)
{
#pragma unroll
    for (unsigned n = 0; n < STAGE::B_EACH; n++)
        l.columns[n] = gemm_column_of(
            a.shape, w.column0 + (threadIdx.x + n * STAGE::TILE::THREADS) % (unsigned)STAGE::B::PIECES * 8, w.tap);
}

template <typename STAGE, typename TO>
DEVICE void
load_step(wgrad_loader<STAGE, false> &l, const wgrad_args &a, const gemm_work &w, unsigned step, TO &to)
{
    enum { THREADS = STAGE::TILE::THREADS };

    load_operand<typename STAGE::A, THREADS>(to.a, a.dy,
                                             [&](unsigned, unsigned line, unsigned piece, const value_t **from) {
                                                 unsigned channel = w.row0 + piece * 8, pixel = step * GEMM_DEEP + line;
                                                 bool inside = pixel < w.counted;

                                                 inside = gemm_counted_x(a.shape, pixel, w.tap, &pixel) && inside;
                                                 *from = (const value_t *)a.x + (size_t)pixel * a.shape.x_ld + channel;
                                                 return inside && channel < a.shape.in;
                                             });
    load_operand<typename STAGE::B, THREADS>(
        to.b, a.dy, [&](unsigned n, unsigned line, unsigned, const value_t **from) {
            unsigned pixel = step * GEMM_DEEP + line;
            bool inside = pixel < w.counted;

            inside = gemm_counted_y(a.shape, pixel, l.columns[n], &pixel) && inside;
            *from = (const value_t *)a.dy + (size_t)pixel * a.shape.y_ld + l.columns[n].channel;
            return inside && l.columns[n].channel < a.shape.out;
        });
}

template <typename STAGE> struct wgrad_loader<STAGE, true> {
};

template <typename STAGE>
DEVICE void
begin_loader(wgrad_loader<STAGE, true> &, const wgrad_args &, const gemm_work &)
{
}

template <typename STAGE, typename TO>
DEVICE void
load_step(wgrad_loader<STAGE, true> &, const wgrad_args &a, const gemm_work &w, unsigned step, TO &to)
{
    enum { THREADS = STAGE::TILE::THREADS };

    load_operand<typename STAGE::A, THREADS>(to.a, a.dy,
                                             [&](unsigned, unsigned line, unsigned piece, const value_t **from) {
                                                 unsigned channel = w.row0 + piece * 8, pixel = step * GEMM_DEEP + line;

                                                 *from = (const value_t *)a.dy + (size_t)pixel * a.shape.y_ld + channel;
                                                 return pixel < w.counted && channel < a.shape.out;
                                             });
    load_operand<typename STAGE::B, THREADS>(
        to.b, a.dy, [&](unsigned, unsigned line, unsigned piece, const value_t **from) {
            unsigned channel = w.column0 + piece * 8, pixel = step * GEMM_DEEP + line;

            *from = (const value_t *)a.x + (size_t)pixel * a.shape.x_ld + channel;
            return pixel < w.counted && channel < a.shape.in;
        });
}

template <typename STAGE, bool POINTWISE>
DEVICE void
skip_step(wgrad_loader<STAGE, POINTWISE> &)
{
}
} // namespace

#endif
