/*
 * forward.c - the launches of fprop, for training, and for scoring with running statistics
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/build.h"

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

/* Scoring: the BN after the convolution is folded into it, so its output is already normalised. */
static void
take_behind(struct cuda_builder *b, const struct graph_node *n, const struct graph_node *behind, struct fprop_args *a)
{
    a->bias = build_scoring_bias(b, n);
    a->relu = behind->relu;
    a->shape.y_ld = b->layout->tensor[behind->out.buffer].ld;
}

static void
conv_forward(struct cuda_builder *b, const struct graph_node *n)
{
    struct cuda_conv c = build_conv(b, n, CONV_FPROP);
    const struct graph_node *norm = build_norm_before(b, n), *behind = b->score ? build_norm_after(b, n) : NULL;
    struct cuda_op shape;

    if (b->score)
        c.fprop.w = build_scoring_weights(b, n);
    if (behind)
        take_behind(b, n, behind, &c.fprop);
    if (norm) /* the cost of a tile depends on whether there is a prologue */
        c.fprop.norm.gamma = build_weight(b, norm->weight);
    cuda_conv_choose(&c, b->layout->chip.processors);
    shape = cuda_conv_op(&c);
    if (norm) {
        build_reduce_before_conv(b, norm, build_readers(b, &shape, norm->in.channels));
        c.fprop.norm = build_prologue(b, norm);
    }
    c.fprop.x = build_is_stem(b, n) ? (void *)b->layout->cells : build_read(b, build_source(b, n));
    c.fprop.y = build_write(b, behind ? &behind->out : &n->out);
    c.fprop.sums = build_epilogue_sums(b, &n->out, shape.x);
    build_conv_check(b, &c);
    build_conv_launch(b, cuda_conv_op(&c));
}

/* ---- batch normalisation ----------------------------------------------------------------------------------------- */

/* A BN whose output is stored. */
static void
norm_forward(struct cuda_builder *b, const struct graph_node *n)
{
    const struct cuda_layout *l = b->layout;
    unsigned groups = cuda_blocks(n->in.channels, NORM_CHANNELS);
    unsigned strides = build_pixel_blocks(b, build_all_pixels(b, n->in.buffer), n->in.channels);
    struct cuda_op op;

    build_reduce_before_norm_kernel(b, n, CUDA_NORM_APPLY, strides);
    op = build_op(b, CUDA_NORM_APPLY, strides);
    op.y = groups;
    op.args.norm_apply = (struct norm_apply_args){.x = build_read(b, &n->in),
                                                  .y = build_write(b, &n->out),
                                                  .norm = build_prologue(b, n),
                                                  .weight = (const float *)l->weight,
                                                  .images = l->options->batch,
                                                  .pixels = build_pixels(b, n->in.buffer),
                                                  .channels = n->in.channels,
                                                  .x_ld = l->tensor[n->in.buffer].ld,
                                                  .y_ld = l->tensor[n->out.buffer].ld};
    build_launch(b, op);
}

/* ---- the others -------------------------------------------------------------------------------------------------- */

struct pool_args
build_pool(const struct cuda_builder *b, const struct graph_node *n)
{
    const struct graph_buffer *in = &b->graph->buffer[n->in.buffer], *out = &b->graph->buffer[n->out.buffer];
    unsigned x_ld = b->layout->tensor[build_source(b, n)->buffer].ld, y_ld = b->layout->tensor[n->out.buffer].ld;

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

/* The registers of a max pool allow two CTAs per multiprocessor; more CTAs would only add rows of partial sums. */
unsigned
build_pool_blocks(const struct cuda_builder *b, const struct graph_node *n, unsigned pixels)
{
    unsigned strides = build_pixel_blocks(b, pixels, n->in.channels);

    return n->op == GRAPH_MAX_POOL ? cuda_blocks(strides, 2) : strides;
}

unsigned *
build_winners(struct cuda_builder *b, const struct graph_node *n)
{
    size_t *piece = &b->winners[n - b->graph->node];

    if (*piece == BUILD_NONE)
        *piece = build_allocate(b, (size_t)build_all_pixels(b, n->out.buffer) * (n->out.channels / 8) * 4);
    return build_at(b, *piece);
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

/*
 * A pool fused with the BN in front of it.  A max pool writes the partial sums of its output itself, and, for backward,
 * its winners.
 */
static void
norm_pool_forward(struct cuda_builder *b, const struct graph_node *n, const struct graph_node *norm)
{
    static const enum cuda_kernel_id kernels[] = {[GRAPH_MAX_POOL] = CUDA_NORM_MAX_POOL,
                                                  [GRAPH_AVG_POOL] = CUDA_NORM_AVERAGE_POOL,
                                                  [GRAPH_MEAN_POOL] = CUDA_NORM_MEAN_POOL};
    unsigned groups = cuda_blocks(n->out.channels, NORM_CHANNELS);
    unsigned strides = n->op == GRAPH_MEAN_POOL ? b->layout->options->batch
                                                : build_pool_blocks(b, n, build_all_pixels(b, n->out.buffer));
    struct cuda_op op;

    build_reduce_before_norm_kernel(b, norm, kernels[n->op], strides);
    op = build_op(b, kernels[n->op], strides);
    op.y = groups;
    op.args.norm_pool = (struct norm_pool_args){.pool = build_pool(b, n), .weight = (const float *)b->layout->weight};
    op.args.norm_pool.pool.x = build_read(b, &norm->in);
    op.args.norm_pool.pool.y = build_write(b, &n->out);
    op.args.norm_pool.norm = build_prologue(b, norm);
    if (n->op == GRAPH_MAX_POOL)
        op.args.norm_pool.sums = build_epilogue_sums(b, &n->out, strides);
    if (n->op == GRAPH_MAX_POOL && !b->score)
        op.args.norm_pool.winners = build_winners(b, n);
    build_launch(b, op);
    if (n->op != GRAPH_MAX_POOL)
        build_launch_sums(b, &n->out);
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
        build_fail(b, CHEX_ERR_UNSUPPORTED, "the GPU supports a linear layer only at the end");
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

/*
 * The class activation maps, from the activation that the mean pool `mean` reads.  norm: the BN that is fused with the
 * pool, or NULL.
 */
static void
maps_forward(struct cuda_builder *b, const struct graph_node *mean, const struct graph_node *norm)
{
    const struct cuda_layout *l = b->layout;
    struct graph_head h;
    struct cuda_op op;

    if (!b->score || !l->options->maps || !graph_find_head(b->graph, &h) || mean != h.mean)
        return;
    op = build_op(b, CUDA_CLASS_MAPS, build_blocks(b, l->options->batch, h.map_floats, HEAD_THREADS / 32));
    op.args.class_maps = (struct class_maps_args){.x = build_read(b, norm ? &norm->in : &mean->in),
                                                  .w = build_weight(b, h.linear->weight),
                                                  .weight = (const float *)l->weight,
                                                  .map = (float *)l->maps,
                                                  .images = l->options->batch,
                                                  .pixels = (unsigned)h.pixels,
                                                  .in = h.channels,
                                                  .out = h.outputs,
                                                  .x_ld = l->tensor[build_source(b, mean)->buffer].ld};
    if (norm) {
        struct build_pair view = build_scoring_view(b, norm);

        op.args.class_maps.scale = view.one;
        op.args.class_maps.shift = view.two;
        op.args.class_maps.relu = norm->relu;
    }
    build_launch(b, op);
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* Also computes the partial sums of the output.  Convolutions, and pools fused with a BN, do this themselves. */
static void
node_forward(struct cuda_builder *b, const struct graph_node *n)
{
    const struct graph_node *norm = build_norm_before(b, n);

    switch (n->op) {
    case GRAPH_CONV:
        (build_is_cudnn(b, n) ? build_cudnn_forward : conv_forward)(b, n);
        return;
    case GRAPH_NORM:
        norm_forward(b, n);
        break;
    case GRAPH_ADD:
        branches_forward(b, n);
        break;
    case GRAPH_MAX_POOL:
    case GRAPH_AVG_POOL:
    case GRAPH_MEAN_POOL:
        if (norm)
            norm_pool_forward(b, n, norm);
        maps_forward(b, n, norm);
        if (norm)
            return;
        (n->op == GRAPH_MEAN_POOL ? mean_pool_forward : pool_forward)(b, n);
        break;
    case GRAPH_LINEAR:
        linear_forward(b, n);
        break;
    }
    build_launch_sums(b, &n->out);
}

/* The loss: writes the gradient of the logits, the first gradient.  Additional CTAs update the running statistics. */
static void
make_loss(struct cuda_builder *b)
{
    const struct cuda_layout *l = b->layout;
    const struct loss_options *loss = &l->options->loss;
    const struct cuda_table *positive = &l->table[CUDA_TABLE_POSITIVE_WEIGHT];
    unsigned outputs = b->graph->buffer[b->graph->output].channels, add;
    struct graph_slice whole = graph_slice(b->graph->output, 0, outputs);
    struct cuda_op op = build_op(b, CUDA_LOSS, 1);

    op.args.loss = (struct loss_args){.z = (const float *)l->logits,
                                      .label = (const uint8_t *)l->label,
                                      .weight = (const float *)l->weight,
                                      .mix = (const float *)l->mix,
                                      .positive_weight = positive->host ? (const float *)positive->at : NULL,
                                      .block = (const struct batch_block *)l->batch_block,
                                      .state = (struct step_state *)l->state,
                                      .dz = build_write_gradient(b, &whole, &add),
                                      .images = l->options->batch,
                                      .out = outputs,
                                      .focal = loss->kind == LOSS_FOCAL,
                                      .gamma = (float)loss->gamma,
                                      .smoothing = loss->smoothing};
    op.x += build_running(b, &op.args.loss.running);
    build_launch(b, op);
}

void
build_forward(struct cuda_builder *b)
{
    const struct cuda_fold *norms = build_fused_norms(b);
    size_t i;

    for (i = 0; i < b->graph->node_count && b->status == CHEX_OK; i++) {
        b->node = (unsigned)i;
        if (!norms->reader[i] && !norms->writer[i]) /* otherwise the node is a part of its consumer or producer */
            node_forward(b, &b->graph->node[i]);
    }
    b->node = CUDA_NO_NODE;
    if (b->score)
        return;
    make_loss(b);
}
