/*
 * plan_build.c - builds tensors and steps from the graph and requests their memory; see cpu_plan.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/cpu_plan.h"

#include <string.h>

static enum chex_status
unsupported(size_t node, const char *what, struct chex_error *err)
{
    return error_set(err, CHEX_ERR_UNSUPPORTED, "the backend cpu does not do node %zu: %s", node, what);
}

/* ---- tensors and steps ----------------------------------------------------------------------------------------- */

static bool
make_tensors(struct plan *plan)
{
    const struct graph *g = plan->graph;
    size_t i;

    for (i = 0; i < g->buffer_count; i++) {
        const struct graph_buffer *b = &g->buffer[i];
        struct tensor *s = &plan->tensor[i];

        *s = (struct tensor){.channels = b->channels,
                             .height = b->height,
                             .width = b->width,
                             .norm = NO_NODE,
                             .pixels = (size_t)b->height * b->width,
                             .first = NO_NODE};
        s->lane = plan_take(plan, b->channels, sizeof(*s->lane));
        if (!s->lane)
            return false;
        memset(s->lane, 0xff, b->channels * sizeof(*s->lane)); /* unassigned: past all blocks */
    }
    plan->tensor[g->input].blocks = 1;
    for (i = 0; i < g->buffer[g->input].channels; i++)
        plan->tensor[g->input].lane[i] = (unsigned)i;
    return true;
}

/* Find the blocks that hold exactly the channels of a slice; false if the slice starts or ends inside a block. */
static bool
find_blocks(const struct tensor *s, const struct graph_slice *slice, unsigned *block, unsigned *blocks, unsigned *last)
{
    unsigned from = s->lane[slice->first], end = s->lane[slice->first + slice->channels - 1],
             next = slice->first + slice->channels;

    *block = from / BLOCK;
    *blocks = end / BLOCK - *block + 1;
    *last = end % BLOCK + 1;
    return from % BLOCK == 0 && (next == s->channels || s->lane[next] / BLOCK > end / BLOCK);
}

static unsigned *
copy_lanes(struct plan *plan, const struct tensor *s, const struct graph_slice *slice, unsigned block)
{
    unsigned *lane = plan_take(plan, slice->channels, sizeof(*lane)), i;

    for (i = 0; lane && i < slice->channels; i++)
        lane[i] = s->lane[slice->first + i] - block * BLOCK;
    return lane;
}

static enum chex_status
make_view(struct plan *plan, size_t node, const struct graph_slice *slice, struct view *in, struct chex_error *err)
{
    struct tensor *s = &plan->tensor[slice->buffer];

    if (!find_blocks(s, slice, &in->block, &in->blocks, &in->last))
        return unsupported(node, "it reads part of what another node writes", err);
    in->lane = copy_lanes(plan, s, slice, in->block);
    in->first = plan_take(plan, in->blocks, sizeof(*in->first));
    if (!in->lane || !in->first)
        return error_memory(err);
    in->from = s;
    if (s->norm != NO_NODE) {
        in->norm = &plan->step[s->norm];
        in->norm_block = in->block;
        in->from = in->norm->in.from;
        in->block += in->norm->in.block;
    }
    in->from->last = node;
    if (slice->buffer == plan->graph->input && plan->graph->node[node].op != GRAPH_CONV)
        return unsupported(node, "only a convolution reads the images", err);
    if (plan->graph->node[node].op == GRAPH_NORM || in->norm)
        in->from->normed = true;
    else
        in->from->plain = true;
    return CHEX_OK;
}

static enum chex_status
make_norm(struct plan *plan, size_t node, struct step *step, struct chex_error *err)
{
    size_t channels = (size_t)step->in.blocks * BLOCK;
    struct tensor *out = step->out;

    if (step->in.norm || out->first != NO_NODE || step->node->out.channels != out->channels)
        return unsupported(node, "a normalisation of what another one has normalised, or one of several in a buffer",
                           err);
    out->norm = node;
    out->blocks = step->in.blocks;
    memcpy(out->lane, step->in.lane, out->channels * sizeof(*out->lane));
    step->mean = plan_take(plan, channels, sizeof(float));
    step->scale = plan_take(plan, channels, sizeof(float));
    step->beta = plan_take(plan, channels, sizeof(float));
    step->gamma = plan_take(plan, channels, sizeof(float));
    return step->mean && step->scale && step->beta && step->gamma &&
                   (!plan->host.options.train ||
                    plan_want(plan, &step->sums, (size_t)plan->host.options.batch * 2 * channels, sizeof(double)))
               ? CHEX_OK
               : error_memory(err);
}

/* Place the output after the existing blocks.  If a node keeps its input channels, they keep their lanes and holes. */
static void
place_output(struct step *step)
{
    const struct graph_node *n = step->node;
    struct tensor *out = step->out;
    bool mixes = n->op == GRAPH_CONV || n->op == GRAPH_LINEAR;
    unsigned i;

    step->out_block = out->blocks;
    step->out_blocks = mixes ? (n->out.channels + BLOCK - 1) / BLOCK : step->in.blocks;
    step->out_last = mixes ? (n->out.channels - 1) % BLOCK + 1 : step->in.last;
    for (i = 0; i < n->out.channels; i++)
        out->lane[n->out.first + i] = out->blocks * BLOCK + (mixes ? i : step->in.lane[i]);
    out->blocks += step->out_blocks;
}

static enum chex_status
make_step(struct plan *plan, size_t node, struct chex_error *err)
{
    const struct graph_node *n = &plan->graph->node[node];
    struct step *step = &plan->step[node];
    enum chex_status status;

    step->node = n;
    step->out = &plan->tensor[n->out.buffer];
    status = make_view(plan, node, &n->in, &step->in, err);
    if (status == CHEX_OK && n->op == GRAPH_ADD)
        status = make_view(plan, node, &n->in2, &step->in2, err);
    if (status == CHEX_OK && n->op == GRAPH_ADD &&
        memcmp(step->in.lane, step->in2.lane, n->in.channels * sizeof(*step->in.lane)) != 0)
        return unsupported(node, "the channels of a sum lie differently", err);
    if (status == CHEX_OK && n->op == GRAPH_NORM)
        return make_norm(plan, node, step, err);
    if (status != CHEX_OK)
        return status;
    place_output(step);
    if (step->out->first == NO_NODE)
        step->out->first = node;
    if (step->out->last < node)
        step->out->last = node;
    step->out_lane = copy_lanes(plan, step->out, &n->out, step->out_block);
    return step->out_lane ? CHEX_OK : error_memory(err);
}

/* ---- memory of the nodes --------------------------------------------------------------------------------------- */

static bool
make_conv(struct plan *plan, struct step *step)
{
    size_t floats;

    if (!conv_geometry(plan, step))
        return false;
    floats = conv_weight_floats(step);
    if (floats * step->conv.splits > plan->weight_gradient_floats)
        plan->weight_gradient_floats = floats * step->conv.splits;
    return true;
}

static bool
make_statistics(struct plan *plan, struct tensor *s)
{
    size_t channels = (size_t)s->blocks * BLOCK;

    s->mean = plan_take(plan, channels, sizeof(float));
    s->inverse = plan_take(plan, channels, sizeof(float));
    s->variance = plan_take(plan, channels, sizeof(double));
    s->b = plan_take(plan, channels, sizeof(double));
    s->c = plan_take(plan, channels, sizeof(double));
    s->finish = plan_take(plan, 3 * channels, sizeof(float));
    return s->mean && s->inverse && s->variance && s->b && s->c && s->finish;
}

/* Size the workspace that all nodes share: as large as the largest request. */
static bool
find_workspace(struct plan *plan)
{
    size_t i, floats, doubles;

    for (i = 0; i < plan->graph->node_count; i++) {
        struct step *step = &plan->step[i];

        if (step->node->op == GRAPH_NORM)
            continue;
        if (step->node->op == GRAPH_CONV && !make_conv(plan, step))
            return false;
        floats = step->node->op == GRAPH_CONV ? (conv_scratch(plan, step) + sizeof(float) - 1) / sizeof(float)
                                              : pool_scratch(step);
        if (floats > plan->scratch_floats)
            plan->scratch_floats = floats;
        doubles = statistics_units(step, plan->host.options.batch) * 3 * step->out_blocks * BLOCK;
        if (step->out->normed && doubles > plan->partial_doubles)
            plan->partial_doubles = doubles;
    }
    /* An odd number of cache lines, so that the scratch areas of the threads map to different cache sets. */
    plan->scratch_floats = (plan->scratch_floats + BLOCK - 1) / BLOCK * BLOCK + BLOCK;
    return true;
}

static bool
make_workspace(struct plan *plan)
{
    const struct graph *g = plan->graph;
    size_t outputs = (size_t)plan->host.options.batch * g->buffer[g->output].channels, i;

    if (!find_workspace(plan) ||
        !plan_want(plan, &plan->scratch, plan->host.options.threads * plan->scratch_floats, sizeof(float)) ||
        !plan_want(plan, &plan->logits, outputs, sizeof(float)) ||
        (plan->host.options.maps &&
         !plan_want(plan, &plan->map, plan->host.options.batch * plan->head.map_floats, sizeof(double))) ||
        !plan_want(plan, &plan->place, plan->host.options.batch, sizeof(*plan->place)))
        return false;
    for (i = 0; i < g->buffer_count && plan->host.options.train; i++) {
        struct tensor *s = &plan->tensor[i];

        s->accumulated = plan_take(plan, s->blocks, sizeof(*s->accumulated));
        if (!s->accumulated || (s->normed && !make_statistics(plan, s)))
            return false;
    }
    return !plan->host.options.train ||
           (plan_want(plan, &plan->partial, plan->partial_doubles, sizeof(double)) &&
            plan_want(plan, &plan->weight_gradients, plan->weight_gradient_floats, sizeof(float)) &&
            plan_want(plan, &plan->logit_gradient, outputs, sizeof(float)));
}

static bool
want_array(void *context, void *where, size_t count, size_t size)
{
    return plan_want(context, where, count, size);
}

enum chex_status
plan_build(struct plan *plan, struct chex_error *err)
{
    const struct graph *g = plan->graph;
    enum chex_status status = CHEX_OK;
    size_t i;

    (void)graph_find_head(g, &plan->head); /* host_facts() has refused maps of a network without a head */
    plan->tensor = plan_take(plan, g->buffer_count, sizeof(*plan->tensor));
    plan->step = plan_take(plan, g->node_count, sizeof(*plan->step));
    if (!plan->tensor || !plan->step || !make_tensors(plan))
        return error_memory(err);
    for (i = 0; i < g->node_count && status == CHEX_OK; i++)
        status = make_step(plan, i, err);
    if (status != CHEX_OK)
        return status;
    for (i = 0; i < g->buffer_count; i++)
        if (plan->tensor[i].normed && plan->tensor[i].plain)
            return unsupported(plan->tensor[i].last, "its input is also read without normalisation", err);
    if (!host_arrays(&plan->host, want_array, plan) || !make_workspace(plan) || !plan_want_activations(plan))
        return error_memory(err);
    return CHEX_OK;
}
