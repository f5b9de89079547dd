/*
 * both.h - chooses tile shape and stripes of conv_both: dgrad and wgrad of a pointwise convolution in one launch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_BOTH_H
#define CHEX_CUDA_PLAN_BOTH_H

#include "cuda/kernels/launch.h"
#include "cuda/plan/gpu.h"

struct cuda_both {
    struct conv_both_args args;
    unsigned form, stripes; /* stripes: CTAs along the pixels, rows of args.conv.partial and of args.conv.sums */
    unsigned value_bytes;   /* of an activation; 0: 2 */
    unsigned major;         /* major compute capability; 0: the newest */
    unsigned shared;        /* bytes available to a CTA; 0: the amount that all devices of that generation have */
};

/*
 * Returns true if the kernels support this shape, lds and pointers on this device; pointers that are not set yet are
 * accepted.  finish.sums must have the `out` channels of y; conv.norm may have no gamma.
 */
bool cuda_conv_both_fits(const struct cuda_both *b);
/* Chooses form, stages, stripes and args.conv.steps_each, like cuda_conv_choose(); the arguments must fit. */
void cuda_conv_both_choose(struct cuda_both *b, unsigned processors);
/* Uses the given form instead; returns false if it needs more shared memory than the device has. */
bool cuda_conv_both_take(struct cuda_both *b, unsigned form, unsigned processors);
/* Returns the floats of args.conv.partial: [stripes][out][in], the input of sum_all with `splits` = stripes. */
size_t cuda_conv_both_partial(const struct cuda_both *b);
/* Returns its launch. */
struct cuda_op cuda_conv_both_op(const struct cuda_both *b);
/*
 * Returns the seconds of the products of a launch.  A CTA computes all tiles of its stripe; before the first tile it
 * loads the partial sums of y from the L2, like all other CTAs.
 */
double cuda_both_seconds(const struct cuda_gpu *gpu, const struct cuda_op *op);

#endif
