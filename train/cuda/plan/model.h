/*
 * model.h - the launches of a step of a layout, as a model of a GPU has them (cost.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_MODEL_H
#define CHEX_CUDA_PLAN_MODEL_H

#include "cuda/plan/cost_seconds.h"
#include "cuda/plan/layout.h"

/* What the cost model needs to know of a layout, as long as the layout lives. */
struct cuda_place cuda_place_of(const struct cuda_layout *l);

/* "conv_forward_pointwise" of conv_forward_64x64_pointwise_fp16: launches of one kind.  Returns out. */
char *cuda_kind(const char *kernel, char out[PLAN_KERNEL]);

/* All launches of a step. */
enum chex_status cuda_model_make(const struct cuda_layout *l, const struct cuda_gpu *gpu, struct plan_model *out,
                                 struct chex_error *err);

#endif
