/*
 * tables.c - the tables of a plan, and its permanent memory except arenas and slots; see build.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/build.h"

#include <stdlib.h>

/* Makes a table of `count` zeroed entries; with count 0 there is none. */
static void *
make_table(struct cuda_builder *b, enum cuda_table_id id, size_t count, size_t size)
{
    struct cuda_table *t = &b->layout->table[id];

    if (b->status != CHEX_OK)
        return NULL;
    *t = (struct cuda_table){.at = build_reserve(b, count, size), .bytes = count * size};
    t->host = count > 0 ? calloc(count, size) : NULL;
    if (count > 0 && !t->host)
        b->status = error_memory(b->err);
    return t->host;
}

static size_t
count_nodes(const struct graph *g, enum graph_op op)
{
    size_t count = 0, i;

    for (i = 0; i < g->node_count; i++)
        count += g->node[i].op == op;
    return count;
}

struct pack_entry
build_pack_entry(const struct cuda_builder *b, const struct graph_node *conv, void *packed)
{
    return (struct pack_entry){.master = b->graph->param[conv->weight].offset,
                               .packed = packed,
                               .out = conv->out.channels,
                               .in = conv->in.channels,
                               .taps = conv->kernel * conv->kernel,
                               .stem = build_is_stem(b, conv)};
}

/* The table of all packed weights and their addresses. */
static void
make_packed(struct cuda_builder *b)
{
    const struct graph *g = b->graph;
    struct pack_entry *e = make_table(b, CUDA_TABLE_PACK, count_nodes(g, GRAPH_CONV), sizeof(*e));
    size_t i, packed;

    for (i = 0; i < g->node_count && b->status == CHEX_OK; i++) {
        const struct graph_node *n = &g->node[i];

        if (n->op != GRAPH_CONV)
            continue;
        *e = build_pack_entry(b, n, NULL);
        e->first_block = b->pack_blocks;
        packed = (size_t)e->out * (e->stem ? 4 * STEM_IN : e->taps * e->in);
        b->packed[i] = build_reserve(b, packed, b->layout->chip.value_bytes);
        e->packed = (void *)b->packed[i];
        b->pack_blocks += cuda_pack_blocks(e);
        e++;
    }
}

/* For each running statistic, the number of pixels per image over which it is computed. */
static void
make_stat_pixels(struct cuda_builder *b)
{
    const struct graph *g = b->graph;
    unsigned *pixels = make_table(b, CUDA_TABLE_STAT_PIXELS, g->stat_floats, sizeof(*pixels));
    size_t i, k;

    for (i = 0; i < g->node_count && b->status == CHEX_OK; i++) {
        const struct graph_node *n = &g->node[i];

        for (k = 0; n->op == GRAPH_NORM && k < n->in.channels; k++) {
            pixels[g->stat[n->mean].offset + k] = build_pixels(b, n->in.buffer);
            pixels[g->stat[n->variance].offset + k] = build_pixels(b, n->in.buffer);
        }
    }
}

static void
make_positive_weight(struct cuda_builder *b)
{
    const double *positive = b->layout->options->loss.positive_weight;
    size_t outputs = positive ? b->graph->buffer[b->graph->output].channels : 0, i;
    float *weight = make_table(b, CUDA_TABLE_POSITIVE_WEIGHT, outputs, sizeof(*weight));

    for (i = 0; b->status == CHEX_OK && i < outputs; i++)
        weight[i] = (float)positive[i];
}

void
build_tables(struct cuda_builder *b)
{
    const struct graph *g = b->graph;

    make_stat_pixels(b);
    make_positive_weight(b);
    (void)make_table(b, CUDA_TABLE_FOLD, b->scoring.entries, sizeof(struct fold_entry)); /* the walk fills it */
    if (!b->layout->options->train)
        return;
    make_packed(b);
    /* The walk fills these. */
    (void)make_table(b, CUDA_TABLE_RUNNING, count_nodes(g, GRAPH_NORM), sizeof(struct running_entry));
    (void)make_table(b, CUDA_TABLE_SPLITS, count_nodes(g, GRAPH_CONV), sizeof(struct splits_entry));
}
