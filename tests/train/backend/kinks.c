/*
 * kinks.c - see kinks.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kinks.h"

#include <math.h>

/* One channel of a buffer. */
struct channel {
    const float *first;
    size_t pixels, stride; /* of an image; distance of two images */
    unsigned images;
};

static struct channel
channel_of(const struct graph *g, float *const *buffer, unsigned number, unsigned channel, unsigned images)
{
    const struct graph_buffer *b = &g->buffer[number];
    size_t pixels = (size_t)b->height * b->width;

    return (struct channel){buffer[number] + channel * pixels, pixels, b->channels * pixels, images};
}

static double
value(const struct channel *c, unsigned image, size_t pixel)
{
    return (double)c->first[image * c->stride + pixel];
}

/* For gamma (x - mean) / deviation + beta. */
static double
norm_distance(const struct channel *c, double gamma, double beta)
{
    double count = (double)c->pixels * c->images, mean = 0, variance = 0, least = INFINITY, deviation;
    unsigned i;
    size_t p;

    for (i = 0; i < c->images; i++)
        for (p = 0; p < c->pixels; p++)
            mean += value(c, i, p) / count;
    for (i = 0; i < c->images; i++)
        for (p = 0; p < c->pixels; p++)
            variance += pow(value(c, i, p) - mean, 2) / count;
    deviation = sqrt(variance + (double)GRAPH_NORM_EPSILON);
    for (i = 0; i < c->images; i++)
        for (p = 0; p < c->pixels; p++)
            least = fmin(least, fabs(gamma * (value(c, i, p) - mean) / deviation + beta));
    return least;
}

static double
sum_distance(const struct channel *a, const struct channel *b)
{
    double least = INFINITY;
    unsigned i;
    size_t p;

    for (i = 0; i < a->images; i++)
        for (p = 0; p < a->pixels; p++)
            least = fmin(least, fabs(value(a, i, p) + value(b, i, p)));
    return least;
}

/* For the window whose first pixel is (y, x), which may be outside the plane. */
static double
window_distance(const struct graph_buffer *b, const struct channel *c, unsigned image, int y, int x, unsigned kernel)
{
    double first = 0, second = 0;
    int row, column;

    for (row = y; row < y + (int)kernel; row++) {
        for (column = x; column < x + (int)kernel; column++) {
            double v;

            if (row < 0 || column < 0 || row >= (int)b->height || column >= (int)b->width)
                continue;
            v = value(c, image, (size_t)row * b->width + (size_t)column);
            second = fmax(second, fmin(v, first));
            first = fmax(v, first);
        }
    }
    return first > 0 ? first - second : INFINITY;
}

static double
pool_distance(const struct graph *g, const struct graph_node *n, const struct channel *c)
{
    const struct graph_buffer *in = &g->buffer[n->in.buffer], *out = &g->buffer[n->out.buffer];
    double least = INFINITY;
    unsigned i, y, x;

    for (i = 0; i < c->images; i++)
        for (y = 0; y < out->height; y++)
            for (x = 0; x < out->width; x++)
                least = fmin(least, window_distance(in, c, i, (int)(y * n->stride) - (int)n->pad,
                                                    (int)(x * n->stride) - (int)n->pad, n->kernel));
    return least;
}

double
kink_distance(const struct graph *g, const float *parameters, float *const *buffer, unsigned images)
{
    double least = INFINITY;
    size_t i;
    unsigned k;

    for (i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->node[i];

        for (k = 0; k < n->in.channels; k++) {
            struct channel c = channel_of(g, buffer, n->in.buffer, n->in.first + k, images);

            if (n->op == GRAPH_NORM && n->relu) {
                least = fmin(least, norm_distance(&c, (double)parameters[g->param[n->weight].offset + k],
                                                  (double)parameters[g->param[n->bias].offset + k]));
            } else if (n->op == GRAPH_ADD && n->relu) {
                struct channel c2 = channel_of(g, buffer, n->in2.buffer, n->in2.first + k, images);

                least = fmin(least, sum_distance(&c, &c2));
            } else if (n->op == GRAPH_MAX_POOL) {
                least = fmin(least, pool_distance(g, n, &c));
            }
        }
    }
    return least;
}
