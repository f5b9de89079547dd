/*
 * cross_check.h - decodes some images a second time, with libpng, and compares the pixels
 *
 * png_fast.h decodes nearly all images of ChestX-ray14.  This check compares it with libpng on the user's machine and
 * data.  A hash of the image's name chooses the images, so the choice does not depend on threads, ranks or the order of
 * work, and a larger share includes the images of a smaller one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CROSS_CHECK_H
#define CHEX_LIB_CROSS_CHECK_H

#include "image/image.h"

/* Returns whether the check of this percentage of the images, 0 to 100, includes this image. */
bool cross_check_includes(const char *name, double per_cent);

/*
 * Decode the PNG in data[0 .. size - 1] with libpng into `again`, which the caller keeps from image to image, and
 * compare it with `image`, which png_fast.h decoded.
 * CHEX_ERR_BUG     "libpng decodes other pixels: 12, not 13, in row 5, column 7"; or libpng reports an error
 * CHEX_ERR_MEMORY, CHEX_ERR_STOPPED
 */
enum chex_status cross_check(const uint8_t *data, size_t size, const struct decode_limits *limits,
                             const struct image *image, struct image *again, struct chex_error *err);

#endif
