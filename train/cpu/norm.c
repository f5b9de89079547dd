/*
 * norm.c - batch statistics, and the per-channel work of normalisations; see cpu_plan.h
 *
 * Each unit (an image, or a strip of one) sums differences from its first pixel, so a large mean costs no precision.
 * Units are combined in order: Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample
 * Variances, 1979.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/cpu_plan.h"

#include <math.h>
#include <string.h>

static double *
unit_of(const struct plan *plan, const struct step *step, size_t unit)
{
    return plan->partial + unit * 3 * step->out_blocks * BLOCK;
}

void
statistics_add(struct plan *plan, const struct step *step, size_t unit, unsigned first, unsigned blocks, size_t slot,
               size_t from, size_t pixels)
{
    size_t channels = (size_t)step->out_blocks * BLOCK, c;
    double *pivot;
    unsigned b;

    if (!step->out->normed || !plan->training)
        return;
    pivot = unit_of(plan, step, unit);
    for (b = first; b < first + blocks; b++) {
        const float *x = value_of(step->out, slot, step->out_block + b) + from * BLOCK;
        double *here = pivot + (size_t)b * BLOCK;

        for (c = 0; c < BLOCK; c++) {
            here[c] = (double)x[c];
            here[channels + c] = here[2 * channels + c] = 0;
        }
        plan->kernels->measure(x, x, pixels, here + channels, here + 2 * channels);
    }
}

size_t
statistics_units(const struct step *step, size_t images)
{
    return images * (step->node->op == GRAPH_CONV ? (size_t)step->conv.strips : 1);
}

static double
unit_pixels(const struct step *step, size_t unit)
{
    return step->node->op == GRAPH_CONV ? (double)conv_strip_pixels(step, (unsigned)(unit % step->conv.strips))
                                        : (double)step->out->pixels;
}

void
statistics_finish(struct plan *plan, const struct step *step)
{
    struct tensor *s = step->out;
    size_t channels = (size_t)step->out_blocks * BLOCK, base = (size_t)step->out_block * BLOCK, u, c;
    size_t units = statistics_units(step, plan->images);
    double count = (double)plan->images * (double)s->pixels;
    double *mean, *squares;

    if (!s->normed || !plan->training)
        return;
    mean = s->b + base; /* unused until backward */
    squares = s->variance + base;
    for (c = 0; c < channels; c++)
        mean[c] = squares[c] = 0;
    for (u = 0; u < units; u++) {
        const double *p = unit_of(plan, step, u);
        double n = unit_pixels(step, u);

        for (c = 0; c < channels; c++)
            mean[c] += n * p[c] + p[channels + c];
    }
    for (c = 0; c < channels; c++)
        mean[c] /= count;
    for (u = 0; u < units; u++) {
        const double *p = unit_of(plan, step, u);
        double n = unit_pixels(step, u);

        /* sum of (pivot + d - mean)^2 */
        for (c = 0; c < channels; c++)
            squares[c] += p[2 * channels + c] + 2 * (p[c] - mean[c]) * p[channels + c] +
                          n * (p[c] - mean[c]) * (p[c] - mean[c]);
    }
    for (c = 0; c < channels; c++) {
        squares[c] = squares[c] > 0 ? squares[c] / count : squares[c] - squares[c]; /* NaN stays NaN */
        s->mean[base + c] = (float)mean[c];
        s->inverse[base + c] = (float)(1 / sqrt(squares[c] + (double)GRAPH_NORM_EPSILON));
    }
}

/* Compute mean, scale and beta of this pass; holes have zero scale and beta. */
void
norm_prepare(struct plan *plan, struct step *step)
{
    const struct graph *g = plan->graph;
    const struct graph_node *node = step->node;
    const float *gamma = plan->weights + g->param[node->weight].offset;
    const float *beta = plan->weights + g->param[node->bias].offset;
    const float *stats = plan->host.arena[ARENA_STATISTICS];
    const struct tensor *s = step->in.from;
    size_t c;

    for (c = 0; c < node->in.channels; c++) {
        size_t at = step->in.lane[c], from = (size_t)step->in.block * BLOCK + at;
        float inverse;

        if (plan->training) {
            step->mean[at] = s->mean[from];
            inverse = s->inverse[from];
        } else {
            step->mean[at] = stats[g->stat[node->mean].offset + c];
            inverse = 1 / sqrtf(stats[g->stat[node->variance].offset + c] + GRAPH_NORM_EPSILON);
        }
        step->gamma[at] = gamma[c];
        step->beta[at] = beta[c];
        step->scale[at] = gamma[c] * inverse;
    }
}

void
norm_running(struct plan *plan, struct step *step)
{
    const struct graph *g = plan->graph;
    const struct graph_node *node = step->node;
    const struct tensor *s = step->in.from;
    float *mean = plan->host.running + g->stat[node->mean].offset;
    float *variance = plan->host.running + g->stat[node->variance].offset;
    double count = (double)plan->images * (double)s->pixels;
    size_t c;

    for (c = 0; c < node->in.channels && count >= GRAPH_NORM_LEAST; c++) {
        size_t from = (size_t)step->in.block * BLOCK + step->in.lane[c];
        float v = (float)(s->variance[from] * (count / (count - 1)));

        mean[c] += GRAPH_NORM_MOMENTUM * (s->mean[from] - mean[c]);
        variance[c] += GRAPH_NORM_MOMENTUM * (v - variance[c]);
    }
}

/* After all gradients of the normalised values: compute the gradients of gamma and beta, and b and c of the tensor. */
void
norm_backward_finish(struct plan *plan, struct step *step)
{
    const struct graph *g = plan->graph;
    const struct graph_node *node = step->node;
    struct tensor *s = step->in.from;
    float *dgamma = plan->host.arena[ARENA_GRADIENTS] + g->param[node->weight].offset;
    float *dbeta = plan->host.arena[ARENA_GRADIENTS] + g->param[node->bias].offset;
    size_t channels = (size_t)step->in.blocks * BLOCK, c, n;

    for (c = 0; c < node->in.channels; c++) {
        size_t at = step->in.lane[c], from = (size_t)step->in.block * BLOCK + at;
        double sum = 0, product = 0;

        for (n = 0; n < plan->images; n++) {
            sum += step->sums[n * 2 * channels + at];
            product += step->sums[(n * 2 + 1) * channels + at];
        }
        product *= (double)s->inverse[from];
        dbeta[c] += (float)sum;
        dgamma[c] += (float)product;
        s->b[from] += (double)step->gamma[at] * sum;
        s->c[from] += (double)step->gamma[at] * product;
    }
}
