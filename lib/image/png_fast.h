/*
 * png_fast.h - a fast decoder for the PNG form of the data set: 8-bit gray or RGBA, not interlaced
 *
 * inflate.h inflates, unfilter.h undoes the row filters.  This decoder takes only files of one plain form without any
 * fault; it checks all checksums.  libpng (png_decode.h) decodes all other files and reports their faults.
 * Differential fuzzing shows that this decoder accepts nothing that libpng refuses.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PNG_FAST_H
#define CHEX_LIB_PNG_FAST_H

#include "image/image.h"

/* Buffers and tables that are kept from image to image.  One per thread. */
struct fastpng;

struct fastpng *fastpng_new(void);       /* NULL when out of memory */
void fastpng_free(struct fastpng *fast); /* NULL is allowed */

/* Add the CPU seconds of undoing row filters to *unfilter from now on, which costs some microseconds per image. */
void fastpng_measure(struct fastpng *fast, double *unfilter);

/*
 * Decode the PNG in data[0 .. size - 1] if it has the plain form and no fault.  If this returns false (also when out of
 * memory), out and traits are unspecified; call decode_png().
 */
bool fastpng_decode(struct fastpng *fast, const uint8_t *data, size_t size, const struct decode_limits *limits,
                    struct image *out, struct image_traits *traits);

/*
 * Decode two images in one loop, which takes less time than one after the other.  taken[i] is what fastpng_decode()
 * returns for image i; a fault of one image does not affect the other.
 */
void fastpng_decode_two(struct fastpng *const fast[2], const struct image_file file[2],
                        const struct decode_limits *limits, struct image *const out[2],
                        struct image_traits *const traits[2], bool taken[2]);

#endif
