/*
 * gpu.h - performance of GPUs: memory bandwidth, products, tiles
 *
 * The same figures choose tile shapes (conv.c) and estimate the time of a plan (cost_seconds.h).  They are modelled,
 * not measured:
 *
 *   memory    80 % of the bandwidth of a copy; data that fits into the L2 moves twice as fast
 *   products  75 % of the rate of mma.sync, in whole waves of tiles on the multiprocessors
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_GPU_H
#define CHEX_CUDA_PLAN_GPU_H

#include <stddef.h>

struct cuda_gpu {
    const char *name; /* a word of the name in the CUDA runtime: "H200" */
    unsigned major, processors;
    double copy;  /* bytes per second, read and written, of a copy */
    double mma;   /* FLOP/s that mma.sync reaches in half precision, dense */
    double cudnn; /* FLOP/s that a convolution of cuDNN reaches; 0: the same as the own kernel */
    double cache; /* bytes of the L2 */
    double gap;   /* seconds between two dependent launches of a graph */
};

/* Returns the GPU of this name; otherwise the last one of its generation, or the last of all. */
const struct cuda_gpu *cuda_gpu_like(const char *name, unsigned major);

/* Returns the last GPU of a generation, scaled to this number of multiprocessors; major 0: the newest generation. */
struct cuda_gpu cuda_gpu_of(unsigned major, unsigned processors);

/* Returns the shared memory that a CTA may use on every device of a generation; major 0: the newest. */
unsigned cuda_shared_of(unsigned major);

/* Returns the seconds that one launch needs to move these bytes. */
double cuda_memory_seconds(const struct cuda_gpu *gpu, double bytes);

/* Returns the seconds of a tile of a product: for each of `depth` values of k it reads `lines` rows and its columns. */
double cuda_tile_seconds(const struct cuda_gpu *gpu, unsigned rows, unsigned columns, double lines, double depth);

#endif
