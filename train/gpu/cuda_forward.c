/*
 * cuda_forward.c - the launches of a micro-batch forward: to train, and to score with running statistics
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu/cuda_build.h"

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

bool
build_is_stem(const struct cuda_builder *b, const struct graph_node *n)
{
    const struct graph_buffer *in = &b->graph->buffer[n->in.buffer];

    return n->op == GRAPH_CONV && n->in.buffer == b->graph->input && n->in.channels == 3 && in->height == in->width &&
           n->kernel == 7 && n->stride == 2 && n->pad == 3;
}

static void
shape_stem(struct conv_args *a, unsigned side)
{
    a->height = STEM_ROWS(side);
    a->width = STEM_COLUMNS(side);
    a->in = STEM_IN;
    a->x_ld = STEM_LD;
    a->kernel_h = 4;
    a->kernel_w = 1;
    a->stride = 1;
    a->pad_h = 2;
    a->pad_w = 0;
}

struct cuda_conv
build_conv(struct cuda_builder *b, const struct graph_node *n, enum conv_kind kind)
{
    const struct cuda_layout *l = b->layout;
    const struct graph_buffer *in = &b->graph->buffer[n->in.buffer], *out = &b->graph->buffer[n->out.buffer];
    struct cuda_conv c = {.kind = kind, .splits = 1};

    c.args = (struct conv_args){.w = (const void *)b->packed[n - b->graph->node],
                                .images = l->options->batch,
                                .height = in->height,
                                .width = in->width,
                                .out_height = out->height,
                                .out_width = out->width,
                                .in = n->in.channels,
                                .out = n->out.channels,
                                .x_ld = l->tensor[n->in.buffer].ld,
                                .y_ld = l->tensor[n->out.buffer].ld,
                                .kernel_h = n->kernel,
                                .kernel_w = n->kernel,
                                .stride = n->stride,
                                .pad_h = n->pad,
                                .pad_w = n->pad};
    if (build_is_stem(b, n))
        shape_stem(&c.args, in->height);
    return c;
}

void
build_conv_launch(struct cuda_builder *b, struct cuda_conv *c)
{
    struct cuda_op op;

    if (b->status != CHEX_OK)
        return;
    if (!cuda_conv_fits(&c->args)) {
        build_fail(b, CHEX_ERR_UNSUPPORTED, "the GPU takes channels by eights");
        return;
    }
    op = cuda_conv_op(c);
    op.node = b->node;
    op.final = SIZE_MAX;
    build_launch(b, op);
}

static void
conv_forward(struct cuda_builder *b, const struct graph_node *n)
{
    struct cuda_conv c = build_conv(b, n, CONV_FORWARD);

    c.args.x = build_is_stem(b, n) ? (void *)b->layout->cells : build_read(b, &n->in);
    c.args.y = build_write(b, &n->out);
    if (b->status == CHEX_OK)
        cuda_conv_choose(&c, b->layout->chip.processors);
    build_conv_launch(b, &c);
}

/* ---- batch normalisation ----------------------------------------------------------------------------------------- */

/* The first normalisation that reads something of a slice, or NULL. */
static const struct graph_node *
norm_of(const struct graph *g, const struct graph_slice *s)
{
    size_t i;

    for (i = 0; i < g->node_count; i++) {
        const struct graph_slice *in = &g->node[i].in;

        if (g->node[i].op == GRAPH_NORM && in->buffer == s->buffer && in->first < s->first + s->channels &&
            s->first < in->first + in->channels)
            return &g->node[i];
    }
    return NULL;
}

/* A slice was written: mean and variance of its channels, where a normalisation reads them. */
static void
make_moments(struct cuda_builder *b, const struct graph_slice *s)
{
    const struct graph_node *norm = b->score ? NULL : norm_of(b->graph, s);
    unsigned pixels = build_pixels(b, s->buffer), all = build_all_pixels(b, s->buffer), each, blocks;
    struct build_moments m;
    struct cuda_op op;
    const float *pivot;
    size_t partial;

    if (!norm)
        return;
    if (norm->in.first > s->first || norm->in.first + norm->in.channels < s->first + s->channels) {
        build_fail(b, CHEX_ERR_UNSUPPORTED, "a normalisation reads a part of what it writes");
        return;
    }
    pivot = build_statistic(b, norm->mean, s->first - norm->in.first);
    each = build_each(b, all, s->channels);
    blocks = build_blocks(b, all, 1, each);
    partial = build_take(b, (size_t)blocks * 2 * s->channels * sizeof(float));
    op = build_op(b, CUDA_NORM_SUMS, blocks);
    op.y = cuda_blocks(s->channels, NORM_CHANNELS);
    op.args.norm_sums = (struct norm_sums_args){.x = build_read(b, s),
                                                .pivot = pivot,
                                                .weight = (const float *)b->layout->weight,
                                                .partial = build_at(b, partial),
                                                .images = b->layout->options->batch,
                                                .pixels = pixels,
                                                .channels = s->channels,
                                                .ld = b->layout->tensor[s->buffer].ld,
                                                .each = each};
    build_launch(b, op);
    m = build_moments(b, s->buffer, s->first);
    op = build_op(b, CUDA_NORM_MOMENTS, build_blocks(b, s->channels, 1, NORM_THREADS));
    op.args.norm_moments = (struct norm_moments_args){.partial = build_at(b, partial),
                                                      .pivot = pivot,
                                                      .block = (const struct batch_block *)b->layout->batch_block,
                                                      .mean = m.mean,
                                                      .variance = m.variance,
                                                      .inverse = m.inverse,
                                                      .pixels = pixels,
                                                      .channels = s->channels,
                                                      .blocks = blocks,
                                                      .epsilon = GRAPH_NORM_EPSILON};
    build_launch(b, op);
}

/* Scale and shift of a normalisation, from statistics of the batch, which move the running ones. */
static void
norm_finish(struct cuda_builder *b, const struct graph_node *n, float *scale, float *shift)
{
    struct build_moments m = build_moments(b, n->in.buffer, n->in.first);
    struct cuda_op op = build_op(b, CUDA_NORM_FINISH, build_blocks(b, n->in.channels, 1, NORM_THREADS));

    op.args.norm_finish = (struct norm_finish_args){.mean = m.mean,
                                                    .variance = m.variance,
                                                    .inverse = m.inverse,
                                                    .gamma = build_weight(b, n->weight),
                                                    .beta = build_weight(b, n->bias),
                                                    .block = (const struct batch_block *)b->layout->batch_block,
                                                    .scale = scale,
                                                    .shift = shift,
                                                    .running_mean = build_running(b, n->mean),
                                                    .running_variance = build_running(b, n->variance),
                                                    .pixels = build_pixels(b, n->in.buffer),
                                                    .channels = n->in.channels,
                                                    .momentum = GRAPH_NORM_MOMENTUM};
    build_launch(b, op);
}

static void
norm_running(struct cuda_builder *b, const struct graph_node *n, float *scale, float *shift)
{
    struct cuda_op op = build_op(b, CUDA_NORM_RUNNING, build_blocks(b, n->in.channels, 1, NORM_THREADS));

    op.args.norm_running = (struct norm_running_args){.mean = build_statistic(b, n->mean, 0),
                                                      .variance = build_statistic(b, n->variance, 0),
                                                      .gamma = build_weight(b, n->weight),
                                                      .beta = build_weight(b, n->bias),
                                                      .scale = scale,
                                                      .shift = shift,
                                                      .channels = n->in.channels,
                                                      .epsilon = GRAPH_NORM_EPSILON};
    build_launch(b, op);
}

static void
norm_forward(struct cuda_builder *b, const struct graph_node *n)
{
    const struct cuda_layout *l = b->layout;
    unsigned channels = n->in.channels;
    size_t bytes = channels * sizeof(float), scale = build_take(b, bytes), shift = build_take(b, bytes);
    struct cuda_op op;

    (b->score ? norm_running : norm_finish)(b, n, build_at(b, scale), build_at(b, shift));
    op = build_op(b, CUDA_NORM_APPLY, build_blocks(b, build_all_pixels(b, n->in.buffer), channels / 8, NORM_THREADS));
    op.args.norm_apply = (struct norm_apply_args){.x = build_read(b, &n->in),
                                                  .y = build_write(b, &n->out),
                                                  .scale = build_at(b, scale),
                                                  .shift = build_at(b, shift),
                                                  .weight = (const float *)l->weight,
                                                  .images = l->options->batch,
                                                  .pixels = build_pixels(b, n->in.buffer),
                                                  .channels = channels,
                                                  .x_ld = l->tensor[n->in.buffer].ld,
                                                  .y_ld = l->tensor[n->out.buffer].ld,
                                                  .relu = n->relu};
    build_launch(b, op);
}

/* ---- the others -------------------------------------------------------------------------------------------------- */

struct pool_args
build_pool(const struct cuda_builder *b, const struct graph_node *n)
{
    const struct graph_buffer *in = &b->graph->buffer[n->in.buffer], *out = &b->graph->buffer[n->out.buffer];
    unsigned x_ld = b->layout->tensor[n->in.buffer].ld, y_ld = b->layout->tensor[n->out.buffer].ld;

    return (struct pool_args){.images = b->layout->options->batch,
                              .height = in->height,
                              .width = in->width,
                              .out_height = out->height,
                              .out_width = out->width,
                              .channels = n->in.channels,
                              .x_ld = x_ld,
                              .y_ld = y_ld,
                              .dy_ld = y_ld,
                              .dx_ld = x_ld,
                              .kernel = n->kernel,
                              .stride = n->stride,
                              .pad = n->pad};
}

static void
pool_forward(struct cuda_builder *b, const struct graph_node *n)
{
    struct cuda_op op = build_op(
        b, n->op == GRAPH_MAX_POOL ? CUDA_MAX_POOL : CUDA_AVERAGE_POOL,
        build_blocks(b, build_all_pixels(b, n->out.buffer), n->out.channels / 8, POOL_THREADS));

    op.args.pool = build_pool(b, n);
    op.args.pool.x = build_read(b, &n->in);
    op.args.pool.y = build_write(b, &n->out);
    build_launch(b, op);
}

static void
mean_pool_forward(struct cuda_builder *b, const struct graph_node *n)
{
    const struct cuda_layout *l = b->layout;
    struct cuda_op op = build_op(b, CUDA_MEAN_POOL,
                                 build_blocks(b, l->options->batch, n->out.channels / 8, POOL_THREADS));

    op.args.mean_pool = (struct mean_pool_args){.x = build_read(b, &n->in),
                                                .y = build_write(b, &n->out),
                                                .images = l->options->batch,
                                                .pixels = build_pixels(b, n->in.buffer),
                                                .channels = n->in.channels,
                                                .x_ld = l->tensor[n->in.buffer].ld,
                                                .y_ld = l->tensor[n->out.buffer].ld};
    build_launch(b, op);
}

static void
branches_forward(struct cuda_builder *b, const struct graph_node *n)
{
    const struct cuda_layout *l = b->layout;
    unsigned pixels = build_all_pixels(b, n->out.buffer);
    struct cuda_op op = build_op(b, CUDA_BRANCHES, build_blocks(b, pixels, n->out.channels / 8, POOL_THREADS));

    op.args.branches = (struct branches_args){.x = build_read(b, &n->in),
                                              .x2 = build_read(b, &n->in2),
                                              .y = build_write(b, &n->out),
                                              .pixels = pixels,
                                              .channels = n->out.channels,
                                              .x_ld = l->tensor[n->in.buffer].ld,
                                              .x2_ld = l->tensor[n->in2.buffer].ld,
                                              .y_ld = l->tensor[n->out.buffer].ld,
                                              .relu = n->relu};
    build_launch(b, op);
}

static void
linear_forward(struct cuda_builder *b, const struct graph_node *n)
{
    const struct cuda_layout *l = b->layout;
    struct cuda_op op = build_op(b, CUDA_LINEAR,
                                 build_blocks(b, l->options->batch, n->out.channels, HEAD_THREADS / 32));

    if (n->out.buffer != b->graph->output)
        build_fail(b, CHEX_ERR_UNSUPPORTED, "the GPU does a linear layer at the end alone");
    op.args.linear = (struct linear_args){.x = build_read(b, &n->in),
                                          .w = build_weight(b, n->weight),
                                          .bias = build_weight(b, n->bias),
                                          .weight = (const float *)l->weight,
                                          .z = build_write(b, &n->out),
                                          .images = l->options->batch,
                                          .in = n->in.channels,
                                          .out = n->out.channels,
                                          .x_ld = l->tensor[n->in.buffer].ld};
    build_launch(b, op);
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

static void
node_forward(struct cuda_builder *b, const struct graph_node *n)
{
    switch (n->op) {
    case GRAPH_CONV:
        conv_forward(b, n);
        break;
    case GRAPH_NORM:
        norm_forward(b, n);
        break;
    case GRAPH_ADD:
        branches_forward(b, n);
        break;
    case GRAPH_MAX_POOL:
    case GRAPH_AVG_POOL:
        pool_forward(b, n);
        break;
    case GRAPH_MEAN_POOL:
        mean_pool_forward(b, n);
        break;
    case GRAPH_LINEAR:
        linear_forward(b, n);
        break;
    }
    make_moments(b, &n->out);
}

/* The gradient of the logits is the first one. */
static void
make_loss(struct cuda_builder *b)
{
    const struct cuda_layout *l = b->layout;
    const struct loss_options *loss = &l->options->loss;
    unsigned outputs = b->graph->buffer[b->graph->output].channels, add;
    struct graph_slice whole = graph_slice(b->graph->output, 0, outputs);
    struct cuda_op op = build_op(b, CUDA_LOSS, 1);

    op.args.loss = (struct loss_args){.z = (const float *)l->logits,
                                      .label = (const uint8_t *)l->label,
                                      .weight = (const float *)l->weight,
                                      .positive_weight = (const float *)l->positive_weight_at,
                                      .block = (const struct batch_block *)l->batch_block,
                                      .state = (struct step_state *)l->state,
                                      .dz = build_write_gradient(b, &whole, &add),
                                      .images = l->options->batch,
                                      .out = outputs,
                                      .focal = loss->kind == LOSS_FOCAL,
                                      .gamma = (float)loss->gamma};
    build_launch(b, op);
}

void
build_forward(struct cuda_builder *b)
{
    size_t i;

    for (i = 0; i < b->graph->node_count && b->status == CHEX_OK; i++) {
        b->node = (unsigned)i;
        node_forward(b, &b->graph->node[i]);
    }
    b->node = CUDA_NO_NODE;
    if (!b->score)
        make_loss(b);
}
