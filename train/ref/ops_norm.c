/*
 * ops_norm.c - batch normalisation and sums; see ops.h
 *
 * Ioffe and Szegedy, Batch Normalization, ICML 2015; epsilon, momentum and the unbiased running variance as in PyTorch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "ref/ops.h"

#include <math.h>

static size_t
pixels_of(struct slice v)
{
    return (size_t)v.height * v.width;
}

void
norm_statistics(struct slice x, float *mean, float *variance)
{
    double count = (double)x.images * (double)pixels_of(x);
    unsigned c, n;
    size_t p;

    for (c = 0; c < x.channels; c++) {
        double sum = 0, squares = 0, m;

        for (n = 0; n < x.images; n++)
            for (p = 0; p < pixels_of(x); p++)
                sum += (double)slice_plane(x, n, c)[p];
        m = sum / count;
        for (n = 0; n < x.images; n++) {
            for (p = 0; p < pixels_of(x); p++) {
                double d = (double)slice_plane(x, n, c)[p] - m;

                squares += d * d;
            }
        }
        mean[c] = (float)m;
        variance[c] = (float)(squares / count);
    }
}

void
norm_update(unsigned channels, size_t count, const float *mean, const float *variance, float *running_mean,
            float *running_variance)
{
    unsigned c;

    for (c = 0; c < channels && count >= GRAPH_NORM_LEAST; c++) {
        float v = (float)((double)variance[c] * ((double)count / (double)(count - 1)));

        running_mean[c] += GRAPH_NORM_MOMENTUM * (mean[c] - running_mean[c]);
        running_variance[c] += GRAPH_NORM_MOMENTUM * (v - running_variance[c]);
    }
}

void
norm_forward(const struct graph_node *node, struct slice x, const float *mean, const float *variance,
             const float *gamma, const float *beta, struct slice y)
{
    unsigned c, n;
    size_t p;

    for (c = 0; c < x.channels; c++) {
        float scale = gamma[c] / sqrtf(variance[c] + GRAPH_NORM_EPSILON);

        for (n = 0; n < x.images; n++) {
            const float *from = slice_plane(x, n, c);
            float *to = slice_plane(y, n, c);

            for (p = 0; p < pixels_of(x); p++) {
                float v = scale * (from[p] - mean[c]) + beta[c];

                to[p] = node->relu && !(v > 0) ? 0 : v;
            }
        }
    }
}

/*
 * With s = 1 / sqrt(variance + epsilon), xhat = (x - mean) s and g = dy under the ReLU mask:
 *     dbeta = sum g,  dgamma = sum g xhat,  dx = gamma s (g - dbeta / count - xhat dgamma / count)
 */
void
norm_backward(const struct graph_node *node, struct slice x, struct slice dx, const float *mean, const float *variance,
              const float *gamma, float *dgamma, float *dbeta, struct slice y, struct slice dy)
{
    double count = (double)x.images * (double)pixels_of(x);
    unsigned c, n;
    size_t p;

    for (c = 0; c < x.channels; c++) {
        double s = 1 / sqrt((double)variance[c] + (double)GRAPH_NORM_EPSILON), sum = 0, product = 0;

        for (n = 0; n < x.images; n++) {
            for (p = 0; p < pixels_of(x); p++) {
                double g = node->relu && !(slice_plane(y, n, c)[p] > 0) ? 0 : (double)slice_plane(dy, n, c)[p];

                sum += g;
                product += g * ((double)slice_plane(x, n, c)[p] - (double)mean[c]) * s;
            }
        }
        dbeta[c] += (float)sum;
        dgamma[c] += (float)product;
        for (n = 0; n < x.images; n++) {
            for (p = 0; p < pixels_of(x); p++) {
                double g = node->relu && !(slice_plane(y, n, c)[p] > 0) ? 0 : (double)slice_plane(dy, n, c)[p];
                double xhat = ((double)slice_plane(x, n, c)[p] - (double)mean[c]) * s;

                slice_plane(dx, n, c)[p] += (float)((double)gamma[c] * s * (g - sum / count - xhat * product / count));
            }
        }
    }
}

void
add_forward(const struct graph_node *node, struct slice x, struct slice x2, struct slice y)
{
    unsigned c, n;
    size_t p;

    for (n = 0; n < y.images; n++) {
        for (c = 0; c < y.channels; c++) {
            for (p = 0; p < pixels_of(y); p++) {
                float v = slice_plane(x, n, c)[p] + slice_plane(x2, n, c)[p];

                slice_plane(y, n, c)[p] = node->relu && !(v > 0) ? 0 : v;
            }
        }
    }
}

void
add_backward(const struct graph_node *node, struct slice dx, struct slice dx2, struct slice y, struct slice dy)
{
    unsigned c, n;
    size_t p;

    for (n = 0; n < y.images; n++) {
        for (c = 0; c < y.channels; c++) {
            for (p = 0; p < pixels_of(y); p++) {
                float g = node->relu && !(slice_plane(y, n, c)[p] > 0) ? 0 : slice_plane(dy, n, c)[p];

                slice_plane(dx, n, c)[p] += g;
                slice_plane(dx2, n, c)[p] += g;
            }
        }
    }
}
