/*
 * cuda_backward.c - the launches of a micro-batch backward
 *
 * The first launch that makes a gradient of values writes it, the others add to it; the order of the launches is the
 * order of the sum.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu/cuda_build.h"

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

static void
conv_data(struct cuda_builder *b, const struct graph_node *n)
{
    struct cuda_conv c = build_conv(b, n, CONV_DATA);

    c.args.x = build_write_gradient(b, &n->in, &c.args.add);
    c.args.y = build_read_gradient(b, &n->out);
    if (b->status == CHEX_OK)
        cuda_conv_choose(&c, b->layout->chip.processors);
    build_conv_launch(b, &c);
}

/* Partial sums to the gradient, which is final behind it. */
static void
sum_partial(struct cuda_builder *b, const struct graph_node *n, const struct cuda_conv *c, size_t partial)
{
    const struct batch_block *block = (const struct batch_block *)b->layout->batch_block;
    const struct step_state *state = (const struct step_state *)b->layout->state;
    bool stem = build_is_stem(b, n);
    unsigned taps = n->kernel * n->kernel;
    struct cuda_op op = build_op(
        b, stem ? CUDA_SUM_STEM : CUDA_SUM_SPLITS,
        build_blocks(b, (size_t)n->out.channels * taps, stem ? 1 : n->in.channels, PACK_THREADS));

    if (stem)
        op.args.stem = (struct sum_stem_args){.partial = build_at(b, partial),
                                              .gradient = build_gradient_of(b, n->weight),
                                              .block = block,
                                              .state = state,
                                              .out = n->out.channels,
                                              .splits = c->splits};
    else
        op.args.splits = (struct sum_splits_args){.partial = build_at(b, partial),
                                                  .gradient = build_gradient_of(b, n->weight),
                                                  .block = block,
                                                  .state = state,
                                                  .out = n->out.channels,
                                                  .in = n->in.channels,
                                                  .taps = taps,
                                                  .splits = c->splits};
    build_final(b, &op, n->weight, n->weight);
    build_launch(b, op);
}

static void
conv_weights(struct cuda_builder *b, const struct graph_node *n)
{
    struct cuda_conv c = build_conv(b, n, CONV_WEIGHTS);
    size_t partial;

    c.args.x = build_is_stem(b, n) ? (void *)b->layout->cells : build_read(b, &n->in);
    c.args.y = build_read_gradient(b, &n->out);
    if (b->status != CHEX_OK)
        return;
    cuda_conv_choose(&c, b->layout->chip.processors);
    partial = build_take(b, cuda_conv_partial(&c) * sizeof(float));
    c.args.partial = build_at(b, partial);
    build_conv_launch(b, &c);
    sum_partial(b, n, &c, partial);
}

static void
conv_backward(struct cuda_builder *b, const struct graph_node *n)
{
    if (!build_is_stem(b, n))
        conv_data(b, n);
    conv_weights(b, n);
}

/* ---- batch normalisation ----------------------------------------------------------------------------------------- */

/* Sums over the pixels, in partial[blocks][2][channels]; returns the blocks. */
static unsigned
norm_gradient_sums(struct cuda_builder *b, const struct graph_node *n, size_t *partial)
{
    const struct cuda_layout *l = b->layout;
    unsigned pixels = build_all_pixels(b, n->in.buffer), channels = n->in.channels;
    unsigned each = build_each(b, pixels, channels), blocks = build_blocks(b, pixels, 1, each);
    struct build_moments m = build_moments(b, n->in.buffer, n->in.first);
    struct cuda_op op = build_op(b, CUDA_NORM_GRADIENT_SUMS, blocks);

    *partial = build_take(b, (size_t)blocks * 2 * channels * sizeof(float));
    op.y = cuda_blocks(channels, NORM_CHANNELS);
    op.args.norm_gradient_sums = (struct norm_gradient_sums_args){.x = build_read(b, &n->in),
                                                                  .y = build_read(b, &n->out),
                                                                  .dy = build_read_gradient(b, &n->out),
                                                                  .mean = m.mean,
                                                                  .inverse = m.inverse,
                                                                  .partial = build_at(b, *partial),
                                                                  .pixels = pixels,
                                                                  .channels = channels,
                                                                  .x_ld = l->tensor[n->in.buffer].ld,
                                                                  .y_ld = l->tensor[n->out.buffer].ld,
                                                                  .dy_ld = l->tensor[n->out.buffer].ld,
                                                                  .relu = n->relu,
                                                                  .each = each};
    build_launch(b, op);
    return blocks;
}

static void
norm_gradient_finish(struct cuda_builder *b, const struct graph_node *n, size_t partial, unsigned blocks,
                     size_t by_beta, size_t by_gamma)
{
    const struct cuda_layout *l = b->layout;
    struct cuda_op op = build_op(b, CUDA_NORM_GRADIENT_FINISH, build_blocks(b, n->in.channels, 1, NORM_THREADS));

    op.args.norm_gradient_finish = (struct norm_gradient_finish_args){
        .partial = build_at(b, partial),
        .block = (const struct batch_block *)l->batch_block,
        .state = (const struct step_state *)l->state,
        .dgamma = build_gradient_of(b, n->weight),
        .dbeta = build_gradient_of(b, n->bias),
        .by_beta = build_at(b, by_beta),
        .by_gamma = build_at(b, by_gamma),
        .pixels = build_pixels(b, n->in.buffer),
        .channels = n->in.channels,
        .blocks = blocks};
    build_final(b, &op, n->weight, n->bias);
    build_launch(b, op);
}

static void
norm_gradient(struct cuda_builder *b, const struct graph_node *n, size_t by_beta, size_t by_gamma)
{
    const struct cuda_layout *l = b->layout;
    struct build_moments m = build_moments(b, n->in.buffer, n->in.first);
    unsigned blocks = build_blocks(b, build_all_pixels(b, n->in.buffer), n->in.channels / 8, NORM_THREADS), add = 0;
    struct cuda_op op = build_op(b, CUDA_NORM_GRADIENT, blocks);

    op.args.norm_gradient = (struct norm_gradient_args){.x = build_read(b, &n->in),
                                                        .y = build_read(b, &n->out),
                                                        .dy = build_read_gradient(b, &n->out),
                                                        .dx = build_write_gradient(b, &n->in, &add),
                                                        .mean = m.mean,
                                                        .inverse = m.inverse,
                                                        .gamma = build_weight(b, n->weight),
                                                        .by_beta = build_at(b, by_beta),
                                                        .by_gamma = build_at(b, by_gamma),
                                                        .weight = (const float *)l->weight,
                                                        .images = l->options->batch,
                                                        .pixels = build_pixels(b, n->in.buffer),
                                                        .channels = n->in.channels,
                                                        .x_ld = l->tensor[n->in.buffer].ld,
                                                        .y_ld = l->tensor[n->out.buffer].ld,
                                                        .dy_ld = l->tensor[n->out.buffer].ld,
                                                        .dx_ld = l->tensor[n->in.buffer].ld,
                                                        .relu = n->relu};
    op.args.norm_gradient.add = add;
    build_launch(b, op);
}

static void
norm_backward(struct cuda_builder *b, const struct graph_node *n)
{
    size_t bytes = n->in.channels * sizeof(float), partial = 0;
    size_t by_beta = build_take(b, bytes), by_gamma = build_take(b, bytes);
    unsigned blocks = norm_gradient_sums(b, n, &partial);

    norm_gradient_finish(b, n, partial, blocks, by_beta, by_gamma);
    norm_gradient(b, n, by_beta, by_gamma);
}

/* ---- the others -------------------------------------------------------------------------------------------------- */

static void
pool_backward(struct cuda_builder *b, const struct graph_node *n)
{
    bool largest = n->op == GRAPH_MAX_POOL;
    struct cuda_op op = build_op(b, largest ? CUDA_MAX_POOL_GRADIENT : CUDA_AVERAGE_POOL_GRADIENT,
                                 build_blocks(b, build_all_pixels(b, n->in.buffer), n->in.channels / 8, POOL_THREADS));

    op.args.pool = build_pool(b, n);
    op.args.pool.x = largest ? build_read(b, &n->in) : NULL;
    op.args.pool.dy = build_read_gradient(b, &n->out);
    op.args.pool.dx = build_write_gradient(b, &n->in, &op.args.pool.add);
    build_launch(b, op);
}

static void
mean_pool_backward(struct cuda_builder *b, const struct graph_node *n)
{
    const struct cuda_layout *l = b->layout;
    struct cuda_op op = build_op(b, CUDA_MEAN_POOL_GRADIENT,
                                 build_blocks(b, build_all_pixels(b, n->in.buffer), n->in.channels / 8, POOL_THREADS));

    op.args.mean_pool = (struct mean_pool_args){.images = l->options->batch,
                                                .pixels = build_pixels(b, n->in.buffer),
                                                .channels = n->in.channels,
                                                .dy_ld = l->tensor[n->out.buffer].ld,
                                                .dx_ld = l->tensor[n->in.buffer].ld};
    op.args.mean_pool.dy = build_read_gradient(b, &n->out);
    op.args.mean_pool.dx = build_write_gradient(b, &n->in, &op.args.mean_pool.add);
    build_launch(b, op);
}

static void
branches_backward(struct cuda_builder *b, const struct graph_node *n)
{
    const struct cuda_layout *l = b->layout;
    unsigned pixels = build_all_pixels(b, n->out.buffer);
    struct cuda_op op = build_op(b, CUDA_BRANCHES_GRADIENT, build_blocks(b, pixels, n->out.channels / 8, POOL_THREADS));

    op.args.branches = (struct branches_args){.pixels = pixels,
                                              .channels = n->out.channels,
                                              .y_ld = l->tensor[n->out.buffer].ld,
                                              .dy_ld = l->tensor[n->out.buffer].ld,
                                              .dx_ld = l->tensor[n->in.buffer].ld,
                                              .dx2_ld = l->tensor[n->in2.buffer].ld,
                                              .relu = n->relu};
    op.args.branches.y = build_read(b, &n->out);
    op.args.branches.dy = build_read_gradient(b, &n->out);
    op.args.branches.dx = build_write_gradient(b, &n->in, &op.args.branches.add);
    op.args.branches.dx2 = build_write_gradient(b, &n->in2, &op.args.branches.add2);
    build_launch(b, op);
}

static void
linear_backward(struct cuda_builder *b, const struct graph_node *n)
{
    const struct cuda_layout *l = b->layout;
    struct linear_args a = {.w = build_weight(b, n->weight),
                            .dw = build_gradient_of(b, n->weight),
                            .dbias = build_gradient_of(b, n->bias),
                            .block = (const struct batch_block *)l->batch_block,
                            .state = (const struct step_state *)l->state,
                            .images = l->options->batch,
                            .in = n->in.channels,
                            .out = n->out.channels,
                            .x_ld = l->tensor[n->in.buffer].ld,
                            .dx_ld = l->tensor[n->in.buffer].ld};
    struct cuda_op op = build_op(b, CUDA_LINEAR_GRADIENT_DATA, build_blocks(b, a.images, a.in, HEAD_THREADS));
    unsigned add;

    a.dz = build_read_gradient(b, &n->out);
    a.dx = build_write_gradient(b, &n->in, &add);
    if (add)
        build_fail(b, CHEX_ERR_UNSUPPORTED, "the GPU does no other node beside a linear layer");
    op.args.linear = a;
    build_launch(b, op);
    a.dz = build_read_gradient(b, &n->out);
    a.x = build_read(b, &n->in);
    op = build_op(b, CUDA_LINEAR_GRADIENT_WEIGHTS, build_blocks(b, (size_t)a.in + 1, a.out, HEAD_THREADS));
    op.args.linear = a;
    build_final(b, &op, n->weight, n->bias);
    build_launch(b, op);
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

static void
node_backward(struct cuda_builder *b, const struct graph_node *n)
{
    switch (n->op) {
    case GRAPH_CONV:
        conv_backward(b, n);
        break;
    case GRAPH_NORM:
        norm_backward(b, n);
        break;
    case GRAPH_ADD:
        branches_backward(b, n);
        break;
    case GRAPH_MAX_POOL:
    case GRAPH_AVG_POOL:
        pool_backward(b, n);
        break;
    case GRAPH_MEAN_POOL:
        mean_pool_backward(b, n);
        break;
    case GRAPH_LINEAR:
        linear_backward(b, n);
        break;
    }
}

void
build_backward(struct cuda_builder *b)
{
    size_t i;

    b->final = b->graph->param_floats;
    for (i = b->graph->node_count; i > 0 && b->status == CHEX_OK; i--) {
        b->node = (unsigned)(i - 1);
        node_backward(b, &b->graph->node[i - 1]);
    }
    b->node = CUDA_NO_NODE;
    if (b->final != 0)
        build_fail(b, CHEX_ERR_BUG, "gradients of some parameters are never final");
}
