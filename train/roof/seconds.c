/*
 * seconds.c - see seconds.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "roof/seconds.h"

#include <math.h>
#include <string.h>

/* ---- devices ----------------------------------------------------------------------------------------------------- */

#define MIB 1048576.0

/*
 * Copies and products: what published measurements of large copies and large half-precision products reach, beside the
 * data sheets' 900 GB/s and 125 TFLOP/s (V100 SXM2), 1,555 GB/s and 312 (A100 40 GB), 3,350 and 989 (H100 SXM5), 4,800
 * and 989 (H200).  mma.sync reaches 0.80, 0.85 and, as Hopper's own instruction is another one, 0.62 of that.  L2: the
 * data sheets; gaps: of the nodes of graphs, published.  None of it was measured by this project.  The last of a
 * generation stands for others of it, and the last of all for what comes.
 */
static const struct cuda_gpu gpus[] = {
    {"V100", 7, 80, 790e9, 0.80 * 100e12, 6 * MIB, 2.0e-6},
    {"A100", 8, 108, 1.35e12, 0.85 * 270e12, 40 * MIB, 1.5e-6},
    {"H100", 9, 132, 3.0e12, 0.62 * 790e12, 50 * MIB, 1.2e-6},
    {"H200", 9, 132, 4.3e12, 0.62 * 790e12, 50 * MIB, 1.2e-6},
};
#define GPUS (sizeof(gpus) / sizeof(*gpus))

const struct cuda_gpu *
cuda_gpu_like(const char *name, unsigned major)
{
    const struct cuda_gpu *like = &gpus[GPUS - 1];
    size_t i;

    for (i = 0; i < GPUS; i++)
        if (strstr(name, gpus[i].name))
            return &gpus[i];
    for (i = 0; i < GPUS; i++)
        if (gpus[i].major == major)
            like = &gpus[i];
    return like;
}

/* ---- seconds ----------------------------------------------------------------------------------------------------- */

#define OF_COPY   0.80   /* of its bandwidth, what a kernel reaches */
#define OF_MMA    0.75   /* of the rate of mma.sync, what a product reaches with its largest tiles */
#define CACHED    0.6    /* what takes less than this part of the L2 is found there */
#define FASTER    2.0    /* so much faster it comes from there */
#define TILE_FILL 1.5e-6 /* seconds to fill and to drain a tile */

/* What a form of tile reaches beside the largest: it reads more from the L2 for each product. */
static const struct tile_speed {
    unsigned rows, columns;
    double speed;
} forms[] = {
#define SPEED_128x128         1.0
#define SPEED_64x128          0.85
#define SPEED_64x64           0.7
#define SPEED_128x32          0.7
#define FORM(form, r, c, ...) {r, c, SPEED_##form},
    GEMM_TILES(FORM)};

static size_t
blocks_of(const struct cuda_op *op)
{
    return (size_t)op->x * op->y * op->z;
}

static const struct tile_speed *
form_of(const struct cuda_op *op)
{
    return &forms[cuda_is_pair(op) ? (op->kernel - CONV_TILES * 6) / 2 : op->kernel / 6];
}

size_t
cuda_tiles(const struct cuda_op *op, unsigned *rows, unsigned *columns)
{
    *rows = form_of(op)->rows;
    *columns = form_of(op)->columns;
    return blocks_of(op);
}

/* A tile of so many steps of k. */
static double
tile_seconds(const struct cuda_gpu *gpu, const struct tile_speed *f, size_t all_columns, double depth)
{
    double rate = gpu->mma * OF_MMA / gpu->processors * f->speed;
    double columns = all_columns < f->columns ? (double)all_columns : f->columns;

    return 2 * f->rows * columns * depth / rate + TILE_FILL;
}

/* Rounds of tiles on the multiprocessors, each as long as its product. */
static double
product_seconds(const struct cuda_gpu *gpu, const struct cuda_op *op, const struct cuda_work *work)
{
    size_t rounds = (blocks_of(op) + gpu->processors - 1) / gpu->processors;

    return (double)rounds * tile_seconds(gpu, form_of(op), work->columns, (double)work->depth / op->z);
}

/* Tiles of the gradient of data fill what those of the gradient of weights leave. */
static double
pair_seconds(const struct cuda_gpu *gpu, const struct cuda_op *op, const struct cuda_work *work)
{
    const struct conv_args *w = &op->args.pair.weights;
    const struct tile_speed *f = form_of(op);
    size_t down = (work->rows + f->rows - 1) / f->rows, across = (work->columns + f->columns - 1) / f->columns;
    double of_data = (double)(down * across), of_weights = (double)blocks_of(op) - of_data;
    double data = tile_seconds(gpu, f, work->columns, (double)work->depth);
    double weights = tile_seconds(gpu, f, w->in, (double)w->steps_each * GEMM_DEEP);
    double all = ceil((of_data * data + of_weights * weights) / gpu->processors / data) * data;

    return all > weights ? all : weights;
}

double
cuda_seconds(const struct cuda_gpu *gpu, const struct cuda_op *op, const struct cuda_work *work)
{
    double bytes = (double)cuda_area_bytes(&work->read) + (double)cuda_area_bytes(&work->written);
    double memory = bytes / (gpu->copy * OF_COPY), product = 0;

    if (bytes < CACHED * gpu->cache)
        memory /= FASTER;
    if (cuda_is_conv(op))
        product = product_seconds(gpu, op, work);
    else if (cuda_is_pair(op))
        product = pair_seconds(gpu, op, work);
    return (memory > product ? memory : product) + gpu->gap;
}
