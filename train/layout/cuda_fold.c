/*
 * cuda_fold.c - see cuda_fold.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "layout/cuda_fold.h"

#include <stdlib.h>

static bool
meets(const struct graph_slice *a, const struct graph_slice *b)
{
    return a->buffer == b->buffer && a->first < b->first + b->channels && b->first < a->first + a->channels;
}

static bool
is_same(const struct graph_slice *a, const struct graph_slice *b)
{
    return a->buffer == b->buffer && a->first == b->first && a->channels == b->channels;
}

/* Is there a kernel that normalises and does this node? */
static bool
can_read_through(const struct graph_node *n)
{
    switch (n->op) {
    case GRAPH_CONV:
    case GRAPH_MEAN_POOL:
        return true;
    case GRAPH_MAX_POOL:
        return n->kernel == 3 && n->stride == 2 && n->pad == 1;
    case GRAPH_AVG_POOL:
        return n->kernel == 2 && n->stride == 2 && n->pad == 0;
    default:
        return false;
    }
}

/* The node that alone reads what a normalisation makes, if it can do so without a written tensor. */
static const struct graph_node *
only_reader(const struct graph *g, const struct graph_node *norm)
{
    const struct graph_node *reader = NULL;
    size_t i;

    for (i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->node[i];

        if (n->op == GRAPH_ADD && meets(&n->in2, &norm->out))
            return NULL;
        if (!meets(&n->in, &norm->out))
            continue;
        if (reader || !is_same(&n->in, &norm->out) || !can_read_through(n))
            return NULL;
        reader = n;
    }
    return reader;
}

enum chex_status
cuda_fold_make(struct cuda_fold *f, const struct graph *g, const bool *plain, struct chex_error *err)
{
    size_t i;

    f->norm = calloc(g->node_count ? g->node_count : 1, sizeof(const struct graph_node *));
    f->reader = calloc(g->node_count ? g->node_count : 1, sizeof(const struct graph_node *));
    if (!f->norm || !f->reader)
        return error_memory(err);
    for (i = 0; i < g->node_count; i++) {
        if (g->node[i].op != GRAPH_NORM)
            continue;
        f->reader[i] = only_reader(g, &g->node[i]);
        if (f->reader[i] && plain[f->reader[i] - g->node])
            f->reader[i] = NULL;
        if (f->reader[i])
            f->norm[f->reader[i] - g->node] = &g->node[i];
    }
    return CHEX_OK;
}

void
cuda_fold_free(struct cuda_fold *f)
{
    free((void *)f->norm);
    free((void *)f->reader);
    *f = (struct cuda_fold){.norm = NULL};
}

const struct graph_node *
cuda_fold_norm_of(const struct graph *g, const struct graph_slice *s)
{
    size_t i;

    for (i = 0; i < g->node_count; i++)
        if (g->node[i].op == GRAPH_NORM && meets(&g->node[i].in, s))
            return &g->node[i];
    return NULL;
}
