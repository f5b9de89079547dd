/*
 * launch.h - the table of kernels, and a launch as data; needs no CUDA runtime (runtime.h launches)
 *
 * A kernel is identified by its index in the table of one type of value.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_LAUNCH_H
#define CHEX_CUDA_KERNELS_LAUNCH_H

#include "cuda/kernels/args.h"

#include <stdbool.h>

struct cuda_kernel {
    const char *name;
    const void *function; /* NULL in a build without CUDA */
    unsigned threads;     /* of a CTA */
    size_t shared;        /* dynamic shared memory of a CTA */
    size_t most;          /* and what a launch may request in all; SIZE_MAX: all that the device has */
};

/* Indices of kernels.  Nothing depends on their order, except that table.c has the same. */
#define CUDA_TILE_IDS(shape, ...)                                                        \
    CUDA_CONV_FPROP_##shape, CUDA_CONV_FPROP_POINTWISE_##shape, CUDA_CONV_DGRAD_##shape, \
        CUDA_CONV_DGRAD_POINTWISE_##shape, CUDA_CONV_WGRAD_POINTWISE_##shape,
#define CUDA_TAP_TILE_IDS(shape, ...)  CUDA_CONV_WGRAD_##shape,
#define CUDA_STEM_TILE_IDS(shape, ...) CUDA_CONV_WGRAD_STEM_##shape,
#define CUDA_PAIR_IDS(shape, ...)      CUDA_CONV_DGRAD_WGRAD_POINTWISE_##shape,
#define CUDA_TAP_PAIR_IDS(shape, ...)  CUDA_CONV_DGRAD_WGRAD_##shape,
#define CUDA_HALO_IDS(shape, ...)      CUDA_CONV_DGRAD_HALO_##shape,
#define CUDA_HALO_PAIR_IDS(shape, ...) CUDA_CONV_DGRAD_WGRAD_HALO_##shape,
#define CUDA_ONE_PASS_IDS(shape, ...)  CUDA_CONV_ONE_PASS_##shape,
enum cuda_kernel_id {
    GEMM_TILES(CUDA_TILE_IDS) GEMM_TAP_TILES(CUDA_TAP_TILE_IDS) GEMM_STEM_TILES(CUDA_STEM_TILE_IDS)
        GEMM_PAIRS(CUDA_PAIR_IDS) GEMM_TAP_PAIRS(CUDA_TAP_PAIR_IDS) CUDA_CONV_FPROP_HALO,
    HALO_DGRAD_TILES(CUDA_HALO_IDS) HALO_PAIRS(CUDA_HALO_PAIR_IDS) CUDA_INPUT,
    CUDA_PACK_WEIGHTS,
    CUDA_FOLD_WEIGHTS,
    CUDA_SUM_ALL,
    CUDA_NORM_SUMS,
    CUDA_NORM_APPLY,
    CUDA_REDUCE_SUMS,
    CUDA_NORM_FINALIZE,
    CUDA_NORM_MASK,
    CUDA_MAX_POOL,
    CUDA_MAX_POOL_GRADIENT,
    CUDA_AVERAGE_POOL,
    CUDA_AVERAGE_POOL_GRADIENT,
    CUDA_MEAN_POOL,
    CUDA_MEAN_POOL_GRADIENT,
    CUDA_BRANCHES,
    CUDA_BRANCHES_GRADIENT,
    CUDA_NORM_MAX_POOL,
    CUDA_NORM_MAX_POOL_GRADIENT,
    CUDA_NORM_AVERAGE_POOL,
    CUDA_NORM_AVERAGE_POOL_GRADIENT,
    CUDA_NORM_MEAN_POOL,
    CUDA_NORM_MEAN_POOL_GRADIENT,
    CUDA_LINEAR,
    CUDA_LINEAR_GRADIENT,
    CUDA_CLASS_MAPS,
    CUDA_LOSS,
    CUDA_STEP_END,
    CUDA_GRADIENT_SQUARES,
    CUDA_STEP_DECIDE,
    CUDA_OPTIMIZER,
    CUDA_TO_WIRE,
    CUDA_FROM_WIRE,
    CUDA_WIDEN,
    ONE_PASS_SHAPES(CUDA_ONE_PASS_IDS) CUDA_KERNEL_COUNT
};

#define CUDA_ONE_MORE(...) +1
enum { ONE_PASS_SHAPE_COUNT = ONE_PASS_SHAPES(CUDA_ONE_MORE) };

/* The types of values of which machine code is counted (counts.h); float of the emulator counts as fp16. */
enum cuda_value { CUDA_FP16, CUDA_BF16, CUDA_TF32 };

/* One table of kernels per type; table.c is compiled once for each. */
extern const struct cuda_kernel cuda_kernels_fp16[CUDA_KERNEL_COUNT];
extern const struct cuda_kernel cuda_kernels_bf16[CUDA_KERNEL_COUNT];
extern const struct cuda_kernel cuda_kernels_tf32[CUDA_KERNEL_COUNT];
extern const struct cuda_kernel cuda_kernels_float[CUDA_KERNEL_COUNT]; /* only in the emulator */

/*
 * A launch as data: a kernel, its grid and its argument.  A plan is made of lists of them, built once.  Running a step,
 * recording a graph and describing the plan all walk these lists.
 */
struct cuda_op {
    enum cuda_kernel_id kernel;
    unsigned x, y, z;
    unsigned shared; /* dynamic shared memory of a CTA in addition to the kernel's, at most CUDA_MORE_SHARED */
    union {
        struct input_args input;
        struct fprop_args fprop;
        struct dgrad_args dgrad;
        struct wgrad_args wgrad;
        struct conv_pair_args pair;
        struct one_pass_args one_pass;
        struct pack_weights_args pack;
        struct fold_weights_args fold_weights;
        struct sum_all_args sum_all;
        struct norm_sums_args norm_sums;
        struct norm_apply_args norm_apply;
        struct reduce_sums_args reduce_sums;
        struct norm_finalize_args norm_finalize;
        struct norm_mask_args norm_mask;
        struct pool_args pool;
        struct mean_pool_args mean_pool;
        struct branches_args branches;
        struct norm_pool_args norm_pool;
        struct linear_args linear;
        struct class_maps_args class_maps;
        struct loss_args loss;
        struct step_end_args end;
        struct gradient_squares_args squares;
        struct step_decide_args decide;
        struct optimizer_args optimizer;
        struct wire_args wire;
        struct widen_args widen;
    } args;
    bool by_cudnn;   /* cuDNN runs this plain convolution; `kernel` is the own kernel that it replaces */
    void *workspace; /* for cuDNN, CUDNN_WORKSPACE bytes; convolutions share it */
    unsigned node;   /* node of the graph, or CUDA_NO_NODE */
    size_t final; /* after it, the gradients from this index to the end of the arena are final; SIZE_MAX: no change */
};
#define CUDNN_WORKSPACE  ((size_t)32 << 20)
#define CUDA_NO_NODE     UINT32_MAX
#define CUDA_MORE_SHARED GEMM_TABLE_FPROP(GEMM_NORM_CHANNELS) /* the largest table */

/* Returns the CTAs for `count` elements, `each` per CTA. */
unsigned cuda_blocks(size_t count, unsigned each);

/* Return the CTAs of pack_weights and of sum_all for an entry. */
unsigned cuda_pack_blocks(const struct pack_entry *e);
unsigned cuda_sum_blocks(const struct splits_entry *e);

#endif
