/*
 * graph.c - builds and checks graphs, and computes their figures; see graph.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- building -------------------------------------------------------------------------------------------------- */

unsigned
graph_side(unsigned side, unsigned kernel, unsigned stride, unsigned pad)
{
    return side + 2 * pad < kernel ? 0 : (side + 2 * pad - kernel) / stride + 1;
}

struct graph_slice
graph_slice(unsigned buffer, unsigned first, unsigned channels)
{
    return (struct graph_slice){buffer, first, channels};
}

struct graph_slice
graph_whole(const struct graph_builder *b, unsigned buffer)
{
    return graph_slice(buffer, 0, b->failed ? 0 : b->graph->buffer[buffer].channels);
}

/* Grow an array of the graph by one element; returns NULL and sets `failed` if memory runs out. */
static void *
add_one(struct graph_builder *b, void **array, size_t *capacity, size_t *count, size_t size)
{
    void *grown = b->failed ? NULL : array_grow(*array, capacity, *count, size);
    char *added;

    if (!grown) {
        b->failed = true;
        return NULL;
    }
    *array = grown;
    added = (char *)grown + *count * size;
    memset(added, 0, size);
    (*count)++;
    return added;
}

unsigned
graph_add_buffer(struct graph_builder *b, unsigned channels, unsigned height, unsigned width)
{
    struct graph *g = b->graph;
    struct graph_buffer *buffer = add_one(b, (void **)&g->buffer, &g->buffer_capacity, &g->buffer_count,
                                          sizeof(*buffer));

    if (!buffer)
        return 0;
    *buffer = (struct graph_buffer){channels, height, width};
    return (unsigned)(g->buffer_count - 1);
}

static struct graph_node *
add_node(struct graph_builder *b, enum graph_op op, struct graph_slice in, struct graph_slice out)
{
    struct graph *g = b->graph;
    struct graph_node *node = add_one(b, (void **)&g->node, &g->node_capacity, &g->node_count, sizeof(*node));

    if (node)
        *node = (struct graph_node){.op = op, .in = in, .out = out, .kernel = 1, .stride = 1};
    return node;
}

/* Append to the parameters or to the running statistics; returns the index. */
static unsigned
add_tensor(struct graph_builder *b, const char *prefix, const char *suffix, enum graph_role role, unsigned rank,
           const unsigned *shape)
{
    struct graph *g = b->graph;
    bool stat = role == GRAPH_MEAN || role == GRAPH_VARIANCE;
    size_t *count = stat ? &g->stat_count : &g->param_count;
    size_t *floats = stat ? &g->stat_floats : &g->param_floats;
    struct graph_tensor *t = add_one(b, (void **)(stat ? &g->stat : &g->param),
                                     stat ? &g->stat_capacity : &g->param_capacity, count, sizeof(*t));
    unsigned i;

    if (!t)
        return 0;
    if ((size_t)snprintf(t->name, sizeof(t->name), "%s.%s", prefix, suffix) >= sizeof(t->name))
        b->failed = true;
    t->role = role;
    t->rank = rank;
    t->count = 1;
    for (i = 0; i < rank; i++) {
        t->shape[i] = shape[i];
        t->count *= shape[i];
    }
    t->offset = *floats;
    *floats += t->count;
    return (unsigned)(*count - 1);
}

void
graph_add_conv(struct graph_builder *b, const char *prefix, struct graph_slice in, struct graph_slice out,
               unsigned kernel, unsigned stride, unsigned pad)
{
    const unsigned shape[] = {out.channels, in.channels, kernel, kernel};
    struct graph_node *node = add_node(b, GRAPH_CONV, in, out);

    if (!node)
        return;
    node->kernel = kernel;
    node->stride = stride;
    node->pad = pad;
    node->weight = add_tensor(b, prefix, "weight", GRAPH_WEIGHT, 4, shape);
}

void
graph_add_norm(struct graph_builder *b, const char *prefix, struct graph_slice in, struct graph_slice out, bool relu)
{
    const unsigned shape[] = {in.channels};
    struct graph_node *node = add_node(b, GRAPH_NORM, in, out);

    if (!node)
        return;
    node->relu = relu;
    node->weight = add_tensor(b, prefix, "weight", GRAPH_GAMMA, 1, shape);
    node->bias = add_tensor(b, prefix, "bias", GRAPH_BETA, 1, shape);
    node->mean = add_tensor(b, prefix, "running_mean", GRAPH_MEAN, 1, shape);
    node->variance = add_tensor(b, prefix, "running_var", GRAPH_VARIANCE, 1, shape);
}

void
graph_add_linear(struct graph_builder *b, const char *prefix, struct graph_slice in, struct graph_slice out)
{
    const unsigned shape[] = {out.channels, in.channels};
    struct graph_node *node = add_node(b, GRAPH_LINEAR, in, out);

    if (!node)
        return;
    node->weight = add_tensor(b, prefix, "weight", GRAPH_WEIGHT, 2, shape);
    node->bias = add_tensor(b, prefix, "bias", GRAPH_BIAS, 1, shape);
}

void
graph_add_pool(struct graph_builder *b, enum graph_op op, struct graph_slice in, struct graph_slice out,
               unsigned kernel, unsigned stride, unsigned pad)
{
    struct graph_node *node = add_node(b, op, in, out);

    if (!node)
        return;
    node->kernel = kernel;
    node->stride = stride;
    node->pad = pad;
}

void
graph_add_sum(struct graph_builder *b, struct graph_slice in, struct graph_slice in2, struct graph_slice out, bool relu)
{
    struct graph_node *node = add_node(b, GRAPH_ADD, in, out);

    if (!node)
        return;
    node->in2 = in2;
    node->relu = relu;
}

/* ---- figures --------------------------------------------------------------------------------------------------- */

double
graph_flops(const struct graph *g)
{
    double flops = 0;
    size_t i;

    for (i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->node[i];
        const struct graph_buffer *out = &g->buffer[n->out.buffer];

        if (n->op == GRAPH_CONV || n->op == GRAPH_LINEAR)
            flops += 2.0 * (double)g->param[n->weight].count * out->height * out->width;
    }
    return flops;
}

bool
graph_find_head(const struct graph *g, struct graph_head *out)
{
    const struct graph_node *mean = NULL, *linear = NULL;
    size_t i;

    for (i = 0; i < g->node_count; i++)
        if (g->node[i].op == GRAPH_LINEAR && g->node[i].out.buffer == g->output)
            linear = &g->node[i];
    for (i = 0; linear && i < g->node_count; i++)
        if (g->node[i].op == GRAPH_MEAN_POOL && graph_slice_same(&g->node[i].out, &linear->in))
            mean = &g->node[i];
    *out = (struct graph_head){.mean = mean, .linear = linear};
    if (!mean || linear->out.channels != g->buffer[g->output].channels)
        return false;
    out->outputs = linear->out.channels;
    out->channels = mean->in.channels;
    out->height = g->buffer[mean->in.buffer].height;
    out->width = g->buffer[mean->in.buffer].width;
    out->pixels = (size_t)out->height * out->width;
    out->map_floats = out->outputs * out->pixels;
    return true;
}

size_t
graph_activations(const struct graph *g)
{
    size_t floats = 0, i;

    for (i = 0; i < g->buffer_count; i++)
        floats += (size_t)g->buffer[i].channels * g->buffer[i].height * g->buffer[i].width;
    return floats;
}

/* ---- checks ---------------------------------------------------------------------------------------------------- */

static enum chex_status
bad_node(const struct graph *g, size_t node, const char *why, struct chex_error *err)
{
    return error_set(err, CHEX_ERR_BUG, "%s, node %zu: %s", g->model, node, why);
}

static bool
inside(const struct graph *g, const struct graph_slice *s)
{
    return s->buffer < g->buffer_count && s->channels > 0 && s->first <= g->buffer[s->buffer].channels &&
           s->channels <= g->buffer[s->buffer].channels - s->first;
}

static bool
is_side_of(unsigned out, unsigned in, const struct graph_node *n)
{
    return out > 0 && out == graph_side(in, n->kernel, n->stride, n->pad);
}

/* Check the output shape of a node against its input shapes. */
static const char *
shape_fault(const struct graph *g, const struct graph_node *n)
{
    const struct graph_buffer *in = &g->buffer[n->in.buffer], *out = &g->buffer[n->out.buffer];
    bool same_size = in->height == out->height && in->width == out->width;

    switch (n->op) {
    case GRAPH_CONV:
    case GRAPH_MAX_POOL:
    case GRAPH_AVG_POOL:
        if (!is_side_of(out->height, in->height, n) || !is_side_of(out->width, in->width, n))
            return "its output has another size";
        return n->op == GRAPH_CONV || n->in.channels == n->out.channels ? NULL : "a pool keeps the channels";
    case GRAPH_NORM:
        return same_size && n->in.channels == n->out.channels ? NULL : "a normalisation keeps the shape";
    case GRAPH_ADD:
        return same_size && n->in.channels == n->out.channels && inside(g, &n->in2) &&
                       n->in2.channels == n->in.channels && g->buffer[n->in2.buffer].height == in->height &&
                       g->buffer[n->in2.buffer].width == in->width
                   ? NULL
                   : "a sum is of equal shapes";
    case GRAPH_MEAN_POOL:
        return out->height == 1 && out->width == 1 && n->in.channels == n->out.channels ? NULL : "a mean is 1x1";
    case GRAPH_LINEAR:
        return same_size && out->height == 1 && out->width == 1 ? NULL : "a linear layer is 1x1";
    }
    return "no such operation";
}

/* written[buffer] counts channels; a buffer must be written from its first channel on, without gaps. */
static const char *
order_fault(const struct graph *g, const struct graph_node *n, unsigned *written)
{
    if (!inside(g, &n->in) || !inside(g, &n->out))
        return "a slice outside of its buffer";
    if (n->in.first + n->in.channels > written[n->in.buffer])
        return "it reads what is not written yet";
    if (n->op == GRAPH_ADD && (!inside(g, &n->in2) || n->in2.first + n->in2.channels > written[n->in2.buffer]))
        return "it reads what is not written yet";
    if (n->out.first != written[n->out.buffer])
        return "it leaves a gap, or writes twice";
    written[n->out.buffer] += n->out.channels;
    return NULL;
}

enum chex_status
graph_check(const struct graph *g, struct chex_error *err)
{
    unsigned *written = calloc(g->buffer_count ? g->buffer_count : 1, sizeof(*written));
    const char *fault = NULL;
    size_t i;

    if (!written)
        return error_memory(err);
    written[g->input] = g->buffer[g->input].channels;
    for (i = 0; i < g->node_count && !fault; i++) {
        fault = order_fault(g, &g->node[i], written);
        if (!fault)
            fault = shape_fault(g, &g->node[i]);
    }
    if (fault) {
        free(written);
        return bad_node(g, i - 1, fault, err);
    }
    for (i = 0; i < g->buffer_count && !fault; i++)
        if (written[i] != g->buffer[i].channels)
            fault = "a buffer that is not wholly written";
    free(written);
    return fault ? bad_node(g, g->node_count, fault, err) : CHEX_OK;
}

/* ---- graph_free, graph_new, graph_find --------------------------------------------------------------------------- */

void
graph_free(struct graph *g)
{
    if (!g)
        return;
    free(g->buffer);
    free(g->node);
    free(g->param);
    free(g->stat);
    free(g);
}

const struct graph_tensor *
graph_find(const struct graph *g, const char *name)
{
    size_t i;

    for (i = 0; i < g->param_count; i++)
        if (strcmp(g->param[i].name, name) == 0)
            return &g->param[i];
    for (i = 0; i < g->stat_count; i++)
        if (strcmp(g->stat[i].name, name) == 0)
            return &g->stat[i];
    return NULL;
}
