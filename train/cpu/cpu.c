/*
 * cpu.c - the CPU backend behind the seam of backend.h; cpu_plan.h says how it works
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/cpu_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 1024

/* ---- plans ----------------------------------------------------------------------------------------------------- */

static void
cpu_free(struct plan *plan)
{
    size_t i;

    if (!plan)
        return;
    team_free(plan->team);
    for (i = 0; i < plan->owned_count; i++)
        free(plan->owned[i]);
    free(plan->owned);
    free(plan->wanted);
    free(plan);
}

static enum chex_status
cpu_new(const struct plan_options *options, struct plan **out, struct chex_error *err)
{
    enum chex_status status;
    struct plan *plan;

    *out = NULL;
    if (options->precision != PRECISION_AUTO && options->precision != PRECISION_FP32)
        return chex_fail(err, CHEX_ERR_UNSUPPORTED, "the backend cpu computes in fp32 only");
    if (options->threads == 0 || options->threads > THREADS_MAX)
        return chex_fail(err, CHEX_ERR_UNSUPPORTED, "the backend cpu takes 1 to %d threads, not %u", THREADS_MAX,
                         options->threads);
    plan = calloc(1, sizeof(*plan));
    if (!plan)
        return chex_fail_memory(err);
    plan->options = *options;
    plan->graph = options->graph;
    plan->kernels = kernels_best();
    plan->whole_images = options->batch >= options->threads;
    plan->slots = options->train || !plan->whole_images ? options->batch : options->threads;
    status = plan_build(plan, err);
    if (status == CHEX_OK)
        status = team_new(options->threads, &plan->team, err);
    if (status != CHEX_OK) {
        cpu_free(plan);
        return status;
    }
    arena_start_statistics(plan->graph, plan->arena[ARENA_STATISTICS]);
    *out = plan;
    return CHEX_OK;
}

static void
cpu_memory(const struct plan *plan, struct plan_memory *out)
{
    uint64_t arena = plan->graph->param_floats * sizeof(float);
    int i;

    *out = (struct plan_memory){.parameters = arena + plan->graph->stat_floats * sizeof(float),
                                .activations = plan->activation_floats * sizeof(float)};
    for (i = ARENA_GRADIENTS; i <= ARENA_AVERAGE; i++)
        out->optimizer += plan->arena[i] ? arena : 0;
    out->workspace = plan->bytes - out->parameters - out->optimizer - out->activations;
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

static void
conv_task(void *context, size_t task, unsigned thread)
{
    struct step_tasks *tasks = context;
    unsigned strips = tasks->step->conv.strips;

    conv_forward_strip(tasks->plan, tasks->step, task / strips, (unsigned)(task % strips), thread);
}

static void
simple_task(void *context, size_t image, unsigned thread)
{
    struct step_tasks *tasks = context;

    simple_forward(tasks->plan, tasks->step, image, thread);
}

static void
take_logits(struct plan *plan, size_t image, size_t slot)
{
    const struct store *s = &plan->store[plan->graph->output];
    const float *from = value_of(s, slot, 0);
    unsigned c;

    for (c = 0; c < s->channels; c++)
        plan->logits[plan->place[image] * s->channels + c] = from[s->lane[c]];
}

/* EVALUATE: one image through all nodes. */
static void
image_task(void *context, size_t image, unsigned thread)
{
    struct plan *plan = context;
    size_t i;
    unsigned strip;

    for (i = 0; i < plan->graph->node_count; i++) {
        struct step *step = &plan->step[i];

        if (step->node->op == GRAPH_CONV)
            for (strip = 0; strip < step->conv.strips; strip++)
                conv_forward_strip(plan, step, image, strip, thread);
        else if (step->node->op != GRAPH_NORM)
            simple_forward(plan, step, image, thread);
    }
    take_logits(plan, image, slot_of(plan, image, thread));
}

static void
forward_node(struct plan *plan, struct step *step)
{
    struct step_tasks tasks = {plan, step};
    size_t images = plan->images;

    switch (step->node->op) {
    case GRAPH_NORM:
        norm_prepare(plan, step);
        if (plan->mode == FORWARD_TRAIN)
            norm_running(plan, step);
        return;
    case GRAPH_CONV:
        team_run(plan->team, images * step->conv.strips, conv_task, &tasks);
        break;
    default:
        team_run(plan->team, images, simple_task, &tasks);
        break;
    }
    statistics_finish(plan, step);
}

static void
forward_nodes(struct plan *plan)
{
    size_t i;

    for (i = 0; i < plan->graph->node_count; i++)
        forward_node(plan, &plan->step[i]);
    for (i = 0; i < plan->images; i++)
        take_logits(plan, i, i);
}

static void
forward_images(struct plan *plan)
{
    size_t i;

    for (i = 0; i < plan->graph->node_count; i++)
        if (plan->step[i].node->op == GRAPH_NORM)
            norm_prepare(plan, &plan->step[i]);
    team_run(plan->team, plan->images, image_task, plan);
}

static void
pack_weights(struct plan *plan)
{
    size_t i;

    for (i = 0; i < plan->graph->node_count; i++) {
        struct step_tasks tasks = {plan, &plan->step[i]};

        if (tasks.step->node->op == GRAPH_CONV)
            team_run(plan->team, tasks.step->out_blocks, conv_pack, &tasks);
    }
    plan->packed = true;
}

static void
forward_all(struct plan *plan)
{
    if (!plan->packed)
        pack_weights(plan);
    if (plan->mode == FORWARD_EVALUATE && plan->whole_images)
        forward_images(plan);
    else
        forward_nodes(plan);
}

static enum chex_status
cpu_forward(struct plan *plan, const struct batch *batch, enum forward_mode mode, float *logits, double *loss,
            struct chex_error *err)
{
    size_t outputs = plan->graph->buffer[plan->graph->output].channels;
    double sum;

    if (mode == FORWARD_TRAIN && !plan->options.train)
        return chex_fail(err, CHEX_ERR_BUG, "this plan is not for training");
    plan->batch = batch;
    plan->mode = mode;
    plan->images = batch_images(batch, plan->options.batch, plan->place);
    if (plan->images < plan->options.batch)
        memset(plan->logits, 0, plan->options.batch * outputs * sizeof(float));
    if (plan->images > 0)
        forward_all(plan);
    if (logits)
        memcpy(logits, plan->logits, plan->options.batch * outputs * sizeof(float));
    if (batch->label) {
        sum = loss_sum(&plan->options.loss, plan->options.batch, outputs, plan->logits, batch->label, batch->weight,
                       batch->scale, plan->logit_gradient);
        if (loss)
            *loss = sum;
    }
    return CHEX_OK;
}

/* ---- backward -------------------------------------------------------------------------------------------------- */

static void
begin_backward(struct plan *plan)
{
    const struct graph *g = plan->graph;
    struct store *out = &plan->store[g->output];
    size_t i, n;
    unsigned c;

    for (i = 0; i < g->buffer_count; i++) {
        struct store *s = &plan->store[i];

        memset(s->given, 0, s->blocks * sizeof(*s->given));
        if (!s->normed || !s->b)
            continue;
        memset(s->b, 0, (size_t)s->blocks * BLOCK * sizeof(*s->b));
        memset(s->c, 0, (size_t)s->blocks * BLOCK * sizeof(*s->c));
    }
    for (i = 0; i < g->node_count; i++)
        if (plan->step[i].sums)
            memset(plan->step[i].sums, 0,
                   plan->images * (size_t)2 * plan->step[i].in.blocks * BLOCK * sizeof(*plan->step[i].sums));
    for (n = 0; n < plan->images; n++)
        for (c = 0; c < out->channels; c++)
            gradient_of(out, n, 0)[out->lane[c]] = plan->logit_gradient[plan->place[n] * out->channels + c];
}

static void
backward_node(struct plan *plan, struct step *step)
{
    if (step->node->op == GRAPH_NORM)
        norm_backward_finish(plan, step);
    else if (step->node->op == GRAPH_CONV)
        conv_gradients(plan, step);
    else
        simple_backward(plan, step);
}

static enum chex_status
cpu_backward(struct plan *plan, gradients_ready *ready, void *context, struct chex_error *err)
{
    const struct graph *g = plan->graph;
    enum chex_status status = CHEX_OK;
    size_t i;

    begin_backward(plan);
    for (i = g->node_count; status == CHEX_OK && i-- > 0;) {
        const struct graph_node *node = &g->node[i];

        if (plan->images > 0)
            backward_node(plan, &plan->step[i]);
        if (ready && node->op == GRAPH_CONV)
            status = ready(context, g->param[node->weight].offset, g->param[node->weight].count, err);
        else if (ready && (node->op == GRAPH_NORM || node->op == GRAPH_LINEAR))
            status = ready(context, g->param[node->weight].offset,
                           g->param[node->weight].count + g->param[node->bias].count, err);
    }
    return status;
}

/* ---- arenas ---------------------------------------------------------------------------------------------------- */

static enum chex_status
cpu_clear(struct plan *plan, struct chex_error *err)
{
    (void)err;
    memset(plan->arena[ARENA_GRADIENTS], 0, plan->graph->param_floats * sizeof(float));
    return CHEX_OK;
}

static float *
cpu_gradients(struct plan *plan)
{
    return plan->arena[ARENA_GRADIENTS];
}

#define UPDATE_FLOATS 65536 /* of a task */

struct update {
    struct plan *plan;
    const struct optimizer_step *step;
    double scale;
};

static void
update_task(void *context, size_t task, unsigned thread)
{
    const struct update *u = context;
    float *const *arena = u->plan->arena;
    size_t from = task * UPDATE_FLOATS, left = u->plan->graph->param_floats - from;

    (void)thread;
    optimizer_apply(&u->plan->options.optimizer, u->step, u->scale, left < UPDATE_FLOATS ? left : UPDATE_FLOATS,
                    arena[ARENA_PARAMETERS] + from, arena[ARENA_GRADIENTS] + from, arena[ARENA_MOMENT1] + from,
                    arena[ARENA_MOMENT2] ? arena[ARENA_MOMENT2] + from : NULL,
                    arena[ARENA_AVERAGE] ? arena[ARENA_AVERAGE] + from : NULL);
}

static enum chex_status
cpu_update(struct plan *plan, const struct optimizer_step *step, double *norm, struct chex_error *err)
{
    struct update update = {plan, step, 1};

    (void)err;
    *norm = optimizer_norm(plan->arena[ARENA_GRADIENTS], plan->graph->param_floats);
    if (*norm - *norm != 0) /* infinite, or no number */
        return CHEX_OK;
    update.scale = optimizer_clip(step, *norm);
    plan->packed = false;
    team_run(plan->team, (plan->graph->param_floats + UPDATE_FLOATS - 1) / UPDATE_FLOATS, update_task, &update);
    return CHEX_OK;
}

static enum chex_status
cpu_write(struct plan *plan, enum arena_id arena, const float *from, struct chex_error *err)
{
    if (!plan->arena[arena])
        return chex_fail(err, CHEX_ERR_BUG, "this plan has no arena %d", (int)arena);
    memcpy(plan->arena[arena], from, arena_floats(plan->graph, arena) * sizeof(float));
    plan->packed = plan->packed && arena != ARENA_PARAMETERS;
    return CHEX_OK;
}

static enum chex_status
cpu_read(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err)
{
    if (!plan->arena[arena])
        return chex_fail(err, CHEX_ERR_BUG, "this plan has no arena %d", (int)arena);
    memcpy(to, plan->arena[arena], arena_floats(plan->graph, arena) * sizeof(float));
    return CHEX_OK;
}

static void
peek_channel(const struct store *s, size_t image, unsigned channel, bool gradient, float *out)
{
    size_t lane = s->lane[channel] % BLOCK, p;
    unsigned block = s->lane[channel] / BLOCK;
    const float *value = value_of(s, image, block) + lane,
                *from = gradient ? gradient_of(s, image, block) + lane : value;
    bool unfinished = gradient && s->normed;
    const float *k = unfinished ? s->finish + (size_t)block * 3 * BLOCK + lane : NULL;

    for (p = 0; p < s->pixels; p++) {
        size_t at = p * BLOCK;

        out[p] = unfinished ? k[0] * from[at] + k[BLOCK] * (value[at] - s->mean[s->lane[channel]]) + k[2 * BLOCK]
                            : from[at];
    }
}

/* What is stored; a normalised value never is. */
static enum chex_status
cpu_peek(struct plan *plan, unsigned buffer, bool gradient, float *out, struct chex_error *err)
{
    const struct store *s = &plan->store[buffer];
    size_t floats = (size_t)s->channels * s->pixels, n;
    unsigned c;

    if (!s->value || plan->slots != plan->options.batch || (gradient && !(plan->options.train && plan->options.keep)))
        return chex_fail(err, CHEX_ERR_UNSUPPORTED, "%s of buffer %u is not kept",
                         gradient ? "the gradient" : "the value", buffer);
    memset(out, 0, plan->options.batch * floats * sizeof(*out));
    for (n = 0; n < plan->images; n++)
        for (c = 0; c < s->channels; c++)
            peek_channel(s, n, c, gradient, out + plan->place[n] * floats + c * s->pixels);
    return CHEX_OK;
}

static enum chex_status
cpu_probe(int device, char *text, size_t size, struct chex_error *err)
{
    (void)device;
    (void)err;
    snprintf(text, size, "CPU, %s", kernels_best()->name);
    return CHEX_OK;
}

extern const struct backend backend_cpu;

const struct backend backend_cpu = {
    .name = "cpu",
    .probe = cpu_probe,
    .plan_new = cpu_new,
    .plan_free = cpu_free,
    .memory = cpu_memory,
    .write = cpu_write,
    .read = cpu_read,
    .forward = cpu_forward,
    .backward = cpu_backward,
    .clear_gradients = cpu_clear,
    .gradients = cpu_gradients,
    .update = cpu_update,
    .peek = cpu_peek,
};
