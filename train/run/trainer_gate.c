/*
 * trainer_gate.c - fits the gate (gate.h) to the images of val, for the best model; see trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include <stdlib.h>

#define READ_BATCH   16
#define READ_AHEAD   2
#define READ_THREADS 1

/* Shrink the images of a micro-batch and append them. */
static enum chex_status
shrink(const struct loaded *loaded, unsigned source, struct resampler *r, uint8_t *out, size_t *count,
       struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    unsigned i;

    for (i = 0; status == CHEX_OK && i < READ_BATCH; i++) {
        if (loaded->weights[i] == 0)
            continue;
        status = gate_shrink(r, loaded->batch.pixels + (size_t)i * source * source, source, out + *count * GATE_PIXELS,
                             err);
        *count += status == CHEX_OK;
    }
    return status;
}

/* Read images and fit.  A reader of its own: another thread may use that of the run. */
static enum chex_status
fit(const struct trainer_task *task, const struct samples *samples, uint32_t *order, size_t wanted, uint8_t *images,
    struct gate *out, struct chex_error *err)
{
    const unsigned source = chex_dataset_info(task->ds)->width;
    struct loader_options o = {
        .ds = task->ds,
        .samples = samples,
        .order = order,
        .side = task->side,
        .batch = READ_BATCH,
        .stride = READ_BATCH,
        .count = (wanted + READ_BATCH - 1) / READ_BATCH,
        .each = 1,
        .threads = READ_THREADS,
        .ahead = READ_AHEAD,
        .skip_bad = true,
        .check_crc = true,
    };
    struct resampler r = {.method = RESAMPLE_AREA};
    struct loader *loader = NULL;
    struct loaded *loaded = NULL;
    size_t count = 0;
    enum chex_status status = loader_start(&o, &loader, err);

    while (status == CHEX_OK && (status = loader_next(loader, &loaded, err)) == CHEX_OK && loaded) {
        status = shrink(loaded, source, &r, images, &count, err);
        loader_return(loader, loaded);
    }
    loader_free(loader);
    resampler_release(&r);
    return status == CHEX_OK ? gate_fit(images, count < wanted ? count : wanted, out, err) : status;
}

enum chex_status
trainer_fit_gate(const struct trainer_task *task, struct gate *out, struct chex_error *err)
{
    const struct samples *samples = &task->evaluated;
    size_t stride = (samples->count + GATE_MOST - 1) / GATE_MOST, wanted = 0, i;
    uint32_t *order = calloc(samples->count + 1, sizeof(*order));
    uint8_t *images = NULL;
    enum chex_status status = CHEX_OK;

    out->there = false;
    /* First the images of the fit, then the others, which replace damaged records. */
    for (i = 0; order && i < samples->count; i += stride)
        order[wanted++] = (uint32_t)i;
    for (i = 0; order && i < samples->count; i++)
        if (i % stride != 0)
            order[wanted + i - i / stride - 1] = (uint32_t)i;
    images = calloc(wanted + READ_BATCH, GATE_PIXELS);
    if (!order || !images)
        status = error_memory(err);
    else if (wanted >= GATE_FEWEST && chex_dataset_info(task->ds)->width >= GATE_SIDE)
        status = fit(task, samples, order, wanted, images, out, err);
    free(order);
    free(images);
    return status;
}
