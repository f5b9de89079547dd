/*
 * score.c - evaluation, one view after the other; see plan.h
 *
 * The device computes a view while the host reads the logits of the previous one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/run/plan.h"

#include <string.h>

static enum chex_status
check_call(const struct plan *plan, enum arena_id weights, struct chex_error *err)
{
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

static enum chex_status
start_view(struct plan *plan, const struct batch *batch, unsigned view, const struct crop *crop, enum arena_id weights,
           struct chex_error *err)
{
    const struct graph *g = plan->options.graph;
    size_t bytes = (size_t)plan->options.batch * g->buffer[g->output].channels * sizeof(float);
    const struct cuda_feed how = {.crop = crop, .slot = !plan->slot, .seen = view >= CUDA_SLOTS};
    unsigned at = view % 2;
    enum chex_status status = cuda_feed(plan, batch, &how, err);
    cudaError_t e;

    if (status == CHEX_OK)
        status = cuda_run(plan, HOLDS_SCORE | (weights == ARENA_AVERAGE ? HOLDS_AVERAGE : 0) | (how.slot ? OF_SLOT : 0),
                          err);
    if (status != CHEX_OK)
        return status;
    e = cudaEventRecord(plan->taken[how.slot], plan->compute);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(plan->logits[at], (const void *)plan->layout.logits, bytes, cudaMemcpyDeviceToHost,
                            plan->compute);
    if (e == cudaSuccess)
        e = cudaEventRecord(plan->scored[at], plan->compute);
    return cuda_check(e, "scoring a micro-batch", err);
}

static enum chex_status
finish_view(struct plan *plan, unsigned view, size_t values, float *logits, struct chex_error *err)
{
    enum chex_status status = cuda_wait(plan, plan->scored[view % 2], "scoring a micro-batch", err);

    if (status == CHEX_OK)
        memcpy(logits + view * values, plan->logits[view % 2], values * sizeof(*logits));
    return status;
}

enum chex_status
cuda_score(struct plan *plan, const struct batch *batch, unsigned views, const struct crop *crop, enum arena_id weights,
           float *logits, struct chex_error *err)
{
    const struct graph *g = plan->options.graph;
    size_t batch_size = plan->options.batch, values = batch_size * g->buffer[g->output].channels;
    enum chex_status status = check_call(plan, weights, err);
    unsigned view;

    if (status == CHEX_OK)
        status = cuda_enter(plan, err);
    if (status == CHEX_OK)
        status = cuda_flush(plan, err);
    if (status == CHEX_OK)
        status = fold(plan, weights, err);
    for (view = 0; status == CHEX_OK && view < views; view++) {
        status = start_view(plan, batch, view, crop + view * batch_size, weights, err);
        if (status == CHEX_OK && view > 0)
            status = finish_view(plan, view - 1, values, logits, err);
    }
    return status == CHEX_OK && views > 0 ? finish_view(plan, views - 1, values, logits, err) : status;
}
