/*
 * unfilter_plain.c - the filters in plain C; the tests compare the vector versions with it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/unfilter_private.h"

enum { FILTER_NONE, FILTER_SUB, FILTER_UP, FILTER_AVERAGE, FILTER_PAETH };

static uint8_t
paeth(int left, int up, int corner)
{
    int to_left = up - corner, to_up = left - corner;
    int to_corner = to_left + to_up;

    to_left = to_left < 0 ? -to_left : to_left;
    to_up = to_up < 0 ? -to_up : to_up;
    to_corner = to_corner < 0 ? -to_corner : to_corner;
    if (to_left <= to_up && to_left <= to_corner)
        return (uint8_t)left;
    return (uint8_t)(to_up <= to_corner ? up : corner);
}

uint8_t
unfilter_predict(unsigned type, int left, int up, int corner)
{
    switch (type) {
    case FILTER_SUB:
        return (uint8_t)left;
    case FILTER_UP:
        return (uint8_t)up;
    case FILTER_AVERAGE:
        return (uint8_t)((left + up) / 2);
    case FILTER_PAETH:
        return paeth(left, up, corner);
    default:
        return 0;
    }
}

/* One row; above is NULL for the first. */
static void
unfilter_row(unsigned type, const uint8_t *raw, size_t width, const uint8_t *above, uint8_t *out)
{
    int left = 0, corner = 0;
    size_t x;

    for (x = 0; x < width; x++) {
        int up = above ? above[x] : 0;

        left = out[x] = (uint8_t)(raw[x] + unfilter_predict(type, left, up, corner));
        corner = up;
    }
}

void
unfilter_gray_c(const uint8_t *raw, uint32_t width, uint32_t from, uint32_t to, uint8_t *out, size_t stride)
{
    uint32_t y;

    for (y = from; y < to; y++) {
        const uint8_t *row = raw + (size_t)y * (width + 1u);
        uint8_t *pixels = out + y * stride;

        unfilter_row(row[0], row + 1, width, y > 0 ? pixels - stride : NULL, pixels);
    }
}
