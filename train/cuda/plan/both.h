/*
 * both.h - both gradients of a pointwise convolution in one launch, conv_both: the form, and the number of stripes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_BOTH_H
#define CHEX_CUDA_PLAN_BOTH_H

#include "cuda/kernels/launch.h"
#include "cuda/plan/gpu.h"

struct cuda_both {
    struct conv_both_args args;
    unsigned form, stripes; /* stripes: blocks of args.conv.partial and of args.conv.sums */
    unsigned value_bytes;   /* of an activation; 0: 2 */
    unsigned major;         /* of the device's compute capability; 0: the newest */
    unsigned shared;        /* bytes that a block may have; 0: what all devices of that generation have */
};

/*
 * Is it one that the kernels do, on such a device?  By shape, lds and pointers; of the last none need be there yet.
 * finish.sums have the `out` channels of y; conv.norm may have no gamma.
 */
bool cuda_conv_both_fits(const struct cuda_both *b);
/* As cuda_conv_choose(), of what fits: form, stages, stripes and args.conv.steps_each. */
void cuda_conv_both_choose(struct cuda_both *b, unsigned processors);
/* The same for a form that is given; false: it needs more shared memory than there is. */
bool cuda_conv_both_take(struct cuda_both *b, unsigned form, unsigned processors);
/* Floats of args.conv.partial: [stripes][out][in], as sum_all takes them with `splits` = stripes. */
size_t cuda_conv_both_partial(const struct cuda_both *b);
/* Its launch. */
struct cuda_op cuda_conv_both_op(const struct cuda_both *b);
/*
 * Seconds of the products of such a launch.  A block has all tiles of its stripe; before the first it brings the sums
 * of y from the L2, as all others do.
 */
double cuda_both_seconds(const struct cuda_gpu *gpu, const struct cuda_op *op);

#endif
