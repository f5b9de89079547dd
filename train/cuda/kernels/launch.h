/*
 * launch.h - kernels from plain C: which there are, which form of a convolution to take, and launches
 *
 * A kernel is chosen by its number in the set of one type of value.  Launches are put into a stream and return; what
 * goes wrong on the device is said by a later call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_LAUNCH_H
#define CHEX_CUDA_KERNELS_LAUNCH_H

#include "cuda/kernels/args.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>

struct cuda_kernel {
    const char *name;
    const void *function;
    unsigned threads; /* of a block */
    size_t shared;    /* dynamic shared memory of a block */
};

/* Numbers of kernels: of each form of tile five, weights of larger kernels, both gradients, then the others. */
#define CUDA_TILE_IDS(form, ...)                                                         \
    CUDA_CONV_FORWARD_##form, CUDA_CONV_FORWARD_POINTWISE_##form, CUDA_CONV_DATA_##form, \
        CUDA_CONV_DATA_POINTWISE_##form, CUDA_CONV_WEIGHTS_POINTWISE_##form,
#define CUDA_TAP_TILE_IDS(form, ...) CUDA_CONV_WEIGHTS_##form,
#define CUDA_PAIR_IDS(form, ...)     CUDA_CONV_BACKWARD_POINTWISE_##form,
#define CUDA_TAP_PAIR_IDS(form, ...) CUDA_CONV_BACKWARD_##form,
#define CUDA_BOTH_IDS(form, ...)     CUDA_CONV_BOTH_##form,
enum cuda_kernel_id {
    GEMM_TILES(CUDA_TILE_IDS) GEMM_TAP_TILES(CUDA_TAP_TILE_IDS) GEMM_PAIRS(CUDA_PAIR_IDS)
        GEMM_TAP_PAIRS(CUDA_TAP_PAIR_IDS) CUDA_CONV_FORWARD_HALO,
    CUDA_INPUT,
    CUDA_PACK_WEIGHTS,
    CUDA_FOLD_WEIGHTS,
    CUDA_SUM_ALL,
    CUDA_NORM_SUMS,
    CUDA_NORM_APPLY,
    CUDA_FOLD_SUMS,
    CUDA_NORM_SETTLE,
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
    CUDA_LOSS,
    CUDA_STEP_END,
    CUDA_GRADIENT_SQUARES,
    CUDA_STEP_DECIDE,
    CUDA_OPTIMIZER,
    CUDA_TO_WIRE,
    CUDA_FROM_WIRE,
    CUDA_WIDEN,
    BOTH_FORMS(CUDA_BOTH_IDS) CUDA_KERNEL_COUNT
};

#define CUDA_ONE_BOTH(...) +1
enum { BOTH_FORM_COUNT = BOTH_FORMS(CUDA_ONE_BOTH) };

/* The sets of this program: those that table.c was compiled for. */
extern const struct cuda_kernel cuda_kernels_fp16[CUDA_KERNEL_COUNT];
extern const struct cuda_kernel cuda_kernels_bf16[CUDA_KERNEL_COUNT];
extern const struct cuda_kernel cuda_kernels_float[CUDA_KERNEL_COUNT]; /* of the emulator */

/* Once for a device, before the first launch. */
cudaError_t cuda_prepare(const struct cuda_kernel *set);

/*
 * A launch as data: a kernel of a set, its grid and its argument.  A plan is lists of these, made once; to run a step,
 * to record a graph of it, and to say what it does is to walk them.
 */
struct cuda_op {
    enum cuda_kernel_id kernel;
    unsigned x, y, z;
    unsigned shared; /* dynamic shared memory of a block beyond the kernel's, at most CUDA_MORE_SHARED */
    union {
        struct input_args input;
        struct conv_args conv;
        struct conv_pair_args pair;
        struct conv_both_args both;
        struct pack_weights_args pack;
        struct fold_weights_args fold_weights;
        struct sum_all_args sum_all;
        struct norm_sums_args norm_sums;
        struct norm_apply_args norm_apply;
        struct fold_sums_args fold_sums;
        struct norm_settle_args norm_settle;
        struct norm_mask_args norm_mask;
        struct pool_args pool;
        struct mean_pool_args mean_pool;
        struct branches_args branches;
        struct norm_pool_args norm_pool;
        struct linear_args linear;
        struct loss_args loss;
        struct step_end_args end;
        struct gradient_squares_args squares;
        struct step_decide_args decide;
        struct optimizer_args optimizer;
        struct wire_args wire;
        struct widen_args widen;
    } args;
    bool by_cudnn;   /* a plain convolution that cuDNN does; the kernel is the own one in whose place it is */
    void *workspace; /* of cuDNN, CUDNN_WORKSPACE bytes; convolutions use it in turn */
    unsigned node;   /* of the graph that it belongs to, or CUDA_NO_NODE */
    size_t final; /* floats of the arena of gradients from here on are final behind it; SIZE_MAX: no more than before */
};
#define CUDNN_WORKSPACE  ((size_t)32 << 20)
#define CUDA_NO_NODE     UINT32_MAX
#define CUDA_MORE_SHARED GEMM_TABLE_FORWARD(GEMM_NORM_CHANNELS) /* the largest table */

cudaError_t cuda_launch(const struct cuda_kernel *set, const struct cuda_op *op, cudaStream_t stream);

/*
 * The same by programmatic dependent launch: its blocks may begin while the kernel in front still runs, and wait for it
 * (device.h).  What was put into the stream just before is a kernel of a set, and cuda_launches_early() is true.
 */
cudaError_t cuda_launch_early(const struct cuda_kernel *set, const struct cuda_op *op, cudaStream_t stream);
/*
 * Has the current device such launches, and do the kernels that it runs wait?  Code that a driver made of the PTX of an
 * older generation does not.
 */
cudaError_t cuda_launches_early(const struct cuda_kernel *set, bool *early);

/* Blocks for count things, `each` a block. */
unsigned cuda_blocks(size_t count, unsigned each);

/* Of sum_all for an entry. */
unsigned cuda_sum_blocks(const struct splits_entry *e);

#endif
