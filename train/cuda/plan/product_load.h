/*
 * product_load.h - what the launch of a product needs of each resource, in the cost model of gpu.h
 *
 * The choice of tile shapes (conv.c) and the report of a plan (cost_seconds.c) use the same functions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_PRODUCT_LOAD_H
#define CHEX_CUDA_PLAN_PRODUCT_LOAD_H

#include "cuda/plan/gpu.h"
#include "cuda/plan/product.h"

#define CUDA_WARP_LOAD 512.0 /* bytes of a load of 16 bytes by each thread of a warp */

double cuda_warps_of(const struct cuda_counts *k);

/* Returns the threads, registers and shared memory of a kernel; more_shared: bytes in addition to the kernel's. */
struct cuda_load cuda_start_load(const struct cuda_counts *k, unsigned more_shared);

/* Returns what a product needs, without its bytes in DRAM. */
struct cuda_load cuda_product_load(const struct cuda_gpu *gpu, enum cuda_kernel_id kernel,
                                   const struct cuda_tile_shape *t, const struct cuda_product *p, bool has_norm,
                                   unsigned more_shared);
/* As above, for dgrad and wgrad in one launch. */
struct cuda_load cuda_pair_load(const struct cuda_gpu *gpu, enum cuda_kernel_id kernel,
                                const struct cuda_pair_shapes *t, const struct cuda_product *dgrad,
                                const struct cuda_product *wgrad, bool has_norm, unsigned more_shared);

#endif
