/*
 * jpeg_decode.h - decodes JPEG to 8-bit gray with libjpeg-turbo
 *
 * The samples are those of `djpeg -grayscale`: the Y channel, islow DCT.  A corrupt-data warning is an error, because a
 * half-gray X-ray is worse than a missing one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_JPEG_H
#define CHEX_LIB_JPEG_H

#include "image/image.h"

/* Returns whether the first bytes are JPEG's start of image. */
bool is_jpeg(const uint8_t *data, size_t size);

/*
 * Decode the JPEG in data[0 .. size - 1].  Like decode_png(), and also returns
 * CHEX_ERR_UNSUPPORTED  CMYK, 12-bit, arithmetic or lossless coding; the text names it
 * CHEX_ERR_LIMIT        also for more than 500 scans of a progressive file
 */
enum chex_status decode_jpeg(const uint8_t *data, size_t size, const struct decode_limits *limits, struct image *out,
                             struct image_traits *traits, struct chex_error *err);

#endif
