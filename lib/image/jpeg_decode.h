/*
 * jpeg_decode.h - JPEG to 8-bit gray by libjpeg-turbo
 *
 * The same samples as `djpeg -grayscale` writes: the Y channel, islow DCT.  A corrupt-data warning is an error: a
 * half-gray X-ray is worse than a missing one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_JPEG_H
#define CHEX_LIB_JPEG_H

#include "image/image.h"

/* True where the first bytes are JPEG's start of image. */
bool is_jpeg(const uint8_t *data, size_t size);

/*
 * Decode the JPEG in data[0 .. size - 1].  As decode_png(); besides
 * CHEX_ERR_UNSUPPORTED  CMYK, 12-bit, arithmetic or lossless coding, named in the text
 * CHEX_ERR_LIMIT        also for more than 500 scans of a progressive file
 */
enum chex_status decode_jpeg(const uint8_t *data, size_t size, const struct decode_limits *limits, struct image *out,
                             struct image_traits *traits, struct chex_error *err);

#endif
