/*
 * cost_seconds.h - estimates the time of a launch on a GPU: its memory traffic (cost.h), its products, and what its
 * kernel needs according to its machine code (kernels/counts.h), in the cost model of gpu.h
 *
 * Modelled, not measured.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_COST_SECONDS_H
#define CHEX_CUDA_PLAN_COST_SECONDS_H

#include "cuda/plan/cost.h"
#include "cuda/plan/gpu.h"

/* Returns the seconds of a launch, including the gap after it, and the resource that limits it. */
double cuda_seconds(const struct cuda_gpu *gpu, const struct cuda_op *op, const struct cuda_work *work,
                    enum cuda_limit *limit);

/* As above, for a reduce_sums launch that reduces `from` rows of per-channel partial sums to `to` rows. */
double cuda_reduce_seconds(const struct cuda_gpu *gpu, unsigned from, unsigned to, unsigned channels);

/* Returns what a launch needs, without its bytes.  `work` is not used for products. */
struct cuda_load cuda_load_of(const struct cuda_gpu *gpu, const struct cuda_op *op, const struct cuda_work *work);

/* The partial sums that `ctas` CTAs reduce in their prologue, each for this number of channels; NULL: none. */
struct cuda_prologue {
    const struct channel_sums *sums;
    double ctas;
    unsigned channels;
};
struct cuda_prologue cuda_prologue_of(const struct cuda_op *op);

/* Returns the number of tiles of a convolution and sets their rows and columns. */
size_t cuda_tiles(const struct cuda_op *op, unsigned *rows, unsigned *columns);

#endif
