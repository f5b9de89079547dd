/*
 * model.h - the modelled launches of a step (cost.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_MODEL_H
#define CHEX_CUDA_PLAN_MODEL_H

#include "cuda/plan/cost_seconds.h"
#include "cuda/plan/layout.h"

/* Returns what the cost model needs from a layout; valid as long as the layout. */
struct cuda_place cuda_place_of(const struct cuda_layout *l);

/*
 * Returns out with the name without tile shape and precision: "conv_fprop_pointwise" for
 * conv_fprop_64x64_pointwise_fp16.
 */
char *cuda_kind(const char *kernel, char out[PLAN_KERNEL]);

/*
 * Returns launch `number` of a step, in the order of cuda_model_make() and of execution, or NULL after the last one.
 * slot: where its micro-batch is.
 */
const struct cuda_op *cuda_model_op(const struct cuda_layout *l, size_t number, unsigned slot);

/* Models all launches of a step. */
enum chex_status cuda_model_make(const struct cuda_layout *l, const struct cuda_gpu *gpu, struct plan_model *out,
                                 struct chex_error *err);

#endif
