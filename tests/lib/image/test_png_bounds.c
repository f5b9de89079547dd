/*
 * test_png_bounds.c - PNGs that cost time, requests to stop, and faults that are found before libpng is called
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "image/decode.h"
#include "image/png_chunk.h"
#include "image/png_decode.h"
#include "png_fixture.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static unsigned
texture(uint32_t x, uint32_t y, int channel)
{
    return x * 37 + y * 91 + (unsigned)channel;
}

static const struct fixture plain = {.width = 12, .height = 9, .colour = GRAY, .depth = 8, .sample = texture};

/*
 * Makes a file of `f` with `surplus` further bytes of zeros in its image data, in chunks of `piece` compressed bytes.
 */
static struct buffer
make_with_surplus(const struct fixture *f, size_t surplus, size_t piece)
{
    struct buffer file = {0}, raw = {0}, packed = {0};

    fixture_raw(&raw, f);
    ck_assert_int_eq(buffer_reserve(&raw, raw.size + surplus, NULL), CHEX_OK);
    memset(raw.data + raw.size, 0, surplus);
    raw.size += surplus;
    fixture_deflate(&packed, raw.data, raw.size);
    fixture_header(&file, f);
    for (size_t at = 0; at < packed.size; at += piece)
        fixture_chunk(&file, "IDAT", packed.data + at, packed.size - at < piece ? packed.size - at : piece);
    fixture_chunk(&file, "IEND", NULL, 0);
    buffer_release(&raw);
    buffer_release(&packed);
    return file;
}

static enum chex_status
decode(const struct buffer *file, const atomic_bool *stop, unsigned *warnings, struct chex_error *err)
{
    const struct decode_limits limits = {.max_pixels = 1 << 20, .min_side = 1, .stop = stop};
    struct image image = {0};
    struct image_traits traits;
    enum chex_status status = decode_png(file->data, file->size, &limits, &image, &traits, err);

    *warnings = traits.warnings;
    image_release(&image);
    return status;
}

TEST_CASE("png", "bounds", NULL, NULL);

/* The limit is 32 MiB and four times the image; in the file it takes a thousandth of that. */
TEST(data_after_the_pixels_is_limited)
{
    static const size_t pieces[] = {1 << 20, 8192, 100};
    struct fixture f = plain;

    for (int i = 0; i < 6; i++) {
        size_t few = (size_t)31 << 20, many = (size_t)34 << 20, piece = pieces[i / 2];
        struct buffer file;
        struct chex_error err;
        unsigned warnings;

        f.interlaced = i % 2;
        file = make_with_surplus(&f, few, piece);
        ck_assert_msg(decode(&file, NULL, &warnings, &err) == CHEX_OK, "%s", err.text);
        ck_assert_uint_eq(warnings, 1);
        buffer_release(&file);
        file = make_with_surplus(&f, many, piece);
        ck_assert_int_eq(decode(&file, NULL, &warnings, &err), CHEX_ERR_LIMIT);
        ck_assert_str_eq(err.text, "more than 4 times its size after its pixels");
        buffer_release(&file);
    }
}

/* Random numbers do not compress: the last row is longer than the read-ahead, but it is not surplus. */
TEST(a_wide_last_row_is_not_taken_for_surplus)
{
    enum { WIDTH = 60000 };
    struct fixture f = {.width = WIDTH, .height = 2, .colour = RGB, .depth = 16, .sample = texture};
    struct buffer file = make_with_surplus(&f, 0, 8192), noise = {0}, packed = {0};
    struct chex_error err;
    unsigned warnings;
    uint32_t x = 1;

    ck_assert_msg(decode(&file, NULL, &warnings, &err) == CHEX_OK, "%s", err.text);
    ck_assert_uint_eq(warnings, 0);
    file.size = 0;
    fixture_raw(&noise, &f);
    for (size_t i = 0; i < noise.size; i++) {
        x = x * 1664525 + 1013904223;
        noise.data[i] = i % (noise.size / 2) == 0 ? 0 : (uint8_t)(x >> 24);
    }
    fixture_deflate(&packed, noise.data, noise.size);
    fixture_header(&file, &f);
    fixture_chunk(&file, "IDAT", packed.data, packed.size);
    fixture_chunk(&file, "IEND", NULL, 0);
    ck_assert_msg(decode(&file, NULL, &warnings, &err) == CHEX_OK, "%s", err.text);
    ck_assert_uint_eq(warnings, 0);
    buffer_release(&noise);
    buffer_release(&packed);
    buffer_release(&file);
}

TEST(a_wish_to_stop_ends_an_image)
{
    const atomic_bool wanted = true, not_wanted = false;
    struct fixture forms[] = {plain, plain, plain};
    unsigned warnings;

    forms[1].interlaced = true;
    forms[2].colour = RGB;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        const struct decode_limits limits = {.max_pixels = 1 << 20, .min_side = 1, .stop = &wanted};
        struct buffer file = make_with_surplus(&forms[i], 0, 1 << 20);
        struct image image = {0};
        struct image_traits traits;
        struct decoder decoder;
        struct chex_error err;

        ck_assert_int_eq(decode(&file, &not_wanted, &warnings, &err), CHEX_OK);
        ck_assert_int_eq(decode(&file, &wanted, &warnings, &err), CHEX_ERR_STOPPED);
        ck_assert_str_eq(err.text, "stopped on request");
        ck_assert_int_eq(decoder_init(&decoder, &err), CHEX_OK); /* with the fast path */
        ck_assert_int_eq(decode_image(&decoder, file.data, file.size, &limits, &image, &traits, &err),
                         CHEX_ERR_STOPPED);
        decoder_release(&decoder);
        image_release(&image);
        buffer_release(&file);
    }
}

/* libpng 1.6.48 accepts an IEND with a wrong checksum, 1.6.47 does not; neither is called. */
TEST(checksums_are_compared_before_libpng_is_asked)
{
    static const char *const types[] = {"IHDR", "tIME", "IDAT", "tEXt", "IEND", "late"};
    struct buffer file = {0}, raw = {0}, packed = {0};
    struct chunk_checks chunks;

    fixture_raw(&raw, &plain);
    fixture_deflate(&packed, raw.data, raw.size);
    fixture_header(&file, &plain);
    fixture_chunk(&file, "tIME", "\x07\xe1\x0b\x11\x00\x00\x00", 7);
    fixture_chunk(&file, "IDAT", packed.data, packed.size);
    fixture_chunk(&file, "tEXt", "a\0b", 3);
    fixture_chunk(&file, "IEND", NULL, 0);
    fixture_chunk(&file, "late", NULL, 0);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        size_t at = fixture_find(&file, types[i]);
        size_t crc = at + 8 + file.data[at + 3]; /* all are shorter than 256 bytes */
        bool ancillary = types[i][0] == 't';

        for (unsigned bit = 0; bit < 32; bit++) {
            file.data[crc + bit / 8] ^= (uint8_t)(1u << bit % 8);
            chunk_check(file.data, file.size, &chunks);
            ck_assert_str_eq(chunks.bad, ancillary || i == 5 ? "" : types[i]);
            ck_assert_uint_eq(chunks.bad_other, ancillary);
            ck_assert(chunks.ended);
            file.data[crc + bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
    for (size_t size = 0; size < fixture_find(&file, "late"); size++) {
        chunk_check(file.data, size, &chunks);
        ck_assert(!chunks.ended && !chunks.bad[0] && chunks.bad_other == 0);
    }
    buffer_release(&raw);
    buffer_release(&packed);
    buffer_release(&file);
}
