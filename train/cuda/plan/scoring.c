/*
 * scoring.c - weights for scoring, with running statistics folded in; see build.h
 *
 * One launch (fold_weights) computes them at the start of an evaluation.  They are separate from the weights of a step,
 * and all together are one piece of memory.  In a training plan, the piece is live from that launch to the last launch
 * of scoring, and shares memory with pieces of training.  In a plan that only scores, its memory is permanent.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/build.h"

/* Returns the number of values of the packed weights of a convolution. */
static size_t
packed_values(const struct cuda_builder *b, const struct graph_node *n)
{
    size_t in = build_is_stem(b, n) ? (size_t)4 * STEM_IN : (size_t)n->kernel * n->kernel * n->in.channels;

    return n->out.channels * in;
}

static size_t
take_bytes(struct cuda_builder *b, size_t count, size_t size)
{
    size_t at = b->scoring.bytes, bytes;

    if (b->status == CHEX_OK &&
        (!size_mul(count, size, &bytes) || !cuda_align(bytes, &bytes) || !size_add(at, bytes, &b->scoring.bytes)))
        b->status = error_set(b->err, CHEX_ERR_MEMORY, CUDA_TOO_LARGE, b->layout->options->batch);
    return at;
}

void
build_scoring_places(struct cuda_builder *b)
{
    const struct graph *g = b->graph;
    size_t i;

    for (i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->node[i];

        if (n->op == GRAPH_CONV)
            b->scoring.at[i] = take_bytes(b, packed_values(b, n), b->layout->chip.value_bytes);
        else if (n->op == GRAPH_NORM) /* scale and shift, or only a bias */
            b->scoring.at[i] = take_bytes(b, (size_t)(b->scoring.fold.writer[i] ? 1 : 2) * n->out.channels,
                                          sizeof(float));
        b->scoring.entries += n->op == GRAPH_CONV || (n->op == GRAPH_NORM && !b->scoring.fold.writer[i]);
    }
    if (!b->layout->options->train)
        b->scoring.base = build_reserve(b, b->scoring.bytes, 1);
}

static char *
place_of(const struct cuda_builder *b, const struct graph_node *n)
{
    return (char *)(b->scoring.base + b->scoring.at[n - b->graph->node]);
}

const void *
build_scoring_weights(const struct cuda_builder *b, const struct graph_node *conv)
{
    return place_of(b, conv);
}

const float *
build_scoring_bias(const struct cuda_builder *b, const struct graph_node *conv)
{
    return (const float *)(void *)place_of(b, build_norm_after(b, conv));
}

struct build_pair
build_scoring_view(const struct cuda_builder *b, const struct graph_node *norm)
{
    float *scale = (float *)(void *)place_of(b, norm);

    return (struct build_pair){scale, scale + norm->out.channels};
}

static void
add_norm(const struct cuda_builder *b, const struct graph_node *norm, struct fold_entry *e)
{
    const struct graph *g = b->graph;

    e->gamma = g->param[norm->weight].offset;
    e->beta = g->param[norm->bias].offset;
    e->mean = g->stat[norm->mean].offset;
    e->variance = g->stat[norm->variance].offset;
}

/* Fills the entry of a convolution, or of a BN that its consumers apply; returns false for other nodes. */
static bool
fill_entry(const struct cuda_builder *b, const struct graph_node *n, struct fold_entry *e)
{
    const struct graph_node *norm = n->op == GRAPH_CONV ? build_norm_after(b, n) : n;

    if (n->op == GRAPH_CONV) {
        *e = (struct fold_entry){.pack = build_pack_entry(b, n, place_of(b, n))};
        if (norm)
            e->shift = (float *)(void *)place_of(b, norm);
    } else if (n->op == GRAPH_NORM && !b->scoring.fold.writer[n - b->graph->node]) {
        struct build_pair view = build_scoring_view(b, n);

        *e = (struct fold_entry){
            .pack = {.out = n->out.channels, .in = 1, .taps = 1}, .scale = view.one, .shift = view.two};
    } else {
        return false;
    }
    if (norm)
        add_norm(b, norm, e);
    return true;
}

/* Fills the table, after the address of the piece is known; returns the number of CTAs of the launch. */
static unsigned
fill_table(struct cuda_builder *b)
{
    struct fold_entry *e = b->layout->table[CUDA_TABLE_FOLD].host;
    unsigned blocks = 0;
    size_t i;

    for (i = 0; b->status == CHEX_OK && i < b->graph->node_count; i++) {
        const struct graph_node *n = &b->graph->node[i];

        if (!fill_entry(b, n, e))
            continue;
        e->first_block = blocks;
        blocks += build_blocks(b, n->op == GRAPH_CONV ? packed_values(b, n) : n->out.channels, 1, PACK_THREADS);
        e++;
    }
    return blocks;
}

void
build_scoring_weights_all(struct cuda_builder *b, enum arena_id weights)
{
    const struct cuda_layout *l = b->layout;
    struct cuda_op op;

    op = build_op(b, CUDA_FOLD_WEIGHTS, fill_table(b));
    op.args.fold_weights = (struct fold_weights_args){.master = (const float *)l->arena[weights],
                                                      .statistics = (const float *)l->arena[ARENA_STATISTICS],
                                                      .entry = (const struct fold_entry *)l->table[CUDA_TABLE_FOLD].at,
                                                      .entries = (unsigned)b->scoring.entries,
                                                      .epsilon = GRAPH_NORM_EPSILON};
    build_launch(b, op);
}
