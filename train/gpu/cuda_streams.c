/*
 * cuda_streams.c - see cuda_plan.h: streams, events and pinned memory of a plan, and waiting for them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu/cuda_plan.h"

#include <string.h>
#include <time.h>

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

/* Zeroed. */
static cudaError_t
new_pinned(void *where, size_t bytes)
{
    void *p = NULL;
    cudaError_t e = cudaMallocHost(&p, bytes > 0 ? bytes : 1);

    if (e == cudaSuccess)
        memset(p, 0, bytes);
    memcpy(where, &p, sizeof(p));
    return e;
}

static cudaError_t
new_event(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDisableTiming | cudaEventBlockingSync);
}

static cudaError_t
new_clock(struct cuda_clock *c)
{
    cudaError_t e = cudaSuccess;
    unsigned i;

    for (i = 0; i < CLOCK_EVENTS && e == cudaSuccess; i++)
        e = cudaEventCreateWithFlags(&c->event[i], cudaEventDefault);
    return e;
}

static cudaError_t
new_events(struct plan *plan)
{
    cudaError_t e = new_event(&plan->drained);
    unsigned i;

    for (i = 0; i < CUDA_RING && e == cudaSuccess; i++)
        e = new_event(&plan->copied[i]);
    for (i = 0; i < CUDA_SLOTS && e == cudaSuccess; i++)
        e = new_event(&plan->taken[i]);
    for (i = 0; i < 2 && e == cudaSuccess; i++) {
        e = new_event(&plan->done[i]);
        if (e == cudaSuccess)
            e = new_event(&plan->scored[i]);
        if (e == cudaSuccess)
            e = new_clock(&plan->whole[i]);
    }
    for (i = 0; i < CUDA_CLOCKS && e == cudaSuccess; i++)
        e = new_clock(&plan->clock[i]);
    return e;
}

static cudaError_t
new_memory(struct plan *plan)
{
    const struct graph *g = plan->options.graph;
    size_t logits = (size_t)plan->options.batch * g->buffer[g->output].channels * sizeof(float);
    cudaError_t e = cudaSuccess;
    unsigned i;

    for (i = 0; i < CUDA_RING && e == cudaSuccess; i++)
        e = new_pinned(&plan->ring[i], plan->layout.slot.bytes);
    for (i = 0; i < 2 && e == cudaSuccess; i++) {
        e = new_pinned(&plan->made[i], sizeof(*plan->made[i]));
        if (e == cudaSuccess)
            e = new_pinned(&plan->step_block[i], sizeof(*plan->step_block[i]));
        if (e == cudaSuccess)
            e = new_pinned(&plan->end_block[i], sizeof(*plan->end_block[i]));
        if (e == cudaSuccess)
            e = new_pinned(&plan->logits[i], logits);
    }
    return e;
}

enum chex_status
cuda_steps_new(struct plan *plan, struct chex_error *err)
{
    cudaError_t e = cudaStreamCreateWithFlags(&plan->compute, cudaStreamNonBlocking);

    if (e == cudaSuccess)
        e = cudaStreamCreateWithFlags(&plan->copies, cudaStreamNonBlocking);
    if (e == cudaSuccess)
        e = new_events(plan);
    if (e == cudaSuccess)
        e = new_memory(plan);
    return cuda_check(e, "streams and pinned memory of a plan", err);
}

static void
free_event(cudaEvent_t event)
{
    if (event)
        (void)cudaEventDestroy(event);
}

static void
free_clock(const struct cuda_clock *c)
{
    unsigned i;

    for (i = 0; i < CLOCK_EVENTS; i++)
        free_event(c->event[i]);
}

static void
free_pinned(void *p)
{
    if (p)
        (void)cudaFreeHost(p);
}

/* After an error of a kernel all of these fail at once, and the process ends with what is left. */
void
cuda_steps_free(struct plan *plan)
{
    unsigned i;

    if (plan->compute)
        (void)cudaStreamSynchronize(plan->compute);
    cuda_drop_graphs(plan);
    if (plan->copies)
        (void)cudaStreamDestroy(plan->copies);
    if (plan->compute)
        (void)cudaStreamDestroy(plan->compute);
    for (i = 0; i < CUDA_RING; i++) {
        free_event(plan->copied[i]);
        free_pinned(plan->ring[i]);
    }
    for (i = 0; i < CUDA_SLOTS; i++)
        free_event(plan->taken[i]);
    for (i = 0; i < 2; i++) {
        free_event(plan->done[i]);
        free_event(plan->scored[i]);
        free_clock(&plan->whole[i]);
        free_pinned(plan->made[i]);
        free_pinned(plan->step_block[i]);
        free_pinned(plan->end_block[i]);
        free_pinned(plan->logits[i]);
    }
    for (i = 0; i < CUDA_CLOCKS; i++)
        free_clock(&plan->clock[i]);
    free_event(plan->drained);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

enum chex_status
cuda_enter(const struct plan *plan, struct chex_error *err)
{
    return cuda_check(cudaSetDevice(plan->device->number), "choosing the GPU", err);
}

bool
cuda_has_peers(const struct plan *plan)
{
    return plan->options.reduce && plan->options.reduce->size > 1;
}

enum chex_status
cuda_wait(struct plan *plan, cudaEvent_t event, const char *what, struct chex_error *err)
{
    static const struct timespec pause = {.tv_nsec = 20000};
    struct reduce *r = plan->options.reduce;
    cudaError_t e = cudaEventQuery(event);

    if (e == cudaErrorNotReady && !cuda_has_peers(plan))
        e = cudaEventSynchronize(event);
    for (; e == cudaErrorNotReady; e = cudaEventQuery(event)) {
        enum chex_status status = r->ops->poll(r, err);

        if (status != CHEX_OK)
            return status;
        nanosleep(&pause, NULL);
    }
    return cuda_check(e, what, err);
}

enum chex_status
cuda_drain(struct plan *plan, const char *what, struct chex_error *err)
{
    cudaError_t e = cudaEventRecord(plan->drained, plan->compute);

    return e == cudaSuccess ? cuda_wait(plan, plan->drained, what, err) : cuda_check(e, what, err);
}
