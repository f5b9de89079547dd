/*
 * fold.c - see fold.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/fold.h"

#include <stdlib.h>

/* Is there a kernel that applies a BN while it loads the input of this node? */
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

/* Returns the only consumer of a BN if it can apply the BN itself, otherwise NULL. */
static const struct graph_node *
only_reader(const struct graph *g, const struct graph_node *norm)
{
    const struct graph_node *reader = NULL;
    size_t i;

    for (i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->node[i];

        if (n->op == GRAPH_ADD && graph_slice_overlaps(&n->in2, &norm->out))
            return NULL;
        if (!graph_slice_overlaps(&n->in, &norm->out))
            continue;
        if (reader || !graph_slice_same(&n->in, &norm->out) || !can_read_through(n))
            return NULL;
        reader = n;
    }
    return reader;
}

/* Returns the convolution that writes the input of a BN, if the BN is its only consumer; otherwise NULL. */
static const struct graph_node *
only_writer(const struct graph *g, const struct graph_node *norm)
{
    const struct graph_node *writer = NULL;
    size_t i;

    if (norm->in.buffer == g->output)
        return NULL;
    for (i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->node[i];

        if (n != norm && (graph_slice_overlaps(&n->in, &norm->in) ||
                          (n->op == GRAPH_ADD && graph_slice_overlaps(&n->in2, &norm->in))))
            return NULL;
        if (n->op == GRAPH_CONV && graph_slice_same(&n->out, &norm->in))
            writer = n;
    }
    return writer;
}

static bool
allocate(struct cuda_fold *f, const struct graph *g)
{
    size_t count = g->node_count ? g->node_count : 1;

    f->norm = calloc(count, sizeof(*f->norm));
    f->reader = calloc(count, sizeof(*f->reader));
    f->behind = calloc(count, sizeof(*f->behind));
    f->writer = calloc(count, sizeof(*f->writer));
    return f->norm && f->reader && f->behind && f->writer;
}

static void
fold_writers(struct cuda_fold *f, const struct graph *g, const bool *plain)
{
    size_t i;

    for (i = 0; i < g->node_count; i++) {
        const struct graph_node *writer = g->node[i].op == GRAPH_NORM ? only_writer(g, &g->node[i]) : NULL;

        if (!writer || plain[writer - g->node])
            continue;
        f->writer[i] = writer;
        f->behind[writer - g->node] = &g->node[i];
    }
}

static void
fold_readers(struct cuda_fold *f, const struct graph *g, const bool *plain)
{
    size_t i;

    for (i = 0; i < g->node_count; i++) {
        if (g->node[i].op != GRAPH_NORM || f->writer[i])
            continue;
        f->reader[i] = only_reader(g, &g->node[i]);
        if (f->reader[i] && plain[f->reader[i] - g->node])
            f->reader[i] = NULL;
        if (f->reader[i])
            f->norm[f->reader[i] - g->node] = &g->node[i];
    }
}

enum chex_status
cuda_fold_make(struct cuda_fold *f, const struct graph *g, const bool *plain, struct chex_error *err)
{
    if (!allocate(f, g))
        return error_memory(err);
    fold_readers(f, g, plain);
    return CHEX_OK;
}

enum chex_status
cuda_fold_make_scoring(struct cuda_fold *f, const struct graph *g, const bool *plain, struct chex_error *err)
{
    if (!allocate(f, g))
        return error_memory(err);
    fold_writers(f, g, plain);
    fold_readers(f, g, plain);
    return CHEX_OK;
}

void
cuda_fold_free(struct cuda_fold *f)
{
    free((void *)f->norm);
    free((void *)f->reader);
    free((void *)f->behind);
    free((void *)f->writer);
    *f = (struct cuda_fold){.norm = NULL};
}

const struct graph_node *
cuda_fold_norm_of(const struct graph *g, const struct graph_slice *s)
{
    size_t i;

    for (i = 0; i < g->node_count; i++)
        if (g->node[i].op == GRAPH_NORM && graph_slice_overlaps(&g->node[i].in, s))
            return &g->node[i];
    return NULL;
}
