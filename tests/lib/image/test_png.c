/*
 * test_png.c - PNG of every form to gray: the formulas of image.h for known samples
 *
 * Damaged files: test_png_faults.c.  Comparison with other software: png_cases.py.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "image/png_decode.h"
#include "png_fixture.h"
#include "unit.h"

#include <string.h>

static const struct decode_limits limits = {.max_pixels = 1 << 20, .min_side = 1};

static unsigned
noise(uint32_t x, uint32_t y, int channel)
{
    uint32_t v = (x + 1) * 2654435761u ^ (y + 1) * 2246822519u ^ (uint32_t)(channel + 1) * 3266489917u;

    return (v ^ v >> 15) * 2246822519u >> 16;
}

static unsigned
gray_noise(uint32_t x, uint32_t y, int channel)
{
    return channel == 3 ? 255 : noise(x, y, 0);
}

/* ---- expected values: image.h -------------------------------------------------------------------------------- */

static unsigned
to8(unsigned value, int depth)
{
    return depth == 16 ? (value * 255 + 32767) / 65535 : value * 255 / ((1u << depth) - 1);
}

static unsigned
luma(unsigned r, unsigned g, unsigned b)
{
    return (19595 * r + 38470 * g + 7471 * b + 32768) >> 16;
}

/* Returns the 16-bit sample of a tRNS chunk for gray or RGB. */
static unsigned
trns_sample(const struct fixture *f, int channel)
{
    return (unsigned)f->trns[2 * channel] << 8 | f->trns[2 * channel + 1];
}

static unsigned
expected(const struct fixture *f, uint32_t x, uint32_t y)
{
    unsigned s[4], alpha = 255, value;
    int channels = fixture_channels(f->colour);
    bool key = f->trns != NULL;

    for (int c = 0; c < channels; c++) {
        s[c] = fixture_sample(f, x, y, c);
        key = key && f->colour != INDEXED && s[c] == trns_sample(f, c);
    }
    if (f->colour == INDEXED) {
        const uint8_t *entry = f->palette + (size_t)3 * s[0];

        alpha = s[0] < f->trns_size ? f->trns[s[0]] : 255;
        value = luma(entry[0], entry[1], entry[2]);
    } else {
        for (int c = 0; c < channels; c++)
            s[c] = to8(s[c], f->depth);
        value = channels >= 3 ? luma(s[0], s[1], s[2]) : s[0];
        alpha = key ? 0 : channels % 2 == 0 ? s[channels - 1] : 255;
    }
    return (value * alpha + 127) / 255;
}

static void
decode_good(const struct buffer *file, struct image *image, struct image_traits *traits)
{
    struct chex_error err = {0};

    ck_assert_msg(decode_png(file->data, file->size, &limits, image, traits, &err) == CHEX_OK, "%s", err.text);
}

static void
check_form(const struct fixture *f)
{
    struct buffer file = {0};
    struct image image = {0};
    struct image_traits traits;

    fixture_png(&file, f);
    decode_good(&file, &image, &traits);
    ck_assert_uint_eq(image.width, f->width);
    ck_assert_uint_eq(image.height, f->height);
    for (uint32_t y = 0; y < f->height; y++)
        for (uint32_t x = 0; x < f->width; x++)
            ck_assert_msg(image.data[y * image.stride + x] == expected(f, x, y),
                          "colour type %d, depth %d, interlaced %d, tRNS %d: %u at (%u, %u), not %u", f->colour,
                          f->depth, f->interlaced, f->trns != NULL, image.data[y * image.stride + x], x, y,
                          expected(f, x, y));
    ck_assert_uint_eq(traits.bit_depth, (unsigned)f->depth);
    ck_assert_uint_eq(traits.channels, (unsigned)fixture_channels(f->colour));
    ck_assert_int_eq(traits.palette, f->colour == INDEXED);
    ck_assert_int_eq(traits.interlaced, f->interlaced);
    ck_assert_uint_eq(traits.warnings, 0);
    ck_assert(!traits.animated);
    buffer_release(&file);
    image_release(&image);
}

/* ---- forms --------------------------------------------------------------------------------------------------- */

/* Tests sizes that fill some Adam7 passes and not others, plain and interlaced. */
static void
check_sizes(struct fixture f)
{
    static const uint32_t sizes[][2] = {{1, 1}, {2, 3}, {5, 1}, {1, 9}, {8, 8}, {33, 17}};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        f.width = sizes[i][0];
        f.height = sizes[i][1];
        f.interlaced = false;
        check_form(&f);
        f.interlaced = true;
        check_form(&f);
    }
}

TEST_CASE("png", "forms", NULL, NULL);

TEST(every_colour_type_and_depth_becomes_gray_by_the_formula)
{
    static const int forms[][2] = {{GRAY, 1}, {GRAY, 2},       {GRAY, 4},        {GRAY, 8}, {GRAY, 16}, {RGB, 8},
                                   {RGB, 16}, {GRAY_ALPHA, 8}, {GRAY_ALPHA, 16}, {RGBA, 8}, {RGBA, 16}};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        check_sizes((struct fixture){.colour = forms[i][0], .depth = forms[i][1], .sample = noise});
}

/* The key is compared at full depth: 16-bit samples that differ only in the low byte are not transparent. */
TEST(the_transparent_colour_becomes_black_and_its_neighbours_do_not)
{
    static const int forms[][2] = {{GRAY, 1}, {GRAY, 2}, {GRAY, 4}, {GRAY, 8}, {GRAY, 16}, {RGB, 8}, {RGB, 16}};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct fixture f = {.colour = forms[i][0], .depth = forms[i][1], .sample = noise};
        uint8_t trns[6];

        for (int c = 0; c < fixture_channels(f.colour); c++) {
            trns[2 * c] = (uint8_t)(fixture_sample(&f, 0, 0, c) >> 8);
            trns[2 * c + 1] = (uint8_t)fixture_sample(&f, 0, 0, c);
        }
        f.trns = trns;
        f.trns_size = (size_t)2 * (size_t)fixture_channels(f.colour);
        check_sizes(f);
    }
}

TEST(palettes_of_every_depth_are_looked_up)
{
    static const int depths[] = {1, 2, 4, 8};
    uint8_t palette[3 * 256], trns[256];

    for (unsigned i = 0; i < sizeof(palette); i++)
        palette[i] = (uint8_t)noise(i, 7, 0);
    for (unsigned i = 0; i < sizeof(trns); i++)
        trns[i] = (uint8_t)noise(i, 8, 0);
    for (int i = 0; i < 4; i++) {
        struct fixture f = {.colour = INDEXED, .depth = depths[i], .sample = noise, .palette = palette};

        for (f.palette_size = 1; f.palette_size <= (size_t)1 << f.depth; f.palette_size = 2 * f.palette_size + 1) {
            f.trns = NULL;
            f.trns_size = 0;
            check_sizes(f);
            f.trns = trns;
            f.trns_size = (f.palette_size + 1) / 2;
            check_sizes(f);
        }
    }
}

static unsigned
ramp(uint32_t x, uint32_t y, int channel)
{
    (void)channel;
    return y * 256 + x;
}

TEST(all_65536_values_of_16_bits_are_scaled_by_the_formula)
{
    check_form(&(struct fixture){.width = 256, .height = 256, .colour = GRAY, .depth = 16, .sample = ramp});
}

TEST(all_pairs_of_gray_and_alpha_are_composited_by_the_formula)
{
    check_form(&(struct fixture){.width = 256, .height = 256, .colour = GRAY_ALPHA, .depth = 8, .sample = ramp});
}

static unsigned
half_lumas(uint32_t x, uint32_t y, int channel)
{
    const unsigned first[] = {0, 52, 184};

    (void)y;
    return first[channel] + x;
}

/* 19595 x + 38470 (x + 52) + 7471 (x + 184) = 65536 (x + 51) + 32768 */
TEST(half_a_step_of_luma_is_rounded_up)
{
    struct fixture f = {.width = 72, .height = 1, .colour = RGB, .depth = 8, .sample = half_lumas};

    ck_assert_uint_eq(expected(&f, 0, 0), 52);
    ck_assert_uint_eq(expected(&f, 71, 0), 123);
    check_form(&f);
}

/* ---- traits -------------------------------------------------------------------------------------------------- */

static struct image_traits
traits_of(const struct fixture *f)
{
    struct buffer file = {0};
    struct image image = {0};
    struct image_traits traits;

    fixture_png(&file, f);
    decode_good(&file, &image, &traits);
    buffer_release(&file);
    image_release(&image);
    return traits;
}

static unsigned
one_coloured_pixel(uint32_t x, uint32_t y, int channel)
{
    return gray_noise(x, y, channel) ^ (x == 2 && y == 3 && channel == 2);
}

static unsigned
one_translucent_pixel(uint32_t x, uint32_t y, int channel)
{
    return channel % 2 == 1 && x == 4 && y == 1 ? 254 : channel == 1 ? 255 : gray_noise(x, y, channel);
}

/* Like the 519 files of the data set that are RGBA with R = G = B and alpha 255. */
TEST(gray_in_rgba_is_neither_coloured_nor_transparent)
{
    struct fixture f = {.width = 6, .height = 5, .colour = RGBA, .depth = 8, .sample = gray_noise};

    check_form(&f);
    ck_assert(!traits_of(&f).colour);
    ck_assert(!traits_of(&f).transparent);
    f.colour = RGB;
    ck_assert(!traits_of(&f).colour);
}

TEST(one_coloured_pixel_is_noticed)
{
    struct fixture f = {.width = 6, .height = 5, .colour = RGBA, .depth = 8, .sample = one_coloured_pixel};

    ck_assert(traits_of(&f).colour);
    ck_assert(!traits_of(&f).transparent);
    f.colour = RGB;
    ck_assert(traits_of(&f).colour);
}

TEST(one_translucent_pixel_is_noticed)
{
    struct fixture f = {.width = 6, .height = 5, .colour = GRAY_ALPHA, .depth = 8, .sample = one_translucent_pixel};

    ck_assert(traits_of(&f).transparent);
    ck_assert(!traits_of(&f).colour);
}

static unsigned
always_2(uint32_t x, uint32_t y, int channel)
{
    (void)x, (void)y, (void)channel;
    return 2;
}

TEST(a_palette_counts_only_with_the_colours_that_are_used)
{
    static const uint8_t palette[] = {255, 0, 0, 0, 0, 255, 9, 9, 9}, trns[] = {0, 128, 255};
    struct fixture f = {.width = 3, .height = 3, .colour = INDEXED, .depth = 8, .sample = always_2};

    f.palette = palette;
    f.palette_size = 3;
    f.trns = trns;
    f.trns_size = 3;
    ck_assert(!traits_of(&f).colour);
    ck_assert(!traits_of(&f).transparent);
    f.sample = noise;
    ck_assert(traits_of(&f).colour);
    ck_assert(traits_of(&f).transparent);
}

/* ---- other parts of the file --------------------------------------------------------------------------------- */

static const struct fixture plain = {.width = 20, .height = 11, .colour = GRAY, .depth = 8, .sample = noise};

static void
check_plain(const struct buffer *file, struct image_traits *traits)
{
    struct image image = {0};

    decode_good(file, &image, traits);
    for (uint32_t y = 0; y < plain.height; y++)
        for (uint32_t x = 0; x < plain.width; x++)
            ck_assert_uint_eq(image.data[y * image.stride + x], expected(&plain, x, y));
    image_release(&image);
}

TEST(gamma_and_other_ancillary_chunks_change_nothing)
{
    struct buffer file = {0}, raw = {0}, packed = {0};
    struct image_traits traits;

    fixture_raw(&raw, &plain);
    fixture_deflate(&packed, raw.data, raw.size);
    fixture_header(&file, &plain);
    fixture_chunk(&file, "gAMA", "\x00\x01\x86\xa0", 4); /* 1.0 */
    fixture_chunk(&file, "sBIT", "\x05", 1);
    fixture_chunk(&file, "bKGD", "\x00\x40", 2);
    fixture_chunk(&file, "iCCP", "broken", 6);
    fixture_chunk(&file, "tEXt", "no separator", 12);
    fixture_chunk(&file, "prVt", "private", 7);
    fixture_chunk(&file, "IDAT", packed.data, packed.size);
    fixture_chunk(&file, "tIME", "\x07\xe1\x0b\x11\x00\x00\x00", 7);
    fixture_chunk(&file, "IEND", NULL, 0);
    check_plain(&file, &traits);
    ck_assert_uint_eq(traits.warnings, 0);
    buffer_release(&file);
    buffer_release(&raw);
    buffer_release(&packed);
}

TEST(image_data_may_be_cut_into_chunks_anywhere)
{
    struct buffer raw = {0}, packed = {0};
    struct image_traits traits;

    fixture_raw(&raw, &plain);
    fixture_deflate(&packed, raw.data, raw.size);
    for (size_t cut = 0; cut <= packed.size; cut++) {
        struct buffer file = {0};

        fixture_header(&file, &plain);
        fixture_chunk(&file, "IDAT", packed.data, cut);
        fixture_chunk(&file, "IDAT", packed.data + cut, packed.size - cut);
        fixture_chunk(&file, "IEND", NULL, 0);
        check_plain(&file, &traits);
        ck_assert_uint_eq(traits.warnings, 0);
        buffer_release(&file);
    }
    buffer_release(&raw);
    buffer_release(&packed);
}

TEST(of_an_animation_the_first_frame_is_taken)
{
    struct buffer file = {0}, raw = {0}, packed = {0};
    struct image_traits traits;

    fixture_raw(&raw, &plain);
    fixture_deflate(&packed, raw.data, raw.size);
    fixture_header(&file, &plain);
    fixture_chunk(&file, "acTL", "\0\0\0\2\0\0\0\0", 8);
    fixture_chunk(&file, "fcTL", "\0\0\0\0\0\0\0\x14\0\0\0\x0b\0\0\0\0\0\0\0\0\0\1\0\1\0\0", 26);
    fixture_chunk(&file, "IDAT", packed.data, packed.size);
    fixture_chunk(&file, "fcTL", "\0\0\0\1\0\0\0\x14\0\0\0\x0b\0\0\0\0\0\0\0\0\0\1\0\1\0\0", 26);
    fixture_chunk(&file, "fdAT", "\0\0\0\2", 4);
    fixture_chunk(&file, "IEND", NULL, 0);
    check_plain(&file, &traits);
    ck_assert(traits.animated);
    buffer_release(&file);
    buffer_release(&raw);
    buffer_release(&packed);
}

TEST(a_buffer_is_reused_for_images_of_other_sizes)
{
    struct buffer large = {0}, small = {0};
    struct image image = {0};
    struct image_traits traits;
    uint8_t *data;

    fixture_png(&large, &(struct fixture){.width = 90, .height = 80, .colour = RGB, .depth = 8, .sample = noise});
    fixture_png(&small, &plain);
    decode_good(&large, &image, &traits);
    data = image.pixels.data;
    decode_good(&small, &image, &traits);
    ck_assert_ptr_eq(image.data, data);
    ck_assert_uint_eq(image.width, plain.width);
    ck_assert_uint_eq(image.stride, plain.width);
    ck_assert_uint_eq(image.data[plain.width], expected(&plain, 0, 1));
    decode_good(&large, &image, &traits);
    ck_assert_uint_eq(image.height, 80);
    buffer_release(&large);
    buffer_release(&small);
    image_release(&image);
}
