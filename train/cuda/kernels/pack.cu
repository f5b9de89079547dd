/*
 * pack.cu - master weights to packed ones, partial gradients of packed weights to gradients of master
 * ones, and gradients that are values to floats
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "backend/input.h"
#include "cuda/kernels/norm.h"
#include "cuda/kernels/partial.h"

namespace
{
/* Sets the factors of channel c of the normalised image for the two planes of a cell. */
DEVICE void
stem_factors(unsigned c, double *level, double *inside)
{
    const float means[] = INPUT_MEAN, deviations[] = INPUT_DEVIATION;
    float mean = means[0], deviation = deviations[0]; /* an index would put the arrays into memory */

#pragma unroll
    for (unsigned i = 1; i < INPUT_CHANNELS; i++)
        if (i == c) {
            mean = means[i];
            deviation = deviations[i];
        }
    *level = 256.0 / 255 / (double)deviation;
    *inside = (128.0 / 255 - (double)mean) / (double)deviation;
}

/* Returns value n of the packed weights of the stem, from [out][3][7][7]. */
DEVICE float
stem_weight(const float *master, unsigned n)
{
    unsigned plane = n % 2, ky = n / STEM_IN % 4 * 2 + n / 4 % 2 - 1, kx = n / 8 % 4 * 2 + n / 2 % 2 - 1;
    unsigned out = n / STEM_IN / 4;
    double sum = 0, level, inside;

    if (ky >= STEM_KERNEL || kx >= STEM_KERNEL) /* an index before the first one wraps around to a huge value */
        return 0;
    for (unsigned c = 0; c < INPUT_CHANNELS; c++) {
        double w = (double)master[((out * INPUT_CHANNELS + c) * STEM_KERNEL + ky) * STEM_KERNEL + kx];

        stem_factors(c, &level, &inside);
        sum += w * (plane == 0 ? level : inside);
    }
    return (float)sum;
}

DEVICE void
begin_step(const step_begin_args &a, unsigned i)
{
    if (i < a.count)
        a.running[i] = a.from_zero ? 0.0f : a.statistics[i];
    if (i == 0) {
        a.state->unscale = 1 / a.state->loss_scale;
        a.state->loss = a.state->labels = a.state->known = 0;
        a.state->bad = STEP_BAD_NONE;
    }
}

/* Returns the number of packed weights per output channel. */
DEVICE unsigned
pack_row(const pack_entry &e)
{
    return e.stem ? 4 * STEM_IN : e.in * e.taps;
}

/* Returns value n of the packed weights. */
DEVICE float
pack_weight(const pack_entry &e, const float *master, unsigned n)
{
    if (e.stem)
        return stem_weight(master + e.master, n);

    unsigned in = n % e.in, tap = n / e.in % e.taps, out = n / e.in / e.taps;

    return master[e.master + ((size_t)out * e.in + in) * e.taps + tap];
}
} // namespace

namespace
{
/*
 * Packs PACK_EIGHTS groups of eight inputs, with all taps, through shared memory: a CTA reads one contiguous range of
 * master weights, and a thread writes 16 bytes.  Float i is at i + i / 8, so that at most two lanes of a warp access
 * one bank, although they read with a stride of 8 * taps floats.
 */
DEVICE void
pack_convolution(const pack_weights_args &a, const pack_entry &e, float *shared)
{
    unsigned eights = PACK_EIGHTS(e.taps), first = (blockIdx.x - e.first_block) * eights;
    unsigned have = min(eights, e.out * e.in / 8 - first), count = have * 8 * e.taps;
    unsigned eight = threadIdx.x % eights, tap = threadIdx.x / eights;
    unsigned out = (first + eight) / (e.in / 8), in = (first + eight) % (e.in / 8) * 8;
    const float *from = a.master + e.master + (size_t)first * 8 * e.taps;
    float w[8];
    value8 v;

#pragma unroll
    for (unsigned k = 0; k < 8; k++) {
        unsigned i = k * PACK_THREADS + threadIdx.x;

        w[k] = i < count ? from[i] : 0;
    }
#pragma unroll
    for (unsigned k = 0; k < 8; k++) {
        unsigned i = k * PACK_THREADS + threadIdx.x;

        shared[i + i / 8] = w[k];
    }
    __syncthreads();
    if (eight >= have || tap >= e.taps)
        return;
#pragma unroll
    for (unsigned k = 0; k < 8; k++) {
        unsigned i = (eight * 8 + k) * e.taps + tap;

        w[k] = shared[i + i / 8];
    }
    pack8(v, w);
    store8((value_t *)e.packed + ((size_t)out * e.taps + tap) * e.in + in, v);
}

/*
 * Returns the entry to which a CTA belongs.  Each thread compares one entry, so no load waits for another one, as it
 * does in the binary search of entry_of_block().  All threads must call it; found: in shared memory.
 */
template <typename T>
DEVICE const T &
find_entry(const T *entry, unsigned entries, unsigned block, unsigned *found)
{
    for (unsigned i = threadIdx.x; i < entries; i += PACK_THREADS)
        if (entry[i].first_block <= block && (i + 1 == entries || block < entry[i + 1].first_block))
            *found = i;
    __syncthreads();
    return entry[*found];
}
} // namespace

KERNEL(pack_weights, pack_weights_args, PACK_THREADS, 1)
{
    SHARED_BYTES(shared);

    if (a.begin.state && blockIdx.x >= a.blocks) {
        begin_step(a.begin, (blockIdx.x - a.blocks) * PACK_THREADS + threadIdx.x);
        return;
    }
    const pack_entry &e = find_entry(a.entry, a.entries, blockIdx.x, (unsigned *)(void *)shared);
    unsigned n = (blockIdx.x - e.first_block) * PACK_THREADS + threadIdx.x;

    if (!e.stem)
        pack_convolution(a, e, (float *)(void *)(shared + PACK_FOUND));
    else if (n < e.out * pack_row(e))
        ((value_t *)e.packed)[n] = to_value(stem_weight(a.master + e.master, n));
}

KERNEL(fold_weights, fold_weights_args, PACK_THREADS, 1)
{
    const fold_entry &e = entry_of_block(a.entry, a.entries, blockIdx.x);
    unsigned n = (blockIdx.x - e.first_block) * PACK_THREADS + threadIdx.x, row = pack_row(e.pack), out = n / row;
    float scale = 1, shift = 0;

    if (out >= e.pack.out)
        return;
    if (e.shift) {
        scale = a.master[e.gamma + out] * norm_inverse(a.statistics[e.variance + out], a.epsilon);
        shift = fmaf(-scale, a.statistics[e.mean + out], a.master[e.beta + out]);
    }
    if (e.shift && n % row == 0)
        e.shift[out] = shift;
    if (e.pack.packed)
        ((value_t *)e.pack.packed)[n] = to_value(scale * pack_weight(e.pack, a.master, n));
    else
        e.scale[out] = scale;
}

namespace
{
/* As SUM_PARTS and SUM_EIGHTS describe: the fastest thread index is the group of eight, then the tap, then the part. */
DEVICE void
sum_convolution(const sum_all_args &a, const splits_entry &e, float *shared)
{
    unsigned parts = SUM_PARTS(e.taps, e.splits), eights = SUM_EIGHTS(e.taps, e.splits), stride = 8 * eights + 4;
    unsigned first = (blockIdx.x - e.first_block) * eights, have = min(eights, e.out * e.in / 8 - first);
    unsigned eight = threadIdx.x % eights, row = threadIdx.x / eights, tap = row % e.taps, part = row / e.taps;
    unsigned out = (first + eight) / (e.in / 8), in = (first + eight) % (e.in / 8) * 8;
    size_t count = (size_t)e.out * e.in * e.taps, from = ((size_t)out * e.taps + tap) * e.in + in;
    float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};

    if (eight < have && part < parts) {
        float4 *to = (float4 *)(void *)(shared + row * stride + 8 * eight);

        if (e.splits == 1) {
            const float4 *single = (const float4 *)(const void *)((const float *)e.partial + from);

            to[0] = single[0];
            to[1] = single[1];
        } else {
#pragma unroll 4
            for (unsigned split = part; split < e.splits; split += parts)
                partial_add8(sum, partial_load8((const partial_t *)e.partial + split * count + from));
            to[0] = {sum[0], sum[1], sum[2], sum[3]};
            to[1] = {sum[4], sum[5], sum[6], sum[7]};
        }
    }
    __syncthreads();
    /* The taps of a weight are adjacent in the gradient, so a CTA writes one contiguous range. */
    float *to = a.gradient + e.gradient + (size_t)first * 8 * e.taps;

    for (unsigned i = threadIdx.x; i < have * 8 * e.taps; i += PACK_THREADS) {
        const float *at = shared + i % e.taps * stride + i / e.taps;
        float all = 0;

        for (unsigned p = 0; p < parts; p++)
            all += at[p * e.taps * stride];
        to[i] = all * a.state->unscale + (a.block->number > 0 ? to[i] : 0);
    }
}

/* Each warp sums a part of the splits of SUM_STEM weights [out][ky][kx]; after that each warp has a channel. */
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
            size_t at = split * count + from;
            float2 v = e.splits == 1 ? *(const float2 *)(const void *)((const float *)e.partial + at)
                                     : partial_load2((const partial_t *)e.partial + at);

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
    const splits_entry &e = find_entry(a.entry, a.entries, blockIdx.x, (unsigned *)(void *)shared);

    if (e.stem)
        sum_cells(a, e, (double *)(void *)(shared + PACK_FOUND));
    else
        sum_convolution(a, e, (float *)(void *)(shared + PACK_FOUND));
}

/* One thread has eight values. */
KERNEL(widen, widen_args, WIDEN_THREADS, 1)
{
    unsigned first = (blockIdx.x * WIDEN_THREADS + threadIdx.x) * 8;
    value8 v;

    if (first >= a.count)
        return;
    load8(v, (const value_t *)a.values + first);
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        a.sum[first + i] = to_float(v.at[i]);
}
