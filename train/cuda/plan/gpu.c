/*
 * gpu.c - see gpu.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/plan/gpu.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define MIB 1048576.0

/*
 * Copies and products: what published measurements of large copies and large half-precision products reach, beside the
 * data sheets' 900 GB/s and 125 TFLOP/s (V100 SXM2), 1,555 GB/s and 312 (A100 40 GB), 3,350 and 989 (H100 SXM5), 4,800
 * and 989 (H200).  mma.sync reaches 0.80, 0.85 and, as Hopper's own instruction is another one (Luo et al.,
 * "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking", 2024), 0.62 of that.  cuDNN
 * uses Hopper's own, and is taken to reach 70 % of the peak.  L2: the data sheets; gaps: of the nodes of graphs,
 * published.  None of it was measured by this project.  The last of a generation stands for others of it, and the last
 * of all for what comes.
 */
static const struct cuda_gpu gpus[] = {
    {"V100", 7, 80, 790e9, 0.80 * 100e12, 0, 6 * MIB, 2.0e-6},
    {"A100", 8, 108, 1.35e12, 0.85 * 270e12, 0, 40 * MIB, 1.5e-6},
    {"H100", 9, 132, 3.0e12, 0.62 * 790e12, 0.70 * 989e12, 50 * MIB, 1.2e-6},
    {"H200", 9, 132, 4.3e12, 0.62 * 790e12, 0.70 * 989e12, 50 * MIB, 1.2e-6},
};
#define GPUS (sizeof(gpus) / sizeof(*gpus))

/* As a word of its own: an RTX A1000 is no A100. */
static bool
has_word(const char *text, const char *word)
{
    const char *at = text;

    while ((at = strstr(at, word))) {
        if ((at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[strlen(word)]))
            return true;
        at++;
    }
    return false;
}

const struct cuda_gpu *
cuda_gpu_like(const char *name, unsigned major)
{
    const struct cuda_gpu *like = &gpus[GPUS - 1];
    size_t i;

    for (i = 0; i < GPUS; i++)
        if (has_word(name, gpus[i].name))
            return &gpus[i];
    for (i = 0; i < GPUS; i++)
        if (gpus[i].major == major)
            like = &gpus[i];
    return like;
}

struct cuda_gpu
cuda_gpu_of(unsigned major, unsigned processors)
{
    struct cuda_gpu gpu = *cuda_gpu_like("", major);
    double part = (double)processors / gpu.processors; /* each multiprocessor has its own */

    gpu.mma *= part;
    gpu.cudnn *= part;
    gpu.processors = processors;
    return gpu;
}

/* sm_75; sm_86 and sm_89; sm_90; sm_100; sm_120. */
unsigned
cuda_shared_of(unsigned major)
{
    return major == 0 || major == 9 || major == 10 ? 227u << 10 : major < 8 ? 64u << 10 : 99u << 10;
}

#define OF_COPY   0.80   /* of its bandwidth, what a kernel reaches */
#define OF_MMA    0.75   /* of the rate of mma.sync, what a product reaches with its largest tiles */
#define CACHED    0.6    /* what takes less than this part of the L2 is found there */
#define FASTER    2.0    /* so much faster it comes from there */
#define TILE_FILL 1.5e-6 /* seconds to fill and to drain a tile */

double
cuda_memory_seconds(const struct cuda_gpu *gpu, double bytes)
{
    double seconds = bytes / (gpu->copy * OF_COPY);

    return bytes < CACHED * gpu->cache ? seconds / FASTER : seconds;
}

/*
 * What a form reaches beside the largest, by what it reads from the L2 for each product: 64x128 half as much again as
 * 128x128, 64x64 twice as much.  A straight line through 1, 0.85 and 0.7, which no form is below.
 */
#define LEAST_SPEED 0.7
static double
speed_of(unsigned rows, unsigned columns, double lines)
{
    double read = 64.0 * (lines + columns) / ((double)rows * columns); /* 1: of 128x128 */
    double speed = 1.0 - 0.3 * (read - 1.0);

    return speed < LEAST_SPEED ? LEAST_SPEED : speed > 1 ? 1 : speed;
}

double
cuda_tile_seconds(const struct cuda_gpu *gpu, unsigned rows, unsigned columns, double lines, double depth)
{
    double rate = gpu->mma * OF_MMA / gpu->processors * speed_of(rows, columns, lines);

    return 2.0 * rows * columns * depth / rate + TILE_FILL;
}
