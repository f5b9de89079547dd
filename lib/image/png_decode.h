/*
 * png_decode.h - decodes PNG of every colour type, bit depth and interlacing to 8-bit gray with libpng's row interface
 *
 * It does not use libpng's simplified interface, which applies gamma.  libpng decodes the pixels; its limits are set
 * before it reads the header.  png_chunk.h checks the checksums of the chunks before libpng runs, because libpng's
 * versions differ in the checksums that they check and in how they treat a wrong one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PNG_H
#define CHEX_LIB_PNG_H

#include "image/image.h"

/* Returns whether the first bytes are PNG's signature. */
bool is_png(const uint8_t *data, size_t size);

/*
 * Decode the PNG in data[0 .. size - 1].
 *
 * out      resized as needed; its buffer is reused.  Unspecified on failure.
 * traits   filled as far as they are known, also on failure
 *
 * CHEX_ERR_TRUNCATED  the file ends inside the image ("truncated at byte N"), or before IEND unless lenient
 * CHEX_ERR_CHECKSUM   a critical chunk's CRC is wrong ("checksum error in IDAT")
 * CHEX_ERR_DAMAGED    any other error of libpng; a palette index outside the palette
 * CHEX_ERR_LIMIT      more than limits->max_pixels, or smaller than min_side; or more inflated data after the
 *                     pixels than four times their size plus 32 MiB (less than that is a warning)
 * CHEX_ERR_STOPPED    *limits->stop is set
 * CHEX_ERR_MEMORY
 * The text does not name the file; the caller adds the name.  Thread-safe.
 */
enum chex_status decode_png(const uint8_t *data, size_t size, const struct decode_limits *limits, struct image *out,
                            struct image_traits *traits, struct chex_error *err);

#endif
