/*
 * cost_seconds.c - see cost_seconds.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/cost_seconds.h"

#include "cuda/plan/one_pass.h"
#include "cuda/plan/product_load.h"

size_t
cuda_tiles(const struct cuda_op *op, unsigned *rows, unsigned *columns)
{
    struct cuda_products p = cuda_products_of(op);

    *rows = p.shape.rows;
    *columns = p.shape.columns;
    return p.tiles;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

static struct cuda_load
load_single(const struct cuda_gpu *gpu, const struct cuda_op *op)
{
    struct cuda_conv c = cuda_conv_of(op);
    struct cuda_tile_shape t = cuda_products_of(op).shape;
    struct cuda_product p = cuda_product_of(&c, t);

    return cuda_product_load(gpu, op->kernel, &t, &p, cuda_conv_norm(&c)->gamma, op->shared);
}

static struct cuda_load
load_pair(const struct cuda_gpu *gpu, const struct cuda_op *op)
{
    const struct cuda_products k = cuda_products_of(op);
    const struct cuda_pair_shapes t = {k.shape, k.of_wgrad};
    struct cuda_product dgrad, wgrad;

    cuda_products_of_pair(op, &dgrad, &wgrad);
    return cuda_pair_load(gpu, op->kernel, &t, &dgrad, &wgrad, op->args.pair.wgrad.norm.gamma, op->shared);
}

static void
load_one_pass(const struct cuda_gpu *gpu, const struct cuda_op *op, const struct cuda_counts *k, struct cuda_load *load)
{
    const struct one_pass_args *a = &op->args.one_pass;
    const struct conv_shape *s = &a->dgrad.shape;
    double tiles = a->dgrad.tiles_each, columns = cuda_products_of(op).shape.columns, warps = cuda_warps_of(k);

    if (columns > s->in)
        columns = s->in;
    load->ctas = (double)op->x * op->y;
    load->cta = (struct cuda_need){.flop = 2 * 2.0 * ONE_PASS_PIXELS * columns * s->out * tiles,
                                   .instructions = warps * (tiles * k->step.instructions + k->unit.instructions),
                                   .shared = warps * (tiles * k->step.shared + k->unit.shared)};
    load->l2 = load->ctas * tiles * ONE_PASS_PIXELS * gpu->value_bytes * (2.0 * s->out + 3 * columns);
    load->tiles = a->stages > 1 ? 1 : tiles; /* with two stages, the loads of later tiles overlap with products */
    load->in_flight = k->step.loads * CUDA_WARP_LOAD * cuda_warps_of(k);
}

/* ---- other kernels ----------------------------------------------------------------------------------------------- */

static void
load_other(const struct cuda_op *op, const struct cuda_counts *k, const struct cuda_work *work, struct cuda_load *load)
{
    double units = cuda_warps_of(k), written = (double)cuda_area_bytes(&work->written);

    load->ctas = (double)op->x * op->y * op->z;
    if (op->kernel == CUDA_NORM_MAX_POOL) /* a store of 4 bytes, the winners, for each store of 16 */
        written -= (double)cuda_winner_bytes(&op->args.norm_pool);
    if (k->unit.stores > 0)
        units = written / (k->unit.stores * CUDA_WARP_LOAD * load->ctas);
    else if (k->unit.loads > 0)
        units = (double)cuda_area_bytes(&work->read) / (k->unit.loads * CUDA_WARP_LOAD * load->ctas);
    load->cta = (struct cuda_need){.instructions = units * k->unit.instructions, .shared = units * k->unit.shared};
    load->in_flight = k->unit.loads * CUDA_WARP_LOAD * cuda_warps_of(k);
}

/* ---- a launch ---------------------------------------------------------------------------------------------------- */

/* A CTA of these kernels has NORM_CHANNELS channels, and reduces only if some of them are among the sums. */
static const struct channel_sums *
sums_of_norm_kernel(const struct cuda_op *op)
{
    switch (op->kernel) {
    case CUDA_NORM_APPLY:
        return &op->args.norm_apply.norm.fresh;
    case CUDA_NORM_MAX_POOL:
    case CUDA_NORM_AVERAGE_POOL:
    case CUDA_NORM_MEAN_POOL:
        return &op->args.norm_pool.norm.fresh;
    case CUDA_NORM_MAX_POOL_GRADIENT:
        return &op->args.norm_pool.finalize.sums;
    default:
        return NULL;
    }
}

struct cuda_prologue
cuda_prologue_of(const struct cuda_op *op)
{
    const struct cuda_products k = cuda_products_of(op);
    struct cuda_prologue p = {.ctas = (double)op->x * op->y * op->z, .channels = NORM_CHANNELS};

    if (k.single && k.kind == CONV_FPROP) {
        p.sums = &op->args.fprop.norm.fresh;
    } else if (k.one_pass) {
        p.sums = &op->args.one_pass.finalize.sums;
    } else if (op->kernel == CUDA_NORM_FINALIZE) {
        p.sums = &op->args.norm_finalize.sums;
        return p;
    } else {
        p.sums = sums_of_norm_kernel(op);
        if (p.sums)
            p.ctas = (double)op->x * cuda_blocks(p.sums->channels, NORM_CHANNELS);
        return p;
    }
    p.channels = p.sums->channels;
    return p;
}

struct cuda_load
cuda_load_of(const struct cuda_gpu *gpu, const struct cuda_op *op, const struct cuda_work *work)
{
    const struct cuda_counts *k = &gpu->counts[op->kernel];
    struct cuda_load load = cuda_start_load(k, op->shared);
    const struct cuda_prologue p = cuda_prologue_of(op);

    if (cuda_is_conv(op))
        load = load_single(gpu, op);
    else if (cuda_is_pair(op))
        load = load_pair(gpu, op);
    else if (cuda_is_one_pass(op))
        load_one_pass(gpu, op, k, &load);
    else
        load_other(op, k, work, &load);
    if (p.sums && p.sums->blocks > 0)
        load.before = cuda_rows_seconds(gpu, p.ctas, cuda_resident(gpu, k->threads, k->registers, load.shared_bytes),
                                        p.sums->blocks, p.channels);
    return load;
}

double
cuda_seconds(const struct cuda_gpu *gpu, const struct cuda_op *op, const struct cuda_work *work, enum cuda_limit *limit)
{
    double bytes = (double)cuda_area_bytes(&work->read) + (double)cuda_area_bytes(&work->written);
    struct cuda_load load;

    if (op->by_cudnn && gpu->cudnn > 0) { /* the tiles and instructions of cuDNN are not known */
        double memory = cuda_memory_seconds(gpu, bytes), products = work->flop / gpu->cudnn;

        *limit = products > memory ? CUDA_LIMIT_PRODUCTS : CUDA_LIMIT_DRAM;
        return (products > memory ? products : memory) + gpu->gap;
    }
    load = cuda_load_of(gpu, op, work);
    load.bytes = bytes;
    return cuda_load_seconds(gpu, &load, limit) + gpu->gap;
}

double
cuda_reduce_seconds(const struct cuda_gpu *gpu, unsigned from, unsigned to, unsigned channels)
{
    float *const somewhere = (float *)(uintptr_t)CUDA_SECTOR; /* only sizes count */
    const struct channel_sums before = {.partial = somewhere, .blocks = from, .channels = channels},
                              after = {.partial = somewhere, .blocks = to, .channels = channels};
    const struct cuda_op op = {.kernel = CUDA_REDUCE_SUMS,
                               .x = to,
                               .y = cuda_blocks(channels, NORM_CHANNELS),
                               .z = 1,
                               .args.reduce_sums = {.from = before, .to = after}};
    const struct cuda_place nowhere = {.value_bytes = 2};
    struct cuda_work work;
    enum cuda_limit limit;

    cuda_work_of(&nowhere, &op, &work);
    return cuda_seconds(gpu, &op, &work, &limit);
}
