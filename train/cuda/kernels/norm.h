/*
 * norm.h - fused batch normalisation: computes per-channel scale and shift, and applies them on load
 *
 *   scale = gamma / sqrt(variance + epsilon);  shift = beta - scale * mean;  y = max(fmaf(x, scale, shift), 0)
 *
 * A CTA first computes the constants of its channels and stores them in shared memory (norm_make()).  Its threads then
 * load eight channels at a time and compute y, with an optional ReLU.  All kernels use the same FMA, so fprop and dgrad
 * always agree on the ReLU mask y > 0.  If the statistics are not reduced yet, norm_make() reduces the partial sums
 * first, in every CTA and in the same order.  A gradient is finalized with a similar table: dx = inverse * (A -
 * by_beta - (x - mean) * by_x).
 *
 * table   float [figures][2][groups][4]; a group is 8 channels, [2] its lower and upper four.  The figures are scale
 * and shift; for dgrad also mean and 1 / sqrt(variance + epsilon)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_NORM_H
#define CHEX_CUDA_KERNELS_NORM_H

#include "cuda/kernels/device.h"

namespace
{
enum norm_figure { NORM_SCALE, NORM_SHIFT, NORM_MEAN, NORM_INVERSE };

/*
 * In shared memory, [figures][2][groups][4]: channels 0 .. 3 of all groups of eight, then channels 4 .. 7.  So lanes
 * with adjacent groups read adjacent 16 bytes, without bank conflicts.
 */
struct norm_table {
    float *at; /* NORM_TABLE_BYTES, aligned to 16 bytes */
    unsigned groups;
};

DEVICE float &
norm_entry(const norm_table &t, unsigned figure, unsigned channel)
{
    return t.at[((figure * 2 + channel / 4 % 2) * t.groups + channel / 8) * 4 + channel % 4];
}

/* Loads a figure of eight channels; channel is the first of a group. */
DEVICE void
norm_load8(float *to, const norm_table &t, unsigned figure, unsigned channel)
{
    const float4 *from = (const float4 *)(const void *)t.at + figure * 2 * t.groups + channel / 8;
    float4 low = from[0], high = from[t.groups];

    to[0] = low.x;
    to[1] = low.y;
    to[2] = low.z;
    to[3] = low.w;
    to[4] = high.x;
    to[5] = high.y;
    to[6] = high.z;
    to[7] = high.w;
}

DEVICE float
norm_inverse(float variance, float epsilon)
{
    return 1.0f / sqrtf(variance + epsilon);
}

/* NaN stays NaN; such a step is skipped. */
DEVICE float
norm_seen(float x, float scale, float shift, bool relu)
{
    float y = fmaf(x, scale, shift);

    return relu && y < 0 ? 0 : y;
}

DEVICE void
norm_see8(value8 &v, const float *scale, const float *shift, bool relu)
{
    float y[8];

    unpack8(y, v);
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        y[i] = norm_seen(y[i], scale[i], shift[i], relu);
    pack8(v, y);
}

/*
 * A sum as two floats; `rest` has the rounding errors of `sum` (Dekker's Fast2Sum).  The error of an addition is found
 * exactly if |sum| >= |x|, and within half a unit in the last place of x otherwise.  So the error of a sum does not
 * grow with the number of its terms.  Doubles would be slow: sm_75, sm_86, sm_89 and sm_120 add and convert two per
 * clock and multiprocessor.  A sum that overflows becomes NaN.
 */
struct two_floats {
    float sum, rest;
};

DEVICE void
two_floats_add(two_floats &s, float x)
{
    float sum = s.sum + x;

    s.rest += x - (sum - s.sum);
    s.sum = sum;
}

DEVICE void
two_floats_add4(two_floats *s, const float4 &x)
{
    two_floats_add(s[0], x.x);
    two_floats_add(s[1], x.y);
    two_floats_add(s[2], x.z);
    two_floats_add(s[3], x.w);
}

/* Adds the rows from[0], from[stride], ... in this order, and returns the value of the sum. */
DEVICE double
two_floats_total(const two_floats *from, unsigned rows, unsigned stride)
{
    two_floats all = from[0];

    for (unsigned row = 1; row < rows; row++) {
        two_floats_add(all, from[row * stride].sum);
        all.rest += from[row * stride].rest;
    }
    return (double)all.sum + (double)all.rest;
}

/*
 * Reduces the partial sums of channels from .. from + count - 1 to sum[2][count].  count is a multiple of 4 and at most
 * NORM_FRESH.  All threads of a CTA must call it, with NORM_SCRATCH bytes at sum.  The order of the additions depends
 * only on count.
 *
 * A thread loads four channels at a time and has eight rows in flight; the L2 bounds the speed.
 */
DEVICE void
norm_add_blocks(const channel_sums &s, unsigned from, unsigned count, double *sum)
{
    unsigned columns = count / 2, half = count / 4, parts = NORM_SCRATCH / 8 / (2 * count);
    two_floats *some = (two_floats *)(void *)sum; /* [parts][2][count] */

    for (unsigned i = threadIdx.x; i < parts * columns; i += blockDim.x) {
        unsigned part = i / columns, column = i % columns, which = column < half ? 0 : 1;
        const float *at = s.partial + (size_t)which * s.channels + from + (column - which * half) * 4;
        two_floats four[4] = {};

#pragma unroll 8
        for (unsigned b = part; b < s.blocks; b += parts)
            two_floats_add4(four, *(const float4 *)(const void *)(at + (size_t)b * 2 * s.channels));
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            some[4 * i + k] = four[k];
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < 2 * count; i += blockDim.x)
        sum[i] = two_floats_total(some + i, parts, 2 * count);
    __syncthreads();
}

/* The constants that finalize the gradient of a channel: dx = inverse * (A - by_beta - (x - mean) * by_x). */
struct finalize_constants {
    float inverse, by_beta, mean, by_x;
};

/* Combines the sums of g and g * xhat over `count` values with by_beta and by_gamma of the other BNs. */
DEVICE finalize_constants
finalize_constants_of(double one, double xhat, double gamma, double count, float by_beta, float by_gamma, float mean,
                      float variance, float epsilon)
{
    double share = gamma / count;
    /*
     * For a single value the gradient is exactly 0; otherwise the rounding error of A, divided by sqrt(epsilon), would
     * remain.
     */
    float inverse = count > 1 ? norm_inverse(variance, epsilon) : 0.0f;

    return {inverse, by_beta + (float)(one * share), mean, inverse * (by_gamma + (float)(xhat * share))};
}

/* The same as figures of a norm_table: dx = A * inverse + (x * slope + offset). */
enum finalize_figure { FINALIZE_INVERSE, FINALIZE_SLOPE, FINALIZE_OFFSET };

DEVICE void
finalize_put(const norm_table &t, unsigned at, const finalize_constants &f)
{
    norm_entry(t, FINALIZE_INVERSE, at) = f.inverse;
    norm_entry(t, FINALIZE_SLOPE, at) = -f.inverse * f.by_x;
    norm_entry(t, FINALIZE_OFFSET, at) = f.inverse * fmaf(f.mean, f.by_x, -f.by_beta);
}

/* Replaces A in d by dx. */
DEVICE void
finalize8(float *d, const float *x, const float *inverse, const float *slope, const float *offset)
{
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        d[i] = fmaf(inverse[i], d[i], fmaf(slope[i], x[i], offset[i]));
}

/*
 * The pivot of the squares of a channel, from its running mean.  Only the first two bits of the fraction are used, so
 * the pivot, and with it the rounding of the statistics, almost never depends on the last bits of the running mean.
 * These bits differ between numbers of ranks.  The pivot is at most 20 % smaller than the running mean.  NaN does not
 * become finite.
 */
DEVICE float
norm_pivot(float running_mean)
{
    return __uint_as_float(__float_as_uint(running_mean) & 0xffe00000u);
}

/* Mean and variance, rounded to float, so that all consumers start from the same bits. */
struct norm_moments_pair {
    float mean, variance;
};

DEVICE norm_moments_pair
norm_moments_of(double sum, double squares, double count, float pivot)
{
    double shift = sum / count, variance = squares / count - shift * shift;

    variance = count == 1 || variance < 0 ? 0 : variance; /* NaN stays NaN; such a step is skipped */
    return {(float)((double)pivot + shift), (float)variance};
}

template <int FIGURES>
DEVICE void
norm_put(const norm_table &t, unsigned at, const norm_view &v, unsigned channel, float mean, float variance)
{
    /* A single value is its own mean; padding may be far from it. */
    bool alone = v.pixels == 1 && v.block && v.block->images == 1;
    float inverse = alone ? 0 : norm_inverse(variance, v.epsilon), scale = v.gamma[channel] * inverse;

    norm_entry(t, NORM_SCALE, at) = scale;
    norm_entry(t, NORM_SHIFT, at) = fmaf(-scale, mean, v.beta[channel]);
    if (FIGURES > 2) {
        norm_entry(t, NORM_MEAN, at) = mean;
        norm_entry(t, NORM_INVERSE, at) = inverse;
    }
}

/*
 * Makes the table of channels first .. first + count - 1 of a view whose gamma is not NULL, with zeros after them:
 * scale and shift (FIGURES 2), or mean and inverse as well (4).  All threads of a CTA of at least NORM_FRESH threads
 * must call it; when it returns, the table is complete for all.  scratch: NORM_SCRATCH bytes of shared memory, aligned
 * to 8 bytes; used only with fresh sums.  `writes`: this CTA stores mean and variance of the fresh channels: CTA (0, 0,
 * 0), or, if CTAs have different channels, the first one for each.
 */
template <int FIGURES>
DEVICE void
norm_make(const norm_view &v, unsigned first, unsigned count, const norm_table &t, double *scratch, bool writes)
{
    for (unsigned c = threadIdx.x; c < t.groups * 8; c += blockDim.x) {
        unsigned channel = first + c;

        if (c >= count) {
#pragma unroll
            for (unsigned figure = 0; figure < FIGURES; figure++)
                norm_entry(t, figure, c) = 0;
        } else if (!v.mean) { /* for scoring they are ready */
            norm_entry(t, NORM_SCALE, c) = v.gamma[channel];
            norm_entry(t, NORM_SHIFT, c) = v.beta[channel];
        } else if (!v.fresh.partial || channel - v.fresh_first >= v.fresh.channels) { /* also before them: it wraps */
            norm_put<FIGURES>(t, c, v, channel, v.mean[channel], v.variance[channel]);
        }
    }
    if (v.fresh.partial) {
        double values = (double)v.block->images * (double)v.pixels;
        unsigned end = min(first + count, v.fresh_first + v.fresh.channels);

        for (unsigned from = max(first, v.fresh_first); from < end; from += NORM_FRESH) {
            unsigned some = min(end - from, (unsigned)NORM_FRESH), i = threadIdx.x;

            norm_add_blocks(v.fresh, from - v.fresh_first, some, scratch);
            if (i < some) {
                norm_moments_pair m = norm_moments_of(scratch[i], scratch[some + i], values,
                                                      norm_pivot(v.fresh.running_mean[from - v.fresh_first + i]));

                norm_put<FIGURES>(t, from - first + i, v, from + i, m.mean, m.variance);
                if (writes) {
                    v.mean[from + i] = m.mean;
                    v.variance[from + i] = m.variance;
                }
            }
            __syncthreads(); /* scratch has been read */
        }
    }
    __syncthreads();
}
} // namespace

#endif
