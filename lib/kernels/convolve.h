/*
 * convolve.h - the two passes of a separable convolution of bytes, in fixed point
 *
 * A sum of factors times samples fits into a signed 32-bit integer, because the weights add up to 1 <<
 * RESAMPLE_PRECISION.  It is rounded half up and clipped to 0 .. 255.  Only resample.c uses this interface.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CONVOLVE_H
#define CHEX_LIB_CONVOLVE_H

#include "kernels/resample_axis.h"

struct small_factors;
struct wide_factors;

/*
 * Compute one output row from f->count rows of `width` samples, `stride` bytes apart; small factors
 * (convolve_private.h).
 */
typedef void convolve_small_columns_fn(const uint8_t *from, size_t stride, const struct small_factors *f,
                                       uint32_t width, uint8_t *out);
/* Compute `count` output samples of a row; each uses 8 samples and begins 4 samples after the one before. */
typedef void convolve_small_rows_fn(const uint8_t *from, const struct small_factors *f, uint32_t count, uint8_t *out);
/* Like convolve_small_columns_fn, for factors of any size. */
typedef void convolve_wide_columns_fn(const uint8_t *from, size_t stride, const struct wide_factors *f, uint32_t width,
                                      uint8_t *out);
/* Transpose CONVOLVE_STRIP rows, `stride` bytes apart: strip[x][y] = rows[y][x]. */
typedef void convolve_turn_fn(const uint8_t *rows, size_t stride, uint32_t width, uint8_t *strip);
/* The reverse, into rows without space between them: rows[y][x] = strip[x][y]. */
typedef void convolve_turn_back_fn(const uint8_t *strip, uint32_t width, uint8_t *rows);

/* The implementations in order of preference; the last is plain C and always available.  All give the same bytes. */
struct convolve_kind {
    const char *name; /* "avx512", "avx2", "sse4.1", "neon", "c" */
    bool (*supported)(void);
    convolve_small_columns_fn *small_columns;
    convolve_small_rows_fn *small_rows;
    convolve_wide_columns_fn *wide_columns;
    convolve_turn_fn *turn;
    convolve_turn_back_fn *turn_back;
};

extern const struct convolve_kind convolve_kinds[]; /* ends with a NULL name */

/* The first implementation that this CPU supports. */
const struct convolve_kind *convolve_best(void);

/*
 * Resize every column.
 * rows    rows of `width` samples, `stride` bytes apart, beginning with row first_row of axis->in; reads only the rows
 *         that the table uses
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

/* Returns false if the size does not fit into size_t. */
bool convolve_rows_scratch(const struct resample_axis *axis, size_t *size);

#endif
