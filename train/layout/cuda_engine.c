/*
 * cuda_engine.c - see cuda_engine.h: a roofline of both engines
 *
 * A product takes as long as its multiply-adds or as its bytes, whichever is longer; what is written or read for one
 * engine only is added.  Nothing of this was measured.  The numbers are an H100's of 132 multiprocessors, which the
 * relations below depend on:
 *
 *   own kernels use mma.sync, which reaches 63 % of the peak of 989 TFLOP/s on Hopper (Luo et al., "Benchmarking and
 *   Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking", 2024), and are taken to reach 75 % of that;
 *   cuDNN uses wgmma there, and is taken to reach 70 % of the peak;
 *   memory gives 80 % of 3.35 TB/s; a launch that waits for the one before it costs 3 us.
 *
 * Before Hopper, and on chips with neither wgmma nor tcgen05, both engines have the same instructions: there cuDNN is
 * not expected to win anything.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "layout/cuda_engine.h"

#define PEAK       989e12
#define OWN_RATE   (0.75 * 0.63 * PEAK)
#define CUDNN_RATE (0.7 * PEAK)
#define BANDWIDTH  (0.8 * 3.35e12)
#define LAUNCH     3e-6

static double
longer(double work, double rate, double bytes)
{
    double computes = work / rate, moves = bytes / BANDWIDTH;

    return computes > moves ? computes : moves;
}

struct cuda_engine_times
cuda_engine_model(const struct conv_args *a, bool norm, bool train)
{
    double ins = (double)a->images * a->height * a->width, outs = (double)a->images * a->out_height * a->out_width;
    double work = 2 * outs * a->kernel_h * a->kernel_w * a->in * a->out; /* of each product */
    double x = ins * a->in * 2, y = outs * a->out * 2;                   /* bytes of halves */
    struct cuda_engine_times t;

    t.own = longer(work, OWN_RATE, x + y);
    t.cudnn = longer(work, CUDNN_RATE, x + y);
    if (norm) /* x is read and written by norm_apply */
        t.cudnn += 2 * x / BANDWIDTH + LAUNCH;
    if (!train)
        return t;
    t.cudnn += y / BANDWIDTH + LAUNCH; /* norm_sums */
    /* the gradient of data: x too is read with a normalisation; cuDNN leaves dx, which norm_mask turns into A */
    t.own += longer(work, OWN_RATE, y + x + (norm ? x : 0));
    t.cudnn += longer(work, CUDNN_RATE, y + x);
    if (norm)
        t.cudnn += 3 * x / BANDWIDTH + LAUNCH;
    /* the gradient of weights, which cuDNN leaves as halves */
    t.own += longer(work, OWN_RATE, x + y);
    t.cudnn += longer(work, CUDNN_RATE, x + y) + LAUNCH;
    return t;
}

static bool
has_faster_instructions(const struct cuda_chip *chip)
{
    return chip->major == 9 || chip->major == 10;
}

/* The shape of a convolution, without places. */
static struct conv_args
shape_of(const struct cuda_layout *l, const struct graph_node *n)
{
    const struct graph_buffer *in = &l->graph->buffer[n->in.buffer], *out = &l->graph->buffer[n->out.buffer];

    return (struct conv_args){.images = l->options->batch,
                              .height = in->height,
                              .width = in->width,
                              .out_height = out->height,
                              .out_width = out->width,
                              .in = n->in.channels,
                              .out = n->out.channels,
                              .kernel_h = n->kernel,
                              .kernel_w = n->kernel};
}

/* A slice of a larger slab: cuDNN packs it before each product, as its workspace shows. */
static bool
is_slice(const struct cuda_layout *l, const struct graph_slice *s)
{
    return s->channels < l->graph->buffer[s->buffer].channels;
}

static bool
is_expected_to_win(const struct cuda_layout *l, const struct graph_node *n, bool norm)
{
    struct conv_args a = shape_of(l, n);
    struct cuda_engine_times t;

    if (is_slice(l, &n->in) || is_slice(l, &n->out) || !has_faster_instructions(&l->chip))
        return false;
    t = cuda_engine_model(&a, norm, l->options->train);
    return t.cudnn < t.own;
}

void
cuda_engine_choose(const struct cuda_layout *l, const struct cuda_fold *fold, bool *is)
{
    const struct graph *g = l->graph;
    enum engine engine = l->options->engine;
    size_t i;

    for (i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->node[i];

        is[i] = n->op == GRAPH_CONV && n->in.buffer != g->input && l->chip.cudnn && engine != ENGINE_OWN &&
                (engine == ENGINE_CUDNN || is_expected_to_win(l, n, fold->norm[i]));
    }
}
