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
    const pack_entry &e = entry_of_block(a.entry, a.entries);
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

namespace
{
/* As SUM_PARTS and SUM_QUADS have it: threads of a part have neighbours of a tap, then come the other taps. */
DEVICE void
sum_convolution(const sum_all_args &a, const splits_entry &e, float *shared)
{
    unsigned parts = SUM_PARTS(e.taps, e.splits), quads = SUM_QUADS(e.taps, e.splits), stride = 4 * quads + 4;
    unsigned first = (blockIdx.x - e.first_block) * quads, have = min(quads, e.out * e.in / 4 - first);
    unsigned quad = threadIdx.x % quads, row = threadIdx.x / quads, tap = row % e.taps, part = row / e.taps;
    unsigned out = (first + quad) / (e.in / 4), in = (first + quad) % (e.in / 4) * 4;
    size_t count = (size_t)e.out * e.in * e.taps, from = ((size_t)out * e.taps + tap) * e.in + in;
    float4 sum = {0, 0, 0, 0};

    if (quad < have && part < parts) {
#pragma unroll 4
        for (unsigned split = part; split < e.splits; split += parts) {
            float4 v = *(const float4 *)(const void *)(e.partial + split * count + from);

            sum.x += v.x;
            sum.y += v.y;
            sum.z += v.z;
            sum.w += v.w;
        }
        *(float4 *)(void *)(shared + row * stride + 4 * quad) = sum;
    }
    __syncthreads();
    /* Taps of a weight lie side by side in the gradient: what the block has is one piece of it. */
    float *to = a.gradient + e.gradient + (size_t)first * 4 * e.taps;

    for (unsigned i = threadIdx.x; i < have * 4 * e.taps; i += PACK_THREADS) {
        const float *at = shared + i % e.taps * stride + i / e.taps;
        float all = 0;

        for (unsigned p = 0; p < parts; p++)
            all += at[p * e.taps * stride];
        to[i] = all * a.state->unscale + (a.block->number > 0 ? to[i] : 0);
    }
}

/* A warp has some of the splits of SUM_STEM weights [out][ky][kx]; then a warp has a channel. */
DEVICE void
sum_cells(const sum_all_args &a, const splits_entry &e, double *shared)
{
    unsigned n = (blockIdx.x - e.first_block) * SUM_STEM + lane_id(), warp = threadIdx.x / 32,
             parts = PACK_THREADS / 32;
    unsigned kx = n % STEM_KERNEL, ky = n / STEM_KERNEL % STEM_KERNEL, out = n / STEM_KERNEL / STEM_KERNEL;
    unsigned value = (kx + 1) / 2 * 8 + (ky + 1) % 2 * 4 + (kx + 1) % 2 * 2;
    size_t from = ((size_t)out * 4 + (ky + 1) / 2) * STEM_IN + value, count = (size_t)e.out * 4 * STEM_IN;
    double sum[2] = {0, 0}, level, inside;

    if (out < e.out) {
#pragma unroll 4
        for (unsigned split = warp; split < e.splits; split += parts) {
            float2 v = *(const float2 *)(const void *)(e.partial + split * count + from);

            sum[0] += (double)v.x;
            sum[1] += (double)v.y;
        }
    }
    shared[threadIdx.x] = sum[0];
    shared[PACK_THREADS + threadIdx.x] = sum[1];
    __syncthreads();
    if (warp >= INPUT_CHANNELS || out >= e.out)
        return;
    sum[0] = sum[1] = 0;
    for (unsigned p = 0; p < parts; p++) {
        sum[0] += shared[p * 32 + lane_id()];
        sum[1] += shared[PACK_THREADS + p * 32 + lane_id()];
    }
    float *to = a.gradient + e.gradient + (((size_t)out * INPUT_CHANNELS + warp) * STEM_KERNEL + ky) * STEM_KERNEL + kx;

    stem_factors(warp, &level, &inside);
    *to = (float)((sum[0] * level + sum[1] * inside) * (double)a.state->unscale) + (a.block->number > 0 ? *to : 0);
}
} // namespace

KERNEL(sum_all, sum_all_args, PACK_THREADS, 2)
{
    SHARED_BYTES(shared);
    const splits_entry &e = entry_of_block(a.entry, a.entries);

    if (e.stem)
        sum_cells(a, e, (double *)(void *)shared);
    else
        sum_convolution(a, e, (float *)(void *)shared);
}
