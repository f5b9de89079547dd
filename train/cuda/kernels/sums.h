/*
 * sums.h - the sums of channels that a block leaves, and the gradient of data that it makes beside them
 *
 * A block of NORM_THREADS has NORM_CHANNELS channels: four lanes side by side have a pixel, eight channels each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_SUMS_H
#define CHEX_CUDA_KERNELS_SUMS_H

#include "cuda/kernels/norm.h"

namespace
{
/* Half of 2 * COUNT values are this lane's from here on, summed with those of lane ^ `by`, whose are the others. */
template <int COUNT>
DEVICE void
share_sums(float *keep, const float *low, const float *high, unsigned by)
{
    bool upper = lane_id() & by;

#pragma unroll
    for (unsigned i = 0; i < COUNT; i++) {
        float mine = upper ? high[i] : low[i], other = upper ? low[i] : high[i];

        keep[i] = mine + __shfl_xor_sync(0xffffffffu, other, by);
    }
}

/* Two sums of the eight channels of each thread, over the block, to partial[block][2][channels]. */
DEVICE void
reduce_block(const float *first, const float *second, float *shared, float *partial, unsigned channels)
{
    unsigned lane = lane_id(), warp = threadIdx.x / 32;
    float eight[8], four[4], two[2];

    share_sums<8>(eight, first, second, 16);
    share_sums<4>(four, eight, eight + 4, 8);
    share_sums<2>(two, four, four + 2, 4);
#pragma unroll
    for (unsigned i = 0; i < 2; i++)
        shared[(warp * 2 + lane / 16) * NORM_CHANNELS + lane % 4 * 8 + lane / 8 % 2 * 4 + lane / 4 % 2 * 2 + i] =
            two[i];
    __syncthreads();
    if (threadIdx.x < 2 * NORM_CHANNELS) {
        unsigned which = threadIdx.x / NORM_CHANNELS,
                 channel = blockIdx.y * NORM_CHANNELS + threadIdx.x % NORM_CHANNELS;
        float sum = 0;

        for (unsigned w = 0; w < NORM_THREADS / 32; w++)
            sum += shared[w * 2 * NORM_CHANNELS + threadIdx.x];
        if (channel < channels)
            partial[((size_t)blockIdx.x * 2 + which) * channels + channel] = sum;
    }
}
/*
 * Two pixels, a stride of the grid apart: their loads are under way together, before the first store.  Behind the end
 * the second is the first again, and only loaded.
 */
struct pixel_pair {
    unsigned at[2], count;
};

DEVICE pixel_pair
pair_of(unsigned p, unsigned stride, unsigned end)
{
    bool two = p + stride < end;

    return {{p, two ? p + stride : p}, two ? 2u : 1u};
}

/* What a thread knows of its eight channels of a normalisation, and the sums of g and of g * (x - mean) so far. */
struct norm_lane {
    float scale[8], shift[8], mean[8], gamma[8], one[8], by_x[8];
    unsigned at; /* of the block's channels; the first */
    bool relu;
};

/* Of the block's channels first .. end - 1; all threads call it, with NORM_VIEW_SHARED bytes.  false: it has none. */
DEVICE bool
begin_lane(norm_lane &l, const norm_view &v, unsigned first, unsigned end, const norm_table &table,
           unsigned char *shared)
{
    l.at = threadIdx.x % 4 * 8;
    l.relu = v.relu;
    norm_make<4>(v, first, min(end - first, (unsigned)NORM_CHANNELS), table, (double *)(void *)shared, blockIdx.x == 0);
    norm_load8(l.scale, table, NORM_SCALE, l.at);
    norm_load8(l.shift, table, NORM_SHIFT, l.at);
    norm_load8(l.mean, table, NORM_MEAN, l.at);
#pragma unroll
    for (unsigned i = 0; i < 8; i++) {
        l.gamma[i] = first + l.at < end ? v.gamma[first + l.at + i] : 0;
        l.one[i] = l.by_x[i] = 0;
    }
    return first + l.at < end;
}

/* Of a pixel whose image counts: dy becomes gamma * g, and the sums grow. */
DEVICE void
mask_and_sum(norm_lane &l, const float *x, float *dy)
{
#pragma unroll
    for (unsigned i = 0; i < 8; i++) {
        float g = l.relu && !(fmaf(x[i], l.scale[i], l.shift[i]) > 0) ? 0.0f : dy[i];

        l.one[i] += g;
        l.by_x[i] += g * (x[i] - l.mean[i]);
        dy[i] = l.gamma[i] * g;
    }
}

/* The end: the block's sums of g and of g * xhat.  All threads call it. */
DEVICE void
store_sums(norm_lane &l, const norm_table &table, unsigned char *shared, float *partial, unsigned channels)
{
    float inverse[8];

    norm_load8(inverse, table, NORM_INVERSE, l.at);
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        l.by_x[i] *= inverse[i];
    reduce_block(l.one, l.by_x, (float *)(void *)shared, partial, channels);
}

/* A (+)= what eight channels of a pixel have. */
DEVICE void
store_gradient(value_t *to, const float *g, bool add)
{
    float sum[8];
    value8 v;

    if (add) {
        load8(v, to);
        unpack8(sum, v);
    }
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        sum[i] = add ? sum[i] + g[i] : g[i];
    pack8(v, sum);
    store8(to, v);
}
} // namespace

#endif
