/*
 * streams.c - creates, frees and waits for the streams, events and pinned memory of a plan; see plan.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/run/plan.h"

#include "base/clock.h"

#include <string.h>

/* Time limit for the remaining work of a device when a plan ends, before its sums are aborted. */
#define QUIESCE_SECONDS 1.0

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

/* Allocates zeroed memory. */
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
new_exchange(struct plan *plan, unsigned i)
{
    void *host = NULL, *device = NULL;
    cudaError_t e = cudaHostAlloc(&host, sizeof(*plan->exchange[i]), cudaHostAllocMapped);

    plan->exchange[i] = host;
    if (e == cudaSuccess) {
        memset(host, 0, sizeof(*plan->exchange[i]));
        e = cudaHostGetDevicePointer(&device, host, 0);
    }
    plan->exchange_at[i] = device;
    return e;
}

static cudaError_t
new_event(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDisableTiming | cudaEventBlockingSync);
}

/* Creates events with timing. */
static cudaError_t
new_timed(cudaEvent_t *event, unsigned count)
{
    cudaError_t e = cudaSuccess;
    unsigned i;

    for (i = 0; i < count && e == cudaSuccess; i++)
        e = cudaEventCreateWithFlags(&event[i], cudaEventDefault);
    return e;
}

static cudaError_t
new_clocks(struct plan *plan)
{
    cudaError_t e = new_timed(plan->step_end, CUDA_ENDS);
    unsigned i;

    for (i = 0; i < 2 && e == cudaSuccess; i++)
        e = new_timed(plan->whole[i].event, CLOCK_EVENTS);
    for (i = 0; i < CUDA_CLOCKS && e == cudaSuccess; i++)
        e = new_timed(plan->clock[i].event, CLOCK_EVENTS);
    for (i = 0; i < CUDA_COPIES && e == cudaSuccess; i++) {
        e = new_timed(&plan->copy[i].begin, 1);
        if (e == cudaSuccess)
            e = new_timed(&plan->copy[i].end, 1);
    }
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
    }
    return e == cudaSuccess ? new_clocks(plan) : e;
}

static cudaError_t
new_memory(struct plan *plan)
{
    const struct graph *g = plan->options.graph;
    size_t logits = (size_t)plan->options.batch * g->buffer[g->output].channels * sizeof(float);
    struct graph_head head;
    cudaError_t e = cudaSuccess;
    unsigned i;

    if (plan->options.maps && graph_find_head(g, &head))
        plan->map_floats = head.map_floats;
    for (i = 0; i < CUDA_RING && e == cudaSuccess; i++)
        e = new_pinned(&plan->ring[i], plan->layout.slot.bytes);
    for (i = 0; i < 2 && e == cudaSuccess; i++) {
        e = new_exchange(plan, i);
        if (e == cudaSuccess)
            e = new_pinned(&plan->logits[i], logits);
        if (e == cudaSuccess && plan->map_floats > 0)
            e = new_pinned(&plan->maps[i], plan->options.batch * plan->map_floats * sizeof(float));
    }
    return e;
}

/* No arena is larger than the parameters. */
static cudaError_t
new_landing(struct plan *plan)
{
    cudaError_t e = cudaStreamCreateWithFlags(&plan->read_stream, cudaStreamNonBlocking);

    if (e == cudaSuccess)
        e = new_event(&plan->landed);
    if (e == cudaSuccess)
        e = new_pinned(&plan->landing, arena_floats(plan->layout.graph, ARENA_PARAMETERS) * sizeof(float));
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
    if (e == cudaSuccess && plan->options.train)
        e = new_landing(plan);
    return cuda_check(e, "streams and pinned memory of a plan", err);
}

void
cuda_drop_graphs(struct plan *plan, unsigned parts)
{
    unsigned i, kept = 0;

    for (i = 0; i < plan->graphs; i++)
        if (plan->graph[i].holds & parts)
            (void)cudaGraphExecDestroy(plan->graph[i].exec);
        else
            plan->graph[kept++] = plan->graph[i];
    plan->graphs = kept;
}

static void
free_event(cudaEvent_t event)
{
    if (event)
        (void)cudaEventDestroy(event);
}

static void
free_events(const cudaEvent_t *event, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++)
        free_event(event[i]);
}

static void
free_clocks(const struct plan *plan)
{
    unsigned i;

    free_events(plan->step_end, CUDA_ENDS);
    for (i = 0; i < 2; i++)
        free_events(plan->whole[i].event, CLOCK_EVENTS);
    for (i = 0; i < CUDA_CLOCKS; i++)
        free_events(plan->clock[i].event, CLOCK_EVENTS);
    for (i = 0; i < CUDA_COPIES; i++) {
        free_event(plan->copy[i].begin);
        free_event(plan->copy[i].end);
    }
}

static void
free_pinned(void *p)
{
    if (p)
        (void)cudaFreeHost(p);
}

/* After an error of a kernel all of these calls fail, and the end of the process frees the rest. */
bool
cuda_steps_free(struct plan *plan)
{
    unsigned i;

    if (plan->compute && !cuda_quiesce(plan))
        return false;
    cuda_drop_graphs(plan, HOLDS_ANY);
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
        free_pinned(plan->exchange[i]);
        free_pinned(plan->logits[i]);
        free_pinned(plan->maps[i]);
    }
    free_clocks(plan);
    free_event(plan->drained);
    if (plan->read_stream)
        (void)cudaStreamDestroy(plan->read_stream);
    free_event(plan->landed);
    free_pinned(plan->landing);
    return true;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

enum chex_status
cuda_enter(const struct plan *plan, struct chex_error *err)
{
    return cuda_check(cudaSetDevice(plan->device->number), "choosing the GPU", err);
}

enum chex_status
cuda_watch(struct plan *plan, bool begins, struct chex_error *err)
{
    struct reduce *r = plan->options.reduce;
    enum chex_status status = r->ops->wait ? r->ops->wait(r, begins, err) : r->ops->poll(r, err);

    if (status != CHEX_OK && r->ops->wait)
        cuda_drop_graphs(plan, HOLDS_ANY); /* NCCL waits until the graphs with its sums are destroyed */
    return status;
}

/* Waits until the event is reached or *e is an error. */
static enum chex_status
wait_until(struct plan *plan, cudaEvent_t event, cudaError_t *e, struct chex_error *err)
{
    bool begins = true;

    *e = cudaEventQuery(event);
    if (*e == cudaErrorNotReady && !cuda_has_peers(plan) && !cuda_sums_on_device(plan))
        *e = cudaEventSynchronize(event);
    for (; *e == cudaErrorNotReady; *e = cudaEventQuery(event)) {
        enum chex_status status = cuda_watch(plan, begins, err);

        if (status != CHEX_OK)
            return status;
        begins = false;
        backoff(20e-6);
    }
    return CHEX_OK;
}

enum chex_status
cuda_wait(struct plan *plan, cudaEvent_t event, const char *what, struct chex_error *err)
{
    cudaError_t e;
    enum chex_status status = wait_until(plan, event, &e, err);

    return status == CHEX_OK ? cuda_check(e, what, err) : status;
}

enum chex_status
cuda_drain(struct plan *plan, const char *what, struct chex_error *err)
{
    cudaError_t e = cudaEventRecord(plan->drained, plan->compute);

    return e == cudaSuccess ? cuda_wait(plan, plan->drained, what, err) : cuda_check(e, what, err);
}

enum chex_status
cuda_drain_kernel(struct plan *plan, const char *kernel, struct chex_error *err)
{
    cudaError_t e = cudaEventRecord(plan->drained, plan->compute);
    enum chex_status status = e == cudaSuccess ? wait_until(plan, plan->drained, &e, err) : CHEX_OK;

    return status == CHEX_OK ? cuda_check_kernel(e, kernel, err) : status;
}

static bool
is_idle_within(const struct plan *plan, double seconds)
{
    double end = clock_now() + seconds;
    cudaError_t e;

    while ((e = cudaStreamQuery(plan->compute)) == cudaErrorNotReady && clock_now() < end)
        backoff(20e-6);
    return e != cudaErrorNotReady;
}

bool
cuda_quiesce(struct plan *plan)
{
    struct reduce *r = plan->options.reduce;

    if (!cuda_sums_on_device(plan)) {
        (void)cudaStreamSynchronize(plan->compute);
        return true;
    }
    if (is_idle_within(plan, QUIESCE_SECONDS))
        return true;
    r->ops->give_up(r);
    cuda_drop_graphs(plan, HOLDS_ANY); /* NCCL waits until the graphs with its sums are destroyed */
    return is_idle_within(plan, 10 * QUIESCE_SECONDS);
}
