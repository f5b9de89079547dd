/*
 * end.c - backward at the end of a dense block, fused into the last convolution; see build.h
 *
 * After the last layer of a block, all channels of the slab are normalised and pooled.  The gradient of these two
 * operations is simple: the ReLU mask, times a fraction of the pool's gradient (a quarter, or less).  The next dgrad is
 * the one of the last layer's convolution.  It accumulates the gradient of these channels and reads their values, so
 * its epilogue can also compute the gradient of BN and pool.  So that gradient is never stored on its own, and no other
 * launch reads the values for its partial sums.  The exception is the slice that the last layer itself wrote, because
 * the convolution of that layer does not read it.  A launch of the pool computes the gradient of that slice.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/build.h"

/* Predicts what build_can_finalize_in_prologue() will return for the output of a convolution. */
static bool
will_finalize(const struct cuda_builder *b, const struct graph_slice *out)
{
    bool seen = false;
    size_t i;

    for (i = 0; i < b->graph->node_count; i++) {
        const struct graph_node *n = &b->graph->node[i];

        if (n->op != GRAPH_NORM || !graph_slice_overlaps(&n->in, out))
            continue;
        if (seen || !graph_slice_same(&n->in, out))
            return false;
        seen = true;
    }
    return seen;
}

struct one_pass_end
build_fused_pool_shape(const struct cuda_builder *b, const struct graph_node *conv)
{
    const struct graph_slice *source = build_source(b, conv);
    const struct graph_node *pool = b->end[source->buffer];
    const struct graph_buffer *in = &b->graph->buffer[source->buffer];
    bool mean = pool && pool->op == GRAPH_MEAN_POOL;

    if (!pool)
        return (struct one_pass_end){.dy_ld = 0};
    return (struct one_pass_end){.dy_ld = b->layout->tensor[pool->out.buffer].ld,
                                 .height = mean ? 1 : b->graph->buffer[pool->out.buffer].height,
                                 .width = mean ? 1 : b->graph->buffer[pool->out.buffer].width,
                                 .down = mean ? in->height : pool->kernel,
                                 .across = mean ? in->width : pool->kernel,
                                 .relu = build_norm_before(b, pool)->relu};
}

struct cuda_one_pass
build_one_pass(struct cuda_builder *b, const struct graph_node *n)
{
    const struct cuda_layout *l = b->layout;
    const struct build_sums *pending = &b->pending[n->out.buffer];
    struct cuda_one_pass one_pass = {
        .args.dgrad = build_conv(b, n, CONV_DGRAD).dgrad,
        .args.finalize = {.values_ld = l->tensor[n->out.buffer].ld,
                          .sums = {.blocks = pending->blocks, .channels = n->out.channels}},
        .args.end = build_fused_pool_shape(b, n),
        .value_bytes = l->chip.value_bytes,
        .value = l->chip.value,
        .major = l->chip.major};

    one_pass.args.dgrad.add = build_adds(b, build_source(b, n));
    return one_pass;
}

/*
 * Returns true if this convolution reads all of the slab except the output of `writer`, and if conv_one_pass supports
 * it.
 */
static bool
takes_end(struct cuda_builder *b, const struct graph_node *conv, const struct graph_slice *all,
          const struct graph_node *writer)
{
    const struct graph_node *norm = build_norm_before(b, conv);
    const struct graph_slice *in = norm ? &norm->in : NULL, *out = writer ? &writer->out : NULL;
    struct cuda_one_pass one_pass;

    if (conv->op != GRAPH_CONV || !in || !out || build_is_cudnn(b, conv) || in->buffer != all->buffer ||
        in->first != all->first || in->first + in->channels != out->first ||
        out->first + out->channels != all->first + all->channels || !will_finalize(b, &conv->out))
        return false;
    one_pass = build_one_pass(b, conv);
    return cuda_one_pass_fits(&one_pass);
}

static bool
reads(const struct cuda_builder *b, const struct graph_node *n, unsigned buffer)
{
    return build_source(b, n)->buffer == buffer || (n->op == GRAPH_ADD && n->in2.buffer == buffer);
}

bool
build_can_fuse_pool(struct cuda_builder *b, const struct graph_node *pool, const struct graph_node *norm,
                    struct graph_slice *rest)
{
    const struct graph_slice *all = &norm->in;
    const struct graph_node *writer = NULL, *n = NULL;
    size_t i;

    if ((pool->op != GRAPH_AVG_POOL && pool->op != GRAPH_MEAN_POOL) || build_adds(b, all))
        return false;
    for (i = (size_t)(pool - b->graph->node); i > 0; i--) {
        n = &b->graph->node[i - 1];
        if (b->fold.reader[i - 1]) /* a part of its consumer */
            continue;
        if (reads(b, n, all->buffer))
            break;
        if (n->out.buffer == all->buffer && writer)
            return false;
        if (n->out.buffer == all->buffer)
            writer = n;
    }
    if (i == 0)
        return false;
    b->end[all->buffer] = pool;
    if (!takes_end(b, n, all, writer)) {
        b->end[all->buffer] = NULL;
        return false;
    }
    *rest = writer->out;
    return true;
}

struct one_pass_end
build_fused_pool(struct cuda_builder *b, const struct graph_node *conv, unsigned blocks, struct build_sums *too)
{
    const struct graph_slice *source = build_source(b, conv);
    const struct graph_node *pool = b->end[source->buffer], *norm = pool ? build_norm_before(b, pool) : NULL;
    struct one_pass_end end = build_fused_pool_shape(b, conv);
    struct graph_slice dy;

    *too = build_no_sums();
    if (!pool)
        return end;
    dy = (struct graph_slice){pool->out.buffer, pool->out.first, source->channels};
    end.dy = build_read_gradient(b, &dy);
    end.gamma = build_weight(b, norm->weight);
    end.beta = build_weight(b, norm->bias);
    end.sums = build_second_gradient_sums(b, norm, source, blocks, too);
    b->end[source->buffer] = NULL;
    return end;
}
