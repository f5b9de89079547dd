/*
 * cost_seconds.h - estimates the time of a launch on a GPU from its memory traffic and its products (cost.h)
 *
 * Modelled, not measured: the larger of memory time and product time (gpu.h), plus the gap between launches.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_COST_SECONDS_H
#define CHEX_CUDA_PLAN_COST_SECONDS_H

#include "cuda/plan/cost.h"
#include "cuda/plan/gpu.h"

/* Returns the seconds of a launch, including the gap after it. */
double cuda_seconds(const struct cuda_gpu *gpu, const struct cuda_op *op, const struct cuda_work *work);

/* Returns the number of tiles of a convolution and sets their rows and columns. */
size_t cuda_tiles(const struct cuda_op *op, unsigned *rows, unsigned *columns);

#endif
