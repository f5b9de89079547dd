/*
 * product.h - a convolution as tiles of a matrix product: the kernel with these tiles, and its time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_PRODUCT_H
#define CHEX_CUDA_PLAN_PRODUCT_H

#include "cuda/plan/conv.h"
#include "cuda/plan/gpu.h"

/* The products of a launch, and the shape of its tiles. */
struct cuda_tile_shape {
    unsigned rows, columns, warp_rows, warp_columns;
    bool halo; /* conv_halo.cu */
};
struct cuda_products {
    bool single, pair, one_pass;            /* a single product; dgrad and wgrad in one launch; conv_one_pass */
    enum conv_kind kind;                    /* if `one` */
    struct cuda_tile_shape shape, of_wgrad; /* of the product, or of dgrad; of the pair's wgrad */
    size_t tiles;                           /* of the whole launch */
};
struct cuda_products cuda_products_of(const struct cuda_op *op);

/* 1 x 1 with stride 1 and no padding. */
bool cuda_is_pointwise(const struct conv_shape *s);
/* wgrad of kernels larger than 1 x 1, which has tile shapes of its own; not of the stem (conv_stem.cu). */
bool cuda_has_taps(const struct cuda_conv *c);

/* The tile shapes by their numbers. */
struct cuda_pair_shapes {
    struct cuda_tile_shape dgrad, wgrad;
};
const struct cuda_tile_shape *cuda_tile_shape_of(const struct cuda_conv *c, unsigned tile);
const struct cuda_pair_shapes *cuda_pair_shapes_of(const struct cuda_conv_pair *p, unsigned tile_pair);

enum cuda_kernel_id cuda_conv_kernel(const struct cuda_conv *c);
enum cuda_kernel_id cuda_pair_kernel(const struct cuda_conv_pair *p);

/* The product C, and its distribution over CTAs. */
struct cuda_product {
    unsigned rows, columns; /* of a tile, without warps that are outside the product */
    double lines;           /* rows that a tile reads for each k, in addition to its columns */
    double depth;           /* values of k of a CTA */
    unsigned down, across, splits, each;
    unsigned taps_a_step; /* conv_halo.cu: a step has 32 channels with all taps; otherwise 0 */
};
struct cuda_product cuda_product_of(const struct cuda_conv *c, struct cuda_tile_shape t);
/* Sets the products of a launch of dgrad and wgrad. */
void cuda_products_of_pair(const struct cuda_op *op, struct cuda_product *dgrad, struct cuda_product *wgrad);
size_t cuda_product_blocks(const struct cuda_product *p);

/* Does wgrad sum over the pixels of y?  Otherwise over those of x. */
bool cuda_wgrad_sums_outputs(const struct conv_shape *s);
/* Returns the k-steps of wgrad, GEMM_DEEP pixels each, as the kernel counts them. */
unsigned cuda_wgrad_steps(const struct conv_shape *s);

#endif
