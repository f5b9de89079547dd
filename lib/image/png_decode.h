/*
 * png_decode.h - PNG of every colour type, bit depth and interlacing to 8-bit gray, by libpng's row interface
 *
 * Never the simplified interface: it applies gamma.  libpng does the pixels; its limits are set before the header is
 * believed.  The checksums of chunks are compared before libpng is called (png_chunk.h): its versions differ in which
 * of them they check, and in what a wrong one means.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PNG_H
#define CHEX_LIB_PNG_H

#include "image/image.h"

/* True where the first bytes are PNG's signature. */
bool is_png(const uint8_t *data, size_t size);

/*
 * Decode the PNG in data[0 .. size - 1].
 *
 * out      resized as needed; its buffer is reused.  Unspecified on failure.
 * traits   filled as far as known, also on failure
 *
 * CHEX_ERR_TRUNCATED  the file ends inside the image ("truncated at byte N"), or before IEND unless lenient
 * CHEX_ERR_CHECKSUM   a critical chunk's CRC is wrong ("checksum error in IDAT")
 * CHEX_ERR_DAMAGED    anything else that libpng refuses; a palette index outside the palette
 * CHEX_ERR_LIMIT      more than limits->max_pixels, or smaller than min_side; or more image data behind the
 *                     pixels than four times their size and 32 MiB, inflated: less is a warning
 * CHEX_ERR_STOPPED    *limits->stop is set
 * CHEX_ERR_MEMORY
 * The text does not name the file: the caller adds that.  Thread-safe.
 */
enum chex_status decode_png(const uint8_t *data, size_t size, const struct decode_limits *limits, struct image *out,
                            struct image_traits *traits, struct chex_error *err);

#endif
