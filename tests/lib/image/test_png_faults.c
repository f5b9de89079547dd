/*
 * test_png_faults.c - PNGs that are damaged, cut, hostile or of an unwanted size: the status and text of each
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "image/png_decode.h"
#include "png_fixture.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned
texture(uint32_t x, uint32_t y, int channel)
{
    return x * 37 + y * 91 + x * y * 13 + (unsigned)channel;
}

static const struct fixture plain = {.width = 12, .height = 9, .colour = GRAY, .depth = 8, .sample = texture};

static enum chex_status
decode(const struct buffer *file, bool lenient, struct image *image, struct image_traits *traits,
       struct chex_error *err)
{
    const struct decode_limits limits = {.max_pixels = 1 << 20, .min_side = 1, .lenient = lenient};

    *err = (struct chex_error){0};
    return decode_png(file->data, file->size, &limits, image, traits, err);
}

static void
check_pixels(const struct image *image, const struct fixture *f)
{
    ck_assert_uint_eq(image->width, f->width);
    ck_assert_uint_eq(image->height, f->height);
    for (uint32_t y = 0; y < f->height; y++)
        for (uint32_t x = 0; x < f->width; x++)
            ck_assert_uint_eq(image->data[y * image->stride + x], fixture_sample(f, x, y, 0));
}

/* Requires this status and text; releases the file. */
static void
refused(struct buffer *file, enum chex_status status, const char *text)
{
    struct image image = {0};
    struct image_traits traits;
    struct chex_error err;

    ck_assert_int_eq(decode(file, false, &image, &traits, &err), status);
    ck_assert_str_eq(err.text, text);
    ck_assert_int_eq(err.status, status);
    ck_assert_int_eq(
        decode_png(file->data, file->size, &(struct decode_limits){.max_pixels = 1 << 20}, &image, &traits, NULL),
        status);
    image_release(&image);
    buffer_release(file);
}

/* Requires the pixels of `plain` and this number of warnings; releases the file. */
static void
accepted(struct buffer *file, unsigned warnings)
{
    struct image image = {0};
    struct image_traits traits;
    struct chex_error err;

    ck_assert_msg(decode(file, false, &image, &traits, &err) == CHEX_OK, "%s", err.text);
    check_pixels(&image, &plain);
    ck_assert_uint_eq(traits.warnings, warnings);
    image_release(&image);
    buffer_release(file);
}

static struct buffer
make(const struct fixture *f)
{
    struct buffer file = {0};

    fixture_png(&file, f);
    return file;
}

/* Returns `plain` with this stream instead of its own. */
static struct buffer
make_with_stream(const void *stream, size_t size)
{
    struct buffer file = {0};

    fixture_header(&file, &plain);
    fixture_chunk(&file, "IDAT", stream, size);
    fixture_chunk(&file, "IEND", NULL, 0);
    return file;
}

static struct buffer
stream_of_plain(size_t rows_left_out, size_t bytes_added)
{
    struct buffer raw = {0}, packed = {0};
    uint8_t zero = 0;

    fixture_raw(&raw, &plain);
    raw.size -= rows_left_out * (plain.width + 1);
    while (bytes_added-- > 0)
        buffer_append(&raw, &zero, 1, NULL);
    fixture_deflate(&packed, raw.data, raw.size);
    buffer_release(&raw);
    return packed;
}

/* Returns a copy of exactly that size, so that a sanitizer detects a read beyond it. */
static struct buffer
head_of(const struct buffer *file, size_t size)
{
    struct buffer head = {.data = malloc(size > 0 ? size : 1), .size = size, .capacity = size};

    ck_assert_ptr_nonnull(head.data);
    memcpy(head.data, file->data, size);
    return head;
}

/* ---- truncation ---------------------------------------------------------------------------------------------- */

static void
check_cut(const struct buffer *file, const struct fixture *f, size_t size)
{
    struct buffer head = head_of(file, size);
    struct image image = {0};
    struct image_traits traits;
    struct chex_error err;
    char expected[64];

    snprintf(expected, sizeof(expected), "truncated at byte %zu", size);
    ck_assert_int_eq(decode(&head, false, &image, &traits, &err), CHEX_ERR_TRUNCATED);
    ck_assert(strcmp(err.text, expected) == 0 || strcmp(err.text, "no IEND (file cut short?)") == 0);
    if (decode(&head, true, &image, &traits, &err) == CHEX_OK) {
        check_pixels(&image, f);
        ck_assert_uint_eq(traits.warnings, 1);
    } else {
        ck_assert_str_eq(err.text, expected);
    }
    image_release(&image);
    buffer_release(&head);
}

TEST_CASE("png", "faults", NULL, NULL);

TEST(a_file_cut_at_any_byte_is_refused)
{
    struct fixture f = plain;

    for (int i = 0; i < 2; i++) {
        struct buffer file;

        f.interlaced = i;
        file = make(&f);
        for (size_t size = 0; size < file.size; size++)
            check_cut(&file, &f, size);
        buffer_release(&file);
    }
}

TEST(a_truncation_inside_the_image_reports_the_byte)
{
    struct buffer file = make(&plain);

    file.size = fixture_find(&file, "IDAT") + 20;
    refused(&file, CHEX_ERR_TRUNCATED, "truncated at byte 53");
}

TEST(a_missing_iend_is_refused_unless_lenient)
{
    struct buffer file = make(&plain);
    struct image image = {0};
    struct image_traits traits;
    struct chex_error err;

    file.size = fixture_find(&file, "IEND");
    ck_assert_int_eq(decode(&file, true, &image, &traits, &err), CHEX_OK);
    check_pixels(&image, &plain);
    ck_assert_uint_eq(traits.warnings, 1);
    image_release(&image);
    refused(&file, CHEX_ERR_TRUNCATED, "no IEND (file cut short?)");
}

/* ---- checksums ----------------------------------------------------------------------------------------------- */

TEST(a_wrong_crc_is_reported_with_its_chunk)
{
    static const uint8_t palette[3 * 256] = {0};
    static const char *const types[] = {"IHDR", "PLTE", "IDAT", "IEND"};
    struct fixture f = plain;

    f.colour = INDEXED;
    f.palette = palette;
    f.palette_size = 256;
    for (int i = 0; i < 4; i++) {
        struct buffer file = make(&f);
        char text[64];

        file.data[fixture_find(&file, types[i]) + 4 + 4] ^= i < 3; /* in the data; IEND has none, so in its CRC */
        if (i == 3)
            file.data[file.size - 1] ^= 1;
        snprintf(text, sizeof(text), "checksum error in %s", types[i]);
        refused(&file, CHEX_ERR_CHECKSUM, text);
    }
}

TEST(a_wrong_crc_of_an_ancillary_chunk_is_a_warning)
{
    struct buffer file = {0}, stream = stream_of_plain(0, 0);

    fixture_header(&file, &plain);
    fixture_chunk(&file, "tIME", "\x07\xe1\x0b\x11\x00\x00\x00", 7);
    file.data[file.size - 1] ^= 0x10;
    fixture_chunk(&file, "IDAT", stream.data, stream.size);
    fixture_chunk(&file, "tEXt", "a\0b", 3);
    file.data[file.size - 2] ^= 0x10;
    fixture_chunk(&file, "IEND", NULL, 0);
    buffer_release(&stream);
    accepted(&file, 2);
}

TEST(a_wrong_adler_checksum_is_damage)
{
    struct buffer stream = stream_of_plain(0, 0), file;

    stream.data[stream.size - 1] ^= 1;
    file = make_with_stream(stream.data, stream.size);
    refused(&file, CHEX_ERR_DAMAGED, "image data damaged (IDAT: incorrect data check)");
    buffer_release(&stream);
}

/* libpng has all rows before it reads the second chunk, so it would only warn. */
TEST(a_wrong_adler_checksum_in_a_chunk_of_its_own_is_damage)
{
    struct buffer stream = stream_of_plain(0, 0), file = {0};

    stream.data[stream.size - 4] ^= 1;
    fixture_header(&file, &plain);
    fixture_chunk(&file, "IDAT", stream.data, stream.size - 4);
    fixture_chunk(&file, "IDAT", stream.data + stream.size - 4, 4);
    fixture_chunk(&file, "IEND", NULL, 0);
    refused(&file, CHEX_ERR_DAMAGED, "image data damaged (IDAT: incorrect data check)");
    buffer_release(&stream);
}

/* Every byte of a file without ancillary chunks is covered by a checksum, so every flip is detected. */
TEST(every_flipped_bit_is_refused)
{
    struct buffer file = make(&plain);

    for (size_t bit = 0; bit < 8 * file.size; bit++) {
        struct image image = {0};
        struct image_traits traits;
        struct chex_error err;

        file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        for (int lenient = 0; lenient < 2; lenient++) {
            enum chex_status status = decode(&file, lenient, &image, &traits, &err);

            ck_assert_msg((lenient && status == CHEX_OK) || chex_status_is_data(status), "bit %zu: %s", bit,
                          chex_status_name(status));
            if (status == CHEX_OK) /* the flip changed the type of the IEND */
                check_pixels(&image, &plain);
        }
        file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        image_release(&image);
    }
    buffer_release(&file);
}

/* ---- image data ---------------------------------------------------------------------------------------------- */

/* A stream with too few rows, and one that is cut, in a complete file. */
TEST(too_little_image_data_is_damage)
{
    for (size_t rows = 0; rows < 2; rows++) {
        struct buffer stream = stream_of_plain(rows, 0), file;

        file = make_with_stream(stream.data, rows > 0 ? stream.size : stream.size - 9);
        refused(&file, CHEX_ERR_DAMAGED, "image data damaged (Not enough image data)");
        buffer_release(&stream);
    }
}

TEST(a_filter_that_does_not_exist_is_damage)
{
    struct buffer raw = {0}, packed = {0}, file;

    fixture_raw(&raw, &plain);
    raw.data[plain.width + 1] = 5;
    fixture_deflate(&packed, raw.data, raw.size);
    file = make_with_stream(packed.data, packed.size);
    refused(&file, CHEX_ERR_DAMAGED, "image data damaged (bad adaptive filter value)");
    buffer_release(&raw);
    buffer_release(&packed);
}

TEST(surplus_of_any_kind_is_a_warning)
{
    struct buffer stream = stream_of_plain(0, 5), file = make_with_stream(stream.data, stream.size);

    accepted(&file, 1); /* more pixels than the header says */
    buffer_release(&stream);

    stream = stream_of_plain(0, 0);
    buffer_append(&stream, "surplus", 7, NULL);
    file = make_with_stream(stream.data, stream.size);
    accepted(&file, 1); /* bytes after the stream */

    file = make(&plain);
    file.size = fixture_find(&file, "IEND");
    fixture_chunk(&file, "IDAT", "more", 4);
    fixture_chunk(&file, "IEND", NULL, 0);
    accepted(&file, 1); /* a chunk after the stream */

    file = make(&plain);
    buffer_append(&file, "\n", 1, NULL);
    accepted(&file, 1); /* a byte after the file */
    buffer_release(&stream);
}

TEST(an_index_outside_the_palette_is_damage)
{
    static const uint8_t palette[3 * 5] = {0};
    struct fixture f = {.width = 8, .height = 2, .colour = INDEXED, .depth = 4, .sample = texture};
    struct buffer file = {0}, raw = {0}, packed = {0};

    f.palette = palette;
    f.palette_size = 5;
    fixture_raw(&raw, &f);
    raw.data[1 + 4 + 1 + 3] = 0x05; /* the last pixel */
    fixture_deflate(&packed, raw.data, raw.size);
    fixture_header(&file, &f);
    fixture_chunk(&file, "IDAT", packed.data, packed.size);
    fixture_chunk(&file, "IEND", NULL, 0);
    refused(&file, CHEX_ERR_DAMAGED, "palette index 5 in an image of 5 colours");
    buffer_release(&raw);
    buffer_release(&packed);
}

TEST(a_palette_image_without_palette_is_damage)
{
    struct fixture f = plain;
    struct buffer file;

    f.colour = INDEXED;
    file = make(&f);
    refused(&file, CHEX_ERR_DAMAGED, "damaged PNG (IDAT: Missing PLTE before IDAT)");
}

/* ---- header and limits --------------------------------------------------------------------------------------- */

static struct buffer
make_with_header_byte(size_t at, uint8_t value)
{
    struct buffer file = make(&plain);
    size_t header = fixture_find(&file, "IHDR");

    file.data[header + 8 + at] = value;
    fixture_repair(&file, header);
    return file;
}

TEST(impossible_headers_are_damage)
{
    static const uint8_t wrong[][2] = {{3, 0}, {0, 0x80}, {7, 0}, {8, 3}, {9, 5}, {10, 1}, {11, 1}, {12, 2}};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct buffer file = make_with_header_byte(wrong[i][0], wrong[i][1]);
        struct image image = {0};
        struct image_traits traits;
        struct chex_error err;

        ck_assert_int_eq(decode(&file, true, &image, &traits, &err), CHEX_ERR_DAMAGED);
        ck_assert_msg(strncmp(err.text, "damaged PNG (", 13) == 0, "%s", err.text);
        image_release(&image);
        buffer_release(&file);
    }
}

TEST(a_file_that_went_through_a_text_mode_transfer_is_damage)
{
    struct buffer file = make(&plain);

    memmove(file.data + 4, file.data + 5, file.size - 5); /* CR LF became LF */
    file.size--;
    ck_assert(is_png(file.data, file.size));
    refused(&file, CHEX_ERR_DAMAGED, "damaged PNG (PNG file corrupted by ASCII conversion)");
}

TEST(an_unknown_critical_chunk_is_damage)
{
    struct buffer file = {0};

    fixture_header(&file, &plain);
    fixture_chunk(&file, "CRIT", "?", 1);
    refused(&file, CHEX_ERR_DAMAGED, "damaged PNG (CRIT: unhandled critical chunk)");
}

/* The buffer stays empty: no memory was allocated for the pixels. */
static void
check_limit(uint32_t width, uint32_t height, const struct decode_limits *limits, const char *text)
{
    struct fixture f = {.width = width, .height = height, .colour = GRAY, .depth = 1};
    struct buffer file = {0};
    struct image image = {0};
    struct image_traits traits;
    struct chex_error err;

    fixture_header(&file, &f);
    fixture_chunk(&file, "IDAT", "\x78\x9c", 2);
    ck_assert_int_eq(decode_png(file.data, file.size, limits, &image, &traits, &err), CHEX_ERR_LIMIT);
    ck_assert_str_eq(err.text, text);
    ck_assert_ptr_null(image.pixels.data);
    ck_assert_uint_eq(traits.bit_depth, 1);
    buffer_release(&file);
}

TEST(sizes_outside_the_limits_are_refused_before_anything_is_allocated)
{
    const struct decode_limits usual = {.max_pixels = 64 << 20, .min_side = 64};
    const struct decode_limits odd = {.max_pixels = 1000, .min_side = 1};

    check_limit(100000, 100000, &usual, "100000x100000 exceeds --max-pixels 64M");
    check_limit(0x7fffffff, 0x7fffffff, &usual, "2147483647x2147483647 exceeds --max-pixels 64M");
    check_limit(8192, 8193, &usual, "8192x8193 exceeds --max-pixels 64M");
    check_limit(7, 143, &odd, "7x143 exceeds --max-pixels 1000");
    check_limit(63, 64, &usual, "63x64 is below --min-size 64");
    check_limit(64, 63, &usual, "64x63 is below --min-size 64");
}

/* 16 MiB of zeros in 16 kB, in each chunk that can contain a compressed text or profile: skipped, not inflated. */
TEST(compressed_texts_and_profiles_are_skipped)
{
    static const char *const types[] = {"iCCP", "zTXt", "iTXt", "sPLT"};
    size_t size = (size_t)16 << 20;
    struct buffer file = {0}, bomb = {0}, stream = stream_of_plain(0, 0);
    uint8_t *zeros = calloc(size, 1);

    ck_assert_ptr_nonnull(zeros);
    buffer_append(&bomb, "name\0", 6, NULL);
    fixture_deflate(&bomb, zeros, size);
    fixture_header(&file, &plain);
    for (int i = 0; i < 4; i++)
        fixture_chunk(&file, types[i], bomb.data, bomb.size);
    fixture_chunk(&file, "IDAT", stream.data, stream.size);
    fixture_chunk(&file, "IEND", NULL, 0);
    accepted(&file, 0);
    free(zeros);
    buffer_release(&bomb);
    buffer_release(&stream);
}
