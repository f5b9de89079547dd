/*
 * crop.c - see crop.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/crop.h"

#include <math.h>

void
crop_rotate(struct crop *crop, double degrees)
{
    double angle = degrees * (3.14159265358979323846 / 180);

    crop->sine = (int32_t)lrint(sin(angle) * CROP_ONE);
    crop->cosine = (int32_t)lrint(cos(angle) * CROP_ONE);
}

/*
 * The pixel at (x, y) from the center of the rotated image, y downwards, is at (x cosine - y sine, x sine + y cosine)
 * in the source.  x and y are counted in half pixels, because the center is half-way between two pixels if the side is
 * even.
 */
static void
start_rotation(struct crop_row *row, const struct crop *crop, unsigned y)
{
    int64_t last = (int64_t)row->source - 1, step = row->flip ? -2 : 2;
    int64_t x2 = 2 * ((int64_t)crop->x + (row->flip ? row->last : 0)) - last, y2 = 2 * ((int64_t)crop->y + y) - last;

    row->u = x2 * crop->cosine - y2 * crop->sine + last * CROP_ONE + CROP_OFFSET;
    row->v = x2 * crop->sine + y2 * crop->cosine + last * CROP_ONE + CROP_OFFSET;
    row->du = step * crop->cosine;
    row->dv = step * crop->sine;
}

void
crop_row_start(struct crop_row *row, const struct crop *crop, const uint8_t *pixels, unsigned source, unsigned side,
               unsigned y)
{
    *row = (struct crop_row){.pixels = pixels,
                             .source = source,
                             .last = side - 1,
                             .flip = crop->flip,
                             .rotated = crop->sine != 0 || crop->cosine != 0,
                             .gain = crop->gain};
    if (row->rotated)
        start_rotation(row, crop, y);
    else
        row->from = pixels + ((size_t)crop->y + y) * source + crop->x;
}

/* Returns the level at a column and a row of the source; 0 outside, where numbers below 0 have become huge. */
static unsigned
level_at(const struct crop_row *row, unsigned x, unsigned y)
{
    return x < row->source && y < row->source ? row->pixels[(size_t)y * row->source + x] : 0;
}

unsigned
crop_rotated_level(const struct crop_row *row, unsigned x)
{
    const unsigned one = 1 << CROP_FRACTION, half = 1 << (CROP_SHIFT - 1), offset = CROP_OFFSET >> 31;
    unsigned u = (unsigned)((uint64_t)(row->u + x * row->du + half) >> CROP_SHIFT);
    unsigned v = (unsigned)((uint64_t)(row->v + x * row->dv + half) >> CROP_SHIFT);
    unsigned left = (u >> CROP_FRACTION) - offset, top = (v >> CROP_FRACTION) - offset;
    unsigned right = u & (one - 1), below = v & (one - 1); /* weights */
    unsigned upper = level_at(row, left, top) * (one - right) + level_at(row, left + 1, top) * right;
    unsigned lower = level_at(row, left, top + 1) * (one - right) + level_at(row, left + 1, top + 1) * right;

    return (upper * (one - below) + lower * below + one * one / 2) >> 2 * CROP_FRACTION;
}
