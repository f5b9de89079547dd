/*
 * png_fast.h - the PNGs that the data set really has, fast: 8-bit gray or RGBA, not interlaced
 *
 * inflate.h inflates, unfilter.h undoes the row filters.  This path only ever says yes: it takes files of one plain
 * form in which everything is right, checksums included, and leaves all others to libpng (png.h), which then decides
 * what they are.  So it refuses nothing; that it accepts nothing that libpng refuses is shown by fuzzing one against
 * the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PNG_FAST_H
#define CHEX_LIB_PNG_FAST_H

#include "image/image.h"

/* Buffers and tables kept from image to image.  One a thread. */
struct fastpng;

struct fastpng *fastpng_new(void);       /* NULL when out of memory */
void fastpng_free(struct fastpng *fast); /* NULL is allowed */

/*
 * Decode the PNG in data[0 .. size - 1] if it is of the plain form and whole.  False: ask decode_png(), which also
 * happens when memory is short.  On false out and traits are unspecified.
 */
bool fastpng_decode(struct fastpng *fast, const uint8_t *data, size_t size, const struct decode_limits *limits,
                    struct image *out, struct image_traits *traits);

#endif
