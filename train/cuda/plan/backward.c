/*
 * backward.c - the launches of the backward pass of a micro-batch
 *
 * The first launch that computes a gradient of activations writes it; later launches accumulate.  So the order of the
 * launches is the order of the sum.  finalize.c has the deferred reductions of BN backward.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/build.h"

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

/*
 * Sets addresses and fused operations.  The tile shape must be chosen, and all launches that must come first appended,
 * because both gradients are one launch.
 */
static void
place_dgrad(struct cuda_builder *b, const struct graph_node *n, struct cuda_conv *c)
{
    const struct graph_node *norm = build_norm_before(b, n);
    const struct graph_slice *source = build_source(b, n);

    if (norm) {
        c->dgrad.norm = build_prologue(b, norm);
        c->dgrad.x = build_read(b, source);
        c->dgrad.sums = build_norm_gradient_sums(b, norm, source, cuda_conv_op(c).x);
    }
    c->dgrad.dx = (norm ? build_write_norm_gradient : build_write_gradient)(b, source, &c->dgrad.add);
    c->dgrad.dy = build_read_gradient(b, &n->out);
}

static struct build_splits
place_wgrad(struct cuda_builder *b, const struct graph_node *n, struct cuda_conv *c)
{
    const struct graph_node *norm = build_norm_before(b, n);
    struct build_splits partial = build_allocate_splits(b, cuda_conv_partial(c), c->splits);

    if (norm)
        c->wgrad.norm = build_prologue(b, norm);
    c->wgrad.x = build_is_stem(b, n) ? (void *)b->layout->cells : build_read(b, build_source(b, n));
    c->wgrad.dy = build_read_gradient(b, &n->out);
    c->wgrad.partial = build_at(b, partial.piece);
    return partial;
}

/* Appends a launch that makes gradients of parameters final. */
static void
launch_final(struct cuda_builder *b, struct cuda_op op)
{
    op.node = b->node;
    op.final = SIZE_MAX;
    build_mark_final(b, &op);
    build_launch(b, op);
}

/* The images need no gradient, so there is only wgrad. */
static void
stem_backward(struct cuda_builder *b, const struct graph_node *n)
{
    struct cuda_conv c = build_conv(b, n, CONV_WGRAD);
    struct build_splits partial;

    build_finalize(b, &n->out);
    cuda_conv_choose(&c, b->layout->chip.processors);
    partial = place_wgrad(b, n, &c);
    build_conv_check(b, &c);
    launch_final(b, cuda_conv_op(&c));
    build_reduce_splits_later(b, n, &partial);
}

static void
pair_backward(struct cuda_builder *b, const struct graph_node *n)
{
    struct cuda_conv_pair p = {.dgrad = build_conv(b, n, CONV_DGRAD), .wgrad = build_conv(b, n, CONV_WGRAD)};
    const struct graph_node *norm = build_norm_before(b, n);
    struct build_splits partial;

    build_finalize(b, &n->out);
    if (norm) /* the cost of a tile depends on whether there is a prologue */
        p.dgrad.dgrad.norm.gamma = p.wgrad.wgrad.norm.gamma = build_weight(b, norm->weight);
    cuda_conv_pair_choose(&p, b->layout->chip.processors);
    if (norm)
        build_finalize_pending(b, norm);
    place_dgrad(b, n, &p.dgrad);
    partial = place_wgrad(b, n, &p.wgrad);
    build_conv_check(b, &p.dgrad);
    build_conv_check(b, &p.wgrad);
    launch_final(b, cuda_conv_pair_op(&p));
    build_reduce_splits_later(b, n, &partial);
}

/* dgrad and wgrad in one pass, which also finalizes the gradient of the output. */
static void
one_pass_backward(struct cuda_builder *b, const struct graph_node *n, struct cuda_one_pass *one_pass)
{
    const struct graph_node *norm = build_norm_before(b, n);
    const struct graph_slice *source = build_source(b, n);
    struct dgrad_args *d = &one_pass->args.dgrad;
    struct build_readers readers;
    struct build_splits partial;
    struct build_sums too;
    struct cuda_op op;

    cuda_one_pass_choose(one_pass, b->layout->chip.processors);
    op = cuda_one_pass_op(one_pass);
    readers = build_readers(b, &op, n->out.channels);
    build_reduce_before_finalize(b, &n->out, &readers);
    if (norm)
        build_finalize_pending(b, norm);
    one_pass->args.finalize = build_finalize_in_prologue(b, &n->out);
    partial = build_allocate_splits(b, cuda_one_pass_partial(one_pass), one_pass->ctas);
    if (norm) {
        d->norm = build_prologue(b, norm);
        d->sums = build_norm_gradient_sums(b, norm, source, one_pass->ctas);
    }
    one_pass->args.end = build_fused_pool(b, n, one_pass->ctas, &too);
    d->x = build_read(b, source);
    d->dx = (norm ? build_write_norm_gradient : build_write_gradient)(b, source, &d->add);
    d->dy = build_read_gradient(b, &n->out);
    one_pass->args.partial = build_at(b, partial.piece);
    if (b->status == CHEX_OK && !cuda_one_pass_fits(one_pass))
        build_fail(b, CHEX_ERR_BUG, "both gradients do not fit");
    launch_final(b, cuda_one_pass_op(one_pass));
    if (too.piece != BUILD_NONE)
        build_finalize_second(b, &too);
    build_reduce_splits_later(b, n, &partial);
}

static void
conv_backward(struct cuda_builder *b, const struct graph_node *n)
{
    struct cuda_one_pass one_pass = build_one_pass(b, n);

    if (build_can_finalize_in_prologue(b, &n->out) && cuda_one_pass_fits(&one_pass))
        one_pass_backward(b, n, &one_pass);
    else
        pair_backward(b, n);
}

/* ---- batch normalisation ----------------------------------------------------------------------------------------- */

/* A BN whose output is stored. */
static void
norm_backward(struct cuda_builder *b, const struct graph_node *n)
{
    const struct cuda_layout *l = b->layout;
    unsigned strides = build_pixel_blocks(b, build_all_pixels(b, n->in.buffer), n->in.channels);
    struct norm_mask_args a = {.weight = (const float *)l->weight,
                               .images = l->options->batch,
                               .pixels = build_pixels(b, n->in.buffer),
                               .channels = n->in.channels,
                               .x_ld = l->tensor[n->in.buffer].ld,
                               .dy_ld = l->tensor[n->out.buffer].ld,
                               .gradient_ld = l->tensor[n->in.buffer].ld};
    struct cuda_op op;

    build_finalize_pending(b, n);
    op = build_op(b, CUDA_NORM_MASK, strides);
    op.y = cuda_blocks(n->in.channels, NORM_CHANNELS);
    a.x = build_read(b, &n->in);
    a.dy = build_read_gradient(b, &n->out);
    a.gradient = build_write_norm_gradient(b, &n->in, &a.add);
    a.norm = build_prologue(b, n);
    a.sums = build_norm_gradient_sums(b, n, &n->in, op.x);
    op.args.norm_mask = a;
    build_launch(b, op);
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

/* Adds to an address on the device, which may be 0 in the first walk. */
static float *
behind(const float *first, unsigned count)
{
    return (float *)((uintptr_t)first + count * sizeof(*first));
}

/* Removes the first channels from a view. */
static void
skip_channels(struct norm_view *v, unsigned count)
{
    v->mean = behind(v->mean, count);
    v->variance = behind(v->variance, count);
    v->gamma = behind(v->gamma, count);
    v->beta = behind(v->beta, count);
}

/* A pool fused with the BN in front of it; at the end of a dense block, only for the last slice. */
static void
norm_pool_backward(struct cuda_builder *b, const struct graph_node *n, const struct graph_node *norm)
{
    static const enum cuda_kernel_id kernels[] = {[GRAPH_MAX_POOL] = CUDA_NORM_MAX_POOL_GRADIENT,
                                                  [GRAPH_AVG_POOL] = CUDA_NORM_AVERAGE_POOL_GRADIENT,
                                                  [GRAPH_MEAN_POOL] = CUDA_NORM_MEAN_POOL_GRADIENT};
    struct norm_pool_args a = {.pool = build_pool(b, n), .weight = (const float *)b->layout->weight};
    struct graph_slice part = norm->in, dy = n->out;
    unsigned pixels = build_all_pixels(b, norm->in.buffer), skipped, strides;
    bool finalizes = n->op == GRAPH_MAX_POOL && build_can_finalize_in_prologue(b, &n->out);
    struct build_readers readers;
    struct cuda_op op;

    strides = build_can_fuse_pool(b, n, norm, &part) ? build_pixel_blocks(b, pixels, part.channels)
                                                     : build_pool_blocks(b, n, pixels);
    skipped = part.first - norm->in.first;
    dy.first += skipped;
    dy.channels = a.pool.channels = part.channels;
    readers = build_norm_readers(b, kernels[n->op], strides, part.channels);
    if (finalizes)
        build_reduce_before_finalize(b, &n->out, &readers);
    else
        build_finalize(b, &n->out);
    build_finalize_pending(b, norm);
    op = build_op(b, kernels[n->op], strides);
    op.y = cuda_blocks(part.channels, NORM_CHANNELS);
    if (finalizes)
        a.finalize = build_finalize_in_prologue(b, &n->out);
    a.pool.x = build_read(b, &part);
    a.pool.dy = build_read_gradient(b, &dy);
    if (n->op == GRAPH_MAX_POOL)
        a.winners = build_winners(b, n);
    a.pool.dx = build_write_norm_gradient(b, &part, &a.pool.add);
    a.norm = build_prologue(b, norm);
    skip_channels(&a.norm, skipped);
    a.sums = build_norm_gradient_sums(b, norm, &part, op.x);
    op.args.norm_pool = a;
    build_mark_final(b, &op);
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
    struct cuda_op op = build_op(b, CUDA_LINEAR_GRADIENT,
                                 build_blocks(b, a.images, a.in, HEAD_THREADS) +
                                     build_blocks(b, (size_t)a.in + 1, a.out, HEAD_THREADS));
    unsigned add;

    a.dz = build_read_gradient(b, &n->out);
    a.dx = build_write_gradient(b, &n->in, &add);
    if (add)
        build_fail(b, CHEX_ERR_UNSUPPORTED, "on the GPU, no other node may read the input of a linear layer");
    a.x = build_read(b, &n->in);
    op.args.linear = a;
    build_mark_made(b, n->weight);
    build_mark_made(b, n->bias);
    build_mark_final(b, &op);
    build_launch(b, op);
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

static void
node_backward(struct cuda_builder *b, const struct graph_node *n)
{
    const struct graph_node *norm = build_norm_before(b, n);

    bool sees = norm && (n->op == GRAPH_MAX_POOL || n->op == GRAPH_AVG_POOL || n->op == GRAPH_MEAN_POOL);

    if (!sees && (n->op != GRAPH_CONV || build_is_cudnn(b, n))) /* the others call it, or finalize in their prologue */
        build_finalize(b, &n->out);
    switch (n->op) {
    case GRAPH_CONV:
        (build_is_stem(b, n) ? stem_backward : build_is_cudnn(b, n) ? build_cudnn_backward : conv_backward)(b, n);
        break;
    case GRAPH_NORM:
        norm_backward(b, n);
        break;
    case GRAPH_ADD:
        branches_backward(b, n);
        break;
    case GRAPH_MAX_POOL:
    case GRAPH_AVG_POOL:
        norm ? norm_pool_backward(b, n, norm) : pool_backward(b, n);
        break;
    case GRAPH_MEAN_POOL:
        norm ? norm_pool_backward(b, n, norm) : mean_pool_backward(b, n);
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

    b->final = b->graph->param_count;
    for (i = b->graph->node_count; i > 0 && b->status == CHEX_OK; i--) {
        b->node = (unsigned)(i - 1);
        if (!b->fold.reader[i - 1]) /* otherwise the node is a part of its consumer */
            node_backward(b, &b->graph->node[i - 1]);
    }
    b->node = CUDA_NO_NODE;
    for (i = 0; i < b->graph->buffer_count; i++)
        if (b->end[i])
            build_fail(b, CHEX_ERR_BUG, "the gradient of a pool was left to nobody");
    build_reduce_splits(b);
    if (b->final != 0)
        build_fail(b, CHEX_ERR_BUG, "gradients of some parameters are never final");
}
