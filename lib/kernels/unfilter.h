/*
 * unfilter.h - undo PNG's row filters (PNG specification, section 9)
 *
 * Sub, Average and Paeth depend on the pixel to the left, so along a row there is nothing to do side by side.  But
 * row y + 1 may follow row y at a distance of one pixel: a wavefront of 16 or 32 rows fills the lanes of a register,
 * the filter type is a mask for each lane, and the row above comes from the lane beside.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_UNFILTER_H
#define CHEX_LIB_UNFILTER_H

#include "base/error.h"

/* Bytes behind the last raw row that may be read, though not used. */
#define UNFILTER_SLACK 64

/*
 * Undo the filters of rows from .. to - 1 of an image with one byte a pixel; those before are done.
 * raw   rows of 1 + width bytes, a filter type (0 to 4: the caller has checked that) and filtered bytes; readable up to
 *       UNFILTER_SLACK bytes behind row to - 1
 * out   rows of width bytes, `stride` apart
 * Thread-safe; every implementation gives the same bytes.
 */
typedef void unfilter_gray_fn(const uint8_t *raw, uint32_t width, uint32_t from, uint32_t to, uint8_t *out,
                              size_t stride);

/* Rows to be undone at once while they are in the cache; a multiple of the rows that any implementation takes. */
#define UNFILTER_BAND 128

/* The implementations, in order of preference; the last one is plain C and always there. */
struct unfilter_kind {
    const char *name; /* "avx512vl", "avx2", "sse4.1", "neon", "c" */
    bool (*supported)(void);
    unfilter_gray_fn *gray;
};

extern const struct unfilter_kind unfilter_kinds[]; /* ends with a NULL name */

/* The first that this CPU supports. */
const struct unfilter_kind *unfilter_best(void);

/*
 * The prediction of filter `type` for a byte, from its left, upper and upper left neighbours (0 outside the image).
 */
uint8_t unfilter_predict(unsigned type, int left, int up, int corner);

#endif
