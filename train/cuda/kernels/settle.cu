/*
 * settle.cu - normalisations that nobody writes: their sums, the end of a gradient
 *
 * For each pixel a channel costs two loads and a store here, nothing else; what a block adds up before it begins with
 * pixels comes from the second level cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/sums.h"

/* Sixteen lanes have a row, four floats each; the rows of sixteen are added by columns. */
KERNEL(fold_sums, fold_sums_args, NORM_THREADS, 2)
{
    SHARED_BYTES(shared);
    enum { ROWS = NORM_THREADS / 16, COLUMNS = 2 * NORM_CHANNELS };
    double *some = (double *)(void *)shared; /* [ROWS][COLUMNS] */
    unsigned row = threadIdx.x / 16, column = threadIdx.x % 16 * 4, channels = a.from.channels;
    unsigned first = blockIdx.y * NORM_CHANNELS, channel = first + column % NORM_CHANNELS;
    unsigned each = (a.from.blocks + a.to.blocks - 1) / a.to.blocks;
    unsigned end = min(a.from.blocks, (blockIdx.x + 1) * each);
    size_t which = column / NORM_CHANNELS;
    double sum[4] = {0, 0, 0, 0};

    if (channel < channels) {
#pragma unroll 8
        for (unsigned b = blockIdx.x * each + row; b < end; b += ROWS) {
            float4 v = *(const float4 *)(const void *)(a.from.partial + (2 * (size_t)b + which) * channels + channel);

            sum[0] += (double)v.x;
            sum[1] += (double)v.y;
            sum[2] += (double)v.z;
            sum[3] += (double)v.w;
        }
    }
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
        some[row * COLUMNS + column + i] = sum[i];
    __syncthreads();
    if (threadIdx.x < COLUMNS) {
        double all = 0;

        for (unsigned r = 0; r < ROWS; r++)
            all += some[r * COLUMNS + threadIdx.x];
        which = threadIdx.x / NORM_CHANNELS;
        channel = first + threadIdx.x % NORM_CHANNELS;
        if (channel < channels)
            a.to.partial[(2 * (size_t)blockIdx.x + which) * channels + channel] = (float)all;
    }
}

namespace
{
/* norm_finished in shared memory. */
enum { SETTLE_INVERSE, SETTLE_BETA, SETTLE_MEAN, SETTLE_X, SETTLE_FIGURES };

/* What it takes for channels of the slice, of which the first is `first` of the slab, to finish[SETTLE_FIGURES][]. */
DEVICE void
prepare_slice(const norm_settle_args &a, unsigned first, unsigned count, double *sum, float *finish)
{
    unsigned i = threadIdx.x, c = first + i;

    norm_add_blocks(a.sums, first, count, sum);
    if (i < count) {
        norm_finished f = norm_finish_of(sum[i], sum[count + i], (double)a.gamma[c], settle_count(a),
                                         a.add ? a.by_beta[c] : 0, a.add ? a.by_gamma[c] : 0, a.mean[c], a.variance[c],
                                         a.epsilon);

        finish[SETTLE_INVERSE * NORM_CHANNELS + i] = f.inverse;
        finish[SETTLE_BETA * NORM_CHANNELS + i] = f.by_beta;
        finish[SETTLE_MEAN * NORM_CHANNELS + i] = f.mean;
        finish[SETTLE_X * NORM_CHANNELS + i] = f.by_x;
    }
    __syncthreads();
}

/* Block `part` of `parts` that have this group of channels of the slice. */
DEVICE void
settle_slice(const norm_settle_args &a, unsigned group, unsigned part, unsigned parts, double *sum, float *finish)
{
    unsigned lane = threadIdx.x % 4 * 8, channel = group * NORM_CHANNELS + lane;
    float inverse[8], by_beta[8], mean[8], by_x[8];

    prepare_slice(a, a.first + group * NORM_CHANNELS, min(a.channels - group * NORM_CHANNELS, (unsigned)NORM_CHANNELS),
                  sum, finish);
    if (channel >= a.channels)
        return;
#pragma unroll
    for (unsigned i = 0; i < 8; i++) {
        inverse[i] = finish[SETTLE_INVERSE * NORM_CHANNELS + lane + i];
        by_beta[i] = finish[SETTLE_BETA * NORM_CHANNELS + lane + i];
        mean[i] = finish[SETTLE_MEAN * NORM_CHANNELS + lane + i];
        by_x[i] = finish[SETTLE_X * NORM_CHANNELS + lane + i];
    }
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
#pragma unroll
            for (unsigned i = 0; i < 8; i++)
                d[i] = counts ? inverse[i] * (d[i] - by_beta[i] - (x[i] - mean[i]) * by_x[i]) : 0.0f;
            pack8(d8[k], d);
            if (k < both.count)
                store8((value_t *)a.gradient + (size_t)both.at[k] * a.gradient_ld + channel, d8[k]);
        }
    }
}
} // namespace

KERNEL(norm_settle, norm_settle_args, NORM_THREADS, 3)
{
    SHARED_BYTES(shared);
    unsigned of_channels = (a.sums.channels + NORM_CHANNELS - 1) / NORM_CHANNELS, block = blockIdx.x - of_channels;
    unsigned groups = (a.channels + NORM_CHANNELS - 1) / NORM_CHANNELS;
    double *sum = (double *)(void *)shared;

    if (blockIdx.x < of_channels) {
        settle_channels(a, blockIdx.x, sum);
    } else if (groups > 0) {
        unsigned parts = (gridDim.x - of_channels) / groups, part = block / groups; /* neighbours share a pixel */

        if (part < parts)
            settle_slice(a, block % groups, part, parts, sum, (float *)(void *)(shared + NORM_SCRATCH));
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
