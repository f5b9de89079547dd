/*
 * finalize.cu - BNs whose output is not stored: reduces partial sums, and finalizes gradients (see norm_args.h)
 *
 *   dx = (A - by_beta - xhat by_gamma) / sqrt(variance + epsilon)
 *
 * Per value, norm_finalize costs two loads and a store.  The partial sums that a CTA reduces first are in the L2 cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/sums.h"

/* 16 threads read a row of sums, four floats each.  The ROWS rows that a CTA reads at a time are added at the end. */
KERNEL(reduce_sums, reduce_sums_args, NORM_THREADS, 2)
{
    SHARED_BYTES(shared);
    enum { ROWS = NORM_THREADS / 16, COLUMNS = 2 * NORM_CHANNELS };
    two_floats *some = (two_floats *)(void *)shared; /* [ROWS][COLUMNS] */
    unsigned row = threadIdx.x / 16, column = threadIdx.x % 16 * 4, channels = a.from.channels;
    unsigned first = blockIdx.y * NORM_CHANNELS, channel = first + column % NORM_CHANNELS;
    unsigned each = (a.from.blocks + a.to.blocks - 1) / a.to.blocks;
    unsigned end = min(a.from.blocks, (blockIdx.x + 1) * each);
    size_t which = column / NORM_CHANNELS;
    two_floats sum[4] = {};

    if (channel < channels) {
#pragma unroll 8
        for (unsigned b = blockIdx.x * each + row; b < end; b += ROWS) {
            const float *from = a.from.partial + (2 * (size_t)b + which) * channels + channel;

            two_floats_add4(sum, *(const float4 *)(const void *)from);
        }
    }
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
        some[row * COLUMNS + column + i] = sum[i];
    __syncthreads();
    if (threadIdx.x < COLUMNS) {
        double all = two_floats_total(some + threadIdx.x, ROWS, COLUMNS);

        which = threadIdx.x / NORM_CHANNELS;
        channel = first + threadIdx.x % NORM_CHANNELS;
        if (channel < channels)
            a.to.partial[(2 * (size_t)blockIdx.x + which) * channels + channel] = (float)all;
    }
}

namespace
{
DEVICE double
finalize_count(const norm_finalize_args &a)
{
    return (double)a.block->images * (double)a.pixels;
}

/*
 * Reduce the partial sums of a group of NORM_CHANNELS channels: dbeta, dgamma, and by_beta and by_gamma of channels
 * outside the slice.  All threads of a CTA call it.
 */
DEVICE void
finalize_channels(const norm_finalize_args &a, unsigned group, double *sum)
{
    unsigned first = group * NORM_CHANNELS, count = min(a.sums.channels - first, (unsigned)NORM_CHANNELS);
    unsigned c = first + threadIdx.x;

    norm_add_blocks(a.sums, first, count, sum);
    if (threadIdx.x >= count)
        return;
    double one = sum[threadIdx.x], by_x = sum[count + threadIdx.x], unscale = (double)a.state->unscale;
    bool keep = a.block->number > 0;

    a.dbeta[c] = (keep ? a.dbeta[c] : 0) + (float)(one * unscale);
    a.dgamma[c] = (keep ? a.dgamma[c] : 0) + (float)(by_x * unscale);
    if (c - a.first >= a.channels) { /* unsigned: below a.first wraps to a large number */
        double share = (double)a.gamma[c] / finalize_count(a);

        a.by_beta[c] = (a.add ? a.by_beta[c] : 0) + (float)(one * share);
        a.by_gamma[c] = (a.add ? a.by_gamma[c] : 0) + (float)(by_x * share);
    }
}

/* Makes the table that finalizes `count` channels of the slice; `first` is the number of the first in the slab. */
DEVICE void
prepare_slice(const norm_finalize_args &a, unsigned first, unsigned count, const norm_table &table, double *sum)
{
    unsigned i = threadIdx.x, c = first + i;

    norm_add_blocks(a.sums, first, count, sum);
    if (i < count)
        finalize_put(table, i,
                     finalize_constants_of(sum[i], sum[count + i], (double)a.gamma[c], finalize_count(a),
                                           a.add ? a.by_beta[c] : 0, a.add ? a.by_gamma[c] : 0, a.mean[c],
                                           a.variance[c], a.epsilon));
    __syncthreads();
}

/* Finalizes the pixels of CTA `part` of the `parts` that share this group of channels of the slice. */
DEVICE void
finalize_slice(const norm_finalize_args &a, unsigned group, unsigned part, unsigned parts, const norm_table &table,
               double *sum)
{
    unsigned lane = threadIdx.x % 4 * 8, channel = group * NORM_CHANNELS + lane;
    float inverse[8], slope[8], offset[8];

    prepare_slice(a, a.first + group * NORM_CHANNELS, min(a.channels - group * NORM_CHANNELS, (unsigned)NORM_CHANNELS),
                  table, sum);
    if (channel >= a.channels)
        return;
    norm_load8(inverse, table, FINALIZE_INVERSE, lane);
    norm_load8(slope, table, FINALIZE_SLOPE, lane);
    norm_load8(offset, table, FINALIZE_OFFSET, lane);
    for (unsigned p = part * NORM_ROWS + threadIdx.x / 4; p < a.images * a.pixels; p += 2 * parts * NORM_ROWS) {
        pixel_pair both = pair_of(p, parts * NORM_ROWS, a.images * a.pixels);
        value8 x8[2], d8[2];

#pragma unroll
        for (unsigned k = 0; k < 2; k++) {
            load8(x8[k], (const value_t *)a.x + (size_t)both.at[k] * a.x_ld + channel);
            load8(d8[k], (value_t *)a.gradient + (size_t)both.at[k] * a.gradient_ld + channel);
        }
#pragma unroll
        for (unsigned k = 0; k < 2; k++) {
            bool counts = !a.weight || a.weight[both.at[k] / a.pixels] != 0.0f;
            float x[8], d[8];

            unpack8(x, x8[k]);
            unpack8(d, d8[k]);
            finalize8(d, x, inverse, slope, offset);
#pragma unroll
            for (unsigned i = 0; i < 8; i++)
                d[i] = counts ? d[i] : 0.0f;
            pack8(d8[k], d);
            if (k < both.count)
                store8((value_t *)a.gradient + (size_t)both.at[k] * a.gradient_ld + channel, d8[k]);
        }
    }
}
} // namespace

KERNEL(norm_finalize, norm_finalize_args, NORM_THREADS, 3)
{
    SHARED_BYTES(shared);
    unsigned of_channels = (a.sums.channels + NORM_CHANNELS - 1) / NORM_CHANNELS, block = blockIdx.x - of_channels;
    unsigned groups = (a.channels + NORM_CHANNELS - 1) / NORM_CHANNELS;
    double *sum = (double *)(void *)shared;

    if (blockIdx.x < of_channels) {
        finalize_channels(a, blockIdx.x, sum);
    } else if (groups > 0) {
        unsigned parts = (gridDim.x - of_channels) / groups, part = block / groups; /* neighbours share a pixel */

        if (part < parts)
            finalize_slice(a, block % groups, part, parts,
                           {(float *)(void *)(shared + NORM_SCRATCH), NORM_CHANNELS / 8}, sum);
    }
}

KERNEL(norm_mask, norm_mask_args, NORM_THREADS, 2)
{
    SHARED_BYTES(shared);
    unsigned first = blockIdx.y * NORM_CHANNELS, images = a.images;
    norm_table table = {(float *)(void *)(shared + NORM_SCRATCH), NORM_CHANNELS / 8};
    norm_lane l;
    bool has = begin_lane(l, a.norm, first, a.channels, table, shared);

    for (unsigned p = blockIdx.x * NORM_ROWS + threadIdx.x / 4; has && p < images * a.pixels;
         p += 2 * gridDim.x * NORM_ROWS) {
        pixel_pair both = pair_of(p, gridDim.x * NORM_ROWS, images * a.pixels);
        value8 x8[2], dy8[2];

#pragma unroll
        for (unsigned k = 0; k < 2; k++) {
            load8(x8[k], (const value_t *)a.x + (size_t)both.at[k] * a.x_ld + first + l.at);
            load8(dy8[k], (const value_t *)a.dy + (size_t)both.at[k] * a.dy_ld + first + l.at);
        }
#pragma unroll
        for (unsigned k = 0; k < 2; k++) {
            bool counts = !a.weight || a.weight[both.at[k] / a.pixels] != 0.0f;
            float x[8], g[8];

            unpack8(x, x8[k]);
            unpack8(g, dy8[k]);
            if (k >= both.count)
                break;
            if (counts)
                mask_and_sum(l, x, g);
#pragma unroll
            for (unsigned i = 0; i < 8; i++)
                g[i] = counts ? g[i] : 0.0f;
            store_gradient((value_t *)a.gradient + (size_t)both.at[k] * a.gradient_ld + first + l.at, g, a.add);
        }
    }
    store_sums(l, table, shared, a.sums.partial, a.sums.channels);
}
