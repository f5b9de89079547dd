/*
 * one_pass_end.h - the gradient that the end of a dense block adds to x in one_pass.h: struct one_pass_end
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_ONE_PASS_END_H
#define CHEX_CUDA_KERNELS_ONE_PASS_END_H

#include "cuda/kernels/norm.h"

namespace
{
/* Additional figures of the table of x; the last ones are only used with `end`. */
enum { ONE_PASS_GAMMA = NORM_INVERSE + 1, ONE_PASS_END_SCALE, ONE_PASS_END_SHIFT, ONE_PASS_END_GAMMA };
#define ONE_PASS_NO_MEAN 0xffffffffu

/* Completes the table of x for channels column0 ..; the figures of x's own BN must be there. */
DEVICE void
one_pass_make_end(const one_pass_args &a, const norm_table &t, unsigned column0)
{
    unsigned columns = t.groups * 8, count = min(columns, a.dgrad.shape.in - column0);

    for (unsigned c = threadIdx.x; c < columns; c += ONE_PASS_THREADS) {
        float gamma = c < count ? a.end.gamma[column0 + c] : 0.0f, beta = c < count ? a.end.beta[column0 + c] : 0.0f;
        float scale = gamma * norm_entry(t, NORM_INVERSE, c), shift = fmaf(-scale, norm_entry(t, NORM_MEAN, c), beta);

        norm_entry(t, ONE_PASS_END_GAMMA, c) = gamma;
        norm_entry(t, ONE_PASS_END_SCALE, c) = scale;
        norm_entry(t, ONE_PASS_END_SHIFT, c) = shift;
    }
    __syncthreads();
}

/* Returns the pixel of dy for a pixel of an image with weight, or ONE_PASS_NO_MEAN. */
DEVICE unsigned
one_pass_mean_of(const one_pass_args &a, unsigned pixel, unsigned image)
{
    const one_pass_end &e = a.end;
    unsigned at = pixel - image * a.dgrad.shape.height * a.dgrad.shape.width;
    unsigned y = at / a.dgrad.shape.width / e.down, x = at % a.dgrad.shape.width / e.across;

    return y < e.height && x < e.width ? (image * e.height + y) * e.width + x : ONE_PASS_NO_MEAN;
}

/* The sums of g and of g * (x - mean) so far, for a thread's eight channels. */
struct one_pass_channels {
    float by_one[8], by_x[8];
};

/*
 * With `end`: replaces the pool's gradient by gamma * g of the BN in front of the pool, in float, and adds to the sums.
 */
DEVICE void
one_pass_end8(float *y, const norm_table &t, unsigned channel, const float *x, float share, float least,
              one_pass_channels &to)
{
    float first[8], second[8];

    norm_load8(first, t, ONE_PASS_END_SCALE, channel);
    norm_load8(second, t, ONE_PASS_END_SHIFT, channel);
#pragma unroll
    for (unsigned e = 0; e < 8; e++)
        y[e] = fmaf(x[e], first[e], second[e]) > least ? y[e] * share : 0;
    norm_load8(first, t, NORM_MEAN, channel);
    norm_load8(second, t, ONE_PASS_END_GAMMA, channel);
#pragma unroll
    for (unsigned e = 0; e < 8; e++) {
        to.by_one[e] += y[e];
        to.by_x[e] = fmaf(y[e], x[e] - first[e], to.by_x[e]);
        y[e] *= second[e];
    }
}
} // namespace

#endif
