/*
 * score.c - evaluation, one pass after the other; see plan.h
 *
 * A pass scores one view of a micro-batch.  Two passes are in flight: the device computes one while the host copies the
 * images of the next to a pinned slot.  They may belong to two micro-batches.  Before a pass starts, the host takes the
 * logits of the pass before the previous one out of the pinned buffer that this pass uses.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/run/plan.h"

#include <string.h>

static enum chex_status
check_call(const struct plan *plan, enum arena_id weights, const float *maps, struct chex_error *err)
{
    if (maps && plan->map_floats == 0)
        return error_set(err, CHEX_ERR_BUG, "this plan has no maps");
    if (plan->scores - plan->scores_finished == SCORES_IN_FLIGHT)
        return error_set(err, CHEX_ERR_BUG, "too many micro-batches of an evaluation are in flight");
    if ((weights != ARENA_PARAMETERS && weights != ARENA_AVERAGE) || !plan->layout.arena[weights])
        return error_set(err, CHEX_ERR_BUG, "this plan has no arena %d to score with", (int)weights);
    return CHEX_OK;
}

/*
 * Folds BN into the weights once per evaluation.  The result is valid until training runs or the host writes an arena.
 */
static enum chex_status
fold(struct plan *plan, enum arena_id weights, struct chex_error *err)
{
    enum chex_status status;

    if (plan->folded == weights)
        return CHEX_OK;
    plan->folded = ARENA_COUNT;
    status = cuda_run(plan, weights == ARENA_AVERAGE ? HOLDS_PACK | HOLDS_AVERAGE : HOLDS_PACK, err);
    if (status == CHEX_OK)
        plan->folded = weights;
    return status;
}

static size_t
pass_values(const struct plan *plan)
{
    const struct graph *g = plan->options.graph;

    return (size_t)plan->options.batch * g->buffer[g->output].channels;
}

static size_t
pass_map_floats(const struct plan *plan)
{
    return plan->options.batch * plan->map_floats;
}

/* Waits for a pass and gives its logits and maps to the caller, unless this was done before. */
static enum chex_status
finish_pass(struct plan *plan, unsigned at, struct chex_error *err)
{
    float *to = plan->scored_to[at];
    enum chex_status status;

    if (!to)
        return CHEX_OK;
    status = cuda_wait(plan, plan->scored[at], "scoring a micro-batch", err);
    if (status != CHEX_OK)
        return status;
    memcpy(to, plan->logits[at], pass_values(plan) * sizeof(*to));
    if (plan->maps_to[at])
        memcpy(plan->maps_to[at], plan->maps[at], pass_map_floats(plan) * sizeof(*to));
    plan->scored_to[at] = NULL;
    return CHEX_OK;
}

static enum chex_status
launch_pass(struct plan *plan, unsigned at, enum arena_id weights, bool maps, struct chex_error *err)
{
    unsigned average = weights == ARENA_AVERAGE ? HOLDS_AVERAGE : 0, slot = plan->slot ? OF_SLOT : 0;
    enum chex_status status = cuda_run(plan, HOLDS_SCORE | average | slot, err);
    cudaError_t e;

    if (status != CHEX_OK)
        return status;
    e = cudaEventRecord(plan->taken[plan->slot], plan->compute);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(plan->logits[at], (const void *)plan->layout.logits, pass_values(plan) * sizeof(float),
                            cudaMemcpyDeviceToHost, plan->compute);
    if (e == cudaSuccess && maps)
        e = cudaMemcpyAsync(plan->maps[at], (const void *)plan->layout.maps, pass_map_floats(plan) * sizeof(float),
                            cudaMemcpyDeviceToHost, plan->compute);
    if (e == cudaSuccess)
        e = cudaEventRecord(plan->scored[at], plan->compute);
    return cuda_check(e, "scoring a micro-batch", err);
}

static enum chex_status
start_pass(struct plan *plan, const struct batch *batch, unsigned view, const struct crop *crop, enum arena_id weights,
           float *logits, float *maps, struct chex_error *err)
{
    const struct cuda_feed how = {.crop = crop, .slot = !plan->slot, .seen = view >= CUDA_SLOTS};
    struct batch plain = *batch;
    unsigned at = plan->passes % 2;
    enum chex_status status = finish_pass(plan, at, err);

    plain.mix = NULL;
    if (status == CHEX_OK)
        status = cuda_feed(plan, &plain, &how, err);
    if (status == CHEX_OK)
        status = launch_pass(plan, at, weights, maps != NULL, err);
    if (status != CHEX_OK)
        return status;
    plan->scored_to[at] = logits;
    plan->maps_to[at] = maps;
    plan->passes++;
    return CHEX_OK;
}

/* Returns the first pass whose logits may still be in the pinned memory. */
static uint64_t
oldest_pass(const struct plan *plan)
{
    return plan->passes > 2 ? plan->passes - 2 : 0;
}

/* Forgets passes of a micro-batch that has failed: the caller may free its memory. */
static void
forget_passes(struct plan *plan, uint64_t first, uint64_t end)
{
    for (; first < end; first++)
        plan->scored_to[first % 2] = NULL;
}

enum chex_status
cuda_score_start(struct plan *plan, const struct batch *batch, unsigned views, const struct crop *crop,
                 enum arena_id weights, float *logits, float *maps, struct chex_error *err)
{
    enum chex_status status = check_call(plan, weights, maps, err);
    uint64_t first = plan->passes;
    unsigned view;

    if (status == CHEX_OK)
        status = cuda_enter(plan, err);
    if (status == CHEX_OK)
        status = cuda_flush(plan, err);
    if (status == CHEX_OK)
        status = fold(plan, weights, err);
    for (view = 0; status == CHEX_OK && view < views; view++)
        status = start_pass(plan, batch, view, crop + (size_t)view * plan->options.batch, weights,
                            logits + view * pass_values(plan), maps ? maps + view * pass_map_floats(plan) : NULL, err);
    if (status == CHEX_OK)
        plan->scores_end[plan->scores++ % SCORES_IN_FLIGHT] = plan->passes;
    else
        forget_passes(plan, first > oldest_pass(plan) ? first : oldest_pass(plan), plan->passes);
    return status;
}

enum chex_status
cuda_score_finish(struct plan *plan, struct chex_error *err)
{
    enum chex_status status;
    uint64_t end, pass;

    if (plan->scores == plan->scores_finished)
        return error_set(err, CHEX_ERR_BUG, "no micro-batch of an evaluation is in flight");
    end = plan->scores_end[plan->scores_finished++ % SCORES_IN_FLIGHT];
    status = cuda_enter(plan, err);
    for (pass = oldest_pass(plan); status == CHEX_OK && pass < end; pass++)
        status = finish_pass(plan, pass % 2, err);
    forget_passes(plan, oldest_pass(plan), end);
    return status;
}
