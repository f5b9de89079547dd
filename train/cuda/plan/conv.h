/*
 * conv.h - convolutions as launches: the tile shape, the number of splits, and how many tiles a block computes
 *
 * Fill args with shapes and pointers, choose, then ask for the launch.  The choice depends on shapes and on the figures
 * of the GPU (gpu.h), so all ranks with the same GPU choose the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_CONV_H
#define CHEX_CUDA_PLAN_CONV_H

#include "cuda/kernels/launch.h"

enum conv_kind { CONV_FORWARD, CONV_DATA, CONV_WEIGHTS };

struct cuda_conv {
    enum conv_kind kind;
    struct conv_args args;
    unsigned tile, splits; /* tile: of cuda_conv_forms(); splits: CONV_WEIGHTS: partial sums, else 1 */
    unsigned major;        /* of the device's compute capability, whose figures are taken; 0: the newest */
};

/* Are channels, lds, sides and pointers such as the kernels take them? */
bool cuda_conv_fits(const struct conv_args *a);

/* How many forms of tile there are for it. */
unsigned cuda_conv_forms(const struct cuda_conv *c);

/*
 * Choose the form of tile, the number of splits, and how many tiles a block has, for a device with so many
 * multiprocessors: those that take least by plan/gpu.h, with figures of the device's architecture.  Fills
 * args.steps_each, tiles_each and divisors.  Depends on shapes alone.
 */
void cuda_conv_choose(struct cuda_conv *c, unsigned processors);
/* The same for a form that is given. */
void cuda_conv_take(struct cuda_conv *c, unsigned tile, unsigned processors);

/* Floats of args.partial; 0 but of CONV_WEIGHTS. */
size_t cuda_conv_partial(const struct cuda_conv *c);

/* Of CONV_WEIGHTS: splits that its arguments ask for. */
unsigned cuda_conv_splits(const struct conv_args *a);

/* Its launch.  Forward and data: blocks of sums are op.x. */
struct cuda_op cuda_conv_op(const struct cuda_conv *c);

/* Both gradients of one convolution, in forms of as many threads: the same bits as two launches leave. */
struct cuda_conv_pair {
    struct cuda_conv data, weights;
    unsigned forms; /* of cuda_conv_pair_forms() */
};
unsigned cuda_conv_pair_forms(const struct cuda_conv_pair *p);
void cuda_conv_pair_choose(struct cuda_conv_pair *p, unsigned processors);
void cuda_conv_pair_take(struct cuda_conv_pair *p, unsigned forms, unsigned processors);
struct cuda_op cuda_conv_pair_op(const struct cuda_conv_pair *p);

#endif
