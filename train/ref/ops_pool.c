/*
 * ops_pool.c - pools; see ops.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "ref/ops.h"

/* Returns the index of the maximum under the window of output (row, col), the first of equal values.  NaN wins. */
static size_t
window_max(const struct graph_node *node, const float *in, unsigned height, unsigned width, unsigned row, unsigned col)
{
    size_t best = SIZE_MAX;
    unsigned ky, kx;

    for (ky = 0; ky < node->kernel; ky++) {
        for (kx = 0; kx < node->kernel; kx++) {
            unsigned y = row * node->stride + ky - node->pad, x = col * node->stride + kx - node->pad;
            size_t at = (size_t)y * width + x;

            /* Above or left of the image these wrap around to large numbers. */
            if (y >= height || x >= width)
                continue;
            if (best == SIZE_MAX || in[at] > in[best] || in[at] != in[at])
                best = at;
        }
    }
    return best;
}

void
max_pool_forward(const struct graph_node *node, struct slice x, struct slice y)
{
    unsigned n, c, row, col;

    for (n = 0; n < y.images; n++) {
        for (c = 0; c < y.channels; c++) {
            const float *in = slice_plane(x, n, c);
            float *out = slice_plane(y, n, c);

            for (row = 0; row < y.height; row++)
                for (col = 0; col < y.width; col++)
                    *out++ = in[window_max(node, in, x.height, x.width, row, col)];
        }
    }
}

void
max_pool_backward(const struct graph_node *node, struct slice x, struct slice dx, struct slice dy)
{
    unsigned n, c, row, col;

    for (n = 0; n < dy.images; n++) {
        for (c = 0; c < dy.channels; c++) {
            const float *in = slice_plane(x, n, c), *g = slice_plane(dy, n, c);
            float *d = slice_plane(dx, n, c);

            for (row = 0; row < dy.height; row++)
                for (col = 0; col < dy.width; col++)
                    d[window_max(node, in, x.height, x.width, row, col)] += *g++;
        }
    }
}

void
avg_pool_forward(const struct graph_node *node, struct slice x, struct slice y)
{
    float weight = 1 / (float)(node->kernel * node->kernel);
    unsigned n, c, row, col, ky, kx;

    for (n = 0; n < y.images; n++) {
        for (c = 0; c < y.channels; c++) {
            for (row = 0; row < y.height; row++) {
                for (col = 0; col < y.width; col++) {
                    float sum = 0;

                    for (ky = 0; ky < node->kernel; ky++)
                        for (kx = 0; kx < node->kernel; kx++)
                            sum += slice_plane(
                                x, n, c)[(size_t)(row * node->stride + ky) * x.width + col * node->stride + kx];
                    slice_plane(y, n, c)[(size_t)row * y.width + col] = sum * weight;
                }
            }
        }
    }
}

void
avg_pool_backward(const struct graph_node *node, struct slice dx, struct slice dy)
{
    float weight = 1 / (float)(node->kernel * node->kernel);
    unsigned n, c, row, col, ky, kx;

    for (n = 0; n < dy.images; n++) {
        for (c = 0; c < dy.channels; c++) {
            for (row = 0; row < dy.height; row++) {
                for (col = 0; col < dy.width; col++) {
                    float g = slice_plane(dy, n, c)[(size_t)row * dy.width + col] * weight;

                    for (ky = 0; ky < node->kernel; ky++)
                        for (kx = 0; kx < node->kernel; kx++)
                            slice_plane(dx, n,
                                        c)[(size_t)(row * node->stride + ky) * dx.width + col * node->stride + kx] += g;
                }
            }
        }
    }
}

void
mean_pool_forward(struct slice x, struct slice y)
{
    size_t pixels = (size_t)x.height * x.width, p;
    unsigned n, c;

    for (n = 0; n < y.images; n++) {
        for (c = 0; c < y.channels; c++) {
            double sum = 0;

            for (p = 0; p < pixels; p++)
                sum += (double)slice_plane(x, n, c)[p];
            slice_plane(y, n, c)[0] = (float)(sum / (double)pixels);
        }
    }
}

void
mean_pool_backward(struct slice dx, struct slice dy)
{
    size_t pixels = (size_t)dx.height * dx.width, p;
    unsigned n, c;

    for (n = 0; n < dy.images; n++)
        for (c = 0; c < dy.channels; c++)
            for (p = 0; p < pixels; p++)
                slice_plane(dx, n, c)[p] += slice_plane(dy, n, c)[0] / (float)pixels;
}
