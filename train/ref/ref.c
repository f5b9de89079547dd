/*
 * ref.c - the reference backend: plain C, one thread, every buffer of the graph kept as [image][channel][y][x]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/backend.h"
#include "ref/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plan {
    struct plan_options options;
    const struct graph *graph;
    float **value, **gradient; /* [buffer_count], each [batch][channels][height][width]; gradient only with train */
    float *arena[ARENA_AVERAGE + 1];
    float *mean, *variance; /* of the batch, laid out as the arena of statistics */
    float *logits;          /* [batch][outputs] */
    float *logit_gradient;  /* of the last forward(TRAIN) */
    unsigned images;        /* of the last forward() that are no padding; values and gradients are theirs alone */
    unsigned *place;        /* [batch] where image 0 .. images - 1 stands in the micro-batch */
};

static size_t
image_floats(const struct graph_buffer *b)
{
    return (size_t)b->channels * b->height * b->width;
}

static struct view
view_of(const struct plan *plan, float *const *buffers, const struct graph_slice *s)
{
    const struct graph_buffer *b = &plan->graph->buffer[s->buffer];
    float *data = buffers && buffers[s->buffer] ? buffers[s->buffer] + (size_t)s->first * b->height * b->width : NULL;

    return (struct view){data, image_floats(b), plan->images, s->channels, b->height, b->width};
}

/* ---- making ---------------------------------------------------------------------------------------------------- */

static void
ref_free(struct plan *plan)
{
    size_t i;

    if (!plan)
        return;
    for (i = 0; i < plan->graph->buffer_count; i++) {
        if (plan->value)
            free(plan->value[i]);
        if (plan->gradient)
            free(plan->gradient[i]);
    }
    for (i = 0; i <= ARENA_AVERAGE; i++)
        free(plan->arena[i]);
    free(plan->value);
    free(plan->gradient);
    free(plan->mean);
    free(plan->variance);
    free(plan->logits);
    free(plan->logit_gradient);
    free(plan->place);
    free(plan);
}

static bool
allocate(struct plan *plan)
{
    const struct graph *g = plan->graph;
    const struct plan_options *o = &plan->options;
    size_t i, bytes;

    plan->value = calloc(g->buffer_count, sizeof(*plan->value));
    plan->gradient = calloc(g->buffer_count, sizeof(*plan->gradient));
    plan->mean = calloc(g->stat_floats, sizeof(float));
    plan->variance = calloc(g->stat_floats, sizeof(float));
    plan->logits = calloc((size_t)o->batch * g->buffer[g->output].channels, sizeof(float));
    plan->logit_gradient = calloc((size_t)o->batch * g->buffer[g->output].channels, sizeof(float));
    plan->place = calloc(o->batch, sizeof(*plan->place));
    if (!plan->value || !plan->gradient || !plan->mean || !plan->variance || !plan->logits || !plan->logit_gradient ||
        !plan->place)
        return false;
    for (i = 0; i < g->buffer_count; i++) {
        if (!size_mul(image_floats(&g->buffer[i]) * sizeof(float), o->batch, &bytes))
            return false;
        plan->value[i] = malloc(bytes);
        if (o->train && i != g->input)
            plan->gradient[i] = malloc(bytes);
        if (!plan->value[i] || (o->train && i != g->input && !plan->gradient[i]))
            return false;
    }
    for (i = 0; i <= ARENA_AVERAGE; i++) {
        if (!arena_is_wanted(o, (enum arena_id)i))
            continue;
        plan->arena[i] = calloc(arena_floats(plan->graph, (enum arena_id)i), sizeof(float));
        if (!plan->arena[i])
            return false;
    }
    return true;
}

static enum chex_status
ref_new(const struct plan_options *options, struct plan **out, struct chex_error *err)
{
    struct plan *plan;

    *out = NULL;
    if (options->precision != PRECISION_AUTO && options->precision != PRECISION_FP32)
        return chex_fail(err, CHEX_ERR_UNSUPPORTED, "the reference backend computes in fp32 only");
    plan = calloc(1, sizeof(*plan));
    if (!plan)
        return chex_fail_memory(err);
    plan->options = *options;
    plan->graph = options->graph;
    if (!allocate(plan)) {
        ref_free(plan);
        return chex_fail_memory(err);
    }
    arena_start_statistics(plan->graph, plan->arena[ARENA_STATISTICS]);
    *out = plan;
    return CHEX_OK;
}

static void
ref_memory(const struct plan *plan, struct plan_memory *out)
{
    const struct graph *g = plan->graph;
    uint64_t arena = g->param_floats * sizeof(float), batch = plan->options.batch;
    int i;

    *out = (struct plan_memory){.parameters = arena + 3 * g->stat_floats * sizeof(float),
                                .activations = graph_activations(g) * sizeof(float) * batch};
    if (!plan->options.train)
        return;
    out->activations += (graph_activations(g) - image_floats(&g->buffer[g->input])) * sizeof(float) * batch;
    for (i = ARENA_GRADIENTS; i <= ARENA_AVERAGE; i++)
        out->optimizer += plan->arena[i] ? arena : 0;
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

static void
load_input(struct plan *plan, const struct batch *batch)
{
    const struct graph_buffer *in = &plan->graph->buffer[plan->graph->input];
    size_t source = plan->options.source;
    unsigned n, c, y, x;

    for (n = 0; n < plan->images; n++) {
        const struct crop *crop = &batch->crop[plan->place[n]];
        const uint8_t *from = batch->pixels + plan->place[n] * source * source + crop->y * source + crop->x;
        float *to = plan->value[plan->graph->input] + n * image_floats(in);

        for (c = 0; c < in->channels; c++)
            for (y = 0; y < in->height; y++)
                for (x = 0; x < in->width; x++)
                    *to++ = ((float)from[y * source + (crop->flip ? in->width - 1 - x : x)] / 255 - input_mean[c]) /
                            input_deviation[c];
    }
}

static void
run_norm(struct plan *plan, const struct graph_node *node, enum forward_mode mode)
{
    const struct graph *g = plan->graph;
    const float *params = plan->arena[ARENA_PARAMETERS];
    float *stats = plan->arena[ARENA_STATISTICS];
    size_t m = g->stat[node->mean].offset, v = g->stat[node->variance].offset;
    struct view x = view_of(plan, plan->value, &node->in), y = view_of(plan, plan->value, &node->out);
    bool train = mode == FORWARD_TRAIN;

    if (train) {
        norm_statistics(x, plan->mean + m, plan->variance + v);
        norm_update(x.channels, (size_t)x.images * x.height * x.width, plan->mean + m, plan->variance + v, stats + m,
                    stats + v);
    }
    norm_forward(node, x, train ? plan->mean + m : stats + m, train ? plan->variance + v : stats + v,
                 params + g->param[node->weight].offset, params + g->param[node->bias].offset, y);
}

static void
run_forward(struct plan *plan, const struct graph_node *node, enum forward_mode mode)
{
    const struct graph *g = plan->graph;
    const float *params = plan->arena[ARENA_PARAMETERS];
    struct view x = view_of(plan, plan->value, &node->in), y = view_of(plan, plan->value, &node->out);

    switch (node->op) {
    case GRAPH_CONV:
        conv_forward(node, x, params + g->param[node->weight].offset, y);
        break;
    case GRAPH_NORM:
        run_norm(plan, node, mode);
        break;
    case GRAPH_ADD:
        add_forward(node, x, view_of(plan, plan->value, &node->in2), y);
        break;
    case GRAPH_MAX_POOL:
        max_pool_forward(node, x, y);
        break;
    case GRAPH_AVG_POOL:
        avg_pool_forward(node, x, y);
        break;
    case GRAPH_MEAN_POOL:
        mean_pool_forward(x, y);
        break;
    case GRAPH_LINEAR:
        linear_forward(x, params + g->param[node->weight].offset, params + g->param[node->bias].offset, y);
        break;
    }
}

/* What is of images 0, 1, ..., to their places in the micro-batch; padding becomes 0. */
static void
put_images(const struct plan *plan, const float *from, size_t floats, float *to)
{
    unsigned n;

    memset(to, 0, plan->options.batch * floats * sizeof(*to));
    for (n = 0; n < plan->images; n++)
        memcpy(to + plan->place[n] * floats, from + n * floats, floats * sizeof(*to));
}

static enum chex_status
ref_forward(struct plan *plan, const struct batch *batch, enum forward_mode mode, float *logits, double *loss,
            struct chex_error *err)
{
    const struct graph *g = plan->graph;
    size_t outputs = g->buffer[g->output].channels, count = plan->options.batch, i;
    double sum;

    if (mode == FORWARD_TRAIN && !plan->options.train)
        return chex_fail(err, CHEX_ERR_BUG, "this plan is not for training");
    plan->images = batch_images(batch, plan->options.batch, plan->place);
    load_input(plan, batch);
    for (i = 0; i < g->node_count && plan->images > 0; i++)
        run_forward(plan, &g->node[i], mode);
    put_images(plan, plan->value[g->output], outputs, plan->logits);
    if (logits)
        memcpy(logits, plan->logits, count * outputs * sizeof(float));
    if (batch->label) {
        sum = loss_sum(&plan->options.loss, count, outputs, plan->logits, batch->label, batch->weight, batch->scale,
                       plan->logit_gradient);
        if (loss)
            *loss = sum;
    }
    return CHEX_OK;
}

/* ---- backward -------------------------------------------------------------------------------------------------- */

static void
run_backward(struct plan *plan, const struct graph_node *node)
{
    const struct graph *g = plan->graph;
    const float *params = plan->arena[ARENA_PARAMETERS];
    float *gradients = plan->arena[ARENA_GRADIENTS];
    size_t w = g->param[node->weight].offset, b = g->param[node->bias].offset;
    struct view x = view_of(plan, plan->value, &node->in), dx = view_of(plan, plan->gradient, &node->in);
    struct view y = view_of(plan, plan->value, &node->out), dy = view_of(plan, plan->gradient, &node->out);

    switch (node->op) {
    case GRAPH_CONV:
        conv_backward(node, x, dx, params + w, gradients + w, dy);
        break;
    case GRAPH_NORM:
        norm_backward(node, x, dx, plan->mean + g->stat[node->mean].offset,
                      plan->variance + g->stat[node->variance].offset, params + w, gradients + w, gradients + b, y, dy);
        break;
    case GRAPH_ADD:
        add_backward(node, dx, view_of(plan, plan->gradient, &node->in2), y, dy);
        break;
    case GRAPH_MAX_POOL:
        max_pool_backward(node, x, dx, dy);
        break;
    case GRAPH_AVG_POOL:
        avg_pool_backward(node, dx, dy);
        break;
    case GRAPH_MEAN_POOL:
        mean_pool_backward(dx, dy);
        break;
    case GRAPH_LINEAR:
        linear_backward(x, dx, params + w, gradients + w, gradients + b, dy);
        break;
    }
}

static bool
has_parameters(const struct graph_node *node)
{
    return node->op == GRAPH_CONV || node->op == GRAPH_NORM || node->op == GRAPH_LINEAR;
}

/* The parameters of a node lie side by side: weight, then bias where there is one. */
static size_t
parameter_floats(const struct graph *g, const struct graph_node *node)
{
    return g->param[node->weight].count + (node->op == GRAPH_CONV ? 0 : g->param[node->bias].count);
}

static enum chex_status
ref_backward(struct plan *plan, gradients_ready *ready, void *context, struct chex_error *err)
{
    const struct graph *g = plan->graph;
    size_t batch = plan->options.batch, outputs = image_floats(&g->buffer[g->output]), i;
    enum chex_status status = CHEX_OK;

    for (i = 0; i < g->buffer_count; i++)
        if (plan->gradient[i])
            memset(plan->gradient[i], 0, batch * image_floats(&g->buffer[i]) * sizeof(float));
    for (i = 0; i < plan->images; i++)
        memcpy(plan->gradient[g->output] + i * outputs, plan->logit_gradient + plan->place[i] * outputs,
               outputs * sizeof(float));
    for (i = g->node_count; status == CHEX_OK && i-- > 0;) {
        const struct graph_node *node = &g->node[i];

        if (plan->images > 0)
            run_backward(plan, node);
        if (ready && has_parameters(node))
            status = ready(context, g->param[node->weight].offset, parameter_floats(g, node), err);
    }
    return status;
}

/* ---- arenas ---------------------------------------------------------------------------------------------------- */

static enum chex_status
ref_clear(struct plan *plan, struct chex_error *err)
{
    (void)err;
    memset(plan->arena[ARENA_GRADIENTS], 0, plan->graph->param_floats * sizeof(float));
    return CHEX_OK;
}

static float *
ref_gradients(struct plan *plan)
{
    return plan->arena[ARENA_GRADIENTS];
}

static enum chex_status
ref_update(struct plan *plan, const struct optimizer_step *step, double *norm, struct chex_error *err)
{
    (void)err;
    *norm = optimizer_norm(plan->arena[ARENA_GRADIENTS], plan->graph->param_floats);
    if (*norm - *norm != 0) /* infinite, or no number */
        return CHEX_OK;
    optimizer_apply(&plan->options.optimizer, step, optimizer_clip(step, *norm), plan->graph->param_floats,
                    plan->arena[ARENA_PARAMETERS], plan->arena[ARENA_GRADIENTS], plan->arena[ARENA_MOMENT1],
                    plan->arena[ARENA_MOMENT2], plan->arena[ARENA_AVERAGE]);
    return CHEX_OK;
}

static enum chex_status
ref_write(struct plan *plan, enum arena_id arena, const float *from, struct chex_error *err)
{
    if (!plan->arena[arena])
        return chex_fail(err, CHEX_ERR_BUG, "this plan has no arena %d", (int)arena);
    memcpy(plan->arena[arena], from, arena_floats(plan->graph, arena) * sizeof(float));
    return CHEX_OK;
}

static enum chex_status
ref_read(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err)
{
    if (!plan->arena[arena])
        return chex_fail(err, CHEX_ERR_BUG, "this plan has no arena %d", (int)arena);
    memcpy(to, plan->arena[arena], arena_floats(plan->graph, arena) * sizeof(float));
    return CHEX_OK;
}

static enum chex_status
ref_peek(struct plan *plan, unsigned buffer, bool gradient, float *out, struct chex_error *err)
{
    const float *from = gradient ? plan->gradient[buffer] : plan->value[buffer];

    if (!from)
        return chex_fail(err, CHEX_ERR_UNSUPPORTED, "the gradient of buffer %u is not kept", buffer);
    put_images(plan, from, image_floats(&plan->graph->buffer[buffer]), out);
    return CHEX_OK;
}

static enum chex_status
ref_probe(int device, char *text, size_t size, struct chex_error *err)
{
    (void)device;
    (void)err;
    snprintf(text, size, "CPU, plain C, one thread");
    return CHEX_OK;
}

extern const struct backend backend_ref;

const struct backend backend_ref = {
    .name = "ref",
    .probe = ref_probe,
    .plan_new = ref_new,
    .plan_free = ref_free,
    .memory = ref_memory,
    .write = ref_write,
    .read = ref_read,
    .forward = ref_forward,
    .backward = ref_backward,
    .clear_gradients = ref_clear,
    .gradients = ref_gradients,
    .update = ref_update,
    .peek = ref_peek,
};
