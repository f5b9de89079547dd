/*
 * convolve.h - the two passes of a separable convolution of bytes, in fixed point
 *
 * A sum of factors times samples fits into 32 bits with its sign (weights add up to 1 << RESAMPLE_PRECISION); it is
 * rounded half up and cut to 0 .. 255.  Only resample.c uses this.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CONVOLVE_H
#define CHEX_LIB_CONVOLVE_H

#include "resample_axis.h"

/*
 * Resize every column.
 * rows    rows of `width` samples, `stride` bytes apart, beginning with row first_row of axis->in; only those that the
 *         table names are read
 * out     [axis->out][width]
 */
void convolve_columns(const struct resample_axis *axis, const uint8_t *rows, uint32_t first_row, size_t stride,
                      uint32_t width, uint8_t *out);

/*
 * Resize every row.
 * rows     `count` rows of axis->in samples, `stride` bytes apart
 * scratch  convolve_rows_scratch() bytes
 * out      [count][axis->out]
 */
void convolve_rows(const struct resample_axis *axis, const uint8_t *rows, size_t stride, uint32_t count,
                   uint8_t *scratch, uint8_t *out);

/* False where the size does not fit. */
bool convolve_rows_scratch(const struct resample_axis *axis, size_t *size);

#endif
