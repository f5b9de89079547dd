/*
 * cuda_plan.c - see cuda_plan.h: how large a plan is, and its memory on the device
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu/cuda_plan.h"

#include "base/progress.h"
#include "base/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The version of the algorithms: it changes when the same input gives other bits.  It is the same for all GPUs, whose
 * bits differ, so that a run goes on from one to another.
 */
#define ALGORITHMS "cuda 1"

/* ---- how large --------------------------------------------------------------------------------------------------- */

static enum chex_status
hash_algorithms(enum precision precision, char hex[PLAN_ALGORITHMS], struct chex_error *err)
{
    struct digest *digest = digest_new();
    uint8_t hash[DIGEST_SIZE];
    char text[32];

    if (!digest)
        return error_memory(err);
    snprintf(text, sizeof(text), ALGORITHMS " %s", precision_names[precision]);
    digest_start(digest);
    digest_add(digest, text, strlen(text));
    digest_finish(digest, hash);
    digest_free(digest);
    digest_hex(hash, (PLAN_ALGORITHMS - 1) / 2, hex);
    return CHEX_OK;
}

static enum precision
choose_precision(const struct cuda_device *device, enum precision wanted)
{
    return wanted == PRECISION_AUTO ? device->device.info.precision : wanted;
}

/* The layout of these options, of which the precision is the one that was chosen, and what was chosen. */
static enum chex_status
make_layout(const struct cuda_device *device, const struct plan_options *o, uintptr_t base, struct cuda_layout *layout,
            struct plan_facts *facts, struct chex_error *err)
{
    struct cuda_chip chip;
    enum chex_status status = cuda_chip_of(device, o->precision, &chip, err);

    *layout = (struct cuda_layout){.options = NULL};
    if (status == CHEX_OK)
        status = hash_algorithms(o->precision, facts->algorithms, err);
    if (status == CHEX_OK)
        status = cuda_layout_make(layout, o, &chip, base, err);
    facts->precision = o->precision;
    facts->memory = layout->memory;
    return status;
}

static enum chex_status
size_of(const struct cuda_device *device, const struct plan_options *o, size_t *bytes, struct plan_facts *facts,
        struct chex_error *err)
{
    struct plan_options chosen = *o;
    struct cuda_layout layout;
    enum chex_status status;

    chosen.precision = choose_precision(device, o->precision);
    status = make_layout(device, &chosen, 0, &layout, facts, err);
    *bytes = layout.bytes;
    cuda_layout_free(&layout);
    return status;
}

enum chex_status
cuda_plan_size(const struct device *device, const struct plan_options *o, struct plan_facts *facts,
               struct chex_error *err)
{
    size_t bytes;

    return size_of((const struct cuda_device *)(const void *)device, o, &bytes, facts, err);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static enum chex_status
too_little(const struct plan_options *o, size_t needed, size_t there, struct chex_error *err)
{
    char needed_text[PROGRESS_TEXT], there_text[PROGRESS_TEXT];

    return error_set(err, CHEX_ERR_MEMORY,
                     "a micro-batch of %u images needs %s of the memory of the GPU, of which %s are free", o->batch,
                     format_bytes(needed, needed_text), format_bytes(there, there_text));
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
    if (e == cudaErrorMemoryAllocation) { /* in pieces, or another process was faster */
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

    for (i = 0; i < ARENA_COUNT && e == cudaSuccess; i++) {
        size_t floats = i == ARENA_GRADIENTS ? l->sum_floats : arena_floats(l->graph, (enum arena_id)i);

        if (l->arena[i])
            e = cudaMemset((void *)l->arena[i], 0, floats * sizeof(float));
    }
    return e;
}

/* Arenas, the state and the tables as they are at first. */
static cudaError_t
fill_memory(const struct plan *plan, const float *statistics)
{
    const struct cuda_layout *l = &plan->layout;
    const struct graph *g = l->graph;
    const struct step_state state = {.loss_scale = l->loss_scale, .unscale = 1 / l->loss_scale, .bad = STEP_BAD_NONE};
    cudaError_t e = clear_arenas(plan);

    if (e == cudaSuccess)
        e = put(l->arena[ARENA_STATISTICS], statistics, g->stat_floats * sizeof(float));
    if (e == cudaSuccess)
        e = put(l->state, &state, sizeof(state));
    if (e == cudaSuccess)
        e = put(l->entry_at, l->entry, l->entries * sizeof(*l->entry));
    if (e == cudaSuccess)
        e = put(l->stat_pixels_at, l->stat_pixels, g->stat_floats * sizeof(*l->stat_pixels));
    if (e == cudaSuccess)
        e = put(l->positive_weight_at, l->positive_weight, g->buffer[g->output].channels * sizeof(float));
    /* cudaMemset() does not wait, and no stream of the plan is ordered behind it. */
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

static enum chex_status
start(struct plan *plan, struct plan_facts *facts, struct chex_error *err)
{
    size_t bytes = 0;
    enum chex_status status = prepare(plan->device, &plan->options, err);

    if (status == CHEX_OK)
        status = size_of(plan->device, &plan->options, &bytes, facts, err);
    if (status == CHEX_OK)
        status = take_memory(plan, bytes, err);
    if (status == CHEX_OK)
        status = make_layout(plan->device, &plan->options, (uintptr_t)plan->memory, &plan->layout, facts, err);
    if (status == CHEX_OK && plan->layout.bytes != bytes)
        status = error_set(err, CHEX_ERR_BUG, "a plan of %zu bytes takes %zu", bytes, plan->layout.bytes);
    if (status == CHEX_OK)
        status = start_memory(plan, err);
    plan->facts = *facts;
    return status == CHEX_OK ? cuda_steps_new(plan, err) : status;
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
    plan->options = *o;
    plan->options.precision = choose_precision(plan->device, o->precision);
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
    cuda_steps_free(plan);
    (void)cudaFree(plan->memory);
    cuda_layout_free(&plan->layout);
    free(plan);
}
