/*
 * sums.h - per-channel sums of a CTA, and the ReLU mask of BN backward that is computed with them
 *
 *   g = dy where x * scale + shift > 0, otherwise 0;  A (+)= gamma * g;  partial sums of g and of g * xhat
 *
 * A CTA of NORM_THREADS threads has NORM_CHANNELS channels.  Four adjacent lanes share a pixel, with eight channels
 * each.  Each thread sums its pixels in registers.  At the end, the lanes of a warp exchange their sums by shuffles,
 * and the warps add theirs in shared memory.  The CTA then writes one row of partial sums, [2][channels].
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_SUMS_H
#define CHEX_CUDA_KERNELS_SUMS_H

#include "cuda/kernels/norm.h"

namespace
{
/*
 * Halves the sums of a lane: of 2 * COUNT sums it keeps COUNT, and adds those of lane ^ `by`, which keeps the others.
 */
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

/* Reduces two sums for each of a thread's eight channels over the CTA, and writes them to partial[CTA][2][channels]. */
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
 * Two pixels whose distance is the stride of the grid.  Both loads are in flight before the first store.  At the end,
 * if there is no second pixel, the first one is loaded twice.
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

/* A thread's constants for its eight channels of a BN, and its sums of g and of g * (x - mean) so far. */
struct norm_lane {
    float scale[8], shift[8], mean[8], gamma[8], one[8], by_x[8];
    unsigned at; /* the first one, relative to the CTA's channels */
    bool relu;
};

/*
 * Prepares the channels first .. end - 1; all threads must call it, with NORM_VIEW_SHARED bytes of shared memory.
 * Returns false if the thread has no channels.
 */
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

/* For a pixel of an image with weight: replaces dy by gamma * g, and adds to the sums. */
DEVICE void
mask_and_sum(norm_lane &l, const float *x, float *dy)
{
#pragma unroll
    for (unsigned i = 0; i < 8; i++) {
        bool passes = (fmaf(x[i], l.scale[i], l.shift[i]) > 0) | !l.relu; /* |: without a branch */
        float g = passes ? dy[i] : 0.0f;

        l.one[i] += g;
        l.by_x[i] += g * (x[i] - l.mean[i]);
        dy[i] = l.gamma[i] * g;
    }
}

/* Writes the CTA's partial sums of g and g * xhat.  All threads must call it. */
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

/* Stores or accumulates A for eight channels of a pixel. */
DEVICE void
store_gradient(value_t *to, const float *g, bool add)
{
    float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    value8 v;

    if (add) {
        load8(v, to);
        unpack8(sum, v);
    }
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        sum[i] += g[i];
    pack8(v, sum);
    store8(to, v);
}
} // namespace

#endif
