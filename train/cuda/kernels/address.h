/*
 * address.h - implicit GEMM: the part of the product of a CTA, and the addresses of its operands
 *
 * The operands A and B of a convolution are never materialised (no im2col).  For each group of eight values, an address
 * function returns its address in the slabs or in the weights, or reports that it is padding and must be zero.
 *
 *             A (rows x k)               B (k x columns)           C
 *   fprop     x at tap (pixel, in)       w (tap and in, out)       y
 *   dgrad     dy at tap (pixel, out)     w (tap and out, in)       dx
 *   wgrad     x at tap (in, pixel)       dy (pixel, tap and out)   dw, transposed
 *   wgrad1x1  dy (out, pixel)            x (pixel, in)             dw
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_ADDRESS_H
#define CHEX_CUDA_KERNELS_ADDRESS_H

#include "cuda/kernels/pixels.h"
#include "cuda/kernels/tile.h"

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

/*
 * An operand in shared memory: `lines` x GEMM_DEEP, or transposed ("turned"), GEMM_DEEP x `lines`.  place() returns the
 * swizzled offset of a group of eight values, which avoids bank conflicts.
 */
template <int LINES, bool TURNED> struct gemm_operand {
    enum { PIECES = TURNED ? LINES / 8 : GEMM_DEEP / 8, TALL = TURNED ? GEMM_DEEP : LINES };

    DEVICE unsigned place(unsigned line, unsigned piece)
    {
        unsigned turn = PIECES % 8 == 0 ? line & 7 : line / 2 & 3;

        return (line * PIECES + (piece ^ turn)) * 8;
    }
};

/* The position of a tile in the product, and its split of k. */
struct gemm_tile_at {
    unsigned down, across, split;
};

/* The work of a CTA for one tile. */
struct gemm_work {
    unsigned rows, columns, row0, column0; /* size of the product; origin of the tile */
    gemm_tile_at at;
    unsigned tap;        /* wgrad with a stride: the tap of the tile */
    unsigned first, end; /* range of k-steps */
    unsigned chunks;     /* fprop, dgrad: k-steps per tap */
    unsigned counted;    /* wgrad: number of pixels that are summed */
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

/*
 * Sets the address of a group of A in a k-step; returns false for padding.  `l` is used by fprop and dgrad, except 1x1.
 */
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
                                      : gemm_meets<KIND>(a, l, c, &pixel); /* a line after the last one is padding */
    if (KIND == GEMM_FORWARD || (KIND == GEMM_WEIGHTS && !POINTWISE)) {
        *at = (const value_t *)a.x + (size_t)pixel * a.x_ld + channel;
        return inside && channel < a.in;
    }
    *at = (const value_t *)a.y + (size_t)pixel * a.y_ld + channel;
    return inside && channel < a.out;
}

/* The same for B; `column` is used by wgrad, except 1x1. */
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
} // namespace

#endif
