/*
 * cuda_pack.cu - master weights to packed ones, partial gradients of packed weights to gradients of master ones
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "backend/input.h"
#include "cuda/cuda_device.h"

namespace
{
/* What a weight of channel c of the normalised image counts in the two planes of a cell. */
DEVICE void
stem_factors(unsigned c, double *level, double *inside)
{
    const float means[] = INPUT_MEAN, deviations[] = INPUT_DEVIATION;
    float mean = means[0], deviation = deviations[0]; /* by index it would be memory */

#pragma unroll
    for (unsigned i = 1; i < INPUT_CHANNELS; i++)
        if (i == c) {
            mean = means[i];
            deviation = deviations[i];
        }
    *level = 256.0 / 255 / (double)deviation;
    *inside = (128.0 / 255 - (double)mean) / (double)deviation;
}

/* Value n of the packed weights of the stem, from [out][3][7][7]. */
DEVICE float
stem_weight(const float *master, unsigned n)
{
    unsigned plane = n % 2, ky = n / STEM_IN % 4 * 2 + n / 4 % 2 - 1, kx = n / 8 % 4 * 2 + n / 2 % 2 - 1;
    unsigned out = n / STEM_IN / 4;
    double sum = 0, level, inside;

    if (ky >= STEM_KERNEL || kx >= STEM_KERNEL) /* before the first is far behind the last */
        return 0;
    for (unsigned c = 0; c < INPUT_CHANNELS; c++) {
        double w = (double)master[((out * INPUT_CHANNELS + c) * STEM_KERNEL + ky) * STEM_KERNEL + kx];

        stem_factors(c, &level, &inside);
        sum += w * (plane == 0 ? level : inside);
    }
    return (float)sum;
}
} // namespace

KERNEL(pack_weights, pack_weights_args, PACK_THREADS, 1)
{
    unsigned low = 0, high = a.entries;

    while (high - low > 1) { /* the last whose first block is not behind this one */
        unsigned middle = (low + high) / 2;

        if (a.entry[middle].first_block <= blockIdx.x)
            low = middle;
        else
            high = middle;
    }
    const pack_entry &e = a.entry[low];
    const float *master = a.master + e.master;
    unsigned n = (blockIdx.x - e.first_block) * PACK_THREADS + threadIdx.x;

    if (e.stem) {
        if (n < e.out * 4 * STEM_IN)
            ((value_t *)e.packed)[n] = to_value(stem_weight(master, n));
    } else {
        unsigned in = n % e.in, tap = n / e.in % e.taps, out = n / e.in / e.taps;

        if (out < e.out)
            ((value_t *)e.packed)[n] = to_value(master[((size_t)out * e.in + in) * e.taps + tap]);
    }
}

/* Neighbours read neighbours; they write taps apart, once. */
KERNEL(sum_splits, sum_splits_args, PACK_THREADS, 1)
{
    unsigned n = blockIdx.x * PACK_THREADS + threadIdx.x, in = n % a.in, tap = n / a.in % a.taps,
             out = n / a.in / a.taps;
    size_t count = (size_t)a.out * a.in * a.taps, to = ((size_t)out * a.in + in) * a.taps + tap;
    float sum = 0;

    if (out >= a.out)
        return;
    for (unsigned split = 0; split < a.splits; split++)
        sum += a.partial[split * count + n];
    a.gradient[to] = sum * a.state->unscale + (a.block->number > 0 ? a.gradient[to] : 0);
}

/* A thread has a weight [out][ky][kx] of all channels: they have the same two sums. */
KERNEL(sum_stem, sum_stem_args, PACK_THREADS, 1)
{
    unsigned n = blockIdx.x * PACK_THREADS + threadIdx.x, kx = n % STEM_KERNEL, ky = n / STEM_KERNEL % STEM_KERNEL;
    unsigned out = n / STEM_KERNEL / STEM_KERNEL, row = (ky + 1) / 2, column = (kx + 1) / 2;
    unsigned value = column * 8 + (ky + 1) % 2 * 4 + (kx + 1) % 2 * 2;
    size_t from = ((size_t)out * 4 + row) * STEM_IN + value, count = (size_t)a.out * 4 * STEM_IN;
    double sum[2] = {0, 0}, level, inside;

    if (out >= a.out)
        return;
    for (unsigned split = 0; split < a.splits; split++) {
        sum[0] += (double)a.partial[split * count + from];
        sum[1] += (double)a.partial[split * count + from + 1];
    }
    for (unsigned c = 0; c < INPUT_CHANNELS; c++) {
        size_t to = (((size_t)out * INPUT_CHANNELS + c) * STEM_KERNEL + ky) * STEM_KERNEL + kx;

        stem_factors(c, &level, &inside);
        a.gradient[to] = (float)((sum[0] * level + sum[1] * inside) * (double)a.state->unscale) +
                         (a.block->number > 0 ? a.gradient[to] : 0);
    }
}
