/*
 * unfilter.c - see unfilter.h: the table of implementations, and plain C
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unfilter_private.h"

#include <string.h>

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

void
unfilter_row(unsigned type, const uint8_t *raw, size_t bytes, size_t bytes_per_pixel, const uint8_t *above,
             uint8_t *out)
{
    size_t i;

    if (!above && type == FILTER_UP)
        type = FILTER_NONE;
    if (type == FILTER_NONE) {
        memcpy(out, raw, bytes);
        return;
    }
    for (i = 0; i < bytes; i++) {
        int left = i >= bytes_per_pixel ? out[i - bytes_per_pixel] : 0;
        int up = above ? above[i] : 0;
        int corner = above && i >= bytes_per_pixel ? above[i - bytes_per_pixel] : 0;
        int guess = type == FILTER_SUB       ? left
                    : type == FILTER_UP      ? up
                    : type == FILTER_AVERAGE ? (left + up) / 2
                                             : paeth(left, up, corner);

        out[i] = (uint8_t)(raw[i] + guess);
    }
}

static void
gray_c(const uint8_t *raw, uint32_t width, uint32_t height, uint8_t *out)
{
    unfilter_gray_rows(raw, width, 0, height, out);
}

void
unfilter_gray_rows(const uint8_t *raw, uint32_t width, uint32_t from, uint32_t to, uint8_t *out)
{
    uint32_t y;

    for (y = from; y < to; y++) {
        const uint8_t *row = raw + (size_t)y * (width + 1u);

        unfilter_row(row[0], row + 1, width, 1, y > 0 ? out + (size_t)(y - 1) * width : NULL, out + (size_t)y * width);
    }
}

static bool
always(void)
{
    return true;
}

const struct unfilter_kind unfilter_kinds[] = {
#ifdef UNFILTER_HAVE_X86
    {"avx2", unfilter_avx2_supported, unfilter_gray_avx2},
    {"sse4.1", unfilter_sse41_supported, unfilter_gray_sse41},
#endif
    {"c", always, gray_c},
    {NULL, NULL, NULL},
};

const struct unfilter_kind *
unfilter_best(void)
{
    const struct unfilter_kind *kind = unfilter_kinds;

    while (!kind->supported())
        kind++;
    return kind;
}
