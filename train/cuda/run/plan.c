/*
 * plan.c - computes the size of a plan, and creates it in the memory of the device; see plan.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/run/plan.h"

#include "base/number_format.h"
#include "cuda/plan/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- size -------------------------------------------------------------------------------------------------------- */

/* Sets `version` to the version of cuDNN, or to "" if only own kernels are used. */
static enum chex_status
find_cudnn(const struct plan_options *o, char version[BACKEND_LIBRARY], struct chex_error *err)
{
    version[0] = '\0';
    if (o->engine == ENGINE_CUDNN && cudnn_version(version) == 0)
        return error_set(err, CHEX_ERR_UNSUPPORTED, "--engine cudnn: %s", version);
    return CHEX_OK;
}

enum chex_status
cuda_plan_size(const struct device *device, const struct plan_options *o, struct plan_facts *facts,
               struct chex_error *err)
{
    char version[BACKEND_LIBRARY];
    enum chex_status status = find_cudnn(o, version, err);

    return status == CHEX_OK ? cuda_size(device, o, version, facts, err) : status;
}

enum chex_status
cuda_plan_model(const struct device *device, const struct plan_options *o, const struct plan *plan,
                struct plan_model *out, struct chex_error *err)
{
    char version[BACKEND_LIBRARY];
    enum chex_status status = find_cudnn(o, version, err);

    *out = (struct plan_model){.launch = NULL};
    return status == CHEX_OK ? cuda_size_model(device, o, plan ? &plan->layout : NULL, version, out, err) : status;
}

/* Computes the layout of a plan: cuda_size_layout(). */
static enum chex_status
make_layout(const struct plan *plan, bool measure, struct cuda_layout *layout, struct plan_facts *facts,
            struct chex_error *err)
{
    char version[BACKEND_LIBRARY];
    enum chex_status status = find_cudnn(&plan->options, version, err);

    *layout = (struct cuda_layout){.options = NULL};
    if (status != CHEX_OK)
        return status;
    return cuda_size_layout(plan->device, &plan->options, plan->refused, version, measure, layout, facts, err);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static enum chex_status
too_little(const struct plan_options *o, size_t needed, size_t there, struct chex_error *err)
{
    char needed_text[FORMAT_TEXT], there_text[FORMAT_TEXT];

    return error_set(
        err, CHEX_ERR_MEMORY, "a micro-batch of %u images needs %s of the memory of the GPU, of which %s are free",
        o->batch, format_bytes_compared(needed, there, needed_text), format_bytes_compared(there, needed, there_text));
}

static enum chex_status
take_memory(struct plan *plan, size_t bytes, struct chex_error *err)
{
    size_t there = 0, all = 0;
    cudaError_t e = cudaMemGetInfo(&there, &all);

    if (e != cudaSuccess)
        return cuda_check(e, "asking for the free memory", err);
    if (bytes > there)
        return too_little(&plan->options, bytes, there, err);
    e = cudaMalloc(&plan->memory, bytes);
    if (e == cudaErrorMemoryAllocation) { /* the memory is fragmented, or another process took it */
        (void)cudaGetLastError();
        return too_little(&plan->options, bytes, there, err);
    }
    return cuda_check(e, "taking the memory of a plan", err);
}

static cudaError_t
put(uintptr_t at, const void *from, size_t bytes)
{
    return bytes > 0 && from ? cudaMemcpy((void *)at, from, bytes, cudaMemcpyHostToDevice) : cudaSuccess;
}

static cudaError_t
clear_arenas(const struct plan *plan)
{
    const struct cuda_layout *l = &plan->layout;
    cudaError_t e = cudaSuccess;
    int i;

    for (i = 0; i < ARENA_COUNT && e == cudaSuccess; i++)
        if (l->arena[i])
            e = cudaMemset((void *)l->arena[i], 0, arena_floats(l->graph, (enum arena_id)i) * sizeof(float));
    if (e == cudaSuccess && l->sums)
        e = cudaMemset((void *)l->sums, 0, l->sum_floats * sizeof(float));
    return e;
}

/* Writes the initial arenas, state and tables. */
static cudaError_t
fill_memory(const struct plan *plan, const float *statistics)
{
    const struct cuda_layout *l = &plan->layout;
    const struct graph *g = l->graph;
    const struct step_state state = {.loss_scale = l->loss_scale, .unscale = 1 / l->loss_scale, .bad = STEP_BAD_NONE};
    cudaError_t e = clear_arenas(plan);
    int i;

    if (e == cudaSuccess)
        e = put(l->arena[ARENA_STATISTICS], statistics, g->stat_floats * sizeof(float));
    if (e == cudaSuccess)
        e = put(l->state, &state, sizeof(state));
    for (i = 0; i < CUDA_TABLE_COUNT && e == cudaSuccess; i++)
        e = put(l->table[i].at, l->table[i].host, l->table[i].bytes);
    /* cudaMemset() is asynchronous, and no stream of the plan waits for it. */
    return e == cudaSuccess ? cudaDeviceSynchronize() : e;
}

static enum chex_status
start_memory(const struct plan *plan, struct chex_error *err)
{
    const struct graph *g = plan->layout.graph;
    float *statistics = calloc(g->stat_floats ? g->stat_floats : 1, sizeof(*statistics));
    cudaError_t e;

    if (!statistics)
        return error_memory(err);
    arena_start_statistics(g, statistics);
    e = fill_memory(plan, statistics);
    free(statistics);
    return cuda_check(e, "filling the memory of a plan", err);
}

/* ---- cuDNN ------------------------------------------------------------------------------------------------------- */

/* The lists that contain convolutions. */
static const enum cuda_list_id with_convolutions[] = {CUDA_LIST_FORWARD, CUDA_LIST_BACKWARD, CUDA_LIST_SCORE,
                                                      CUDA_LIST_SCORE_AVERAGE};
#define WITH_CONVOLUTIONS (sizeof(with_convolutions) / sizeof(with_convolutions[0]))

/* Calls `call` for each launch that cuDNN runs, until one fails. */
static enum chex_status
each_by_cudnn(struct plan *plan, const struct cuda_layout *l,
              enum chex_status (*call)(struct plan *plan, const struct cuda_op *op, struct chex_error *err),
              struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t i, k;

    for (i = 0; i < WITH_CONVOLUTIONS; i++) {
        const struct cuda_list *list = &l->list[with_convolutions[i]];

        for (k = 0; k < list->count && status == CHEX_OK; k++)
            if (list->op[k].by_cudnn)
                status = call(plan, &list->op[k], err);
    }
    return status;
}

static enum chex_status
ask_about(struct plan *plan, const struct cuda_op *op, struct chex_error *err)
{
    struct cuda_conv conv = cuda_conv_of(op);
    bool takes = true;
    enum chex_status status = cudnn_takes(plan->cudnn, &conv, &takes, err);

    if (!takes)
        plan->refused[op->node] |= (unsigned char)(1u << conv.kind);
    return status;
}

/*
 * Asks cuDNN about each convolution; own kernels run those that it refuses.  The answer does not depend on addresses,
 * so the layout has none yet.
 */
static enum chex_status
ask_cudnn(struct plan *plan, struct chex_error *err)
{
    struct cuda_layout l;
    struct plan_facts facts;
    enum chex_status status = make_layout(plan, false, &l, &facts, err);

    if (status == CHEX_OK && cuda_size_has_cudnn(&l))
        status = cudnn_new(plan->options.precision, NULL, &plan->cudnn, err);
    if (status == CHEX_OK && plan->cudnn) {
        plan->refused = calloc(l.graph->node_count, sizeof(*plan->refused));
        status = plan->refused ? each_by_cudnn(plan, &l, ask_about, err) : error_memory(err);
    }
    cuda_layout_free(&l);
    return status;
}

static enum chex_status
run_once(struct plan *plan, const struct cuda_op *op, struct chex_error *err)
{
    return cudnn_run(plan->cudnn, op, plan->compute, err);
}

/*
 * Runs each convolution once on arbitrary values: cuDNN loads its kernels in the first run, which must not happen
 * during capture.
 */
static enum chex_status
warm_cudnn(struct plan *plan, struct chex_error *err)
{
    enum chex_status status = plan->cudnn ? each_by_cudnn(plan, &plan->layout, run_once, err) : CHEX_OK;

    return status == CHEX_OK && plan->cudnn ? cuda_drain(plan, "the first convolutions of cuDNN", err) : status;
}

/* ---- sums of the ranks ------------------------------------------------------------------------------------------- */

/*
 * Sums all buckets once, with their sizes and types, outside of a capture.  Since 2.22, NCCL connects the ranks for an
 * algorithm when a size first needs it.  All gradients are 0 and stay 0.  All ranks call this when they create a plan.
 */
static enum chex_status
connect_ranks(struct plan *plan, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    if (!plan->options.train || !cuda_sums_on_device(plan))
        return CHEX_OK;
    cuda_sums_begin(plan);
    status = cuda_sums_end(plan, err);
    return status == CHEX_OK ? cuda_drain(plan, "the first sums of the ranks", err) : status;
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static enum chex_status
prepare(struct cuda_device *device, const struct plan_options *o, struct chex_error *err)
{
    struct cuda_chip chip;
    enum chex_status status = cuda_chip_of(device, o->precision, &chip, err);
    cudaError_t e;

    if (status != CHEX_OK)
        return status;
    e = cudaSetDevice(device->number);
    if (e == cudaSuccess)
        e = cuda_prepare(chip.set);
    return cuda_check(e, "preparing the kernels", err);
}

/* Measures the layout, allocates its memory and computes its addresses and launches. */
static enum chex_status
place_layout(struct plan *plan, struct plan_facts *facts, struct chex_error *err)
{
    struct cuda_layout sizes;
    enum chex_status status = make_layout(plan, true, &sizes, facts, err);

    if (status == CHEX_OK)
        status = take_memory(plan, sizes.bytes, err);
    if (status == CHEX_OK)
        status = cuda_layout_make_measured(&plan->layout, &sizes, (uintptr_t)plan->memory, err);
    if (status == CHEX_OK && plan->layout.bytes != sizes.bytes)
        status = error_set(err, CHEX_ERR_BUG, "a plan of %zu bytes takes %zu", sizes.bytes, plan->layout.bytes);
    cuda_layout_free(&sizes);
    return status;
}

static enum chex_status
start(struct plan *plan, struct plan_facts *facts, struct chex_error *err)
{
    enum chex_status status = prepare(plan->device, &plan->options, err);

    if (status == CHEX_OK)
        status = plan->options.engine == ENGINE_CUDNN ? ask_cudnn(plan, err) : CHEX_OK;
    if (status == CHEX_OK)
        status = place_layout(plan, facts, err);
    if (status == CHEX_OK)
        status = start_memory(plan, err);
    if (status == CHEX_OK && facts->pdl)
        status = cuda_check(cuda_launches_early(plan->layout.chip.set, &facts->pdl), "asking for the kernels", err);
    plan->facts = *facts;
    if (status == CHEX_OK)
        status = cuda_steps_new(plan, err);
    if (status == CHEX_OK)
        status = warm_cudnn(plan, err);
    return status == CHEX_OK ? connect_ranks(plan, err) : status;
}

enum chex_status
cuda_plan_new(struct device *device, const struct plan_options *o, struct plan **out, struct plan_facts *facts,
              struct chex_error *err)
{
    struct plan *plan = calloc(1, sizeof(*plan));
    enum chex_status status;

    *out = NULL;
    if (!plan)
        return error_memory(err);
    plan->device = (struct cuda_device *)(void *)device;
    plan->folded = ARENA_COUNT;
    plan->options = *o;
    plan->options.precision = cuda_size_precision(device, o->precision);
    status = start(plan, facts, err);
    if (status == CHEX_OK)
        *out = plan;
    else
        cuda_plan_free(plan);
    return status;
}

void
cuda_plan_free(struct plan *plan)
{
    if (!plan)
        return;
    (void)cudaSetDevice(plan->device->number);
    if (!cuda_steps_free(plan))
        return;
    cudnn_free(plan->cudnn);
    free(plan->refused);
    (void)cudaFree(plan->memory);
    cuda_layout_free(&plan->layout);
    free(plan);
}
