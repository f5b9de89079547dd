/*
 * cost_seconds.h - how long a launch would take on a GPU, by what it moves and multiplies (cost.h)
 *
 * Modelled, not measured: the longer of what it moves and of its products (gpu.h), and the gap between launches.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_COST_SECONDS_H
#define CHEX_CUDA_PLAN_COST_SECONDS_H

#include "cuda/plan/cost.h"
#include "cuda/plan/gpu.h"

/* Seconds of a launch, the gap behind it included. */
double cuda_seconds(const struct cuda_gpu *gpu, const struct cuda_op *op, const struct cuda_work *work);

/* Of a convolution: rows and columns of a tile, and how many tiles. */
size_t cuda_tiles(const struct cuda_op *op, unsigned *rows, unsigned *columns);

#endif
