/*
 * counts.h - registers, instructions and accesses of each kernel, counted in its machine code, for the cost model
 *
 * counts.c is generated (tests/cuda/kernels/check_sass.py).  Counts are those of one warp, on the longest path through
 * the code; so they include a little that is rarely taken.
 *
 *   step   of a product: an iteration of the main loop, 32 values of k; of conv_fprop_128x32_halo: 32 channels with all
 *          nine taps; of dgrad with a halo: a tile with all nine taps, as if each tile copied the weights; of
 *          conv_one_pass: a tile of ONE_PASS_PIXELS pixels
 *   unit   of a product: a tile without its steps; of conv_one_pass: a CTA without its tiles; of other kernels: an
 *          iteration of the loop over a slab, or, without loads and stores, the whole kernel
 *
 * A kernel that computes dgrad and wgrad has its counts of wgrad in addition.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_COUNTS_H
#define CHEX_CUDA_KERNELS_COUNTS_H

#include "cuda/kernels/launch.h"

struct cuda_count {
    unsigned instructions;
    unsigned shared;        /* cycles of shared memory, 128 bytes each, without bank conflicts */
    unsigned mma;           /* instructions of tensor cores */
    unsigned loads, stores; /* of global memory, 16 bytes per thread */
    unsigned bare;          /* of a step: instructions without its prologue, for a launch without a BN */
};
struct cuda_counts {
    const char *name; /* without the type of values */
    unsigned registers, threads, shared;
    struct cuda_count step, unit;
    struct cuda_count wgrad_step, wgrad_unit; /* of the second product of a pair */
};

/* Returns the counts of all kernels, [CUDA_KERNEL_COUNT], for the nearest of sm_70, sm_80 and sm_90. */
const struct cuda_counts *cuda_counts_of(unsigned major, enum cuda_value value);

#endif
