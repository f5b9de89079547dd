/*
 * test_jpeg.c - JPEG to gray; libjpeg writes the files, and the tests of faults change them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "image/jpeg_decode.h"
#include "jpeg_fixture.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

static const struct decode_limits strict = {.max_pixels = 1 << 20, .min_side = 1};
static const struct decode_limits lenient = {.max_pixels = 1 << 20, .min_side = 1, .lenient = true};

/* ---- files --------------------------------------------------------------------------------------------------- */

static size_t
find_marker(const uint8_t *data, size_t size, uint8_t marker)
{
    for (size_t i = 2; i + 1 < size; i++)
        if (data[i] == 0xff && data[i + 1] == marker)
            return i;
    ck_abort_msg("no marker %02x", marker);
}

static enum chex_status
decode(const uint8_t *data, size_t size, const struct decode_limits *limits, struct image *image,
       struct image_traits *traits, struct chex_error *err)
{
    *err = (struct chex_error){0};
    return decode_jpeg(data, size, limits, image, traits, err);
}

/* Requires this status and text; frees data. */
static void
refused(uint8_t *data, size_t size, enum chex_status status, const char *text)
{
    struct image image = {0};
    struct image_traits traits;
    struct chex_error err;

    ck_assert_int_eq(decode(data, size, &strict, &image, &traits, &err), status);
    ck_assert_str_eq(err.text, text);
    ck_assert_int_eq(decode_jpeg(data, size, &strict, &image, &traits, NULL), status);
    image_release(&image);
    free(data);
}

/* Requires the reference's samples; frees data. */
static struct image_traits
accepted(uint8_t *data, size_t size)
{
    uint8_t gray[JPEG_HEIGHT][JPEG_WIDTH];
    struct image image = {0};
    struct image_traits traits;
    struct chex_error err;

    ck_assert_msg(decode(data, size, &strict, &image, &traits, &err) == CHEX_OK, "%s", err.text);
    ck_assert_uint_eq(image.width, JPEG_WIDTH);
    ck_assert_uint_eq(image.height, JPEG_HEIGHT);
    jpeg_reference(data, size, gray);
    for (unsigned y = 0; y < JPEG_HEIGHT; y++)
        ck_assert_mem_eq(image.data + y * image.stride, gray[y], JPEG_WIDTH);
    image_release(&image);
    free(data);
    return traits;
}

/* ---- forms --------------------------------------------------------------------------------------------------- */

TEST_CASE("jpeg", "jpeg", NULL, NULL);

TEST(every_form_gives_the_samples_of_libjpeg)
{
    for (int i = 0; i < 16; i++) {
        struct jpeg_form form = {
            .components = i & 1 ? 3 : 1,
            .progressive = i & 2,
            .restart = i & 4 ? 2 : 0,
            .separate_scans = (i & 11) == 9,
        };
        size_t size;
        uint8_t *data = jpeg_make(&form, &size);
        struct image_traits traits = accepted(data, size);

        ck_assert_int_eq(traits.container, IMAGE_JPEG);
        ck_assert_uint_eq(traits.bit_depth, 8);
        ck_assert_uint_eq(traits.channels, (unsigned)form.components);
        ck_assert_int_eq(traits.colour, form.components == 3);
        ck_assert_int_eq(traits.interlaced, form.progressive);
        ck_assert_uint_eq(traits.warnings, 0);
    }
}

/* Luma of BT.601, JFIF 1.02: 0.299 R + 0.587 G + 0.114 B = 76.2 for red. */
TEST(a_flat_colour_becomes_its_luma)
{
    static const struct {
        uint8_t colour[4];
        int components, gray;
    } cases[] = {{{77}, 1, 77}, {{255}, 1, 255}, {{255, 0, 0}, 3, 76}, {{0, 255, 0}, 3, 150}, {{90, 90, 90}, 3, 90}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct jpeg_form form = {.components = cases[i].components, .flat = true};
        struct image image = {0};
        struct image_traits traits;
        struct chex_error err;
        uint8_t *data;
        size_t size;

        memcpy(form.colour, cases[i].colour, sizeof(form.colour));
        data = jpeg_make(&form, &size);
        ck_assert_int_eq(decode(data, size, &strict, &image, &traits, &err), CHEX_OK);
        for (unsigned n = 0; n < JPEG_WIDTH * JPEG_HEIGHT; n++)
            ck_assert_int_le(abs(image.data[n] - cases[i].gray), 1);
        image_release(&image);
        free(data);
    }
}

TEST(bytes_after_the_end_are_a_warning)
{
    size_t size;
    uint8_t *data = jpeg_make(&(struct jpeg_form){.components = 1}, &size), *longer;

    longer = realloc(data, size + 1);
    ck_assert_ptr_nonnull(longer);
    data = longer;
    data[size] = '\n';
    ck_assert_uint_eq(accepted(data, size + 1).warnings, 1);
}

TEST(a_wish_to_stop_ends_an_image)
{
    const atomic_bool wanted = true;
    const struct decode_limits limits = {.max_pixels = 1 << 20, .min_side = 1, .stop = &wanted};
    size_t size;
    uint8_t *data = jpeg_make(&(struct jpeg_form){.components = 1}, &size);
    struct image image = {0};
    struct image_traits traits;
    struct chex_error err;

    ck_assert_int_eq(decode(data, size, &limits, &image, &traits, &err), CHEX_ERR_STOPPED);
    image_release(&image);
    free(data);
}

/* ---- truncation ---------------------------------------------------------------------------------------------- */

/* Whatever is accepted with lenient must have all its pixels. */
static void
check_cut(const uint8_t *data, size_t whole, size_t size, bool may_be_kept)
{
    uint8_t gray[JPEG_HEIGHT][JPEG_WIDTH], *head = malloc(size > 0 ? size : 1);
    struct image image = {0};
    struct image_traits traits;
    struct chex_error err;

    ck_assert_ptr_nonnull(head);
    memcpy(head, data, size);
    ck_assert_int_eq(decode(head, size, &strict, &image, &traits, &err), CHEX_ERR_TRUNCATED);
    if (decode(head, size, &lenient, &image, &traits, &err) == CHEX_OK) {
        ck_assert(may_be_kept);
        ck_assert_uint_eq(traits.warnings, 1);
        jpeg_reference(data, whole, gray);
        for (unsigned y = 0; y < JPEG_HEIGHT; y++)
            ck_assert_mem_eq(image.data + y * image.stride, gray[y], JPEG_WIDTH);
    }
    image_release(&image);
    free(head);
}

TEST(a_file_cut_at_any_byte_is_refused)
{
    static const struct jpeg_form forms[] = {{.components = 1},
                                             {.components = 3, .restart = 3},
                                             {.components = 1, .progressive = true},
                                             {.components = 3, .separate_scans = true}};

    for (int i = 0; i < 4; i++) {
        size_t whole;
        uint8_t *data = jpeg_make(&forms[i], &whole);

        for (size_t size = 0; size < whole; size++)
            check_cut(data, whole, size, i < 2 && size + 4 > whole);
        free(data);
    }
}

TEST(a_truncation_inside_the_image_reports_the_byte)
{
    size_t size;
    uint8_t *data = jpeg_make(&(struct jpeg_form){.components = 1}, &size);

    refused(data, 400, CHEX_ERR_TRUNCATED, "truncated at byte 400");
}

TEST(a_missing_end_marker_is_refused_unless_lenient)
{
    size_t size;
    uint8_t *data = jpeg_make(&(struct jpeg_form){.components = 1}, &size);
    struct image image = {0};
    struct image_traits traits;
    struct chex_error err;

    ck_assert_int_eq(decode(data, size - 2, &lenient, &image, &traits, &err), CHEX_OK);
    ck_assert_uint_eq(traits.warnings, 1);
    image_release(&image);
    refused(data, size - 2, CHEX_ERR_TRUNCATED, "no end-of-image marker (file cut short?)");
}

/* ---- damage -------------------------------------------------------------------------------------------------- */

TEST(surplus_bytes_inside_the_image_are_damage)
{
    const size_t surplus = 100; /* more than a decoder reads ahead */
    struct image image = {0};
    struct image_traits traits;
    struct chex_error err;
    size_t size;
    uint8_t *data = jpeg_make(&(struct jpeg_form){.components = 1}, &size), *longer;

    longer = realloc(data, size + surplus);
    ck_assert_ptr_nonnull(longer);
    data = longer;
    memset(data + size - 2, 'a', surplus);
    memcpy(data + size - 2 + surplus, "\xff\xd9", 2);
    ck_assert_int_eq(decode(data, size + surplus, &lenient, &image, &traits, &err), CHEX_ERR_DAMAGED);
    ck_assert_msg(strstr(err.text, "damaged JPEG (Corrupt JPEG data: ") == err.text, "%s", err.text);
    ck_assert_ptr_nonnull(strstr(err.text, "extraneous bytes before marker 0xd9)"));
    image_release(&image);
    free(data);
}

TEST(a_lost_restart_marker_is_damage)
{
    size_t size, at;
    uint8_t *data = jpeg_make(&(struct jpeg_form){.components = 1, .restart = 4}, &size);
    struct image image = {0};
    struct image_traits traits;
    struct chex_error err;

    at = find_marker(data, size, 0xd1);
    data[at + 1] = 0xd5;
    ck_assert_int_eq(decode(data, size, &lenient, &image, &traits, &err), CHEX_ERR_DAMAGED);
    image_release(&image);
    free(data);
}

TEST(a_flipped_bit_does_no_harm)
{
    size_t size;
    uint8_t *data = jpeg_make(&(struct jpeg_form){.components = 3, .restart = 3}, &size);
    struct image image = {0};

    for (size_t bit = 0; bit < 8 * size; bit++) {
        struct image_traits traits;
        struct chex_error err;
        enum chex_status status;

        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        status = decode(data, size, &strict, &image, &traits, &err);
        ck_assert_msg(status == CHEX_OK || chex_status_is_data(status), "bit %zu: %s", bit, err.text);
        ck_assert_int_eq(err.text[0] == '\0', status == CHEX_OK);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    image_release(&image);
    free(data);
}

TEST(no_image_in_the_file_is_damage)
{
    uint8_t *data = malloc(4);

    memcpy(data, "\xff\xd8\xff\xd9", 4);
    refused(data, 4, CHEX_ERR_DAMAGED, "damaged JPEG (JPEG datastream contains no image)");
}

/* ---- unsupported and limits ---------------------------------------------------------------------------------- */

TEST(cmyk_is_named)
{
    size_t size;
    uint8_t *data = jpeg_make(&(struct jpeg_form){.components = 4}, &size);

    refused(data, size, CHEX_ERR_UNSUPPORTED, "CMYK JPEG");
}

/* The frame marker, ITU-T T.81 table B.1, names the process. */
TEST(coding_processes_other_than_baseline_and_progressive_are_named)
{
    static const struct {
        uint8_t marker;
        const char *text;
    } cases[] = {
        {0xc3, "lossless JPEG"},
        {0xc5, "hierarchical JPEG"},
        {0xc6, "hierarchical JPEG"},
        {0xc7, "hierarchical JPEG"},
        {0xc9, "arithmetic-coded JPEG"},
        {0xca, "arithmetic-coded JPEG"},
        {0xcb, "lossless arithmetic-coded JPEG"},
        {0xcd, "hierarchical arithmetic-coded JPEG"},
        {0xce, "hierarchical arithmetic-coded JPEG"},
        {0xcf, "hierarchical arithmetic-coded JPEG"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t size;
        uint8_t *data = jpeg_make(&(struct jpeg_form){.components = 1}, &size);

        data[find_marker(data, size, 0xc0) + 1] = cases[i].marker;
        refused(data, size, CHEX_ERR_UNSUPPORTED, cases[i].text);
    }
}

/* Markers that libjpeg skips before the frame header must not hide the process: TEM, restarts, an empty comment. */
TEST(the_process_is_found_after_unusual_markers)
{
    static const uint8_t odd[][4] = {
        {0xff, 0x01, 0xff, 0x01}, {0xff, 0xd0, 0xff, 0xd0}, {0xff, 0xd7, 0xff, 0x01}, {0xff, 0xe2, 0, 0}};

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        size_t size;
        uint8_t *data = jpeg_make(&(struct jpeg_form){.components = 1}, &size);
        uint8_t *longer = malloc(size + 4), *other = malloc(size + 4);

        ck_assert(longer && other);
        memcpy(longer, data, 2);
        memcpy(longer + 2, odd[i], 4);
        memcpy(longer + 6, data + 2, size - 2);
        memcpy(other, longer, size + 4);
        ck_assert_uint_eq(accepted(longer, size + 4).bit_depth, 8);
        other[find_marker(other, size + 4, 0xc0) + 1] = 0xc9;
        refused(other, size + 4, CHEX_ERR_UNSUPPORTED, "arithmetic-coded JPEG");
        free(data);
    }
}

TEST(twelve_bits_are_named)
{
    size_t size;
    uint8_t *data = jpeg_make(&(struct jpeg_form){.components = 1}, &size);

    data[find_marker(data, size, 0xc0) + 4] = 12;
    refused(data, size, CHEX_ERR_UNSUPPORTED, "12-bit JPEG");
}

TEST(sizes_outside_the_limits_are_refused_before_anything_is_allocated)
{
    const struct decode_limits limits = {.max_pixels = 64 << 20, .min_side = 64};
    size_t size, at;
    uint8_t *data = jpeg_make(&(struct jpeg_form){.components = 1}, &size);
    struct image image = {0};
    struct image_traits traits;
    struct chex_error err;

    ck_assert_int_eq(decode(data, size, &limits, &image, &traits, &err), CHEX_ERR_LIMIT);
    ck_assert_str_eq(err.text, "37x29 is below --min-size 64");
    at = find_marker(data, size, 0xc0);
    memcpy(data + at + 5, "\xea\x60\xea\x60", 4);
    ck_assert_int_eq(decode(data, size, &limits, &image, &traits, &err), CHEX_ERR_LIMIT);
    ck_assert_str_eq(err.text, "60000x60000 exceeds --max-pixels 64M");
    ck_assert_ptr_null(image.pixels.data);
    free(data);
}

/* A valid file: each of the 63 AC coefficients is sent in its own scan, and then refined bit by bit. */
static int
many_scans(jpeg_scan_info *scans)
{
    int n = 0;

    scans[n++] = (jpeg_scan_info){.comps_in_scan = 1};
    for (int k = 1; k < 64; k++)
        for (int bit = 8; bit >= 0; bit--)
            scans[n++] = (jpeg_scan_info){
                .comps_in_scan = 1, .Ss = k, .Se = k, .Ah = bit == 8 ? 0 : bit + 1, .Al = bit};
    return n;
}

TEST(more_than_500_scans_are_refused)
{
    jpeg_scan_info scans[1 + 63 * 9];
    int count = many_scans(scans);
    size_t size;
    uint8_t *data = jpeg_make(&(struct jpeg_form){.components = 1, .scans = scans, .scan_count = 500}, &size);

    accepted(data, size);
    data = jpeg_make(&(struct jpeg_form){.components = 1, .scans = scans, .scan_count = count}, &size);
    refused(data, size, CHEX_ERR_LIMIT, "more than 500 scans");
}
