/*
 * jpeg_decode.c - fuzz target: JPEG
 *
 * There is no second decoder to compare with, because lib/image/jpeg_decode.c uses libjpeg-turbo.  So the target
 * requires what jpeg_decode.h promises.  Limits hold.  The same bytes give the same result, whatever the buffers
 * contained before.  lenient accepts what strict accepts, with the same pixels.  If a file is accepted without a
 * warning, every prefix that ends inside the image is refused, or at least is not accepted as complete.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include "image/decode.h"
#include "image/jpeg_decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

static const struct decode_limits strict = {.max_pixels = 1u << 18, .min_side = 1};

struct result {
    enum chex_status status;
    struct image image;
    struct image_traits traits;
    struct chex_error err;
};

static void
decode(const uint8_t *data, size_t size, const struct decode_limits *limits, struct result *r)
{
    r->status = decode_jpeg(data, size, limits, &r->image, &r->traits, &r->err);
    fuzz_require_error(r->status, &r->err);
    FUZZ_REQUIRE(r->traits.container == IMAGE_JPEG);
    if (r->status == CHEX_OK)
        FUZZ_REQUIRE((uint64_t)r->image.width * r->image.height <= limits->max_pixels &&
                     r->image.width >= limits->min_side && r->image.height >= limits->min_side &&
                     (r->traits.channels == 1 || r->traits.channels == 3) && r->traits.bit_depth == 8);
}

static void
require_same_pixels(const struct result *a, const struct result *b)
{
    FUZZ_REQUIRE(a->image.width == b->image.width && a->image.height == b->image.height);
    for (uint32_t y = 0; y < a->image.height; y++)
        FUZZ_REQUIRE(memcmp(a->image.data + y * a->image.stride, b->image.data + y * b->image.stride, a->image.width) ==
                     0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct decoder decoder;
    static struct result first, again;
    struct decode_limits other = strict;

    if (size > 0 && !is_jpeg(data, size))
        return 0;
    decode(data, size, &strict, &first);
    if (is_jpeg(data, size)) {
        again.status = decode_image(&decoder, data, size, &strict, &again.image, &again.traits, &again.err);
        FUZZ_REQUIRE(again.status == first.status);
        if (first.status == CHEX_OK)
            require_same_pixels(&first, &again);
        else
            FUZZ_REQUIRE(strcmp(first.err.text, again.err.text) == 0);
    }
    if (first.status != CHEX_OK)
        return 0;
    other.lenient = true;
    decode(data, size, &other, &again);
    FUZZ_REQUIRE(again.status == CHEX_OK && again.traits.warnings == first.traits.warnings);
    require_same_pixels(&first, &again);
    if (first.traits.warnings == 0) {
        /* Without its last two bytes, the end-of-image marker. */
        decode(data, size - 2, &strict, &again);
        FUZZ_REQUIRE(again.status == CHEX_ERR_TRUNCATED || again.status == CHEX_ERR_DAMAGED);
    }
    other = strict;
    if ((uint64_t)first.image.width * first.image.height > 1) {
        other.max_pixels = (uint64_t)first.image.width * first.image.height - 1;
        decode(data, size, &other, &again);
        FUZZ_REQUIRE(again.status == CHEX_ERR_LIMIT);
    }
    return 0;
}

/* ---- seeds ----------------------------------------------------------------------------------------------------- */

struct form {
    const char *name;
    int components;
    unsigned width, height;
    int quality, restart;
    bool progressive, optimize;
    int sampling; /* of the first component */
};

static void
make(const struct form *f, fuzz_seed_fn *give, void *context)
{
    struct jpeg_compress_struct codec;
    struct jpeg_error_mgr errors;
    unsigned char *out = NULL;
    unsigned long size = 0;
    uint64_t random = f->width;
    uint8_t *row = malloc((size_t)f->width * (size_t)f->components);

    FUZZ_REQUIRE(row != NULL);
    codec.err = jpeg_std_error(&errors);
    jpeg_create_compress(&codec);
    jpeg_mem_dest(&codec, &out, &size);
    codec.image_width = f->width;
    codec.image_height = f->height;
    codec.input_components = f->components;
    codec.in_color_space = f->components == 1 ? JCS_GRAYSCALE : f->components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&codec);
    jpeg_set_quality(&codec, f->quality, TRUE);
    codec.restart_in_rows = f->restart;
    codec.optimize_coding = f->optimize;
    codec.comp_info[0].h_samp_factor = codec.comp_info[0].v_samp_factor = f->sampling;
    if (f->progressive)
        jpeg_simple_progression(&codec);
    jpeg_start_compress(&codec, TRUE);
    for (unsigned y = 0; y < f->height; y++) {
        for (unsigned x = 0; x < f->width * (unsigned)f->components; x++)
            row[x] = (uint8_t)(x * 5 + y * 3 + fuzz_below(&random, 64));
        jpeg_write_scanlines(&codec, &row, 1);
    }
    jpeg_finish_compress(&codec);
    jpeg_destroy_compress(&codec);
    give(f->name, out, size, context);
    free(out);
    free(row);
}

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
    static const struct form forms[] = {
        {"gray", 1, 24, 17, 80, 0, false, false, 1},
        {"one-pixel", 1, 1, 1, 80, 0, false, false, 1},
        {"gray-progressive", 1, 33, 20, 60, 0, true, true, 1},
        {"gray-restart", 1, 40, 40, 50, 1, false, true, 1},
        {"colour-420", 3, 24, 40, 70, 0, false, false, 2},
        {"colour-444", 3, 17, 9, 90, 0, false, true, 1},
        {"colour-progressive", 3, 30, 30, 60, 1, true, true, 2},
        {"cmyk", 4, 16, 16, 60, 0, false, false, 1},
        {"gray-odd-sampling", 1, 30, 11, 75, 0, false, false, 2},
    };

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        make(&forms[i], give, context);
}
