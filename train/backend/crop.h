/*
 * crop.h - the part of a source image that the network reads, and how training changes it
 *
 * The gray levels of the network's input are computed in these steps:
 *     rotate    the source image, about its center; a pixel is interpolated between its four neighbours; black outside
 *     crop      cut out a square
 *     flip      mirror left and right
 *     brighten  multiply each level by a factor; at most 255
 * Rotating and brightening round to whole levels, halves up.  They use integers only, so all backends compute the same
 * levels.  These functions are for backends on the host; train/cuda/kernels/input.cu has the same formulas for a GPU.
 *
 *     crop_row_start(&row, &crop, pixels, source, side, y);
 *     for (x = 0; x < side; x++)
 *         crop_level(&row, x)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_CROP_H
#define CHEX_TRAIN_CROP_H

#include "backend/input.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeros in the members after flip change nothing. */
struct crop {
    uint16_t x, y;        /* upper left corner: x + input width <= source */
    bool flip;            /* mirror left and right */
    int32_t sine, cosine; /* of the rotation, counter-clockwise, times CROP_ONE; both 0: no rotation */
    int32_t gain;         /* levels are multiplied by 1 + gain / CROP_GAIN; from -CROP_GAIN to CROP_GAIN */
};

/* One row of the network's input.  u, v: column and row in the source of pixel 0; du, dv: to the next pixel. */
struct crop_row {
    const uint8_t *pixels; /* of the source */
    const uint8_t *from;   /* the leftmost pixel of the row; only without a rotation */
    unsigned source, last; /* last: of the row's pixels */
    bool flip, rotated;
    int32_t gain;
    int64_t u, v, du, dv;
};

/* Returns two levels mixed as in batch.h; mix: the weight of the second one, 0 to MIX_ONE. */
static inline uint8_t
crop_mix(unsigned level, unsigned partner, unsigned mix)
{
    return (uint8_t)((level * (MIX_ONE - mix) + partner * mix + MIX_ONE / 2) / MIX_ONE);
}

/* Set the rotation to an angle in degrees. */
void crop_rotate(struct crop *crop, double degrees);

void crop_row_start(struct crop_row *row, const struct crop *crop, const uint8_t *pixels, unsigned source,
                    unsigned side, unsigned y);

/* Returns the level of pixel x, interpolated; for crop_level(). */
unsigned crop_rotated_level(const struct crop_row *row, unsigned x);

/* Returns the gray level of pixel x. */
static inline uint8_t
crop_level(const struct crop_row *row, unsigned x)
{
    unsigned level = row->rotated ? crop_rotated_level(row, x) : row->from[row->flip ? row->last - x : x];

    if (row->gain == 0)
        return (uint8_t)level;
    level = (level * (unsigned)(CROP_GAIN + row->gain) + CROP_GAIN / 2) / CROP_GAIN;
    return (uint8_t)(level < 255 ? level : 255);
}

#endif
