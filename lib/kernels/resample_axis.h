/*
 * resample_axis.h - the input samples of each output sample of a resized line, and their weights
 *
 * Rows and columns use the same kind of table.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_RESAMPLE_AXIS_H
#define CHEX_LIB_RESAMPLE_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum resample_method { RESAMPLE_BILINEAR, RESAMPLE_AREA, RESAMPLE_LANCZOS, RESAMPLE_NONE };

/* Fixed point of the convolving methods: weight 1 is 1 << 22, as in Pillow; this leaves 8 bits and a sign. */
#define RESAMPLE_PRECISION 22

/*
 * A factor is stored as high * 2^12 + low with 0 <= low < 2^12.  Every CPU multiplies 16-bit numbers in parallel, but
 * not every CPU multiplies 32-bit numbers in parallel.
 */
#define RESAMPLE_LOW_BITS 12

#define RESAMPLE_NOT_SMALL 255

struct resample_axis {
    enum resample_method method;
    uint32_t in, out;            /* lengths */
    uint32_t *first;             /* [out] first input sample */
    uint32_t *count;             /* [out] number of input samples, at least 1 */
    size_t taps;                 /* the largest count, rounded up to even */
    int16_t *low, *high;         /* [out][taps] bilinear and lanczos: parts of the factors, padded with 0 */
    bool *coarse;                /* [out] all low parts are 0; true inside an image for reductions by 2, 4, 8 */
    int8_t *small;               /* [out][taps] small factors (convolve_private.h): factor / 2^(22 - small_bits) */
    uint8_t *small_bits;         /* [out] 0 .. 7, or RESAMPLE_NOT_SMALL */
    uint32_t even_from, even_to; /* these output samples have the same 8 small factors, each moved by 4 input samples */
    uint32_t *weight;            /* [out][taps] area: integers; the weights of an output sample add up to `in` */
};

/* Free with resample_axis_free(); NULL when out of memory.  Both lengths are at least 1. */
struct resample_axis *resample_axis_new(enum resample_method method, uint32_t in, uint32_t out);
void resample_axis_free(struct resample_axis *axis); /* NULL is allowed */

#endif
