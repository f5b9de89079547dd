/*
 * finalize.c - deferred reductions of the backward pass: finalizes BN gradients, reduces wgrad partial sums
 *
 * Several BNs may read one slab.  The dgrad epilogue of each adds gamma * g (g: dy under the ReLU mask) to the slab's
 * gradient, which is called A until it is finalized, and writes partial sums for the mean terms of BN backward.  When
 * the node that produced a slice needs its gradient, only the BN that ran last still has unreduced partial sums.  One
 * norm_finalize launch reduces them for all channels of that BN and finalizes the slice in place.  So the partial sums
 * of each BN are reduced by exactly one launch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/build.h"

/*
 * One launch reduces the wgrad partial sums of a bucket, which is what the ranks can sum next.  The gradients at the
 * front of the arena come last and have launches of their own.  A single rank has no buckets.  The partial sums stay in
 * memory until they are reduced, so a launch is also appended after this number of bytes.
 */
#ifndef PARTIAL_BYTES
#define PARTIAL_BYTES ((size_t)512 << 20)
#endif

/* ---- gradients of normalisations --------------------------------------------------------------------------------- */

static const struct graph_slice nothing = {.channels = 0};

/*
 * The arguments of the launch that reduces the partial sums of a buffer and finalizes the gradient of a slice of it, or
 * of `nothing`.  It makes gradients of parameters final.
 */
static struct norm_finalize_args
finalize_args(struct cuda_builder *b, unsigned buffer, const struct graph_slice *s)
{
    const struct cuda_layout *l = b->layout;
    struct build_sums *pending = &b->pending[buffer];
    const struct graph_node *norm = pending->norm;
    const struct graph_slice read = {buffer, pending->first, pending->channels};
    unsigned skipped = pending->first - norm->in.first;
    struct norm_finalize_args a = {.sums = build_sums_at(b, pending),
                                   .gamma = build_weight(b, norm->weight) + skipped,
                                   .dgamma = build_gradient_of(b, norm->weight) + skipped,
                                   .dbeta = build_gradient_of(b, norm->bias) + skipped,
                                   .weight = (const float *)l->weight,
                                   .block = (const struct batch_block *)l->batch_block,
                                   .state = (const struct step_state *)l->state,
                                   .images = l->options->batch,
                                   .pixels = build_pixels(b, buffer),
                                   .x_ld = l->tensor[buffer].ld,
                                   .gradient_ld = l->tensor[buffer].ld,
                                   .epsilon = GRAPH_NORM_EPSILON};
    struct build_pair m = build_moments(b, buffer, pending->first), by = build_write_means(b, &read, &a.add);

    a.by_beta = by.one;
    a.by_gamma = by.two;
    a.mean = m.one;
    a.variance = m.two;
    if (s->channels > 0) {
        a.first = s->first - pending->first;
        a.channels = s->channels;
        a.x = build_read(b, s);
        a.gradient = build_read_gradient(b, s);
    }
    if (skipped == 0) { /* the gradients of the first channels come last */
        build_mark_made(b, norm->weight);
        build_mark_made(b, norm->bias);
    }
    *pending = build_no_sums();
    return a;
}

static void
launch_finalize(struct cuda_builder *b, unsigned buffer, const struct graph_slice *s)
{
    struct build_sums *pending = &b->pending[buffer];
    unsigned groups = cuda_blocks(s->channels, NORM_CHANNELS), all = cuda_blocks(pending->channels, NORM_CHANNELS);
    unsigned strides = groups > 0 ? build_pixel_blocks(b, build_all_pixels(b, buffer), s->channels) : 0;
    struct build_readers readers = build_norm_readers(b, CUDA_NORM_FINALIZE, 1, pending->channels);
    struct cuda_op op;

    readers.blocks += groups * strides;
    build_reduce_sums(b, pending, &readers);
    op = build_op(b, CUDA_NORM_FINALIZE, all + groups * strides);
    op.args.norm_finalize = finalize_args(b, buffer, s);
    build_mark_final(b, &op);
    build_launch(b, op);
}

void
build_finalize_pending(struct cuda_builder *b, const struct graph_node *norm)
{
    if (b->pending[norm->in.buffer].piece != BUILD_NONE)
        launch_finalize(b, norm->in.buffer, &nothing);
}

struct channel_sums
build_second_gradient_sums(struct cuda_builder *b, const struct graph_node *norm, const struct graph_slice *s,
                           unsigned blocks, struct build_sums *too)
{
    *too = build_allocate_sums(b, blocks, s->channels);
    too->norm = norm;
    too->first = s->first;
    return build_sums_at(b, too);
}

struct channel_sums
build_norm_gradient_sums(struct cuda_builder *b, const struct graph_node *norm, const struct graph_slice *s,
                         unsigned blocks)
{
    return build_second_gradient_sums(b, norm, s, blocks, &b->pending[s->buffer]);
}

void
build_finalize_second(struct cuda_builder *b, const struct build_sums *too)
{
    struct build_sums *pending = &b->pending[too->norm->in.buffer], other = *pending;

    *pending = *too;
    launch_finalize(b, too->norm->in.buffer, &nothing);
    *pending = other;
}

/* Are the unreduced partial sums from a BN that has read this slice? */
static bool
is_pending(const struct cuda_builder *b, const struct graph_slice *s)
{
    const struct build_sums *pending = &b->pending[s->buffer];

    return pending->norm && pending->piece != BUILD_NONE && s->first >= pending->first &&
           s->first + s->channels <= pending->first + pending->channels;
}

void
build_finalize(struct cuda_builder *b, const struct graph_slice *s)
{
    if (b->status != CHEX_OK || !cuda_fold_norm_of(b->graph, s))
        return;
    if (!is_pending(b, s)) {
        build_fail(b, CHEX_ERR_UNSUPPORTED, "the last normalisation of its output is not the last to read it");
        return;
    }
    launch_finalize(b, s->buffer, s);
}

bool
build_can_finalize_in_prologue(const struct cuda_builder *b, const struct graph_slice *s)
{
    const struct build_sums *pending = &b->pending[s->buffer];

    return b->status == CHEX_OK && pending->norm && pending->piece != BUILD_NONE &&
           pending->norm->in.first == s->first && pending->first == s->first && pending->channels == s->channels;
}

void
build_reduce_before_finalize(struct cuda_builder *b, const struct graph_slice *s, const struct build_readers *readers)
{
    build_reduce_sums(b, &b->pending[s->buffer], readers);
}

struct finalize_view
build_finalize_in_prologue(struct cuda_builder *b, const struct graph_slice *s)
{
    const struct cuda_layout *l = b->layout;
    struct build_sums *pending = &b->pending[s->buffer];
    const struct graph_node *norm = pending->norm;
    struct build_pair m = build_moments(b, s->buffer, s->first), by = build_read_means(b, s);
    struct finalize_view f = {.values = build_read(b, s),
                              .mean = m.one,
                              .variance = m.two,
                              .by_beta = by.one,
                              .by_gamma = by.two,
                              .sums = build_sums_at(b, pending),
                              .gamma = build_weight(b, norm->weight),
                              .dgamma = build_gradient_of(b, norm->weight),
                              .dbeta = build_gradient_of(b, norm->bias),
                              .state = (const struct step_state *)l->state,
                              .block = (const struct batch_block *)l->batch_block,
                              .values_ld = l->tensor[s->buffer].ld,
                              .epsilon = GRAPH_NORM_EPSILON};

    b->layout->unfinished[b->node] = true;
    build_mark_made(b, norm->weight);
    build_mark_made(b, norm->bias);
    *pending = build_no_sums();
    return f;
}

/* ---- gradients of weights ---------------------------------------------------------------------------------------- */

void
build_reduce_splits(struct cuda_builder *b)
{
    const struct cuda_layout *l = b->layout;
    const struct cuda_table *table = &l->table[CUDA_TABLE_SPLITS];
    struct splits_entry *entry = (struct splits_entry *)table->host + b->splits;
    unsigned blocks = 0;
    struct cuda_op op;
    size_t i;

    if (b->partials == 0)
        return;
    for (i = 0; i < b->partials; i++) {
        struct splits_entry *e = &entry[i];

        *e = b->partial[i].entry;
        e->partial = build_at(b, b->partial[i].piece);
        e->first_block = blocks;
        blocks += cuda_sum_blocks(e);
        build_mark_made(b, b->partial[i].weight);
    }
    op = build_op(b, CUDA_SUM_ALL, blocks);
    op.node = CUDA_NO_NODE;
    op.args.sum_all = (struct sum_all_args){.entry = (const struct splits_entry *)table->at + b->splits,
                                            .gradient = (float *)l->arena[ARENA_GRADIENTS],
                                            .block = (const struct batch_block *)l->batch_block,
                                            .state = (const struct step_state *)l->state,
                                            .entries = (unsigned)b->partials};
    build_mark_final(b, &op);
    build_launch(b, op);
    b->splits += b->partials;
    b->partials = b->partial_bytes = b->partial_floats = 0;
}

struct build_splits
build_allocate_splits(struct cuda_builder *b, size_t count, unsigned splits)
{
    size_t bytes = count * PARTIAL_SIZE(splits, b->layout->chip.value_bytes);

    return (struct build_splits){.piece = build_allocate(b, bytes), .count = count, .bytes = bytes, .splits = splits};
}

void
build_reduce_splits_later(struct cuda_builder *b, const struct graph_node *conv, const struct build_splits *s)
{
    const struct graph_tensor *t = &b->graph->param[conv->weight];
    bool last = t->offset + t->count <= CUDA_FRONT, ranks = !build_is_single_rank(b);

    if (ranks && last && b->partials > 0 && b->partial[0].entry.gradient >= CUDA_FRONT)
        build_reduce_splits(b);
    b->partial[b->partials++] = (struct build_partial){.piece = s->piece,
                                                       .weight = conv->weight,
                                                       .entry = {.gradient = t->offset,
                                                                 .out = conv->out.channels,
                                                                 .in = conv->in.channels,
                                                                 .taps = conv->kernel * conv->kernel,
                                                                 .splits = s->splits,
                                                                 .stem = build_is_stem(b, conv)}};
    b->partial_bytes += s->bytes;
    b->partial_floats += t->count;
    if ((ranks && b->partial_floats >= CUDA_BUCKET) || b->partial_bytes >= PARTIAL_BYTES)
        build_reduce_splits(b);
}
