/*
 * product.h - a convolution as tiles of a product, the kernel that has them, and how long they take
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_PRODUCT_H
#define CHEX_CUDA_PLAN_PRODUCT_H

#include "cuda/plan/conv.h"
#include "cuda/plan/gpu.h"

/* What the kernel of a launch multiplies, and in tiles of which form. */
struct cuda_form {
    unsigned rows, columns, warp_rows, warp_columns;
    bool halo; /* conv_halo.cu */
};
struct cuda_products {
    bool one, pair;                    /* of one product; of both gradients */
    enum conv_kind kind;               /* of one */
    struct cuda_form form, of_weights; /* of one, or of data; of the pair's weights */
    size_t tiles;                      /* of all */
};
struct cuda_products cuda_products_of(const struct cuda_op *op);

/* Seconds of the products of such a launch on a GPU (plan/gpu.h), without what they read and write. */
double cuda_product_seconds(const struct cuda_gpu *gpu, const struct cuda_op *op);

/* 1 x 1 with stride 1 and no padding. */
bool cuda_is_pointwise(const struct conv_args *a);
/* Weights of larger kernels, which have forms of their own. */
bool cuda_has_taps(const struct cuda_conv *c);

/* Forms by their numbers. */
struct cuda_forms {
    struct cuda_form data, weights;
};
const struct cuda_form *cuda_form_of(const struct cuda_conv *c, unsigned tile);
const struct cuda_forms *cuda_forms_of(const struct cuda_conv_pair *p, unsigned forms);

enum cuda_kernel_id cuda_conv_kernel(const struct cuda_conv *c);
enum cuda_kernel_id cuda_pair_kernel(const struct cuda_conv_pair *p);

/* C, and how it is shared among blocks. */
struct cuda_product {
    unsigned rows, columns; /* of a tile, without warps that are beyond the product */
    double lines;           /* that a tile reads for each k beside its columns */
    double depth;           /* values of k of a block */
    unsigned down, across, splits, each;
};
struct cuda_product cuda_product_of(enum conv_kind kind, const struct conv_args *a, struct cuda_form f);
size_t cuda_product_blocks(const struct cuda_product *p);

/* Of weights: GEMM_DEEP pixels each, as the kernel counts them. */
unsigned cuda_conv_steps(const struct conv_args *a);

/* Rounds of blocks on the multiprocessors, each as long as its tiles. */
double cuda_one_seconds(const struct cuda_gpu *gpu, const struct cuda_product *p);
/* Blocks of the gradient of data fill what those of the gradient of weights leave. */
double cuda_pair_seconds(const struct cuda_gpu *gpu, const struct cuda_product *data,
                         const struct cuda_product *weights);

#endif
