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
decoder_measure(struct decoder *d, double *unfilter)
{
    fastpng_measure(d->png, unfilter);
}

void
decoder_release(struct decoder *d)
{
    fastpng_free(d->png);
    d->png = NULL;
}

/* Decode an image that png_fast.h did not take. */
static enum chex_status
decode_slowly(const uint8_t *data, size_t size, const struct decode_limits *limits, struct image *out,
              struct image_traits *traits, struct chex_error *err)
{
    const char *look;

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

enum chex_status
decode_image(struct decoder *d, const uint8_t *data, size_t size, const struct decode_limits *limits, struct image *out,
             struct image_traits *traits, struct chex_error *err)
{
    if (!d->png || !fastpng_decode(d->png, data, size, limits, out, traits))
        return decode_slowly(data, size, limits, out, traits, err);
    traits->fast = true;
    return CHEX_OK;
}

void
decode_two(struct decode_job job[2], const struct decode_limits *limits)
{
    struct fastpng *const fast[2] = {job[0].decoder->png, job[1].decoder->png};
    const struct image_file file[2] = {job[0].file, job[1].file};
    struct image *const out[2] = {job[0].out, job[1].out};
    struct image_traits *const traits[2] = {&job[0].traits, &job[1].traits};
    bool taken[2];
    int i;

    fastpng_decode_two(fast, file, limits, out, traits, taken);
    for (i = 0; i < 2; i++) {
        struct decode_job *j = &job[i];

        j->traits.fast = taken[i];
        j->status = taken[i] ? CHEX_OK : decode_slowly(j->file.data, j->file.size, limits, j->out, &j->traits, &j->err);
    }
}
