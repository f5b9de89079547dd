/*
 * image.c - see image.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "image/image.h"

#include <inttypes.h>

enum chex_status
image_resize_buffer(struct image *image, uint32_t width, uint32_t height, struct chex_error *err)
{
    enum chex_status status;
    size_t size;

    if (!size_mul(width, height, &size))
        return error_memory(err);
    /* At least one byte, so that an image without pixels also has a valid address. */
    status = buffer_reserve(&image->pixels, size > 0 ? size : 1, err);
    if (status != CHEX_OK)
        return status;
    image->pixels.size = size;
    image->width = width;
    image->height = height;
    image->stride = width;
    image->data = image->pixels.data;
    return CHEX_OK;
}

void
image_release(struct image *image)
{
    buffer_release(&image->pixels);
    *image = (struct image){0};
}

enum chex_status
decode_limits_check(const struct decode_limits *limits, uint32_t width, uint32_t height, struct chex_error *err)
{
    const uint64_t mega = UINT64_C(1) << 20;
    uint64_t max = limits->max_pixels;

    /* Both factors are below 2^32, so the product does not overflow. */
    if ((uint64_t)width * height > max) {
        bool whole = max >= mega && max % mega == 0;

        return error_set(err, CHEX_ERR_LIMIT, "%" PRIu32 "x%" PRIu32 " exceeds --max-pixels %" PRIu64 "%s", width,
                         height, whole ? max / mega : max, whole ? "M" : "");
    }
    if (width < limits->min_side || height < limits->min_side)
        return error_set(err, CHEX_ERR_LIMIT, "%" PRIu32 "x%" PRIu32 " is below --min-size %" PRIu32, width, height,
                         limits->min_side);
    return CHEX_OK;
}
