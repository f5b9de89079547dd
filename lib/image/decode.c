/*
 * decode.c - see decode.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "image/decode.h"

#include "image/jpeg_decode.h"
#include "image/png_decode.h"
#include "image/png_fast.h"
#include "io/content.h"

enum chex_status
decoder_init(struct decoder *d, struct chex_error *err)
{
    d->png = fastpng_new();
    return d->png ? CHEX_OK : error_memory(err);
}

void
decoder_release(struct decoder *d)
{
    fastpng_free(d->png);
    d->png = NULL;
}

enum chex_status
decode_image(struct decoder *d, const uint8_t *data, size_t size, const struct decode_limits *limits, struct image *out,
             struct image_traits *traits, struct chex_error *err)
{
    const char *look;

    if (d->png && fastpng_decode(d->png, data, size, limits, out, traits)) {
        traits->fast = true;
        return CHEX_OK;
    }
    if (is_png(data, size))
        return decode_png(data, size, limits, out, traits, err);
    if (is_jpeg(data, size))
        return decode_jpeg(data, size, limits, out, traits, err);
    *traits = (struct image_traits){0};
    if (size == 0)
        return error_set(err, CHEX_ERR_EMPTY, "empty file (download interrupted?)");
    look = content_look(data, size);
    return error_set(err, CHEX_ERR_NOT_IMAGE, "%s", look ? look : "not a PNG or JPEG");
}
