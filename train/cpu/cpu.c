/*
 * cpu.c - implements the backend interface (backend.h) on the CPU; cpu_plan.h explains the model
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "comm/reduce_host.h"
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

static const struct host_ops cpu_ops;

/* Build everything except large memory and threads. */
static enum chex_status
build(const struct device *device, const struct plan_options *o, struct plan **out, struct plan_facts *facts,
      struct chex_error *err)
{
    char algorithms[64];
    enum chex_status status;
    struct plan *plan;

    *out = NULL;
    /* In bf16 the bits are the same for all instruction sets. */
    snprintf(algorithms, sizeof(algorithms), "cpu 1 %s",
             o->precision == PRECISION_BF16 ? "bf16" : kernels_best()->name);
    status = host_facts(device, o, algorithms, facts, err);
    if (status != CHEX_OK)
        return status;
    if (o->threads == 0 || o->threads > THREADS_MAX)
        return error_set(err, CHEX_ERR_UNSUPPORTED, "the backend cpu takes 1 to %d threads, not %u", THREADS_MAX,
                         o->threads);
    plan = calloc(1, sizeof(*plan));
    if (!plan)
        return error_memory(err);
    plan->host.options = *o;
    plan->graph = o->graph;
    plan->kernels = kernels_best();
    plan->products = &plan->kernels->products;
    if (o->precision == PRECISION_BF16)
        plan->kernels = kernels_bf16(&plan->products);
    plan->whole_images = o->batch >= o->threads;
    plan->slots = o->train || !plan->whole_images ? o->batch : o->threads;
    status = plan_build(plan, err);
    if (status == CHEX_OK)
        status = plan_count(plan, &facts->memory, err);
    if (status != CHEX_OK) {
        cpu_free(plan);
        return status;
    }
    *out = plan;
    return CHEX_OK;
}

static enum chex_status
cpu_size(const struct device *device, const struct plan_options *o, struct plan_facts *facts, struct chex_error *err)
{
    struct plan *plan;
    enum chex_status status = build(device, o, &plan, facts, err);

    cpu_free(plan);
    return status;
}

static enum chex_status
cpu_new(struct device *device, const struct plan_options *o, struct plan **out, struct plan_facts *facts,
        struct chex_error *err)
{
    enum chex_status status = build(device, o, out, facts, err);

    if (status == CHEX_OK)
        status = plan_allocate(*out, err);
    if (status == CHEX_OK)
        status = team_new(o->threads, &(*out)->team, err);
    if (status != CHEX_OK) {
        cpu_free(*out);
        *out = NULL;
        return status;
    }
    host_start(&(*out)->host, &cpu_ops);
    return CHEX_OK;
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
    const struct tensor *s = &plan->tensor[plan->graph->output];
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
        if (plan->training)
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
    plan->packed = plan->weights;
}

/* Run the forward pass; computes the logits of the micro-batch. */
static void
pass(struct plan *plan, const struct batch *batch, enum arena_id weights, bool training)
{
    size_t outputs = plan->graph->buffer[plan->graph->output].channels;

    plan->batch = batch;
    plan->weights = plan->host.arena[weights];
    plan->training = training;
    plan->images = batch_images(batch, plan->host.options.batch, plan->place);
    if (plan->images < plan->host.options.batch)
        memset(plan->logits, 0, plan->host.options.batch * outputs * sizeof(float));
    if (plan->map)
        memset(plan->map, 0, plan->host.options.batch * plan->head.map_floats * sizeof(*plan->map));
    if (plan->images == 0)
        return;
    if (plan->packed != plan->weights)
        pack_weights(plan);
    if (!training && plan->whole_images)
        forward_images(plan);
    else
        forward_nodes(plan);
}

static double
cpu_forward(struct plan *plan, const struct batch *batch)
{
    pass(plan, batch, ARENA_PARAMETERS, true);
    return host_loss(plan, batch, plan->logits, plan->logit_gradient);
}

static void
take_maps(const struct plan *plan, float *maps)
{
    size_t floats = plan->head.map_floats, n, i;

    memset(maps, 0, plan->host.options.batch * floats * sizeof(*maps));
    for (n = 0; n < plan->images; n++)
        for (i = 0; i < floats; i++)
            maps[plan->place[n] * floats + i] = (float)plan->map[n * floats + i];
}

static void
cpu_score(struct plan *plan, const struct batch *batch, enum arena_id weights, float *logits, float *maps)
{
    pass(plan, batch, weights, false);
    memcpy(logits, plan->logits,
           plan->host.options.batch * plan->graph->buffer[plan->graph->output].channels * sizeof(float));
    if (maps)
        take_maps(plan, maps);
}

/* ---- backward -------------------------------------------------------------------------------------------------- */

static void
begin_backward(struct plan *plan)
{
    const struct graph *g = plan->graph;
    struct tensor *out = &plan->tensor[g->output];
    size_t i, n;
    unsigned c;

    for (i = 0; i < g->buffer_count; i++) {
        struct tensor *s = &plan->tensor[i];

        memset(s->accumulated, 0, s->blocks * sizeof(*s->accumulated));
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
cpu_backward(struct plan *plan, struct chex_error *err)
{
    const struct graph *g = plan->graph;
    enum chex_status status = CHEX_OK;
    size_t i;

    begin_backward(plan);
    for (i = g->node_count; status == CHEX_OK && i-- > 0;) {
        if (plan->images > 0)
            backward_node(plan, &plan->step[i]);
        status = host_gradients(plan, &g->node[i], err);
    }
    return status;
}

/* ---- the optimizer ----------------------------------------------------------------------------------------------- */

#define UPDATE_FLOATS 65536 /* floats per task */

struct update {
    struct plan *plan;
    const struct optimizer_step *step;
    double scale;
};

static void
update_task(void *context, size_t task, unsigned thread)
{
    const struct update *u = context;
    float *const *arena = u->plan->host.arena;
    size_t from = task * UPDATE_FLOATS, left = u->plan->graph->param_floats - from;

    (void)thread;
    optimizer_apply(&u->plan->host.options.optimizer, u->step, u->scale, left < UPDATE_FLOATS ? left : UPDATE_FLOATS,
                    arena[ARENA_PARAMETERS] + from, arena[ARENA_GRADIENTS] + from, arena[ARENA_MOMENT1] + from,
                    arena[ARENA_MOMENT2] ? arena[ARENA_MOMENT2] + from : NULL,
                    arena[ARENA_AVERAGE] ? arena[ARENA_AVERAGE] + from : NULL);
}

static void
cpu_apply(struct plan *plan, const struct optimizer_step *step, double scale)
{
    struct update update = {plan, step, scale};

    team_run(plan->team, (plan->graph->param_floats + UPDATE_FLOATS - 1) / UPDATE_FLOATS, update_task, &update);
}

static void
cpu_changed(struct plan *plan)
{
    plan->packed = NULL;
}

/* ---- backend interface ------------------------------------------------------------------------------------------- */

static void
peek_channel(const struct tensor *s, size_t image, unsigned channel, bool gradient, float *out)
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

/* Copy a stored value or gradient.  A normalised value is never stored. */
static enum chex_status
cpu_peek(struct plan *plan, unsigned buffer, bool gradient, float *out, struct chex_error *err)
{
    const struct tensor *s = &plan->tensor[buffer];
    size_t floats = (size_t)s->channels * s->pixels, n;
    unsigned c;

    if (buffer == plan->graph->output && !gradient) {
        memcpy(out, plan->logits, plan->host.options.batch * s->channels * sizeof(*out));
        return CHEX_OK;
    }
    if (!s->value || !plan->host.options.keep || plan->slots != plan->host.options.batch ||
        (gradient && !plan->host.options.train))
        return error_set(err, CHEX_ERR_UNSUPPORTED, "%s of buffer %u is not kept",
                         gradient ? "the gradient" : "the value", buffer);
    memset(out, 0, plan->host.options.batch * floats * sizeof(*out));
    for (n = 0; n < plan->images; n++)
        for (c = 0; c < s->channels; c++)
            peek_channel(s, n, c, gradient, out + plan->place[n] * floats + c * s->pixels);
    return CHEX_OK;
}

static const struct host_ops cpu_ops = {
    .forward = cpu_forward, .backward = cpu_backward, .score = cpu_score, .apply = cpu_apply, .changed = cpu_changed};

extern const struct backend backend_cpu;

static enum chex_status
cpu_open(unsigned number, struct device **out, struct chex_error *err)
{
    char text[64];

    (void)number;
    snprintf(text, sizeof(text), "CPU, %s", kernels_best()->name);
    return host_device_open(&backend_cpu, text, out, err);
}

const struct backend backend_cpu = {
    .name = "cpu",
    .device_count = host_device_count,
    .device_open = cpu_open,
    .device_close = host_device_close,
    .reduce_new = reduce_host_new,
    .store_new = host_store_new,
    .store_put = host_store_put,
    .store_free = host_store_free,
    .plan_size = cpu_size,
    .plan_new = cpu_new,
    .plan_free = cpu_free,
    .write = host_write,
    .read = host_read,
    .read_concurrently = host_read,
    .set_state = host_set_state,
    .accumulate = host_accumulate,
    .update = host_update,
    .result = host_result,
    .resume = host_resume,
    .score_start = host_score_start,
    .score_finish = host_score_finish,
    .peek = cpu_peek,
};
