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

enum conv_kind { CONV_FPROP, CONV_DGRAD, CONV_WGRAD };

struct cuda_conv {
    enum conv_kind kind;
    union {
        struct conv_shape shape; /* the first member of each */
        struct fprop_args fprop;
        struct dgrad_args dgrad;
        struct wgrad_args wgrad;
    };
    unsigned tile,
        splits;     /* tile: index of a tile shape; splits: for CONV_WGRAD, number of partial sums; otherwise 1 */
    unsigned major; /* major compute capability, which selects the figures of the GPU; 0: the newest */
    enum cuda_value value; /* type of the values; the choice of a tile shape uses its counts and bytes */
};

/* Returns a convolution of this shape; all other members of its arguments are 0. */
struct cuda_conv cuda_conv_start(enum conv_kind kind, const struct conv_shape *shape, unsigned major);

/* Do channels, lds, sides and pointers meet the requirements of the kernels? */
bool cuda_conv_fits(const struct cuda_conv *c);

/* Return the BN that it applies to x, and the sums that it writes; the sums of wgrad are NULL. */
const struct norm_view *cuda_conv_norm(const struct cuda_conv *c);
const struct channel_sums *cuda_conv_sums(const struct cuda_conv *c);

/* Returns the number of tile shapes for it. */
unsigned cuda_conv_tile_shapes(const struct cuda_conv *c);

/*
 * Chooses the tile shape, the number of splits and the tiles per CTA for a device with this number of multiprocessors:
 * the fastest according to plan/gpu.h.  Sets k_steps or tiles_each, and divisors.  Depends only on shapes.
 */
void cuda_conv_choose(struct cuda_conv *c, unsigned processors);
/* Chooses the splits and the tiles per CTA for the given tile shape. */
void cuda_conv_take(struct cuda_conv *c, unsigned tile, unsigned processors);

/* Returns the floats of wgrad.partial; 0 for other kinds. */
size_t cuda_conv_partial(const struct cuda_conv *c);

/* Returns the number of splits that the arguments imply. */
unsigned cuda_wgrad_splits(const struct wgrad_args *a);

/* Returns its launch.  fprop and dgrad write op.x rows of partial sums. */
struct cuda_op cuda_conv_op(const struct cuda_conv *c);
/* Returns the convolution of a launch with a single product, without tile shape. */
struct cuda_conv cuda_conv_of(const struct cuda_op *op);

/*
 * dgrad and wgrad of one convolution in one launch, with tile shapes that have the same number of threads.  The bits
 * are the same as with two launches.
 */
struct cuda_conv_pair {
    struct cuda_conv dgrad, wgrad;
    unsigned tile_pair; /* index of a pair of tile shapes */
};
unsigned cuda_conv_pair_shapes(const struct cuda_conv_pair *p);
void cuda_conv_pair_choose(struct cuda_conv_pair *p, unsigned processors);
void cuda_conv_pair_take(struct cuda_conv_pair *p, unsigned tile_pair, unsigned processors);
struct cuda_op cuda_conv_pair_op(const struct cuda_conv_pair *p);

#endif
