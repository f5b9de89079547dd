/*
 * scale_layers.c - see scale_layers.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/scale_layers.h"

#include <stdlib.h>

static double
elements_of(const struct graph *g, const struct graph_slice *slice)
{
    const struct graph_buffer *b = &g->buffer[slice->buffer];

    return (double)slice->channels * b->height * b->width;
}

static double
parameters_of(const struct graph *g, const struct graph_node *n)
{
    if (n->op == GRAPH_CONV)
        return (double)g->param[n->weight].count;
    if (n->op == GRAPH_NORM || n->op == GRAPH_LINEAR)
        return (double)(g->param[n->weight].count + g->param[n->bias].count);
    return 0;
}

enum chex_status
scale_layers_new(const struct graph *g, struct scale_layer **out, struct chex_error *err)
{
    struct scale_layer *layer = calloc(g->node_count, sizeof(*layer));
    double all = 0;
    size_t i;

    *out = layer;
    if (!layer)
        return error_memory(err);
    for (i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->node[i];

        layer[i] = (struct scale_layer){parameters_of(g, n), elements_of(g, &n->in) + elements_of(g, &n->out)};
        if (n->op == GRAPH_ADD)
            layer[i].share += elements_of(g, &n->in2);
        all += layer[i].share;
    }
    for (i = 0; i < g->node_count; i++)
        layer[i].share /= all;
    return CHEX_OK;
}
