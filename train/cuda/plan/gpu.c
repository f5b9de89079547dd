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
 * Bandwidth and FLOP/s that published measurements report for large copies and for large half-precision products.  The
 * data sheets give 900 GB/s and 125 TFLOP/s (V100 SXM2), 1,555 GB/s and 312 (A100 40 GB), 3,350 and 989 (H100 SXM5),
 * 4,800 and 989 (H200).  mma.sync reaches 0.80 of the measured products on V100, 0.85 on A100 and 0.62 on Hopper, whose
 * own instruction is wgmma (Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via
 * Microbenchmarking", 2024).  cuDNN uses wgmma; it is assumed to reach 70 % of the peak.  L2 sizes are from the data
 * sheets, gaps between the nodes of graphs from publications.  This project measured none of these figures.  An unknown
 * GPU uses the last entry of its generation; an unknown generation uses the last entry.
 */
static const struct cuda_gpu gpus[] = {
    {"V100", 7, 80, 790e9, 0.80 * 100e12, 0, 6 * MIB, 2.0e-6},
    {"A100", 8, 108, 1.35e12, 0.85 * 270e12, 0, 40 * MIB, 1.5e-6},
    {"H100", 9, 132, 3.0e12, 0.62 * 790e12, 0.70 * 989e12, 50 * MIB, 1.2e-6},
    {"H200", 9, 132, 4.3e12, 0.62 * 790e12, 0.70 * 989e12, 50 * MIB, 1.2e-6},
};
#define GPUS (sizeof(gpus) / sizeof(*gpus))

/* Matches whole words: an RTX A1000 is not an A100. */
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
    double part = (double)processors / gpu.processors; /* rates are proportional to the number of multiprocessors */

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

#define OF_COPY   0.80   /* fraction of the copy bandwidth that a kernel reaches */
#define OF_MMA    0.75   /* fraction of the rate of mma.sync that a product with the largest tiles reaches */
#define CACHED    0.6    /* data smaller than this fraction of the L2 is found there */
#define FASTER    2.0    /* speedup of data in the L2 */
#define TILE_FILL 1.5e-6 /* seconds to fill and drain the pipeline of a tile */

double
cuda_memory_seconds(const struct cuda_gpu *gpu, double bytes)
{
    double seconds = bytes / (gpu->copy * OF_COPY);

    return bytes < CACHED * gpu->cache ? seconds / FASTER : seconds;
}

/*
 * Relative speed of a tile shape, from its L2 traffic per product: 64x128 reads 1.5 times as much as 128x128, 64x64
 * twice as much.  A straight line through 1, 0.85 and 0.7; no shape is below LEAST_SPEED.
 */
#define LEAST_SPEED 0.7
static double
speed_of(unsigned rows, unsigned columns, double lines)
{
    double read = 64.0 * (lines + columns) / ((double)rows * columns); /* 1 for 128x128 */
    double speed = 1.0 - 0.3 * (read - 1.0);

    return speed < LEAST_SPEED ? LEAST_SPEED : speed > 1 ? 1 : speed;
}

double
cuda_tile_seconds(const struct cuda_gpu *gpu, unsigned rows, unsigned columns, double lines, double depth)
{
    double rate = gpu->mma * OF_MMA / gpu->processors * speed_of(rows, columns, lines);

    return 2.0 * rows * columns * depth / rate + TILE_FILL;
}
