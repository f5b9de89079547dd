/*
 * one_pass.h - chooses the tile shape and the CTAs of conv_one_pass: dgrad and wgrad of a pointwise convolution in one
 * launch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_ONE_PASS_H
#define CHEX_CUDA_PLAN_ONE_PASS_H

#include "cuda/kernels/launch.h"
#include "cuda/plan/gpu.h"

struct cuda_one_pass {
    struct one_pass_args args;
    unsigned tile,
        ctas; /* tile: index of a tile shape; ctas: along the pixels, rows of args.partial and of args.dgrad.sums */
    unsigned value_bytes;  /* of an activation; 0: 2 */
    enum cuda_value value; /* type of the values; the choice of a tile shape uses its counts */
    unsigned major;        /* major compute capability; 0: the newest */
    unsigned shared;       /* bytes available to a CTA; 0: the amount that all devices of that generation have */
};

/*
 * Returns true if the kernels support this shape, lds and pointers on this device; pointers that are not set yet are
 * accepted.  finalize.sums must have the `out` channels of y; dgrad.norm may have no gamma.
 */
bool cuda_one_pass_fits(const struct cuda_one_pass *b);
/* Chooses the tile shape, stages, ctas and args.dgrad.tiles_each, like cuda_conv_choose(); the arguments must fit. */
void cuda_one_pass_choose(struct cuda_one_pass *b, unsigned processors);
/* Uses the given tile shape instead; returns false if it needs more shared memory than the device has. */
bool cuda_one_pass_take(struct cuda_one_pass *b, unsigned tile, unsigned processors);
/* Returns the floats of args.partial: [ctas][out][in], the input of sum_all with `splits` = ctas. */
size_t cuda_one_pass_partial(const struct cuda_one_pass *b);
/* Returns its launch. */
struct cuda_op cuda_one_pass_op(const struct cuda_one_pass *b);

#endif
