/*
 * host_step.c - implements host.h: a step of a plan in host memory, with its sums over micro-batches and ranks
 *
 * The sums are one array: gradients, statistics, and the tail (loss, labels, faults and requests).  They are summed
 * over the ranks in buckets, from the end of the array; so statistics and tail come first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/host.h"

#include "backend/ranges.h"
#include "base/clock.h"

#include <math.h>
#include <string.h>

#define BUCKET_NUMBERS (1u << 19) /* 4 MiB of gradients per bucket */

/* Indices in the tail. */
enum { TAIL_LOSS, TAIL_LABELS, TAIL_KNOWN, TAIL_FAULTS, TAIL_REQUESTS };

_Static_assert(TAIL_REQUESTS + STEP_REQUESTS == HOST_TAIL, "a number for each request");

static bool
has_peers(const struct host *h)
{
    return h->options.reduce && h->options.reduce->size > 1;
}

/* Add the time since the last call to this part. */
static void
took(struct host *h, enum step_part part)
{
    double now = clock_now(), cpu = clock_process();

    h->now.times.seconds[part] += now - h->at;
    h->now.times.cpu[part] += cpu - h->cpu_at;
    if (h->options.part)
        h->options.part(h->options.context, part, h->at, now);
    h->at = now;
    h->cpu_at = cpu;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* Start the sums of all buckets that are final.  Bucket boundaries depend only on the model. */
static enum chex_status
sum_ready(struct host *h, struct chex_error *err)
{
    struct reduce *r = h->options.reduce;
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && h->left > h->ready) {
        size_t first = (h->left - 1) / BUCKET_NUMBERS * BUCKET_NUMBERS;

        if (first < h->ready)
            break;
        status = r->ops->start(r, h->sum + first, h->left - first, NULL, err);
        h->left = first;
    }
    return status == CHEX_OK ? r->ops->poll(r, err) : status;
}

double
host_loss(const struct plan *plan, const struct batch *batch, const float *logits, float *gradient)
{
    const struct plan_options *o = &((const struct host *)(const void *)plan)->options;

    return loss_sum(&o->loss, o->batch, o->graph->buffer[o->graph->output].channels, logits, batch->label,
                    batch->weight, batch->mix, batch->scale, gradient);
}

/* The parameters of a node are adjacent in the arena: weight, then bias if it has one. */
static size_t
parameter_floats(const struct graph *g, const struct graph_node *node)
{
    return g->param[node->weight].count + (node->op == GRAPH_CONV ? 0 : g->param[node->bias].count);
}

enum chex_status
host_gradients(struct plan *plan, const struct graph_node *node, struct chex_error *err)
{
    struct host *h = host_of(plan);
    const struct graph *g = h->options.graph;
    size_t first, count, i;
    const float *from;
    double *to;

    if (node->op != GRAPH_CONV && node->op != GRAPH_NORM && node->op != GRAPH_LINEAR)
        return CHEX_OK;
    first = g->param[node->weight].offset;
    count = parameter_floats(g, node);
    from = h->arena[ARENA_GRADIENTS] + first;
    to = h->sum ? h->sum + first : NULL;
    for (i = 0; to && i < count; i++)
        to[i] += (double)from[i];
    h->ready = first;
    return h->ended && has_peers(h) ? sum_ready(h, err) : CHEX_OK;
}

/* Statistics and tail are final before the last micro-batch runs backward. */
static enum chex_status
sum_statistics(struct host *h, const struct step_end *end, struct chex_error *err)
{
    const struct graph *g = h->options.graph;
    struct reduce *r = h->options.reduce;
    double *sum = h->sum + g->param_floats, *tail = sum + g->stat_floats;
    size_t i;

    if (end->following > 0)
        arena_fade_statistics(g, h->options.batch, end->following, h->running);
    if (end->rest > 0)
        arena_fade_statistics(g, end->rest, 1, h->running);
    for (i = 0; i < g->stat_floats; i++)
        sum[i] = (double)h->running[i];
    tail[TAIL_LOSS] = h->now.loss;
    tail[TAIL_LABELS] = (double)h->labels.all;
    tail[TAIL_KNOWN] = (double)h->labels.known;
    tail[TAIL_FAULTS] = h->now.faults;
    for (i = 0; i < STEP_REQUESTS; i++)
        tail[TAIL_REQUESTS + i] = h->now.requests >> i & 1;
    h->left = h->ready = g->param_floats;
    return r->ops->start(r, sum, g->stat_floats + HOST_TAIL, NULL, err);
}

static void
take_tail(struct host *h)
{
    const struct graph *g = h->options.graph;
    const double *sum = h->sum + g->param_floats, *tail = sum + g->stat_floats;
    size_t i;

    for (i = 0; i < g->stat_floats; i++)
        h->running[i] = (float)sum[i];
    h->now.loss = tail[TAIL_LOSS];
    h->labels = (struct label_count){(uint64_t)tail[TAIL_LABELS], (uint64_t)tail[TAIL_KNOWN]};
    h->now.faults = (uint32_t)tail[TAIL_FAULTS];
    h->now.requests = 0;
    for (i = 0; i < STEP_REQUESTS; i++)
        h->now.requests |= tail[TAIL_REQUESTS + i] > 0 ? 1u << i : 0;
}

/* Loss and gradients become means over the known labels of all ranks. */
static void
take_sums(struct host *h)
{
    size_t count = h->options.graph->param_floats, i;
    float *gradient = h->arena[ARENA_GRADIENTS];
    double rescale;

    if (has_peers(h))
        take_tail(h);
    rescale = loss_rescale(h->labels);
    h->now.loss *= rescale;
    h->now.known = h->labels.known > 0;
    if (h->sum)
        for (i = 0; i < count; i++)
            gradient[i] = (float)(rescale * h->sum[i]);
    else if (rescale != 1)
        for (i = 0; i < count; i++)
            gradient[i] = (float)(rescale * (double)gradient[i]);
}

/* ---- micro-batches ----------------------------------------------------------------------------------------------- */

static void
begin_step(struct host *h)
{
    size_t stats = h->options.graph->stat_floats * sizeof(float);

    h->now = (struct step_result){.bad = STEP_NONE};
    h->batches = 0;
    h->labels = (struct label_count){.all = 0};
    h->ended = false;
    memset(h->arena[ARENA_GRADIENTS], 0, h->options.graph->param_floats * sizeof(float));
    if (h->sum)
        memset(h->sum, 0, h->options.graph->param_floats * sizeof(*h->sum));
    if (has_peers(h) && h->options.reduce->rank > 0)
        memset(h->running, 0, stats);
    else
        memcpy(h->running, h->arena[ARENA_STATISTICS], stats);
}

static void
forward(struct plan *plan, const struct batch *batch)
{
    struct host *h = host_of(plan);
    const struct graph *g = h->options.graph;
    struct label_count labels = loss_count(h->options.batch, g->buffer[g->output].channels, batch->label,
                                           batch->weight);
    double loss;

    ranges_push(PART_FORWARD);
    loss = h->ops->forward(plan, batch);
    ranges_pop();
    h->labels.all += labels.all;
    h->labels.known += labels.known;
    if (!isfinite(loss) && h->now.bad == STEP_NONE)
        h->now.bad = h->batches;
    h->now.loss += loss;
    took(h, PART_FORWARD);
}

static enum chex_status
backward(struct plan *plan, struct chex_error *err)
{
    struct host *h = host_of(plan);
    enum chex_status status;

    if (h->batches > 0)
        memset(h->arena[ARENA_GRADIENTS], 0, h->options.graph->param_floats * sizeof(float));
    ranges_push(PART_BACKWARD);
    status = h->ops->backward(plan, err);
    ranges_pop();
    took(h, PART_BACKWARD);
    return status;
}

static enum chex_status
check_call(const struct host *h, const struct batch *batch, unsigned flags, const struct step_end *end,
           struct chex_error *err)
{
    bool first = flags & STEP_FIRST, last = flags & STEP_LAST;

    if (!h->options.train)
        return error_set(err, CHEX_ERR_BUG, "this plan is not for training");
    if (last != !!end || (!batch && !last) || (flags & STEP_FAULT && !last) || (!first && h->ended))
        return error_set(err, CHEX_ERR_BUG, "a micro-batch between two steps");
    if (!first && batch && !h->sum)
        return error_set(err, CHEX_ERR_BUG, "this plan is for one micro-batch a step");
    return CHEX_OK;
}

enum chex_status
host_accumulate(struct plan *plan, const struct batch *batch, unsigned flags, const struct step_end *end,
                struct chex_error *err)
{
    struct host *h = host_of(plan);
    enum chex_status status = check_call(h, batch, flags, end, err);

    if (status != CHEX_OK)
        return status;
    h->at = clock_now();
    h->cpu_at = clock_process();
    if (flags & STEP_FIRST)
        begin_step(h);
    h->ended = flags & STEP_LAST;
    h->now.faults = flags & STEP_FAULT ? 1 : 0;
    h->now.requests = end ? end->requests & ((1u << STEP_REQUESTS) - 1) : 0;
    if (h->halted) /* all ranks are halted: nothing to compute or to sum */
        return CHEX_OK;
    if (batch)
        forward(plan, batch);
    if (h->ended && has_peers(h))
        status = sum_statistics(h, end, err);
    if (status == CHEX_OK && batch)
        status = backward(plan, err);
    h->batches++;
    h->ready = 0;
    if (status != CHEX_OK || !has_peers(h))
        return status;
    return h->ended ? sum_ready(h, err) : h->options.reduce->ops->poll(h->options.reduce, err);
}

/* ---- the end of a step ------------------------------------------------------------------------------------------- */

/* Evaluate the sums: returns whether the step may be applied. */
static bool
is_good(struct host *h)
{
    if (h->now.faults > 0)
        return false;
    h->now.norm = optimizer_norm(h->arena[ARENA_GRADIENTS], h->options.graph->param_floats);
    return isfinite(h->now.loss) && isfinite(h->now.norm);
}

static void
apply(struct plan *plan, double rate, double clip)
{
    struct host *h = host_of(plan);
    const struct optimizer_step step = {.number = h->state.applied + 1, .rate = rate, .clip = clip};

    h->ops->apply(plan, &step, optimizer_clip(&step, h->now.norm));
    memcpy(h->arena[ARENA_STATISTICS], h->running, h->options.graph->stat_floats * sizeof(float));
    h->state.applied++;
    h->state.good++;
    if (h->ops->changed)
        h->ops->changed(plan);
}

enum chex_status
host_update(struct plan *plan, double rate, double clip, uint64_t *ticket, struct chex_error *err)
{
    struct host *h = host_of(plan);
    enum chex_status status = CHEX_OK;

    if (!h->ended)
        return error_set(err, CHEX_ERR_BUG, "an update before the last micro-batch of a step");
    h->at = clock_now();
    h->cpu_at = clock_process();
    ranges_push(PART_REDUCE);
    if (has_peers(h) && !h->halted)
        status = h->options.reduce->ops->join(h->options.reduce, NULL, err);
    ranges_pop();
    if (status != CHEX_OK)
        return status;
    took(h, PART_REDUCE);
    if (!h->halted) {
        take_sums(h);
        h->now.applied = is_good(h);
        h->halted = !h->now.applied;
    }
    ranges_push(PART_UPDATE);
    if (h->now.applied)
        apply(plan, rate, clip);
    ranges_pop();
    took(h, PART_UPDATE);
    h->now.halted = h->halted;
    h->now.state = h->state;
    *ticket = ++h->ticket;
    h->made[h->ticket % 2] = h->now;
    return CHEX_OK;
}

enum chex_status
host_result(struct plan *plan, uint64_t ticket, bool *done, struct step_result *out, struct chex_error *err)
{
    const struct host *h = host_of(plan);

    if (ticket == 0 || ticket > h->ticket || h->ticket - ticket > 1)
        return error_set(err, CHEX_ERR_BUG, "no result of step %llu is kept", (unsigned long long)ticket);
    *out = h->made[ticket % 2];
    *done = true;
    return CHEX_OK;
}

enum chex_status
host_resume(struct plan *plan, struct chex_error *err)
{
    (void)err;
    host_of(plan)->halted = false;
    return CHEX_OK;
}
