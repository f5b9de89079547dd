/*
 * gpu.h - what GPUs reach: bytes, products, tiles
 *
 * One set of figures chooses the forms of products (conv.c) and says how long a plan takes (cost_seconds.h): modelled,
 * not measured.  80 % of the bandwidth of a copy; 75 % of the rate of mma.sync, in whole rounds of tiles on the
 * multiprocessors; what fits into the L2 moves twice as fast.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_GPU_H
#define CHEX_CUDA_PLAN_GPU_H

#include <stddef.h>

struct cuda_gpu {
    const char *name; /* a word of what the runtime calls it: "H200" */
    unsigned major, processors;
    double copy;  /* bytes a second, read and written by a copy */
    double mma;   /* FLOP a second that mma.sync reaches in half precision, dense */
    double cudnn; /* FLOP a second that a convolution of cuDNN reaches; 0: it is taken for as fast as the own kernel */
    double cache; /* bytes of the L2 */
    double gap;   /* seconds between two launches of a graph of which one waits for the other */
};

/* The one of this name, else one like it: of the same generation, or the last. */
const struct cuda_gpu *cuda_gpu_like(const char *name, unsigned major);

/* The last of a generation, with so many multiprocessors; major 0: the newest. */
struct cuda_gpu cuda_gpu_of(unsigned major, unsigned processors);

/* Shared memory that a block may have on all devices of a generation; major 0: the newest. */
unsigned cuda_shared_of(unsigned major);

/* Seconds to move so many bytes in one launch. */
double cuda_memory_seconds(const struct cuda_gpu *gpu, double bytes);

/* Seconds of a tile of a product with `depth` values of k, for each of which it reads so many lines and its columns. */
double cuda_tile_seconds(const struct cuda_gpu *gpu, unsigned rows, unsigned columns, double lines, double depth);

#endif
