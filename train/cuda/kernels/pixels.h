/*
 * pixels.h - which pixels an output, an input and a tap of a convolution have in common
 *
 * A kernel counts pixels through all images: outputs (forward), inputs (data), those that weights sum over.  Where the
 * images of a line of A begin is found once a tile; from tap to tap a line only moves.  Divisions are multiplications
 * (conv_divisor), since weights have other lines in each step.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_PIXELS_H
#define CHEX_CUDA_KERNELS_PIXELS_H

#include "cuda/kernels/device.h"

namespace
{
enum gemm_kind { GEMM_FORWARD, GEMM_DATA, GEMM_WEIGHTS };

struct gemm_pixel {
    unsigned image, y, x;
};

/* n below 2^31. */
DEVICE unsigned
gemm_divide(unsigned n, const conv_divisor &by)
{
    return (unsigned)((unsigned long long)(n + n) * by.multiplier >> 32) >> by.shift;
}

/* Of the pixels that a kind counts. */
template <int KIND>
DEVICE gemm_pixel
gemm_split(const conv_args &a, unsigned pixel)
{
    bool outputs = KIND == GEMM_FORWARD || (KIND == GEMM_WEIGHTS && a.stride != 1);
    unsigned row = gemm_divide(pixel, a.by_width), image = gemm_divide(row, a.by_height);

    return {image, row - image * (outputs ? a.out_height : a.height), pixel - row * (outputs ? a.out_width : a.width)};
}

/* Steps go through the channels of a tap, GEMM_DEEP at a time, and then to the next tap. */
struct gemm_cursor {
    unsigned chunk, tap, ky, kx;
};

DEVICE void
gemm_advance(gemm_cursor &c, unsigned chunks, unsigned kernel_w)
{
    if (++c.chunk < chunks)
        return;
    c.chunk = 0;
    c.tap++;
    if (++c.kx < kernel_w)
        return;
    c.kx = 0;
    c.ky++;
}

/* A line of A, forward and data: rows of pixels before its image, and where it is at tap 0: y << 16, and x. */
struct gemm_line {
    unsigned before;
    int at;
};
#define GEMM_NOWHERE ((int)0x80000000) /* no tap leads from there into an image */

template <int KIND>
DEVICE gemm_line
gemm_line_of(const conv_args &a, unsigned pixel, unsigned pixels)
{
    gemm_pixel p = gemm_split<KIND>(a, pixel);
    unsigned height = KIND == GEMM_FORWARD ? a.height : a.out_height;
    int y = KIND == GEMM_FORWARD ? (int)(p.y * a.stride - a.pad_h) : (int)(p.y + a.pad_h);
    int x = KIND == GEMM_FORWARD ? (int)(p.x * a.stride - a.pad_w) : (int)(p.x + a.pad_w);

    return {p.image * height, pixel < pixels ? (int)((unsigned)y << 16 | ((unsigned)x & 0xffffu)) : GEMM_NOWHERE};
}

/* Which pixel a line meets at a tap: of x (forward), of y (data); false: none. */
template <int KIND>
DEVICE bool
gemm_meets(const conv_args &a, const gemm_line &l, const gemm_cursor &c, unsigned *pixel)
{
    unsigned y = (unsigned)(l.at >> 16), x = (unsigned)(int)(short)l.at; /* below 0 is far above */
    bool met = true;

    if (KIND == GEMM_FORWARD) {
        y += c.ky;
        x += c.kx;
        *pixel = (l.before + y) * a.width + x;
        return y < a.height && x < a.width;
    }
    y -= c.ky;
    x -= c.kx;
    if (a.stride != 1) {
        met = y % a.stride == 0 && x % a.stride == 0;
        y /= a.stride;
        x /= a.stride;
    }
    *pixel = (l.before + y) * a.out_width + x;
    return met && y < a.out_height && x < a.out_width;
}

/*
 * Weights: the pixels are inputs, and a column asks for the output that met one at its tap; with a stride, where few
 * inputs are met at a tap, they are outputs, and a tile has one tap.
 */
struct gemm_tap_column {
    unsigned channel; /* of y; far above: none */
    unsigned ky, kx;
};

DEVICE gemm_tap_column
gemm_column_of(const conv_args &a, unsigned column, unsigned tap)
{
    unsigned t = a.stride == 1 ? column / a.out : tap, channel = a.stride == 1 ? column - t * a.out : column;

    return {t < a.kernel_h * a.kernel_w && channel < a.out ? channel : 0xffffffffu, t / a.kernel_w, t % a.kernel_w};
}

/* Of x at a pixel that is counted. */
DEVICE bool
gemm_counted_x(const conv_args &a, unsigned counted, unsigned tap, unsigned *pixel)
{
    if (a.stride == 1) {
        *pixel = counted; /* the stem's rows reach into what lies behind a pixel: not behind the last that is met */
        return a.in <= a.x_ld || gemm_split<GEMM_WEIGHTS>(a, counted).x < a.out_width;
    }
    gemm_pixel p = gemm_split<GEMM_WEIGHTS>(a, counted);
    unsigned y = p.y * a.stride + tap / a.kernel_w - a.pad_h, x = p.x * a.stride + tap % a.kernel_w - a.pad_w;

    *pixel = (p.image * a.height + y) * a.width + x;
    return y < a.height && x < a.width;
}

/* Of y; false too where x is outside, since x is not 0 there behind a normalisation. */
DEVICE bool
gemm_counted_y(const conv_args &a, unsigned counted, const gemm_tap_column &c, unsigned *pixel)
{
    gemm_pixel p = gemm_split<GEMM_WEIGHTS>(a, counted);
    unsigned y, x;

    if (a.stride == 1) {
        y = p.y + a.pad_h - c.ky;
        x = p.x + a.pad_w - c.kx;
        *pixel = (p.image * a.out_height + y) * a.out_width + x;
        return y < a.out_height && x < a.out_width;
    }
    y = p.y * a.stride + c.ky - a.pad_h;
    x = p.x * a.stride + c.kx - a.pad_w;
    *pixel = counted;
    return y < a.height && x < a.width;
}
} // namespace

#endif
