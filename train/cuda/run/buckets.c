/*
 * buckets.c - sums over the ranks, in buckets that overlap with the backward pass; see plan.h
 *
 * The bounds of the buckets depend only on the number of parameters.  So they are the same on all ranks, whatever their
 * GPUs and their last micro-batch, and every rank starts the same sums in the same order.  The backward pass produces
 * gradients from the end of the arena to its start.  When a launch makes the first gradient of a bucket final
 * (cuda_op.final), the sum of that bucket starts and runs next to the following launches.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/memory.h"
#include "cuda/run/plan.h"

#define LINE (CUDA_ALIGN / sizeof(float)) /* floats; the start of a bucket is a multiple of it */

bool
cuda_has_peers(const struct plan *plan)
{
    return plan->options.reduce && plan->options.reduce->size > 1;
}

bool
cuda_sums_on_device(const struct plan *plan)
{
    return plan->options.reduce && plan->options.reduce->on_device;
}

bool
cuda_sums_on_host(const struct plan *plan)
{
    return cuda_has_peers(plan) && !cuda_sums_on_device(plan);
}

void
cuda_sums_begin(struct plan *plan)
{
    plan->summed = plan->layout.graph->param_floats;
}

/* Returns the start of the bucket that ends at `end`.  cuda_sums_end() sums the bucket at the front of the arena. */
static size_t
bucket_begin(size_t end)
{
    return end < CUDA_FRONT + CUDA_BUCKET ? CUDA_FRONT : (end - CUDA_BUCKET) / LINE * LINE;
}

static enum chex_status
to_wire(struct plan *plan, size_t begin, size_t count, struct chex_error *err)
{
    const struct cuda_layout *l = &plan->layout;
    struct cuda_op op = {.kernel = CUDA_TO_WIRE,
                         .x = cuda_blocks(count, STEP_THREADS),
                         .y = 1,
                         .z = 1,
                         .args.wire = {.gradient = (float *)l->arena[ARENA_GRADIENTS] + begin,
                                       .wire = (uint16_t *)l->wire + begin,
                                       .count = (unsigned)count},
                         .node = CUDA_NO_NODE,
                         .final = SIZE_MAX};

    return cuda_check(cuda_launch(l->chip.set, &op, plan->compute), "rounding gradients for the network", err);
}

static enum chex_status
start_gradients(struct plan *plan, size_t begin, struct chex_error *err)
{
    const struct cuda_layout *l = &plan->layout;
    struct reduce *r = plan->options.reduce;
    size_t count = plan->summed - begin;
    enum chex_status status = CHEX_OK;

    plan->summed = begin;
    if (!l->wire)
        return r->ops->start(r, (float *)l->arena[ARENA_GRADIENTS] + begin, count, plan->compute, err);
    status = to_wire(plan, begin, count, err);
    return status == CHEX_OK ? r->ops->start_bf16(r, (uint16_t *)l->wire + begin, count, plan->compute, err) : status;
}

enum chex_status
cuda_sums_start(struct plan *plan, size_t final, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && plan->summed > CUDA_FRONT && bucket_begin(plan->summed) >= final)
        status = start_gradients(plan, bucket_begin(plan->summed), err);
    return status;
}

/* Sums the last bucket: the front of the gradients, together with the floats that precede the arena. */
enum chex_status
cuda_sums_end(struct plan *plan, struct chex_error *err)
{
    const struct cuda_layout *l = &plan->layout;
    struct reduce *r = plan->options.reduce;
    size_t before = (l->arena[ARENA_GRADIENTS] - l->sums) / sizeof(float), front;
    enum chex_status status = cuda_sums_start(plan, 0, err);

    front = l->wire ? 0 : plan->summed;
    if (status == CHEX_OK && l->wire && plan->summed > 0)
        status = start_gradients(plan, 0, err);
    if (status == CHEX_OK)
        status = r->ops->start(r, (void *)l->sums, before + front, plan->compute, err);
    plan->summed = 0;
    return status == CHEX_OK ? r->ops->join(r, plan->compute, err) : status;
}
