/*
 * eights.c - see eights.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/eights.h"

#include <stdlib.h>
#include <string.h>

static unsigned
up_to_eight(unsigned channels)
{
    return (channels + 7) / 8 * 8;
}

/* ---- slices ------------------------------------------------------------------------------------------------------ */

/* Channel k of a slice, counted from its first one. */
static unsigned
place_in(const struct cuda_eights *e, const struct graph_slice *s, unsigned k)
{
    const unsigned *channel = e->channel[s->buffer] + s->first;

    return channel[k] - channel[0];
}

/* Images have three channels and logits as many as findings: neither is a slab. */
static bool
is_slab(const struct graph *g, unsigned buffer)
{
    return buffer != g->input && buffer != g->output;
}

/* A slice of the original in the graph. */
static struct graph_slice
moved(const struct cuda_eights *e, const struct graph_slice *s)
{
    unsigned channels = place_in(e, s, s->channels - 1) + 1;

    return graph_slice(s->buffer, e->channel[s->buffer][s->first],
                       is_slab(e->original, s->buffer) ? up_to_eight(channels) : channels);
}

/* Does a slice that was written begin and end at multiples of eight, or with what was written so far? */
static bool
is_whole(const struct cuda_eights *e, const struct graph_slice *s)
{
    struct graph_slice m = moved(e, s);

    return !is_slab(e->original, s->buffer) ||
           (m.first % 8 == 0 && (s->first + s->channels == e->original->buffer[s->buffer].channels ||
                                 place_in(e, s, s->channels) % 8 == 0));
}

static bool
same_places(const struct cuda_eights *e, const struct graph_slice *a, const struct graph_slice *b)
{
    unsigned k;

    for (k = 0; k < a->channels; k++)
        if (place_in(e, a, k) != place_in(e, b, k))
            return false;
    return true;
}

/* What a node writes lies behind what its buffer has. */
static void
place_out(struct cuda_eights *e, const struct graph_node *n)
{
    struct graph_buffer *buffer = &e->graph->buffer[n->out.buffer];
    bool mixes = n->op == GRAPH_CONV || n->op == GRAPH_LINEAR;
    unsigned base = is_slab(e->original, n->out.buffer) ? up_to_eight(buffer->channels) : n->out.first, k;

    for (k = 0; k < n->out.channels; k++)
        e->channel[n->out.buffer][n->out.first + k] = base + (mixes ? k : place_in(e, &n->in, k));
    buffer->channels = moved(e, &n->out).first + moved(e, &n->out).channels;
}

/*
 * The first channel that is not written yet has no place: until then it is that of the next multiple of eight, so that
 * is_whole() may ask for it.
 */
static void
place_next(struct cuda_eights *e, const struct graph_node *n)
{
    unsigned next = n->out.first + n->out.channels;

    if (next < e->original->buffer[n->out.buffer].channels)
        e->channel[n->out.buffer][next] = up_to_eight(e->graph->buffer[n->out.buffer].channels);
}

static enum chex_status
place_slices(struct cuda_eights *e, struct chex_error *err)
{
    const struct graph *g = e->original;
    size_t i;

    for (i = 0; i < INPUT_CHANNELS; i++)
        e->channel[g->input][i] = (unsigned)i;
    for (i = 0; i < g->buffer_count; i++)
        e->graph->buffer[i].channels = i == g->input ? g->buffer[i].channels : 0;
    for (i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->node[i];
        struct graph_node *to = &e->graph->node[i];

        if (!is_whole(e, &n->in) || (n->op == GRAPH_ADD && (!is_whole(e, &n->in2) || !same_places(e, &n->in, &n->in2))))
            return error_set(err, CHEX_ERR_UNSUPPORTED,
                             "%s, node %zu: the GPU reads eight channels at once, and what it reads is no such part",
                             g->model, i);
        place_out(e, n);
        place_next(e, n);
        to->in = moved(e, &n->in);
        to->out = moved(e, &n->out);
        if (n->op == GRAPH_ADD)
            to->in2 = moved(e, &n->in2);
    }
    return CHEX_OK;
}

/* ---- parameters and statistics ----------------------------------------------------------------------------------- */

static void
shape_tensor(struct graph_tensor *t, unsigned first, unsigned second)
{
    unsigned i;

    t->shape[0] = first;
    if (t->rank > 1)
        t->shape[1] = second;
    t->count = 1;
    for (i = 0; i < t->rank; i++)
        t->count *= t->shape[i];
}

static void
shape_node(struct graph *g, const struct graph_node *n)
{
    shape_tensor(&g->param[n->weight], n->op == GRAPH_NORM ? n->in.channels : n->out.channels, n->in.channels);
    if (n->op != GRAPH_CONV)
        shape_tensor(&g->param[n->bias], n->out.channels, 0);
    if (n->op != GRAPH_NORM)
        return;
    shape_tensor(&g->stat[n->mean], n->in.channels, 0);
    shape_tensor(&g->stat[n->variance], n->in.channels, 0);
}

static size_t
set_offsets(struct graph_tensor *t, size_t count)
{
    size_t floats = 0, i;

    for (i = 0; i < count; i++) {
        t[i].offset = floats;
        floats += t[i].count;
    }
    return floats;
}

/* One float a channel of a slice. */
static void
map_channels(const struct cuda_eights *e, const struct graph_slice *s, const struct graph_tensor *from,
             const struct graph_tensor *to, uint32_t *at)
{
    unsigned k;

    for (k = 0; k < s->channels; k++)
        at[from->offset + k] = (uint32_t)(to->offset + place_in(e, s, k));
}

static void
map_matrix(const struct cuda_eights *e, const struct graph_node *n, const struct graph_tensor *from,
           const struct graph_tensor *to, uint32_t *at)
{
    size_t taps = from->rank > 2 ? (size_t)from->shape[2] * from->shape[3] : 1, t, next = from->offset;
    unsigned o, i;

    for (o = 0; o < n->out.channels; o++)
        for (i = 0; i < n->in.channels; i++)
            for (t = 0; t < taps; t++)
                at[next++] = (uint32_t)(to->offset + ((size_t)o * to->shape[1] + place_in(e, &n->in, i)) * taps + t);
}

static void
map_node(const struct cuda_eights *e, const struct graph_node *n)
{
    const struct graph_tensor *p = e->original->param, *q = e->graph->param, *s = e->original->stat,
                              *t = e->graph->stat;

    if (n->op == GRAPH_CONV || n->op == GRAPH_LINEAR)
        map_matrix(e, n, &p[n->weight], &q[n->weight], e->param);
    if (n->op == GRAPH_LINEAR)
        map_channels(e, &n->out, &p[n->bias], &q[n->bias], e->param);
    if (n->op != GRAPH_NORM)
        return;
    map_channels(e, &n->in, &p[n->weight], &q[n->weight], e->param);
    map_channels(e, &n->in, &p[n->bias], &q[n->bias], e->param);
    map_channels(e, &n->in, &s[n->mean], &t[n->mean], e->stat);
    map_channels(e, &n->in, &s[n->variance], &t[n->variance], e->stat);
}

/* Nothing has moved where nothing has become longer: places are in their order. */
static void
forget_same(uint32_t **at, size_t before, size_t after)
{
    if (before != after)
        return;
    free(*at);
    *at = NULL;
}

static enum chex_status
map_tensors(struct cuda_eights *e, struct chex_error *err)
{
    const struct graph *g = e->original;
    size_t i;

    for (i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &e->graph->node[i];

        if (n->op == GRAPH_CONV || n->op == GRAPH_NORM || n->op == GRAPH_LINEAR)
            shape_node(e->graph, n);
    }
    e->graph->param_floats = set_offsets(e->graph->param, g->param_count);
    e->graph->stat_floats = set_offsets(e->graph->stat, g->stat_count);
    if (e->graph->param_floats > UINT32_MAX || e->graph->stat_floats > UINT32_MAX)
        return error_set(err, CHEX_ERR_UNSUPPORTED, "%s has more parameters than the GPU counts", g->model);
    e->param = calloc(g->param_floats, sizeof(*e->param));
    e->stat = calloc(g->stat_floats ? g->stat_floats : 1, sizeof(*e->stat));
    if (!e->param || !e->stat)
        return error_memory(err);
    for (i = 0; i < g->node_count; i++)
        map_node(e, &g->node[i]);
    forget_same(&e->param, g->param_floats, e->graph->param_floats);
    forget_same(&e->stat, g->stat_floats, e->graph->stat_floats);
    return CHEX_OK;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static void *
copy_of(const void *from, size_t count, size_t size)
{
    void *to = calloc(count ? count : 1, size);

    if (to && count > 0)
        memcpy(to, from, count * size);
    return to;
}

static bool
copy_graph(struct cuda_eights *e)
{
    const struct graph *g = e->original;
    struct graph *to = e->graph = calloc(1, sizeof(*to));
    size_t i;

    if (!to)
        return false;
    *to = *g;
    to->buffer_capacity = to->node_capacity = to->param_capacity = to->stat_capacity = 0;
    to->buffer = copy_of(g->buffer, g->buffer_count, sizeof(*to->buffer));
    to->node = copy_of(g->node, g->node_count, sizeof(*to->node));
    to->param = copy_of(g->param, g->param_count, sizeof(*to->param));
    to->stat = copy_of(g->stat, g->stat_count, sizeof(*to->stat));
    e->channel = calloc(g->buffer_count, sizeof(*e->channel));
    for (i = 0; e->channel && i < g->buffer_count; i++) {
        e->channel[i] = calloc(g->buffer[i].channels, sizeof(**e->channel));
        if (!e->channel[i])
            return false;
    }
    return to->buffer && to->node && to->param && to->stat && e->channel;
}

enum chex_status
cuda_eights_new(const struct graph *original, struct cuda_eights **out, struct chex_error *err)
{
    struct cuda_eights *e = calloc(1, sizeof(*e));
    enum chex_status status = CHEX_OK;

    *out = NULL;
    if (!e)
        return error_memory(err);
    e->original = original;
    if (!copy_graph(e))
        status = error_memory(err);
    if (status == CHEX_OK)
        status = place_slices(e, err);
    if (status == CHEX_OK)
        status = map_tensors(e, err);
    if (status == CHEX_OK)
        *out = e;
    else
        cuda_eights_free(e);
    return status;
}

void
cuda_eights_free(struct cuda_eights *e)
{
    size_t i;

    if (!e)
        return;
    for (i = 0; e->channel && i < e->original->buffer_count; i++)
        free(e->channel[i]);
    free(e->channel);
    free(e->param);
    free(e->stat);
    graph_free(e->graph);
    free(e);
}

/* ---- arenas ------------------------------------------------------------------------------------------------------ */

void
cuda_eights_spread(const struct cuda_eights *e, enum arena_id arena, const float *from, float *to)
{
    const uint32_t *at = arena == ARENA_STATISTICS ? e->stat : e->param;
    size_t floats = arena_floats(e->original, arena), i;

    if (!at) {
        memcpy(to, from, floats * sizeof(*to));
        return;
    }
    memset(to, 0, arena_floats(e->graph, arena) * sizeof(*to));
    for (i = 0; i < floats; i++)
        to[at[i]] = from[i];
}

void
cuda_eights_gather(const struct cuda_eights *e, enum arena_id arena, const float *from, float *to)
{
    const uint32_t *at = arena == ARENA_STATISTICS ? e->stat : e->param;
    size_t floats = arena_floats(e->original, arena), i;

    for (i = 0; at && i < floats; i++)
        to[i] = from[at[i]];
    if (!at)
        memcpy(to, from, floats * sizeof(*to));
}
