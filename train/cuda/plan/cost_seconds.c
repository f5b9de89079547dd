/*
 * cost_seconds.c - see cost_seconds.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/cost_seconds.h"

#include "cuda/plan/one_pass.h"
#include "cuda/plan/product.h"

size_t
cuda_tiles(const struct cuda_op *op, unsigned *rows, unsigned *columns)
{
    struct cuda_products p = cuda_products_of(op);

    *rows = p.shape.rows;
    *columns = p.shape.columns;
    return p.tiles;
}

double
cuda_seconds(const struct cuda_gpu *gpu, const struct cuda_op *op, const struct cuda_work *work)
{
    double bytes = (double)cuda_area_bytes(&work->read) + (double)cuda_area_bytes(&work->written);
    double memory = cuda_memory_seconds(gpu, bytes), product = 0;

    if (op->by_cudnn && gpu->cudnn > 0) /* the tiles of cuDNN are not known */
        product = work->flop / gpu->cudnn;
    else if (cuda_is_conv(op) || cuda_is_pair(op))
        product = cuda_product_seconds(gpu, op);
    else if (cuda_is_one_pass(op))
        product = cuda_one_pass_seconds(gpu, op);
    return (memory > product ? memory : product) + gpu->gap;
}
