/*
 * steps.c - one step of a plan, from its micro-batches to its result; see plan.h
 *
 * Only the device knows whether a step was applied and whether the plan is halted.  So the host queues further steps on
 * a halted plan as well, and they change nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/run/plan.h"

#include "backend/ranges.h"
#include "base/clock.h"

#include <stddef.h>

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static unsigned
result_bit(uint64_t ticket)
{
    return ticket % 2 == 1 ? OF_RESULT : 0;
}

static enum chex_status
record_event(struct plan *plan, cudaEvent_t event, struct chex_error *err)
{
    return cuda_check(cudaEventRecord(event, plan->compute), "an event", err);
}

/* Marks the slot of the device as free. */
static enum chex_status
release_slot(struct plan *plan, unsigned holds, struct chex_error *err)
{
    return record_event(plan, plan->taken[holds & OF_SLOT ? 1 : 0], err);
}

/* Launches a micro-batch without the update, as two graphs with an event between them for the times. */
static enum chex_status
launch_batch(struct plan *plan, unsigned holds, struct chex_error *err)
{
    struct cuda_clock *c = cuda_clock_take(plan, holds & (HOLDS_FORWARD | HOLDS_BACKWARD));
    enum chex_status status = record_event(plan, c->event[CLOCK_BEGIN], err);

    if (status == CHEX_OK)
        status = cuda_run(plan, holds & (HOLDS_BEGIN | HOLDS_FORWARD | OF_SLOT), err);
    if (status == CHEX_OK)
        status = record_event(plan, c->event[CLOCK_FORWARD], err);
    if (status == CHEX_OK)
        status = release_slot(plan, holds, err);
    if (status == CHEX_OK)
        status = cuda_run(plan, HOLDS_BACKWARD, err);
    return status == CHEX_OK ? record_event(plan, c->event[CLOCK_BACKWARD], err) : status;
}

/* Launches all pending parts except the end of the step. */
enum chex_status
cuda_flush(struct plan *plan, struct chex_error *err)
{
    unsigned holds = plan->pending;

    plan->pending &= HOLDS_END;
    if (holds & HOLDS_FORWARD)
        return launch_batch(plan, holds, err);
    return holds & HOLDS_BEGIN ? cuda_run(plan, holds & (HOLDS_BEGIN | HOLDS_CLEAR), err) : CHEX_OK;
}

/* ---- micro-batches ----------------------------------------------------------------------------------------------- */

static enum chex_status
check_call(const struct plan *plan, const struct batch *batch, unsigned flags, const struct step_end *end,
           struct chex_error *err)
{
    bool first = flags & STEP_FIRST, last = flags & STEP_LAST;

    if (!plan->options.train)
        return error_set(err, CHEX_ERR_BUG, "this plan is not for training");
    if (last != !!end || (!batch && !last) || (flags & STEP_FAULT && !last) ||
        (!first && (!plan->begun || plan->ended)))
        return error_set(err, CHEX_ERR_BUG, "a micro-batch between two steps");
    return CHEX_OK;
}

static bool
has_image(const struct plan *plan, const struct batch *batch)
{
    unsigned i;

    for (i = 0; batch && i < plan->options.batch; i++)
        if (!batch->weight || batch->weight[i] != 0)
            return true;
    return false;
}

static void
begin_step(struct plan *plan)
{
    uint64_t ticket = plan->ticket + 1;

    plan->number = 0;
    plan->begun = true;
    plan->times_of[ticket % 2] = ticket;
    plan->times[ticket % 2] = (struct step_times){.seconds = {0}};
    plan->idle[ticket % 2] = 0;
}

/* An exchange is reused after two steps.  If nobody asked for that result, its step may still be in flight. */
static enum chex_status
end_step(struct plan *plan, unsigned flags, const struct step_end *end, struct chex_error *err)
{
    unsigned at = (plan->ticket + 1) % 2;
    enum chex_status status = cuda_wait(plan, plan->done[at], "waiting for a step", err);
    struct end_block *block;
    uint64_t k;

    if (status != CHEX_OK)
        return status;
    block = &plan->exchange[at]->end;
    *block = (struct end_block){.fade = 1,
                                .following = (unsigned)end->following,
                                .rest = end->rest,
                                .faults = flags & STEP_FAULT ? 1 : 0,
                                .requests = end->requests & ((1u << STEP_REQUESTS) - 1)};
    for (k = 0; k < end->following && block->fade > 0; k++) /* as in arena_fade_statistics() */
        block->fade *= (double)(1 - GRAPH_NORM_MOMENTUM);
    return CHEX_OK;
}

/* Staged sums: ends this rank's part and starts the sums after it. */
static enum chex_status
start_sums(struct plan *plan, struct chex_error *err)
{
    const struct cuda_layout *l = &plan->layout;
    struct reduce *r = plan->options.reduce;
    enum chex_status status = cuda_run(plan, HOLDS_END | result_bit(plan->ticket + 1), err);

    plan->pending = 0;
    if (status == CHEX_OK)
        status = record_event(plan, plan->drained, err);
    if (status == CHEX_OK)
        status = r->ops->start(r, (void *)l->sums, l->sum_floats, plan->compute, err);
    return status;
}

/* Returns the slot of the next micro-batch.  That of the last one in a step is the same on all ranks. */
static unsigned
choose_slot(const struct plan *plan, unsigned flags)
{
    unsigned each = plan->options.micro_batches > 0 ? plan->options.micro_batches : 1;

    return flags & STEP_LAST ? (unsigned)((plan->ticket + 1) * each % CUDA_SLOTS) : !plan->slot;
}

static enum chex_status
feed(struct plan *plan, const struct batch *batch, unsigned flags, struct chex_error *err)
{
    const struct cuda_feed how = {
        .crop = batch ? batch->crop : NULL, .number = plan->number, .slot = choose_slot(plan, flags)};
    enum chex_status status;

    ranges_push(PART_COPY);
    status = cuda_feed(plan, batch, &how, err);
    ranges_pop();
    plan->pending |= HOLDS_FORWARD | HOLDS_BACKWARD | (how.slot ? OF_SLOT : 0);
    return status;
}

/* This rank has a fault, in a step whose graph holds the last micro-batch and the sums. */
static enum chex_status
feed_black(struct plan *plan, unsigned flags, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    if (!(flags & STEP_FAULT))
        return error_set(err, CHEX_ERR_BUG, "a rank without an image in a step that is not uneven");
    if (plan->options.micro_batches > 1)
        status = cuda_flush(plan, err); /* the other ranks launched the start of the step with their first one */
    return status == CHEX_OK ? feed(plan, NULL, flags, err) : status;
}

static enum chex_status
take_batch(struct plan *plan, const struct batch *batch, unsigned flags, const struct step_end *end,
           struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    plan->empty = !has_image(plan, batch);
    plan->pending = flags & STEP_FIRST ? HOLDS_BEGIN : 0;
    if (!plan->empty)
        status = feed(plan, batch, flags, err);
    else if (end && !end->uneven && cuda_sums_on_device(plan))
        status = feed_black(plan, flags, err);
    else if (flags & STEP_FIRST)
        plan->pending |= HOLDS_CLEAR;
    if (status != CHEX_OK)
        plan->pending = 0;
    else if (flags & STEP_LAST)
        plan->pending |= HOLDS_END;
    plan->number++;
    return status;
}

enum chex_status
cuda_accumulate(struct plan *plan, const struct batch *batch, unsigned flags, const struct step_end *end,
                struct chex_error *err)
{
    enum chex_status status = check_call(plan, batch, flags, end, err);

    if (status == CHEX_OK)
        status = cuda_enter(plan, err);
    if (status == CHEX_OK && flags & STEP_FIRST) {
        status = cuda_flush(plan, err); /* the previous step was abandoned */
        begin_step(plan);
    }
    plan->ended = flags & STEP_LAST;
    if (status == CHEX_OK && end)
        status = end_step(plan, flags, end, err);
    if (status == CHEX_OK)
        status = take_batch(plan, batch, flags, end, err);
    if (status == CHEX_OK && (!end || cuda_sums_on_host(plan) || (end->uneven && cuda_sums_on_device(plan))))
        status = cuda_flush(plan, err);
    return status == CHEX_OK && end && cuda_sums_on_host(plan) ? start_sums(plan, err) : status;
}

/* ---- the end of a step ------------------------------------------------------------------------------------------- */

/* The clocks measure what this rank computes; the time from its end to the end of the sums counts as PART_REDUCE. */
static enum chex_status
join_sums(struct plan *plan, struct chex_error *err)
{
    const struct plan_options *o = &plan->options;
    uint64_t ticket = plan->ticket + 1;
    enum chex_status status = cuda_wait(plan, plan->drained, "a step", err);
    double begin = clock_now(), end;

    if (status == CHEX_OK) {
        ranges_push(PART_REDUCE);
        status = o->reduce->ops->join(o->reduce, plan->compute, err);
        ranges_pop();
    }
    if (status != CHEX_OK)
        return status;
    end = clock_now();
    cuda_clock_step(plan, ticket);
    if (begin < plan->measured)
        begin = plan->measured < end ? plan->measured : end;
    plan->times[ticket % 2].seconds[PART_REDUCE] += end - begin;
    plan->measured = end;
    if (o->part)
        o->part(o->context, PART_REDUCE, begin, end);
    return CHEX_OK;
}

enum chex_status
cuda_update(struct plan *plan, double rate, double clip, uint64_t *ticket, struct chex_error *err)
{
    uint64_t next = plan->ticket + 1;
    unsigned at = next % 2, holds = plan->pending | HOLDS_UPDATE | result_bit(next);
    enum chex_status status = CHEX_OK;

    if (!plan->ended || !plan->begun)
        return error_set(err, CHEX_ERR_BUG, "an update before the last micro-batch of a step");
    status = cuda_enter(plan, err);
    if (status == CHEX_OK && cuda_sums_on_host(plan))
        status = join_sums(plan, err);
    if (status != CHEX_OK)
        return status;
    plan->exchange[at]->step = (struct step_block){.rate = rate, .clip = clip};
    cuda_clock_start(plan, &plan->whole[at], holds & (HOLDS_FORWARD | HOLDS_BACKWARD | HOLDS_END | HOLDS_UPDATE));
    if (!cuda_sums_on_device(plan))
        plan->whole[at].holds &= ~(unsigned)HOLDS_END;
    plan->pending = 0;
    plan->begun = false;
    status = cuda_run(plan, holds, err);
    if (status == CHEX_OK && holds & HOLDS_FORWARD)
        status = release_slot(plan, holds, err);
    if (status == CHEX_OK)
        status = record_event(plan, plan->step_end[next % CUDA_ENDS], err);
    if (status == CHEX_OK)
        status = record_event(plan, plan->done[at], err);
    if (status == CHEX_OK)
        *ticket = plan->ticket = next;
    return status;
}

static struct step_result
result_of(const struct step_state *s)
{
    return (struct step_result){
        .loss = s->loss,
        .norm = s->norm,
        .known = s->known > 0,
        .applied = s->apply,
        .halted = s->halted,
        .faults = s->faults,
        .requests = s->requests,
        .bad = s->bad,
        .state = {.applied = (uint64_t)s->applied, .loss_scale = (double)s->loss_scale, .good = s->good}};
}

_Static_assert(STEP_BAD_NONE == STEP_NONE, "one number says that no micro-batch was bad");

/* Polls and does not wait, because the caller has other work to do. */
enum chex_status
cuda_result(struct plan *plan, uint64_t ticket, bool *done, struct step_result *out, struct chex_error *err)
{
    unsigned at = ticket % 2;
    enum chex_status status;
    cudaError_t e;

    *done = false;
    if (ticket == 0 || ticket > plan->ticket || plan->ticket - ticket > 1)
        return error_set(err, CHEX_ERR_BUG, "no result of step %llu is kept", (unsigned long long)ticket);
    status = cuda_enter(plan, err);
    if (status != CHEX_OK)
        return status;
    e = cudaEventQuery(plan->done[at]);
    if (e == cudaErrorNotReady && cuda_sums_on_device(plan)) {
        bool begins = plan->asked != ticket;

        plan->asked = ticket;
        return cuda_watch(plan, begins, err);
    }
    if (e == cudaErrorNotReady)
        return CHEX_OK;
    if (e != cudaSuccess)
        return cuda_check(e, "a step", err);
    cuda_clock_step(plan, ticket);
    *out = result_of(&plan->exchange[at]->made);
    out->times = plan->times[at];
    out->idle = plan->idle[at];
    *done = true;
    return CHEX_OK;
}

enum chex_status
cuda_resume(struct plan *plan, struct chex_error *err)
{
    enum chex_status status = cuda_enter(plan, err);

    if (status != CHEX_OK)
        return status;
    return cuda_check(cudaMemsetAsync((void *)(plan->layout.state + offsetof(struct step_state, halted)), 0,
                                      sizeof(unsigned), plan->compute),
                      "resuming after a halt", err);
}
