/*
 * resample_axis.h - which samples of a line make up each sample of the resized line, and with what weight
 *
 * One table serves both directions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_RESAMPLE_AXIS_H
#define CHEX_LIB_RESAMPLE_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum resample_method { RESAMPLE_BILINEAR, RESAMPLE_AREA, RESAMPLE_LANCZOS, RESAMPLE_NONE };

/* Fixed point of the convolving methods: weight 1 is 1 << 22 (Pillow's, which leaves room for 8 bits and a sign). */
#define RESAMPLE_PRECISION 22

/*
 * Such a factor f is stored as high * 2^12 + low with 0 <= low < 2^12: two 16-bit numbers, since every CPU multiplies
 * those in parallel, but not every one 32-bit numbers.
 */
#define RESAMPLE_LOW_BITS 12

#define RESAMPLE_NOT_SMALL 255

struct resample_axis {
    enum resample_method method;
    uint32_t in, out;    /* lengths */
    uint32_t *first;     /* [out] first sample that has a weight */
    uint32_t *count;     /* [out] how many have one, at least 1 */
    size_t taps;         /* the largest of count, made even */
    int16_t *low, *high; /* [out][taps] bilinear and lanczos: the factor's parts, 0 behind the last */
    bool *coarse;        /* [out] all low parts are 0: so it is inside an image for reductions by 2, 4, 8 ... */
    int8_t *small; /* [out][taps] the factors over 2^(22 - small_bits), where they are small (convolve_private.h) */
    uint8_t *small_bits; /* [out] 0 .. 7, or RESAMPLE_NOT_SMALL */
    uint32_t even_from,
        even_to;      /* output samples with the same 8 small factors, each 4 samples behind the one before */
    uint32_t *weight; /* [out][taps] area: a whole number; those of an output sample add up to `in` */
};

/* Free with resample_axis_free(); NULL when out of memory.  Both lengths are at least 1. */
struct resample_axis *resample_axis_new(enum resample_method method, uint32_t in, uint32_t out);
void resample_axis_free(struct resample_axis *axis); /* NULL is allowed */

#endif
