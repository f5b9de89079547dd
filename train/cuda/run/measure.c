/*
 * measure.c - measures each launch of a step, without a profiler; see plan.h
 *
 * The launches of a step run in their order.  Each one is run many times between two events, so the clock of the device
 * gives the time of one run, with the gap to the next run.  Some launches add to what they find or change it in place,
 * so a copy of the plan's memory is restored after the measurement, and then the launch runs once.  Every launch
 * therefore sees the values of a real step.
 *
 * Data smaller than the L2 is found there, as it mostly is in a step, whose previous launch has just written it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/model.h"
#include "cuda/run/plan.h"

#include <stdlib.h>

enum { WARM = 2, ROUNDS = 5 };

struct measure {
    struct plan *plan;
    unsigned runs;
    void *saved; /* on the device: a copy of plan->memory */
    cudaEvent_t begin, end;
};

static enum chex_status
launch(const struct measure *m, const struct cuda_op *shared, struct chex_error *err)
{
    struct plan *plan = m->plan;
    const struct cuda_op own = cuda_with_exchange(plan, shared), *op = &own;
    const struct cuda_kernel *set = plan->layout.chip.set;

    if (op->by_cudnn)
        return cudnn_run(plan->cudnn, op, plan->compute, err);
    return cuda_check(cuda_launch(set, op, plan->compute), set[op->kernel].name, err);
}

static enum chex_status
launch_all(const struct measure *m, const struct cuda_op *op, unsigned runs, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    unsigned i;

    for (i = 0; i < runs && status == CHEX_OK; i++)
        status = launch(m, op, err);
    return status;
}

static enum chex_status
copy(const struct measure *m, void *to, const void *from, struct chex_error *err)
{
    return cuda_check(cudaMemcpyAsync(to, from, m->plan->layout.bytes, cudaMemcpyDeviceToDevice, m->plan->compute),
                      "copying the memory of a plan", err);
}

/* Records the runs as a graph; *out is NULL with plan_options.no_graph. */
static enum chex_status
record(const struct measure *m, const struct cuda_op *op, cudaGraphExec_t *out, struct chex_error *err)
{
    cudaStream_t stream = m->plan->compute;
    cudaGraph_t graph = NULL;
    enum chex_status status;
    cudaError_t ended;

    *out = NULL;
    if (m->plan->options.no_graph)
        return CHEX_OK;
    status = cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording a launch", err);
    if (status != CHEX_OK)
        return status;
    status = launch_all(m, op, m->runs, err);
    ended = cudaStreamEndCapture(stream, &graph); /* also after an error: it ends the capture */
    if (status == CHEX_OK)
        status = cuda_check(ended, "recording a launch", err);
    if (status == CHEX_OK)
        status = cuda_check(cudaGraphInstantiateWithFlags(out, graph, 0), "making a graph of a launch", err);
    if (graph)
        (void)cudaGraphDestroy(graph);
    return status;
}

static enum chex_status
measure_round(const struct measure *m, const struct cuda_op *op, cudaGraphExec_t graph, double *seconds,
              struct chex_error *err)
{
    cudaStream_t stream = m->plan->compute;
    enum chex_status status = cuda_check(cudaEventRecord(m->begin, stream), "an event", err);
    float ms = 0;

    if (status == CHEX_OK && graph)
        status = cuda_check(cudaGraphLaunch(graph, stream), "measuring a launch", err);
    else if (status == CHEX_OK)
        status = launch_all(m, op, m->runs, err);
    if (status == CHEX_OK)
        status = cuda_check(cudaEventRecord(m->end, stream), "an event", err);
    if (status == CHEX_OK)
        status = cuda_wait(m->plan, m->end, m->plan->layout.chip.set[op->kernel].name, err);
    if (status == CHEX_OK)
        status = cuda_check(cudaEventElapsedTime(&ms, m->begin, m->end), "measuring a launch", err);
    *seconds = (double)ms * 1e-3 / m->runs;
    return status;
}

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static enum chex_status
measure_op(const struct measure *m, const struct cuda_op *op, double *seconds, struct chex_error *err)
{
    double round[ROUNDS] = {0};
    cudaGraphExec_t graph;
    enum chex_status status = record(m, op, &graph, err);
    int i;

    if (status == CHEX_OK)
        status = launch_all(m, op, WARM, err);
    for (i = 0; i < ROUNDS && status == CHEX_OK; i++)
        status = measure_round(m, op, graph, &round[i], err);
    if (graph)
        (void)cudaGraphExecDestroy(graph);
    qsort(round, ROUNDS, sizeof(*round), by_size);
    *seconds = round[ROUNDS / 2];
    return status;
}

/* Makes a step of launches, and measures each one before its effect counts. */
static enum chex_status
measure_step(const struct measure *m, double *seconds, struct chex_error *err)
{
    const struct plan *plan = m->plan;
    enum chex_status status = CHEX_OK;
    const struct cuda_op *op;
    size_t i;

    for (i = 0; status == CHEX_OK && (op = cuda_model_op(&plan->layout, i, plan->slot)); i++) {
        status = copy(m, m->saved, plan->memory, err);
        if (status == CHEX_OK)
            status = measure_op(m, op, &seconds[i], err);
        if (status == CHEX_OK)
            status = copy(m, plan->memory, m->saved, err);
        if (status == CHEX_OK)
            status = launch(m, op, err);
    }
    return status == CHEX_OK ? cuda_drain(m->plan, "measuring launches", err) : status;
}

static enum chex_status
start(struct measure *m, struct chex_error *err)
{
    const struct plan *plan = m->plan;
    cudaError_t e;

    if (!plan->options.train || plan->ticket == 0 || plan->begun || cuda_has_peers(plan))
        return error_set(err, CHEX_ERR_BUG, "launches are measured between two steps of a plan without other ranks");
    if (cuda_drain(m->plan, "the latest step", err) != CHEX_OK)
        return err->status;
    e = cudaMalloc(&m->saved, plan->layout.bytes);
    if (e == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return error_set(err, CHEX_ERR_MEMORY, "measuring launches needs the memory of the plan twice: %zu bytes more",
                         plan->layout.bytes);
    }
    if (e == cudaSuccess)
        e = cudaEventCreateWithFlags(&m->begin, cudaEventDefault);
    if (e == cudaSuccess)
        e = cudaEventCreateWithFlags(&m->end, cudaEventDefault);
    return cuda_check(e, "preparing to measure launches", err);
}

enum chex_status
cuda_measure_launches(struct plan *plan, unsigned runs, double *seconds, struct chex_error *err)
{
    struct measure m = {.plan = plan, .runs = runs};
    enum chex_status status = cuda_enter(plan, err);
    struct cuda_exchange latest; /* of the latest step: its input is that of the measured one, its result stays */

    if (status == CHEX_OK)
        status = start(&m, err);
    plan->folded = ARENA_COUNT; /* as in cuda_run() */
    if (status == CHEX_OK) {
        plan->result = plan->ticket % 2;
        latest = *plan->exchange[plan->result];
        status = measure_step(&m, seconds, err);
        if (status != CHEX_OK)
            (void)cuda_quiesce(plan); /* the copy and the exchange must not be in use any more */
        *plan->exchange[plan->result] = latest;
    }
    if (m.begin)
        (void)cudaEventDestroy(m.begin);
    if (m.end)
        (void)cudaEventDestroy(m.end);
    (void)cudaFree(m.saved);
    return status;
}
