/*
 * product_load.c - see product_load.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/product_load.h"

#include <math.h>

double
cuda_warps_of(const struct cuda_counts *k)
{
    return ceil(k->threads / 32.0);
}

/*
 * A warp outside the product, of a tile that is wider than the product, does not multiply: a product is IDLE_SAVES
 * instructions (fragments and their addresses included), and it has no part of the epilogue.
 */
#define IDLE_SAVES 1.4
static struct cuda_need
product_need(const struct cuda_counts *k, const struct cuda_product *p, const struct cuda_tile_shape *t,
             const struct cuda_count *step, const struct cuda_count *unit, bool has_norm)
{
    double steps = ceil((p->taps_a_step > 0 ? p->depth / p->taps_a_step : p->depth) / GEMM_DEEP),
           warps = cuda_warps_of(k);
    double used = (double)p->rows * p->columns / ((double)t->rows * t->columns);
    double of_step = (has_norm ? step->instructions : step->bare) - (1 - used) * IDLE_SAVES * step->mma;
    double tiles = warps * p->each;

    return (struct cuda_need){.flop = 2.0 * p->rows * p->columns * p->depth * p->each,
                              .instructions = tiles * (steps * of_step + used * unit->instructions),
                              .shared = tiles * used * (steps * step->shared + unit->shared)};
}

/* Bytes that the tiles of a product read from the L2 and write to it. */
static double
product_l2(const struct cuda_gpu *gpu, const struct cuda_product *p)
{
    double tile = p->depth * (p->lines + p->columns) + (double)p->rows * p->columns;

    return tile * gpu->value_bytes * p->down * p->across * p->splits;
}

/* On sm_80 and later, two steps are on their way while one is multiplied; before, one step. */
static double
steps_in_flight(const struct cuda_gpu *gpu)
{
    return gpu->major < 8 ? 1 : GEMM_STAGES - 1;
}

struct cuda_load
cuda_start_load(const struct cuda_counts *k, unsigned more_shared)
{
    return (struct cuda_load){
        .threads = k->threads, .registers = k->registers, .shared_bytes = k->shared + more_shared};
}

struct cuda_load
cuda_product_load(const struct cuda_gpu *gpu, enum cuda_kernel_id kernel, const struct cuda_tile_shape *t,
                  const struct cuda_product *p, bool has_norm, unsigned more_shared)
{
    const struct cuda_counts *k = &gpu->counts[kernel];
    struct cuda_load load = cuda_start_load(k, more_shared);

    load.cta = product_need(k, p, t, &k->step, &k->unit, has_norm);
    load.ctas = (double)cuda_product_blocks(p);
    load.l2 = product_l2(gpu, p);
    load.tiles = p->each;
    load.in_flight = k->step.loads * CUDA_WARP_LOAD * cuda_warps_of(k) *
                     (p->taps_a_step > 0 ? 1 : steps_in_flight(gpu));
    return load;
}

struct cuda_load
cuda_pair_load(const struct cuda_gpu *gpu, enum cuda_kernel_id kernel, const struct cuda_pair_shapes *t,
               const struct cuda_product *dgrad, const struct cuda_product *wgrad, bool has_norm, unsigned more_shared)
{
    const struct cuda_counts *k = &gpu->counts[kernel];
    struct cuda_load load = cuda_start_load(k, more_shared);

    load.cta = product_need(k, dgrad, &t->dgrad, &k->step, &k->unit, has_norm);
    load.long_cta = product_need(k, wgrad, &t->wgrad, &k->wgrad_step, &k->wgrad_unit, has_norm);
    load.ctas = (double)cuda_product_blocks(dgrad);
    load.long_ctas = (double)cuda_product_blocks(wgrad);
    load.l2 = product_l2(gpu, dgrad) + product_l2(gpu, wgrad);
    load.tiles = dgrad->each;
    load.in_flight = k->step.loads * CUDA_WARP_LOAD * cuda_warps_of(k) * steps_in_flight(gpu);
    return load;
}
