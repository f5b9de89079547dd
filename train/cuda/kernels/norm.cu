/*
 * norm.cu - BN kernels that are not fused: partial sums of a slab whose producer writes none, and BN with a stored
 * output
 *
 *   y = max((x - mean) / sqrt(variance + epsilon) * gamma + beta, 0)      (train/ref/ops_norm.c)
 *
 * Each CTA writes one row of partial sums, which the consumers reduce (norm.h).  The sums are of x - pivot and its
 * square, because squares of values far from zero would cancel.  A CTA has NORM_CHANNELS channels; four adjacent lanes
 * share a pixel, with eight channels each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/norm.h"
#include "cuda/kernels/sums.h"

KERNEL(norm_sums, norm_sums_args, NORM_THREADS, 2)
{
    SHARED_BYTES(shared);
    unsigned channel = blockIdx.y * NORM_CHANNELS + threadIdx.x % 4 * 8;
    unsigned end = min(a.images * a.pixels, (blockIdx.x + 1) * a.each);
    float sum[8], squares[8], pivot[8];

#pragma unroll
    for (unsigned i = 0; i < 8; i++) {
        sum[i] = squares[i] = 0;
        pivot[i] = channel < a.channels ? norm_pivot(a.running_mean[channel + i]) : 0;
    }
    for (unsigned p = blockIdx.x * a.each + threadIdx.x / 4; p < end; p += NORM_THREADS / 4) {
        value8 x;

        if (channel >= a.channels || (a.weight && a.weight[p / a.pixels] == 0.0f))
            continue;
        load8(x, (const value_t *)a.x + (size_t)p * a.ld + channel);
#pragma unroll
        for (unsigned i = 0; i < 8; i++) {
            float d = to_float(x.at[i]) - pivot[i];

            sum[i] += d;
            squares[i] += d * d;
        }
    }
    reduce_block(sum, squares, (float *)(void *)shared, a.partial, a.channels);
}

KERNEL(norm_apply, norm_apply_args, NORM_THREADS, 2)
{
    SHARED_BYTES(shared);
    unsigned first = blockIdx.y * NORM_CHANNELS, lane = threadIdx.x % 4 * 8, channel = first + lane;
    norm_table table = {(float *)(void *)(shared + NORM_SCRATCH), NORM_CHANNELS / 8};
    float scale[8], shift[8];

    norm_make<2>(a.norm, first, min(a.channels - first, (unsigned)NORM_CHANNELS), table, (double *)(void *)shared,
                 blockIdx.x == 0);
    if (channel >= a.channels)
        return;
    norm_load8(scale, table, NORM_SCALE, lane);
    norm_load8(shift, table, NORM_SHIFT, lane);
    for (unsigned p = blockIdx.x * NORM_ROWS + threadIdx.x / 4; p < a.images * a.pixels;
         p += 2 * gridDim.x * NORM_ROWS) {
        pixel_pair both = pair_of(p, gridDim.x * NORM_ROWS, a.images * a.pixels);
        value8 v[2];

#pragma unroll
        for (unsigned k = 0; k < 2; k++)
            load8(v[k], (const value_t *)a.x + (size_t)both.at[k] * a.x_ld + channel);
#pragma unroll
        for (unsigned k = 0; k < 2; k++) {
            bool counts = !a.weight || a.weight[both.at[k] / a.pixels] != 0.0f;
            float y[8];

            unpack8(y, v[k]);
#pragma unroll
            for (unsigned i = 0; i < 8; i++)
                y[i] = counts ? norm_seen(y[i], scale[i], shift[i], a.norm.relu) : 0.0f;
            pack8(v[k], y);
            if (k < both.count)
                store8((value_t *)a.y + (size_t)both.at[k] * a.y_ld + channel, v[k]);
        }
    }
}
