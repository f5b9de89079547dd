/*
 * pixels.h - which pixels an output, an input and a tap of a convolution have in common
 *
 * Pixels are numbered through all images: outputs (fprop), inputs (dgrad), and for wgrad those that it sums over.  The
 * image and position of a line of A are computed once for a tile; from tap to tap a line only moves.  wgrad has other
 * lines in each step, so divisions are done as multiplications (conv_divisor).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_PIXELS_H
#define CHEX_CUDA_KERNELS_PIXELS_H

#include "cuda/kernels/device.h"

namespace
{
enum gemm_kind { GEMM_FPROP, GEMM_DGRAD, GEMM_WGRAD };

struct gemm_pixel {
    unsigned image, y, x;
};

/* n below 2^31. */
DEVICE unsigned
gemm_divide(unsigned n, const conv_divisor &by)
{
    return (unsigned)((unsigned long long)(n + n) * by.multiplier >> 32) >> by.shift;
}

/* Image and position of a pixel, numbered as this kind does. */
template <int KIND>
DEVICE gemm_pixel
gemm_split(const conv_shape &s, unsigned pixel)
{
    bool outputs = KIND == GEMM_FPROP || (KIND == GEMM_WGRAD && s.stride != 1);
    unsigned row = gemm_divide(pixel, s.by_width), image = gemm_divide(row, s.by_height);

    return {image, row - image * (outputs ? s.out_height : s.height), pixel - row * (outputs ? s.out_width : s.width)};
}

/* Steps of k: the channels of a tap, GEMM_DEEP at a time, then the next tap. */
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

/* A line of A, fprop and dgrad: rows of pixels before its image, and its position at tap 0: y << 16, and x. */
struct gemm_line {
    unsigned before;
    int at;
};
#define GEMM_NOWHERE ((int)0x80000000) /* outside the image at every tap */

template <int KIND>
DEVICE gemm_line
gemm_line_of(const conv_shape &s, unsigned pixel, unsigned pixels)
{
    gemm_pixel p = gemm_split<KIND>(s, pixel);
    unsigned height = KIND == GEMM_FPROP ? s.height : s.out_height;
    int y = KIND == GEMM_FPROP ? (int)(p.y * s.stride - s.pad_h) : (int)(p.y + s.pad_h);
    int x = KIND == GEMM_FPROP ? (int)(p.x * s.stride - s.pad_w) : (int)(p.x + s.pad_w);

    return {p.image * height, pixel < pixels ? (int)((unsigned)y << 16 | ((unsigned)x & 0xffffu)) : GEMM_NOWHERE};
}

/* The pixel that a line reads at a tap, of x (fprop) or y (dgrad); returns false if there is none. */
template <int KIND>
DEVICE bool
gemm_meets(const conv_shape &s, const gemm_line &l, const gemm_cursor &c, unsigned *pixel)
{
    unsigned y = (unsigned)(l.at >> 16), x = (unsigned)(int)(short)l.at; /* below 0 wraps to a large number */
    bool met = true;

    if (KIND == GEMM_FPROP) {
        y += c.ky;
        x += c.kx;
        *pixel = (l.before + y) * s.width + x;
        return y < s.height && x < s.width;
    }
    y -= c.ky;
    x -= c.kx;
    if (s.stride != 1) {
        met = y % s.stride == 0 && x % s.stride == 0;
        y /= s.stride;
        x /= s.stride;
    }
    *pixel = (l.before + y) * s.out_width + x;
    return met && y < s.out_height && x < s.out_width;
}

/*
 * wgrad with stride 1: the pixels are inputs, and a column needs the output that reads this input at the column's tap.
 * With a larger stride a tap reads few inputs, so the pixels are outputs, and a tile has one tap.
 */
struct gemm_tap_column {
    unsigned channel; /* of y; a large number: none */
    unsigned ky, kx;
};

DEVICE gemm_tap_column
gemm_column_of(const conv_shape &s, unsigned column, unsigned tap)
{
    unsigned t = s.stride == 1 ? column / s.out : tap, channel = s.stride == 1 ? column - t * s.out : column;

    return {t < s.kernel_h * s.kernel_w && channel < s.out ? channel : 0xffffffffu, t / s.kernel_w, t % s.kernel_w};
}

/* The pixel of x for a pixel of the sum. */
DEVICE bool
gemm_counted_x(const conv_shape &s, unsigned counted, unsigned tap, unsigned *pixel)
{
    if (s.stride == 1) {
        *pixel = counted;
        return true;
    }
    gemm_pixel p = gemm_split<GEMM_WGRAD>(s, counted);
    unsigned y = p.y * s.stride + tap / s.kernel_w - s.pad_h, x = p.x * s.stride + tap % s.kernel_w - s.pad_w;

    *pixel = (p.image * s.height + y) * s.width + x;
    return y < s.height && x < s.width;
}

/* The pixel of y; false also if x is outside: after a normalisation x is not 0 there. */
DEVICE bool
gemm_counted_y(const conv_shape &s, unsigned counted, const gemm_tap_column &c, unsigned *pixel)
{
    gemm_pixel p = gemm_split<GEMM_WGRAD>(s, counted);
    unsigned y, x;

    if (s.stride == 1) {
        y = p.y + s.pad_h - c.ky;
        x = p.x + s.pad_w - c.kx;
        *pixel = (p.image * s.out_height + y) * s.out_width + x;
        return y < s.out_height && x < s.out_width;
    }
    y = p.y * s.stride + c.ky - s.pad_h;
    x = p.x * s.stride + c.kx - s.pad_w;
    *pixel = counted;
    return y < s.height && x < s.width;
}
} // namespace

#endif
