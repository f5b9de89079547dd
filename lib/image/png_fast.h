/*
 * png_fast.h - the PNGs that the data set really has, fast: 8-bit gray or RGBA, not interlaced
 *
 * inflate.h inflates, unfilter.h undoes the row filters.  This path takes files of one plain form without any fault,
 * checksums included, and leaves all others to libpng (png_decode.h).  So it refuses nothing; fuzzing one against the
 * other shows that it accepts nothing that libpng refuses.
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
 * Decode the PNG in data[0 .. size - 1] if it is of the plain form and whole.  False: call decode_png(), also when
 * memory is short; out and traits are unspecified then.
 */
bool fastpng_decode(struct fastpng *fast, const uint8_t *data, size_t size, const struct decode_limits *limits,
                    struct image *out, struct image_traits *traits);

#endif
