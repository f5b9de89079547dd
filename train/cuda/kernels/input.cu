/*
 * input.cu - copies a micro-batch from its slot to the buffers of the kernels, images in the space-to-depth layout
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/device.h"

namespace
{
/* Stores a cell: two by two pixels, each a gray level and "inside"; zeros outside and for an image of weight 0. */
DEVICE void
store_cell(const input_args &a, unsigned image, unsigned row, unsigned column)
{
    size_t cell = ((size_t)image * STEM_ROWS(a.side) + row) * STEM_COLUMNS(a.side) + column;
    bool counts = a.weight_from[image] != 0.0f;
    const uint8_t *pixels = a.pixels;
    size_t at = image;
    value8 v;

    if (counts && a.index[image] != 0xffffffffu) {
        pixels = a.store;
        at = a.index[image];
    }
    pixels += at * a.source * a.source;
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        unsigned y = row * 2 + i / 2,
                 x = (column - 2) * 2 + i % 2; /* an x left of the image wraps around to a huge value */
        bool inside = counts && y < a.side && x < a.side;
        float level = 128;

        if (inside)
            level = (float)pixels[(size_t)(a.crop[image].y + y) * a.source + a.crop[image].x +
                                  (a.crop[image].flip ? a.side - 1 - x : x)];
        v.at[2 * i] = to_value((level - 128) / 256); /* exact in every type of value: it has eight bits */
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
    for (unsigned i = n; i < a.images * a.outputs; i += all)
        a.label[i] = a.label_from[i];
    if (image < a.images)
        store_cell(a, image, n / columns % rows, n % columns);
}
