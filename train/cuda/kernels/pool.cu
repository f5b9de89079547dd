/*
 * pool.cu - pools over windows and over all pixels, and sums of two branches; fprop and gradients
 *
 * One thread has eight channels of a pixel.  fprop stores no argmax: backward finds the maximum of each window again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/device.h"

namespace
{
/* The work of a thread: eight channels of a pixel of `height` x `width`; false: there is none. */
struct spot {
    unsigned image, y, x, channel;
    size_t pixel;
};

DEVICE bool
find_spot(spot &s, unsigned images, unsigned height, unsigned width, unsigned channels)
{
    unsigned groups = channels / 8, n = blockIdx.x * POOL_THREADS + threadIdx.x, pixel = n / groups;

    s.pixel = pixel;
    s.channel = n % groups * 8;
    s.x = pixel % width;
    s.y = pixel / width % height;
    s.image = pixel / width / height;
    return s.image < images;
}

/* The pixels of a window: first .. end - 1 on each axis, clipped to the image. */
struct window {
    unsigned y, x, y_end, x_end;
};

DEVICE window
window_of(const pool_args &a, unsigned y, unsigned x)
{
    window w;

    w.y = y * a.stride > a.pad ? y * a.stride - a.pad : 0;
    w.x = x * a.stride > a.pad ? x * a.stride - a.pad : 0;
    w.y_end = min(y * a.stride + a.kernel - a.pad, a.height);
    w.x_end = min(x * a.stride + a.kernel - a.pad, a.width);
    return w;
}

/* The windows that contain an input, as a range on each axis. */
DEVICE window
windows_with(const pool_args &a, unsigned y, unsigned x)
{
    window w;

    w.y = y + a.pad >= a.kernel ? (y + a.pad - a.kernel) / a.stride + 1 : 0;
    w.x = x + a.pad >= a.kernel ? (x + a.pad - a.kernel) / a.stride + 1 : 0;
    w.y_end = min((y + a.pad) / a.stride + 1, a.out_height);
    w.x_end = min((x + a.pad) / a.stride + 1, a.out_width);
    return w;
}

DEVICE const value_t *
place(const void *base, unsigned image, unsigned y, unsigned x, unsigned height, unsigned width, unsigned ld,
      unsigned c)
{
    return (const value_t *)base + (((size_t)image * height + y) * width + x) * ld + c;
}

/* Finds the maximum of a window and its first position. */
DEVICE void
find_largest(const pool_args &a, const spot &s, unsigned y, unsigned x, float *largest, unsigned *at)
{
    window w = window_of(a, y, x);

#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        at[i] = 0xffffffffu;
    for (unsigned iy = w.y; iy < w.y_end; iy++)
        for (unsigned ix = w.x; ix < w.x_end; ix++) {
            value8 v;

            load8(v, place(a.x, s.image, iy, ix, a.height, a.width, a.x_ld, s.channel));
#pragma unroll
            for (unsigned i = 0; i < 8; i++)
                if (at[i] == 0xffffffffu || to_float(v.at[i]) > largest[i] || to_float(v.at[i]) != to_float(v.at[i])) {
                    largest[i] = to_float(v.at[i]);
                    at[i] = iy * a.width + ix;
                }
        }
}

DEVICE void
store_gradient(void *dx, size_t at, const float *g, unsigned add)
{
    value_t *to = (value_t *)dx + at;
    value8 v;

    if (add)
        load8(v, to);
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        v.at[i] = to_value(add ? to_float(v.at[i]) + g[i] : g[i]);
    store8(to, v);
}
} // namespace

KERNEL(max_pool, pool_args, POOL_THREADS, 1)
{
    float largest[8];
    unsigned at[8];
    value8 v;
    spot s;

    if (!find_spot(s, a.images, a.out_height, a.out_width, a.channels))
        return;
    find_largest(a, s, s.y, s.x, largest, at);
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        v.at[i] = to_value(largest[i]);
    store8((value_t *)a.y + s.pixel * a.y_ld + s.channel, v);
}

KERNEL(max_pool_gradient, pool_args, POOL_THREADS, 1)
{
    float largest[8], g[8];
    unsigned at[8];
    spot s;

    if (!find_spot(s, a.images, a.height, a.width, a.channels))
        return;
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        g[i] = 0;
    window w = windows_with(a, s.y, s.x);
    for (unsigned y = w.y; y < w.y_end; y++)
        for (unsigned x = w.x; x < w.x_end; x++) {
            value8 dy;

            find_largest(a, s, y, x, largest, at);
            load8(dy, place(a.dy, s.image, y, x, a.out_height, a.out_width, a.dy_ld, s.channel));
#pragma unroll
            for (unsigned i = 0; i < 8; i++)
                g[i] += at[i] == s.y * a.width + s.x ? to_float(dy.at[i]) : 0.0f;
        }
    store_gradient(a.dx, s.pixel * a.dx_ld + s.channel, g, a.add);
}

KERNEL(average_pool, pool_args, POOL_THREADS, 1)
{
    float sum[8], share = 1.0f / (float)(a.kernel * a.kernel);
    value8 v;
    spot s;

    if (!find_spot(s, a.images, a.out_height, a.out_width, a.channels))
        return;
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        sum[i] = 0;
    window w = window_of(a, s.y, s.x);
    for (unsigned y = w.y; y < w.y_end; y++)
        for (unsigned x = w.x; x < w.x_end; x++) {
            load8(v, place(a.x, s.image, y, x, a.height, a.width, a.x_ld, s.channel));
#pragma unroll
            for (unsigned i = 0; i < 8; i++)
                sum[i] += to_float(v.at[i]);
        }
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        v.at[i] = to_value(sum[i] * share);
    store8((value_t *)a.y + s.pixel * a.y_ld + s.channel, v);
}

KERNEL(average_pool_gradient, pool_args, POOL_THREADS, 1)
{
    float g[8], share = 1.0f / (float)(a.kernel * a.kernel);
    spot s;

    if (!find_spot(s, a.images, a.height, a.width, a.channels))
        return;
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        g[i] = 0;
    window w = windows_with(a, s.y, s.x);
    for (unsigned y = w.y; y < w.y_end; y++)
        for (unsigned x = w.x; x < w.x_end; x++) {
            value8 dy;

            load8(dy, place(a.dy, s.image, y, x, a.out_height, a.out_width, a.dy_ld, s.channel));
#pragma unroll
            for (unsigned i = 0; i < 8; i++)
                g[i] += to_float(dy.at[i]) * share;
        }
    store_gradient(a.dx, s.pixel * a.dx_ld + s.channel, g, a.add);
}

KERNEL(mean_pool, mean_pool_args, POOL_THREADS, 1)
{
    float sum[8];
    value8 v;
    spot s;

    if (!find_spot(s, a.images, 1, 1, a.channels))
        return;
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        sum[i] = 0;
    for (unsigned p = 0; p < a.pixels; p++) {
        load8(v, (const value_t *)a.x + ((size_t)s.image * a.pixels + p) * a.x_ld + s.channel);
#pragma unroll
        for (unsigned i = 0; i < 8; i++)
            sum[i] += to_float(v.at[i]);
    }
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        v.at[i] = to_value(sum[i] / (float)a.pixels);
    store8((value_t *)a.y + (size_t)s.image * a.y_ld + s.channel, v);
}

KERNEL(mean_pool_gradient, mean_pool_args, POOL_THREADS, 1)
{
    float g[8];
    value8 dy;
    spot s;

    if (!find_spot(s, a.images, 1, a.pixels, a.channels))
        return;
    load8(dy, (const value_t *)a.dy + (size_t)s.image * a.dy_ld + s.channel);
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        g[i] = to_float(dy.at[i]) / (float)a.pixels;
    store_gradient(a.dx, s.pixel * a.dx_ld + s.channel, g, a.add);
}

KERNEL(branches, branches_args, POOL_THREADS, 1)
{
    value8 x, x2;
    spot s;

    if (!find_spot(s, 1, 1, a.pixels, a.channels))
        return;
    load8(x, (const value_t *)a.x + s.pixel * a.x_ld + s.channel);
    load8(x2, (const value_t *)a.x2 + s.pixel * a.x2_ld + s.channel);
#pragma unroll
    for (unsigned i = 0; i < 8; i++) {
        float sum = to_float(x.at[i]) + to_float(x2.at[i]);

        x.at[i] = to_value(a.relu && sum < 0 ? 0.0f : sum);
    }
    store8((value_t *)a.y + s.pixel * a.y_ld + s.channel, x);
}

KERNEL(branches_gradient, branches_args, POOL_THREADS, 1)
{
    float g[8];
    value8 y, dy;
    spot s;

    if (!find_spot(s, 1, 1, a.pixels, a.channels))
        return;
    load8(dy, (const value_t *)a.dy + s.pixel * a.dy_ld + s.channel);
    if (a.relu)
        load8(y, (const value_t *)a.y + s.pixel * a.y_ld + s.channel);
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        g[i] = a.relu && !(to_float(y.at[i]) > 0) ? 0.0f : to_float(dy.at[i]);
    store_gradient(a.dx, s.pixel * a.dx_ld + s.channel, g, a.add);
    store_gradient(a.dx2, s.pixel * a.dx2_ld + s.channel, g, a.add2);
}
