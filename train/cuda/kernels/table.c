/*
 * table.c - the table of kernels for one type of value; compiled once per type, with CUDA_VALUE and CUDA_VALUE_BYTES
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/launch.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)
#define TEXT_(a)    #a
#define TEXT(a)     TEXT_(a)

/* A build without CUDA has the table, for plans of imagined GPUs, but no kernels. */
#ifdef CUDA_NO_KERNELS
#define FUNCTION(name) NULL
#else
#define FUNCTION(name) (const void *)JOIN(name, CUDA_VALUE)
#endif

/* Kernels are declared as functions, because a launch identifies them by address; no code calls them. */
#define DECLARE(name, type) void JOIN(name, CUDA_VALUE)(const struct type a);
#define DECLARE_TILE(shape, ...)                        \
    DECLARE(conv_fprop_##shape, fprop_args)             \
    DECLARE(conv_fprop_##shape##_pointwise, fprop_args) \
    DECLARE(conv_dgrad_##shape, dgrad_args)             \
    DECLARE(conv_dgrad_##shape##_pointwise, dgrad_args) \
    DECLARE(conv_wgrad_##shape##_pointwise, wgrad_args)
#define DECLARE_TAP_TILE(shape, ...)  DECLARE(conv_wgrad_##shape, wgrad_args)
#define DECLARE_STEM_TILE(shape, ...) DECLARE(conv_wgrad_##shape##_stem, wgrad_args)
#define DECLARE_PAIR(shape, ...)      DECLARE(conv_dgrad_wgrad_##shape##_pointwise, conv_pair_args)
#define DECLARE_TAP_PAIR(shape, ...)  DECLARE(conv_dgrad_wgrad_##shape, conv_pair_args)
#define DECLARE_HALO(shape, ...)      DECLARE(conv_dgrad_##shape##_halo, dgrad_args)
#define DECLARE_HALO_PAIR(shape, ...) DECLARE(conv_dgrad_wgrad_##shape##_halo, conv_pair_args)
#define DECLARE_ONE_PASS(shape, ...)  DECLARE(conv_one_pass_##shape, one_pass_args)
GEMM_TILES(DECLARE_TILE)
GEMM_TAP_TILES(DECLARE_TAP_TILE)
GEMM_STEM_TILES(DECLARE_STEM_TILE)
GEMM_PAIRS(DECLARE_PAIR)
GEMM_TAP_PAIRS(DECLARE_TAP_PAIR)
ONE_PASS_SHAPES(DECLARE_ONE_PASS)
DECLARE(conv_fprop_128x32_halo, fprop_args)
HALO_DGRAD_TILES(DECLARE_HALO)
HALO_PAIRS(DECLARE_HALO_PAIR)
DECLARE(input, input_args)
DECLARE(pack_weights, pack_weights_args)
DECLARE(fold_weights, fold_weights_args)
DECLARE(sum_all, sum_all_args)
DECLARE(norm_sums, norm_sums_args)
DECLARE(norm_apply, norm_apply_args)
DECLARE(reduce_sums, reduce_sums_args)
DECLARE(norm_finalize, norm_finalize_args)
DECLARE(norm_mask, norm_mask_args)
DECLARE(max_pool, pool_args)
DECLARE(max_pool_gradient, pool_args)
DECLARE(average_pool, pool_args)
DECLARE(average_pool_gradient, pool_args)
DECLARE(mean_pool, mean_pool_args)
DECLARE(mean_pool_gradient, mean_pool_args)
DECLARE(branches, branches_args)
DECLARE(branches_gradient, branches_args)
DECLARE(norm_max_pool, norm_pool_args)
DECLARE(norm_max_pool_gradient, norm_pool_args)
DECLARE(norm_average_pool, norm_pool_args)
DECLARE(norm_average_pool_gradient, norm_pool_args)
DECLARE(norm_mean_pool, norm_pool_args)
DECLARE(norm_mean_pool_gradient, norm_pool_args)
DECLARE(linear, linear_args)
DECLARE(linear_gradient, linear_args)
DECLARE(class_maps, class_maps_args)
DECLARE(loss, loss_args)
DECLARE(step_end, step_end_args)
DECLARE(gradient_squares, gradient_squares_args)
DECLARE(step_decide, step_decide_args)
DECLARE(optimizer, optimizer_args)
DECLARE(to_wire, wire_args)
DECLARE(from_wire, wire_args)
DECLARE(widen, widen_args)

#define ENTRY_MOST(name, threads, shared, most) {TEXT(JOIN(name, CUDA_VALUE)), FUNCTION(name), threads, shared, most},
#define ENTRY(name, threads, shared)            ENTRY_MOST(name, threads, shared, shared)
/* A convolution: the table of its prologue may follow its tiles in shared memory. */
#define ENTRY_TABLE(name, threads, shared) ENTRY_MOST(name, threads, shared, (shared) + CUDA_MORE_SHARED)
#define ENTRY_CONV(name, r, c, wr, wc) \
    ENTRY_TABLE(name, GEMM_THREADS(r, c, wr, wc), GEMM_SHARED(r, c, CUDA_VALUE_BYTES))
#define ENTRY_TILE(shape, ...)                              \
    ENTRY_CONV(conv_fprop_##shape, __VA_ARGS__)             \
    ENTRY_CONV(conv_fprop_##shape##_pointwise, __VA_ARGS__) \
    ENTRY_CONV(conv_dgrad_##shape, __VA_ARGS__)             \
    ENTRY_CONV(conv_dgrad_##shape##_pointwise, __VA_ARGS__) \
    ENTRY_CONV(conv_wgrad_##shape##_pointwise, __VA_ARGS__)
#define ENTRY_TAP_TILE(shape, ...)  ENTRY_CONV(conv_wgrad_##shape, __VA_ARGS__)
#define ENTRY_STEM_TILE(shape, ...) ENTRY_CONV(conv_wgrad_##shape##_stem, __VA_ARGS__)
#define LARGER(a, b)                ((a) > (b) ? (a) : (b))
#define ENTRY_TWO(name, r, c, wr, wc, r2, c2, wr2, wc2) \
    ENTRY_TABLE(name, GEMM_THREADS(r, c, wr, wc),       \
                LARGER(GEMM_SHARED(r, c, CUDA_VALUE_BYTES), GEMM_SHARED(r2, c2, CUDA_VALUE_BYTES)))
#define ENTRY_PAIR(shape, ...)     ENTRY_TWO(conv_dgrad_wgrad_##shape##_pointwise, __VA_ARGS__)
#define ENTRY_TAP_PAIR(shape, ...) ENTRY_TWO(conv_dgrad_wgrad_##shape, __VA_ARGS__)
#define ENTRY_HALO(shape, r, c, wr, wc) \
    ENTRY_TABLE(conv_dgrad_##shape##_halo, GEMM_THREADS(r, c, wr, wc), HALO_DGRAD_SHARED(r, c, CUDA_VALUE_BYTES))
#define ENTRY_HALO_PAIR(shape, r, c, wr, wc, r2, c2, wr2, wc2)               \
    ENTRY_TABLE(conv_dgrad_wgrad_##shape##_halo, GEMM_THREADS(r, c, wr, wc), \
                LARGER(HALO_DGRAD_SHARED(r, c, CUDA_VALUE_BYTES), GEMM_SHARED(r2, c2, CUDA_VALUE_BYTES)))
#define ENTRY_ONE_PASS(shape, columns, blocks, end) \
    ENTRY_MOST(conv_one_pass_##shape, ONE_PASS_THREADS, ONE_PASS_SHARED(columns, end, CUDA_VALUE_BYTES, 1), SIZE_MAX)

/* In the order of enum cuda_kernel_id. */
/* clang-format off */
const struct cuda_kernel JOIN(cuda_kernels, CUDA_VALUE)[CUDA_KERNEL_COUNT] = {
    GEMM_TILES(ENTRY_TILE)
    GEMM_TAP_TILES(ENTRY_TAP_TILE)
    GEMM_STEM_TILES(ENTRY_STEM_TILE)
    GEMM_PAIRS(ENTRY_PAIR)
    GEMM_TAP_PAIRS(ENTRY_TAP_PAIR)
    ENTRY_TABLE(conv_fprop_128x32_halo, GEMM_THREADS(HALO_ROWS, HALO_COLUMNS, 32, 32), HALO_SHARED(CUDA_VALUE_BYTES))
    HALO_DGRAD_TILES(ENTRY_HALO)
    HALO_PAIRS(ENTRY_HALO_PAIR)
    ENTRY(input, INPUT_THREADS, 0)
    ENTRY(pack_weights, PACK_THREADS, PACK_SHARED)
    ENTRY(fold_weights, PACK_THREADS, 0)
    ENTRY(sum_all, PACK_THREADS, SUM_SHARED)
    ENTRY(norm_sums, NORM_THREADS, NORM_SUMS_SHARED)
    ENTRY(norm_apply, NORM_THREADS, NORM_VIEW_SHARED)
    ENTRY(reduce_sums, NORM_THREADS, REDUCE_SHARED)
    ENTRY(norm_finalize, NORM_THREADS, FINALIZE_SHARED)
    ENTRY(norm_mask, NORM_THREADS, NORM_VIEW_SHARED)
    ENTRY(max_pool, POOL_THREADS, 0)
    ENTRY(max_pool_gradient, POOL_THREADS, 0)
    ENTRY(average_pool, POOL_THREADS, 0)
    ENTRY(average_pool_gradient, POOL_THREADS, 0)
    ENTRY(mean_pool, POOL_THREADS, 0)
    ENTRY(mean_pool_gradient, POOL_THREADS, 0)
    ENTRY(branches, POOL_THREADS, 0)
    ENTRY(branches_gradient, POOL_THREADS, 0)
    ENTRY(norm_max_pool, NORM_THREADS, NORM_VIEW_SHARED)
    ENTRY(norm_max_pool_gradient, NORM_THREADS, NORM_POOL_SHARED)
    ENTRY(norm_average_pool, NORM_THREADS, NORM_VIEW_SHARED)
    ENTRY(norm_average_pool_gradient, NORM_THREADS, NORM_VIEW_SHARED)
    ENTRY(norm_mean_pool, NORM_THREADS, NORM_VIEW_SHARED)
    ENTRY(norm_mean_pool_gradient, NORM_THREADS, NORM_VIEW_SHARED)
    ENTRY(linear, HEAD_THREADS, 0)
    ENTRY(linear_gradient, HEAD_THREADS, 0)
    ENTRY(class_maps, HEAD_THREADS, 0)
    ENTRY(loss, HEAD_THREADS, HEAD_THREADS * sizeof(double))
    ENTRY(step_end, STEP_THREADS, END_SHARED)
    ENTRY(gradient_squares, STEP_THREADS, STEP_THREADS * sizeof(double))
    ENTRY(step_decide, STEP_THREADS, STEP_THREADS * sizeof(double))
    ENTRY(optimizer, STEP_THREADS, 0)
    ENTRY(to_wire, STEP_THREADS, 0)
    ENTRY(from_wire, STEP_THREADS, 0)
    ENTRY(widen, WIDEN_THREADS, 0)
    ONE_PASS_SHAPES(ENTRY_ONE_PASS)
};
/* clang-format on */
