/*
 * cross_check.c - see cross_check.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/cross_check.h"

#include "image/png_decode.h"

#include <string.h>
#include <xxhash.h>

bool
cross_check_includes(const char *name, double per_cent)
{
    /* The hash as a number from 0 to 100, without 100. */
    return per_cent > 0 && (double)(XXH3_64bits(name, strlen(name)) >> 11) * 0x1p-53 * 100 < per_cent;
}

/* Report the first pixel of a row that differs; the two rows are not equal. */
static enum chex_status
report_difference(const uint8_t *fast, const uint8_t *libpng, uint32_t row, struct chex_error *err)
{
    uint32_t column = 0;

    while (fast[column] == libpng[column])
        column++;
    return error_set(err, CHEX_ERR_BUG, "libpng decodes other pixels: %u, not %u, in row %u, column %u", libpng[column],
                     fast[column], row, column);
}

enum chex_status
cross_check(const uint8_t *data, size_t size, const struct decode_limits *limits, const struct image *image,
            struct image *again, struct chex_error *err)
{
    struct image_traits traits;
    enum chex_status status = decode_png(data, size, limits, again, &traits, err);
    uint32_t row;

    if (status == CHEX_ERR_MEMORY || status == CHEX_ERR_STOPPED)
        return status;
    if (status != CHEX_OK)
        return error_context(err, CHEX_ERR_BUG, "libpng refuses an image that the fast decoder accepts");
    if (again->width != image->width || again->height != image->height)
        return error_set(err, CHEX_ERR_BUG, "libpng decodes %ux%u pixels, not %ux%u", again->width, again->height,
                         image->width, image->height);
    for (row = 0; row < image->height; row++) {
        const uint8_t *fast = image->data + row * image->stride, *libpng = again->data + row * again->stride;

        if (memcmp(fast, libpng, image->width) != 0)
            return report_difference(fast, libpng, row, err);
    }
    return CHEX_OK;
}
