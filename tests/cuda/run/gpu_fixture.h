/*
 * gpu_fixture.h - plans on emulated GPUs and on the reference, for the tests of train/cuda
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_GPU_FIXTURE_H
#define CHEX_TESTS_GPU_FIXTURE_H

#include "unit.h"

#include "cuda/backend.h"
#include "cuda/run/plan.h"
#include "emulator.h"
#include "train/backend/step_fixture.h"

#define GPU_SIDE  32
#define GPU_FROM  36 /* side of the images */
#define GPU_BATCH 2
#define GPU_MICRO 3 /* micro-batches of a step */

extern const struct backend backend_ref;

struct gpu_plan {
    struct step_plan p;
    struct plan_options options;
};

/* Returns a DenseNet of two blocks, small enough for the emulator; graph_free(). */
struct graph *gpu_graph(void);
/* Options to train it in fp32, which only the emulated device supports; Adam, with an average. */
struct plan_options gpu_options(const struct graph *g);
/* Make a plan with random weights, in parameters and average. */
void gpu_make(struct gpu_plan *p, const struct backend *backend, const struct plan_options *o);
void gpu_make_on(struct gpu_plan *p, const struct backend *backend, unsigned device, const struct plan_options *o);

struct gpu_batch {
    uint8_t pixels[GPU_BATCH * GPU_FROM * GPU_FROM], label[GPU_BATCH * OUTPUTS];
    struct crop crop[GPU_BATCH];
    float weight[GPU_BATCH];
    struct batch batch;
};

/* Draws a micro-batch that differs from others in every part; the first `images` are not padding. */
void gpu_draw(struct gpu_batch *b, uint32_t number, unsigned images);

/* Starts a step of this number of micro-batches (the last of several has one image); sets its ticket. */
enum chex_status gpu_start(struct step_plan *p, uint32_t number, unsigned batches, uint64_t *ticket,
                           struct chex_error *err);
enum chex_status gpu_wait(struct step_plan *p, uint64_t ticket, struct step_result *r, struct chex_error *err);
/* Makes a step, which must succeed. */
void gpu_step(struct step_plan *p, uint32_t number, unsigned batches, struct step_result *r);

/* Returns a copy of an arena; free(). */
float *gpu_read(const struct gpu_plan *p, enum arena_id arena);
/* Returns the norm of the difference divided by the norm of `wanted`. */
double gpu_distance(const float *got, const float *wanted, size_t count);
void gpu_is_near(const struct gpu_plan *got, const struct gpu_plan *wanted, enum arena_id arena, double most);

#endif
