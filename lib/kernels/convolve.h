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

#include "kernels/resample_axis.h"

struct small_factors;

/*
 * One output row from f->count rows of `width` samples, `stride` apart; small factors (convolve_private.h).
 */
typedef void convolve_small_columns_fn(const uint8_t *from, size_t stride, const struct small_factors *f,
                                       uint32_t width, uint8_t *out);
/* `count` output samples of a row, each from 8 samples, at a distance of 4. */
typedef void convolve_small_rows_fn(const uint8_t *from, const struct small_factors *f, uint32_t count, uint8_t *out);

/* The implementations, in order of preference; the last one is plain C and always there.  All give the same bytes. */
struct convolve_kind {
    const char *name; /* "avx2", "sse4.1", "neon", "c" */
    bool (*supported)(void);
    convolve_small_columns_fn *small_columns;
    convolve_small_rows_fn *small_rows;
};

extern const struct convolve_kind convolve_kinds[]; /* ends with a NULL name */

/* The first that this CPU supports. */
const struct convolve_kind *convolve_best(void);

/*
 * Resize every column.
 * rows    rows of `width` samples, `stride` bytes apart, beginning with row first_row of axis->in; only those that the
 *         table names are read
 * out     [axis->out][width]
 */
void convolve_columns(const struct convolve_kind *kind, const struct resample_axis *axis, const uint8_t *rows,
                      uint32_t first_row, size_t stride, uint32_t width, uint8_t *out);

/*
 * Resize every row.
 * rows     `count` rows of axis->in samples, `stride` bytes apart
 * scratch  convolve_rows_scratch() bytes
 * out      [count][axis->out]
 */
void convolve_rows(const struct convolve_kind *kind, const struct resample_axis *axis, const uint8_t *rows,
                   size_t stride, uint32_t count, uint8_t *scratch, uint8_t *out);

/* False where the size does not fit. */
bool convolve_rows_scratch(const struct resample_axis *axis, size_t *size);

#endif
