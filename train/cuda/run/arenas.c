/*
 * arenas.c - the host reads and writes the arenas and the state of a plan; see plan.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/run/plan.h"

#include "base/clock.h"

#include <string.h>

static enum chex_status
find_arena(struct plan *plan, enum arena_id arena, void **out, struct chex_error *err)
{
    *out = (void *)plan->layout.arena[arena];
    if (!*out)
        return error_set(err, CHEX_ERR_BUG, "this plan has no arena %d", (int)arena);
    return cuda_enter(plan, err);
}

/* Copies between host and device, after all work that the device was given. */
enum chex_status
cuda_copy_now(struct plan *plan, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
              struct chex_error *err)
{
    const char *what = kind == cudaMemcpyHostToDevice ? "writing to the GPU" : "reading from the GPU";
    enum chex_status status = cuda_flush(plan, err);

    if (status == CHEX_OK)
        status = cuda_check(cudaMemcpyAsync(to, from, bytes, kind, plan->compute), what, err);
    if (status != CHEX_OK)
        return status;
    status = cuda_drain(plan, what, err);
    if (status != CHEX_OK) /* the caller's memory must not be part of a copy in flight */
        (void)cuda_quiesce(plan);
    return status;
}

static size_t
arena_bytes(const struct plan *plan, enum arena_id arena)
{
    return arena_floats(plan->options.graph, arena) * sizeof(float);
}

enum chex_status
cuda_write(struct plan *plan, enum arena_id arena, const float *from, struct chex_error *err)
{
    void *to;
    enum chex_status status = find_arena(plan, arena, &to, err);

    if (status != CHEX_OK)
        return status;
    plan->folded = ARENA_COUNT;
    return cuda_copy_now(plan, to, from, arena_bytes(plan, arena), cudaMemcpyHostToDevice, err);
}

enum chex_status
cuda_read(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err)
{
    void *from;
    enum chex_status status = find_arena(plan, arena, &from, err);

    if (status != CHEX_OK)
        return status;
    return cuda_copy_now(plan, to, from, arena_bytes(plan, arena), cudaMemcpyDeviceToHost, err);
}

/*
 * A second thread calls this, and it uses a stream of its own, so the kernels of an evaluation run meanwhile.  It polls
 * and does not block in the CUDA runtime, which could hold a lock that the plan's thread needs.
 */
enum chex_status
cuda_read_concurrently(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err)
{
    size_t bytes = arena_bytes(plan, arena);
    void *from;
    enum chex_status status = find_arena(plan, arena, &from, err);
    cudaError_t e;

    if (status != CHEX_OK)
        return status;
    e = cudaMemcpyAsync(plan->landing, from, bytes, cudaMemcpyDeviceToHost, plan->read_stream);
    if (e == cudaSuccess)
        e = cudaEventRecord(plan->landed, plan->read_stream);
    if (e == cudaSuccess)
        while ((e = cudaEventQuery(plan->landed)) == cudaErrorNotReady)
            backoff(50e-6);
    if (e != cudaSuccess)
        return cuda_check(e, "reading from the GPU", err);
    memcpy(to, plan->landing, bytes);
    return CHEX_OK;
}

/*
 * A plan without loss scaling has the scale 1, whatever the state says.  With loss scaling, a saved scale of 1 is the
 * lowest one and stays 1.
 */
enum chex_status
cuda_set_state(struct plan *plan, const struct plan_state *state, struct chex_error *err)
{
    void *there = (void *)plan->layout.state;
    enum chex_status status = cuda_enter(plan, err);
    struct step_state s;

    if (status == CHEX_OK && !there)
        return CHEX_OK; /* this plan only scores */
    if (status == CHEX_OK)
        status = cuda_copy_now(plan, &s, there, sizeof(s), cudaMemcpyDeviceToHost, err);
    if (status != CHEX_OK)
        return status;
    s.applied = (double)state->applied;
    s.good = state->good;
    s.loss_scale = (float)state->loss_scale;
    if (plan->layout.loss_scale == 1 || state->loss_scale == 0)
        s.loss_scale = plan->layout.loss_scale;
    return cuda_copy_now(plan, there, &s, sizeof(s), cudaMemcpyHostToDevice, err);
}
