/*
 * ops_conv.c - convolution and linear layer; see ops.h
 *
 * The outer loops run over taps and the inner loops over pixels, so a compiler can vectorise along a row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "ref/ops.h"

/* Find the outputs first .. last - 1 of a row whose tap k is inside the input: 0 <= out * stride + k - pad < side. */
static void
valid_range(unsigned k, const struct graph_node *node, unsigned side, unsigned outputs, unsigned *first, unsigned *last)
{
    unsigned lowest = k >= node->pad ? 0 : (node->pad - k + node->stride - 1) / node->stride;
    unsigned end = side + node->pad > k ? (side + node->pad - k - 1) / node->stride + 1 : 0;

    *first = lowest;
    *last = end < outputs ? end : outputs;
}

void
conv_forward(const struct graph_node *node, struct slice x, const float *w, struct slice y)
{
    unsigned kernel = node->kernel, stride = node->stride, n, o, i, ky, kx, row, col, row_end, col0, col_end;

    for (n = 0; n < y.images; n++) {
        for (o = 0; o < y.channels; o++) {
            float *out = slice_plane(y, n, o);
            size_t p;

            for (p = 0; p < (size_t)y.height * y.width; p++)
                out[p] = 0;
            for (i = 0; i < x.channels; i++) {
                const float *in = slice_plane(x, n, i);
                const float *tap = w + ((size_t)o * x.channels + i) * kernel * kernel;

                for (ky = 0; ky < kernel; ky++) {
                    valid_range(ky, node, x.height, y.height, &row, &row_end);
                    for (; row < row_end; row++) {
                        const float *from = in + (size_t)(row * stride + ky - node->pad) * x.width;
                        float *to = out + (size_t)row * y.width;

                        for (kx = 0; kx < kernel; kx++) {
                            float factor = tap[ky * kernel + kx];

                            valid_range(kx, node, x.width, y.width, &col0, &col_end);
                            for (col = col0; col < col_end; col++)
                                to[col] += factor * from[(size_t)col * stride + kx - node->pad];
                        }
                    }
                }
            }
        }
    }
}

/* Process one tap of one pair of channels of one image: dx += w * dy; returns the sum of x * dy. */
static double
tap_backward(const struct graph_node *node, const float *x, float *dx, unsigned height, unsigned width, float factor,
             const float *dy, unsigned out_height, unsigned out_width, unsigned ky, unsigned kx)
{
    unsigned row, row_end, col, col0, col_end;
    double sum = 0;

    valid_range(ky, node, height, out_height, &row, &row_end);
    valid_range(kx, node, width, out_width, &col0, &col_end);
    for (; row < row_end; row++) {
        size_t in = (size_t)(row * node->stride + ky - node->pad) * width + kx - node->pad;
        const float *from = dy + (size_t)row * out_width;
        float line = 0;

        for (col = col0; col < col_end; col++)
            line += x[in + (size_t)col * node->stride] * from[col];
        sum += (double)line;
        if (dx)
            for (col = col0; col < col_end; col++)
                dx[in + (size_t)col * node->stride] += factor * from[col];
    }
    return sum;
}

void
conv_backward(const struct graph_node *node, struct slice x, struct slice dx, const float *w, float *dw,
              struct slice dy)
{
    unsigned kernel = node->kernel, n, o, i, ky, kx;

    for (n = 0; n < dy.images; n++) {
        for (o = 0; o < dy.channels; o++) {
            for (i = 0; i < x.channels; i++) {
                float *d = dx.data ? slice_plane(dx, n, i) : NULL;
                size_t at = ((size_t)o * x.channels + i) * kernel * kernel;

                for (ky = 0; ky < kernel; ky++)
                    for (kx = 0; kx < kernel; kx++, at++)
                        dw[at] += (float)tap_backward(node, slice_plane(x, n, i), d, x.height, x.width, w[at],
                                                      slice_plane(dy, n, o), dy.height, dy.width, ky, kx);
            }
        }
    }
}

void
linear_forward(struct slice x, const float *w, const float *bias, struct slice y)
{
    unsigned n, o, i;

    for (n = 0; n < y.images; n++) {
        for (o = 0; o < y.channels; o++) {
            double sum = (double)bias[o];

            for (i = 0; i < x.channels; i++)
                sum += (double)w[(size_t)o * x.channels + i] * (double)slice_plane(x, n, i)[0];
            slice_plane(y, n, o)[0] = (float)sum;
        }
    }
}

void
linear_backward(struct slice x, struct slice dx, const float *w, float *dw, float *dbias, struct slice dy)
{
    unsigned n, o, i;

    for (n = 0; n < dy.images; n++) {
        for (o = 0; o < dy.channels; o++) {
            float d = slice_plane(dy, n, o)[0];

            dbias[o] += d;
            for (i = 0; i < x.channels; i++) {
                size_t at = (size_t)o * x.channels + i;

                dw[at] += d * slice_plane(x, n, i)[0];
                slice_plane(dx, n, i)[0] += d * w[at];
            }
        }
    }
}
