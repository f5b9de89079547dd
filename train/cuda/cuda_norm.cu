/*
 * cuda_norm.cu - batch normalisation: statistics, the normalised tensor, gradients
 *
 * Sums over pixels are partial sums of blocks, which one thread for each channel adds in the order of the blocks, in
 * double. Squares are of x - pivot: of values far from zero they would cancel.  In kernels that sum, a block has
 * NORM_CHANNELS channels of `each` pixels: four lanes side by side have a pixel, eight channels each.
 *
 * Formulas as in train/ref/ops_norm.c (Ioffe and Szegedy, 2015).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/cuda_device.h"

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

/* The sum of one channel over the blocks. */
DEVICE double
sum_of_blocks(const float *partial, unsigned which, unsigned channel, unsigned channels, unsigned blocks)
{
    double sum = 0;

    for (unsigned b = 0; b < blocks; b++)
        sum += (double)partial[((size_t)b * 2 + which) * channels + channel];
    return sum;
}

/* y = (x - mean) * factor + beta as y = x * scale + shift: with the scale that was rounded, so far means do not err. */
DEVICE void
store_scale(float *scale, float *shift, double factor, double mean, float beta)
{
    *scale = (float)factor;
    *shift = (float)((double)beta - (double)*scale * mean);
}
} // namespace

KERNEL(norm_sums, norm_sums_args, NORM_THREADS, 2)
{
    SHARED_BYTES(shared);
    unsigned channel = blockIdx.y * NORM_CHANNELS + threadIdx.x % 4 * 8;
    unsigned end = min(a.images * a.pixels, (blockIdx.x + 1) * a.each);
    float sum[8], squares[8], pivot[8];

#pragma unroll
    for (unsigned i = 0; i < 8; i++) {
        sum[i] = squares[i] = 0;
        pivot[i] = channel < a.channels ? a.pivot[channel + i] : 0;
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

KERNEL(norm_moments, norm_moments_args, NORM_THREADS, 1)
{
    unsigned c = blockIdx.x * NORM_THREADS + threadIdx.x;

    if (c >= a.channels)
        return;
    double count = (double)a.block->images * (double)a.pixels;
    double shift = sum_of_blocks(a.partial, 0, c, a.channels, a.blocks) / count;
    double variance = sum_of_blocks(a.partial, 1, c, a.channels, a.blocks) / count - shift * shift;

    variance = count == 1 || variance < 0 ? 0 : variance; /* NaN stays NaN: a step with it is skipped */
    a.mean[c] = (float)((double)a.pivot[c] + shift);
    a.variance[c] = (float)variance;
    a.inverse[c] = (float)(1 / sqrt(variance + (double)a.epsilon));
}

KERNEL(norm_finish, norm_finish_args, NORM_THREADS, 1)
{
    unsigned c = blockIdx.x * NORM_THREADS + threadIdx.x;

    if (c >= a.channels)
        return;
    double count = (double)a.block->images * (double)a.pixels, taken = (double)a.momentum;
    double mean = (double)a.mean[c], variance = (double)a.variance[c];

    store_scale(a.scale + c, a.shift + c, (double)a.gamma[c] * (double)a.inverse[c], mean, a.beta[c]);
    if (count >= NORM_LEAST) { /* one value says nothing of a variance */
        a.running_mean[c] = (float)((1 - taken) * (double)a.running_mean[c] + taken * mean);
        a.running_variance[c] = (float)((1 - taken) * (double)a.running_variance[c] +
                                        taken * variance * count / (count - 1));
    }
}

KERNEL(norm_running, norm_running_args, NORM_THREADS, 1)
{
    unsigned c = blockIdx.x * NORM_THREADS + threadIdx.x;

    if (c < a.channels)
        store_scale(a.scale + c, a.shift + c, (double)a.gamma[c] / sqrt((double)a.variance[c] + (double)a.epsilon),
                    (double)a.mean[c], a.beta[c]);
}

KERNEL(norm_apply, norm_apply_args, NORM_THREADS, 2)
{
    unsigned groups = a.channels / 8, n = blockIdx.x * NORM_THREADS + threadIdx.x;
    unsigned pixel = n / groups, channel = n % groups * 8;
    value8 v;

    if (pixel >= a.images * a.pixels)
        return;
    bool counts = !a.weight || a.weight[pixel / a.pixels] != 0.0f;

    load8(v, (const value_t *)a.x + (size_t)pixel * a.x_ld + channel);
#pragma unroll
    for (unsigned i = 0; i < 8; i++) {
        float y = to_float(v.at[i]) * a.scale[channel + i] + a.shift[channel + i];
        bool cut = a.relu && !(y > 0) && y == y; /* NaN stays NaN: a step with it is skipped */

        v.at[i] = to_value(cut || !counts ? 0.0f : y);
    }
    store8((value_t *)a.y + (size_t)pixel * a.y_ld + channel, v);
}

KERNEL(norm_gradient_sums, norm_gradient_sums_args, NORM_THREADS, 2)
{
    SHARED_BYTES(shared);
    unsigned channel = blockIdx.y * NORM_CHANNELS + threadIdx.x % 4 * 8;
    unsigned end = min(a.pixels, (blockIdx.x + 1) * a.each);
    float by_one[8], by_x[8], mean[8], inverse[8];

#pragma unroll
    for (unsigned i = 0; i < 8; i++) {
        by_one[i] = by_x[i] = 0;
        mean[i] = channel < a.channels ? a.mean[channel + i] : 0;
        inverse[i] = channel < a.channels ? a.inverse[channel + i] : 0;
    }
    for (unsigned p = blockIdx.x * a.each + threadIdx.x / 4; p < end && channel < a.channels; p += NORM_THREADS / 4) {
        value8 x, y, dy;

        load8(x, (const value_t *)a.x + (size_t)p * a.x_ld + channel);
        load8(dy, (const value_t *)a.dy + (size_t)p * a.dy_ld + channel);
        if (a.relu)
            load8(y, (const value_t *)a.y + (size_t)p * a.y_ld + channel);
#pragma unroll
        for (unsigned i = 0; i < 8; i++) {
            float g = a.relu && !(to_float(y.at[i]) > 0) ? 0.0f : to_float(dy.at[i]);

            by_one[i] += g;
            by_x[i] += g * (to_float(x.at[i]) - mean[i]) * inverse[i];
        }
    }
    reduce_block(by_one, by_x, (float *)(void *)shared, a.partial, a.channels);
}

KERNEL(norm_gradient_finish, norm_gradient_finish_args, NORM_THREADS, 1)
{
    unsigned c = blockIdx.x * NORM_THREADS + threadIdx.x;

    if (c >= a.channels)
        return;
    double count = (double)a.block->images * (double)a.pixels, unscale = (double)a.state->unscale;
    double by_one = sum_of_blocks(a.partial, 0, c, a.channels, a.blocks);
    double by_x = sum_of_blocks(a.partial, 1, c, a.channels, a.blocks);
    bool keep = a.block->number > 0;

    a.by_beta[c] = (float)(by_one / count);
    a.by_gamma[c] = (float)(by_x / count);
    a.dbeta[c] = (keep ? a.dbeta[c] : 0) + (float)(by_one * unscale);
    a.dgamma[c] = (keep ? a.dgamma[c] : 0) + (float)(by_x * unscale);
}

KERNEL(norm_gradient, norm_gradient_args, NORM_THREADS, 2)
{
    unsigned groups = a.channels / 8, n = blockIdx.x * NORM_THREADS + threadIdx.x;
    unsigned pixel = n / groups, channel = n % groups * 8;
    value8 x, y, dy, dx;

    if (pixel >= a.images * a.pixels)
        return;
    bool counts = !a.weight || a.weight[pixel / a.pixels] != 0.0f;
    value_t *to = (value_t *)a.dx + (size_t)pixel * a.dx_ld + channel;

    load8(x, (const value_t *)a.x + (size_t)pixel * a.x_ld + channel);
    load8(dy, (const value_t *)a.dy + (size_t)pixel * a.dy_ld + channel);
    if (a.relu)
        load8(y, (const value_t *)a.y + (size_t)pixel * a.y_ld + channel);
    if (a.add)
        load8(dx, to);
#pragma unroll
    for (unsigned i = 0; i < 8; i++) {
        unsigned c = channel + i;
        float g = a.relu && !(to_float(y.at[i]) > 0) ? 0.0f : to_float(dy.at[i]);
        float normal = (to_float(x.at[i]) - a.mean[c]) * a.inverse[c];
        float d = counts ? a.gamma[c] * a.inverse[c] * (g - a.by_beta[c] - normal * a.by_gamma[c]) : 0.0f;

        dx.at[i] = to_value(a.add ? to_float(dx.at[i]) + d : d);
    }
    store8(to, dx);
}
