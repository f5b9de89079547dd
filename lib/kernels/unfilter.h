/*
 * unfilter.h - undo PNG's row filters (PNG specification, section 9)
 *
 * Sub, Average and Paeth depend on the pixel to the left, so the pixels of a row cannot be computed in parallel.  But
 * row y + 1 can follow row y one pixel later.  So a wavefront of 16 or 32 rows fills the lanes of a register.  The
 * filter type becomes a mask per lane, and the pixel above comes from the neighbouring lane.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_UNFILTER_H
#define CHEX_LIB_UNFILTER_H

#include "base/error.h"

/* Bytes after the last raw row that may be read; they are not used. */
#define UNFILTER_SLACK 64

/*
 * Undo the filters of rows from .. to - 1 of an image with one byte per pixel.  The rows before must be done.
 * raw   rows of 1 + width bytes: a filter type (0 to 4, checked by the caller) and the filtered bytes; readable up to
 *       UNFILTER_SLACK bytes after row to - 1
 * out   rows of width bytes, `stride` apart
 * Thread-safe; every implementation gives the same bytes.
 */
typedef void unfilter_gray_fn(const uint8_t *raw, uint32_t width, uint32_t from, uint32_t to, uint8_t *out,
                              size_t stride);

/* Rows to process at once while they are in the cache; a multiple of the rows of every implementation's wavefront. */
#define UNFILTER_BAND 128

/* The implementations in order of preference; the last is plain C and always available. */
struct unfilter_kind {
    const char *name; /* "avx512vl", "avx2", "sse4.1", "neon", "c" */
    bool (*supported)(void);
    unfilter_gray_fn *gray;
};

extern const struct unfilter_kind unfilter_kinds[]; /* ends with a NULL name */

/* The first implementation that this CPU supports. */
const struct unfilter_kind *unfilter_best(void);

/*
 * The prediction of filter `type` for a byte, from its left, upper and upper left neighbours (0 outside the image).
 */
uint8_t unfilter_predict(unsigned type, int left, int up, int corner);

#endif
