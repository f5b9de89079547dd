/*
 * input.cu - copies a micro-batch from its slot to the buffers of the kernels, images in the space-to-depth layout
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/device.h"

#include "backend/input.h"

namespace
{
/* Returns the level at a column and a row of the source; 0 outside, where numbers below 0 have become huge. */
DEVICE unsigned
level_at(const input_args &a, const uint8_t *pixels, unsigned x, unsigned y)
{
    return x < a.source && y < a.source ? pixels[(size_t)y * a.source + x] : 0;
}

/* Returns the level at (x, y) of the rotated source, as crop_rotated_level() of crop.c. */
DEVICE unsigned
rotated_level(const input_args &a, const crop_place &crop, const uint8_t *pixels, unsigned x, unsigned y)
{
    const unsigned one = 1u << CROP_FRACTION, offset = (unsigned)(CROP_OFFSET >> 31);
    const long long start = (long long)(a.source - 1) * CROP_ONE + CROP_OFFSET + (1 << (CROP_SHIFT - 1));
    long long x2 = 2 * (int)x - (int)(a.source - 1), y2 = 2 * (int)y - (int)(a.source - 1);
    unsigned u = (unsigned)((unsigned long long)(x2 * crop.cosine - y2 * crop.sine + start) >> CROP_SHIFT);
    unsigned v = (unsigned)((unsigned long long)(x2 * crop.sine + y2 * crop.cosine + start) >> CROP_SHIFT);
    unsigned left = (u >> CROP_FRACTION) - offset, top = (v >> CROP_FRACTION) - offset;
    unsigned right = u & (one - 1), below = v & (one - 1); /* weights */
    unsigned upper = level_at(a, pixels, left, top) * (one - right) + level_at(a, pixels, left + 1, top) * right;
    unsigned lower = level_at(a, pixels, left, top + 1) * (one - right) +
                     level_at(a, pixels, left + 1, top + 1) * right;

    return (upper * (one - below) + lower * below + one * one / 2) >> (2 * CROP_FRACTION);
}

/* Returns the level at (x, y) of the network's input, as crop_level() of crop.h. */
DEVICE unsigned
level_of(const input_args &a, const crop_place &crop, const uint8_t *pixels, unsigned x, unsigned y)
{
    unsigned column = crop.x + (crop.flip ? a.side - 1 - x : x), row = crop.y + y;
    unsigned level = crop.sine != 0 || crop.cosine != 0 ? rotated_level(a, crop, pixels, column, row)
                                                        : pixels[(size_t)row * a.source + column];

    if (crop.gain != 0)
        level = (level * (unsigned)(CROP_GAIN + crop.gain) + CROP_GAIN / 2) / CROP_GAIN;
    return level < 255 ? level : 255;
}

/* Returns the pixels of an image, in the store or in the micro-batch. */
DEVICE const uint8_t *
pixels_of(const input_args &a, unsigned image)
{
    unsigned stored = a.index[image];

    return (stored != 0xffffffffu ? a.store + (size_t)stored * a.source * a.source
                                  : a.pixels + (size_t)image * a.source * a.source);
}

/* Stores a cell: two by two pixels, each a gray level and "inside"; zeros outside and for an image of weight 0. */
DEVICE void
store_cell(const input_args &a, unsigned image, unsigned row, unsigned column)
{
    size_t cell = ((size_t)image * STEM_ROWS(a.side) + row) * STEM_COLUMNS(a.side) + column;
    bool counts = a.weight_from[image] != 0.0f;
    const uint8_t *pixels = counts ? pixels_of(a, image) : a.pixels;
    unsigned mix = counts && a.mix_from ? (unsigned)(a.mix_from[image] * MIX_ONE) : 0;
    const uint8_t *partner = mix > 0 ? pixels_of(a, image + 1) : a.pixels;
    value8 v;

#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        unsigned y = row * 2 + i / 2,
                 x = (column - 2) * 2 + i % 2; /* an x left of the image wraps around to a huge value */
        bool inside = counts && y < a.side && x < a.side;
        unsigned level = 128;

        if (inside)
            level = level_of(a, a.crop[image], pixels, x, y);
        if (inside && mix > 0) /* as crop_mix() of crop.h */
            level = (level * (MIX_ONE - mix) + level_of(a, a.crop[image + 1], partner, x, y) * mix + MIX_ONE / 2) /
                    MIX_ONE;
        v.at[2 * i] = to_value(((float)level - 128) / 256); /* exact in every type of value: it has eight bits */
        v.at[2 * i + 1] = to_value(inside ? 1.0f : 0.0f);
    }
    store8((value_t *)a.cells + cell * 8, v);
}
} // namespace

KERNEL(input, input_args, INPUT_THREADS, 1)
{
    unsigned n = blockIdx.x * INPUT_THREADS + threadIdx.x, all = gridDim.x * INPUT_THREADS;
    unsigned columns = STEM_COLUMNS(a.side), rows = STEM_ROWS(a.side), image = n / columns / rows;

    if (n == 0)
        *a.block = *a.from;
    for (unsigned i = n; i < a.images; i += all)
        a.weight[i] = a.weight_from[i];
    for (unsigned i = n; a.mix && i < a.images; i += all)
        a.mix[i] = a.mix_from[i];
    for (unsigned i = n; i < a.images * a.outputs; i += all)
        a.label[i] = a.label_from[i];
    if (image < a.images)
        store_cell(a, image, n / columns % rows, n % columns);
}
