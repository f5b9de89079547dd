/*
 * test_png_fast.c - compares the implementations of the fast path for plain PNGs with each other, and with libpng
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "image/png_decode.h"
#include "image/png_fast.h"
#include "kernels/unfilter.h"
#include "png_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* xorshift32 (Marsaglia 2003): the same numbers on every machine. */
static uint32_t
next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static const struct decode_limits limits = {.max_pixels = 64u << 20, .min_side = 1};

/* ---- filters -------------------------------------------------------------------------------------------------- */

static const struct unfilter_kind *
plain_c(void)
{
    const struct unfilter_kind *kind = unfilter_kinds;

    while (kind[1].name)
        kind++;
    return kind;
}

/*
 * Unfilters an image of random bytes, with runs of small ones so that Paeth has ties; in two parts, with a gap between
 * rows.
 */
static void
compare_kinds(uint32_t width, uint32_t height, uint32_t *random)
{
    size_t row = width + 1u, size = row * height, i, stride = width + next_random(random) % 3, room = stride * height;
    uint8_t *raw = malloc(size + UNFILTER_SLACK), *want = malloc(room), *got = malloc(room);
    uint32_t part = next_random(random) % (height + 1);
    const struct unfilter_kind *kind;

    for (i = 0; i < size; i++) {
        unsigned shift = next_random(random) % 3 ? 8 : 30;

        raw[i] = (uint8_t)(next_random(random) >> shift);
    }
    for (i = 0; i < height; i++)
        raw[i * row] = (uint8_t)(next_random(random) % 5);
    memset(raw + size, 0xa5, UNFILTER_SLACK);
    memset(want, 0x5a, room);
    plain_c()->gray(raw, width, 0, height, want, stride);
    for (kind = unfilter_kinds; kind->name; kind++) {
        if (!kind->supported())
            continue;
        memset(got, 0x5a, room);
        kind->gray(raw, width, 0, part, got, stride);
        kind->gray(raw, width, part, height, got, stride);
        ck_assert_msg(memcmp(got, want, room) == 0, "%s differs at %ux%u", kind->name, width, height);
    }
    free(raw);
    free(want);
    free(got);
}

TEST_CASE("png_fast", "fast", NULL, NULL);

TEST(every_wavefront_equals_plain_c)
{
    uint32_t random = 1, i;

    for (i = 0; i < 400; i++) {
        uint32_t height = 1 + next_random(&random) % 100, width = 1 + next_random(&random) % 200;

        compare_kinds(width, height, &random);
    }
    compare_kinds(1024, 64, &random);
    compare_kinds(1023, 65, &random);
    compare_kinds(64, 1, &random);
    compare_kinds(63, 32, &random);
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

static unsigned
smooth(uint32_t x, uint32_t y, int channel)
{
    (void)channel;
    return (x * 3 + y * 5 + (x * y) / 7) & 255;
}

static unsigned
smooth_opaque(uint32_t x, uint32_t y, int channel)
{
    return channel == 3 ? 255 : smooth(x, y, 0);
}

static unsigned
coloured(uint32_t x, uint32_t y, int channel)
{
    return channel == 3 ? 255 : smooth(x, y, 0) + (x == 40 && channel == 1);
}

static unsigned
translucent(uint32_t x, uint32_t y, int channel)
{
    return channel == 3 ? 255 - (y == 30) : smooth(x, y, 0);
}

/* Makes a file with every filter type; the bytes are random, so any filter gives some image. */
static void
make_filtered(struct buffer *b, const struct fixture *f, uint32_t *random)
{
    struct buffer raw = {0}, packed = {0};
    size_t row = 1 + (size_t)f->width * (size_t)fixture_channels(f->colour), y;

    fixture_raw(&raw, f);
    for (y = 0; y < f->height; y++)
        raw.data[y * row] = (uint8_t)(next_random(random) % 5);
    b->size = 0;
    fixture_header(b, f);
    fixture_deflate(&packed, raw.data, raw.size);
    fixture_chunk(b, "IDAT", packed.data, packed.size);
    fixture_chunk(b, "IEND", "", 0);
    buffer_release(&raw);
    buffer_release(&packed);
}

/* Does the fast path accept it?  If so, its result must be that of libpng, including traits. */
static bool
fast_agrees(struct fastpng *fast, const struct buffer *file)
{
    struct image ours = {0}, theirs = {0};
    struct image_traits our_traits = {0}, their_traits = {0};
    struct chex_error err = {0};
    bool taken = fastpng_decode(fast, file->data, file->size, &limits, &ours, &our_traits);

    if (taken) {
        ck_assert_msg(decode_png(file->data, file->size, &limits, &theirs, &their_traits, &err) == CHEX_OK,
                      "taken, but libpng says: %s", err.text);
        ck_assert_uint_eq(ours.width, theirs.width);
        ck_assert_uint_eq(ours.height, theirs.height);
        ck_assert_mem_eq(ours.data, theirs.data, (size_t)ours.width * ours.height);
        ck_assert_int_eq(our_traits.container, their_traits.container);
        ck_assert_uint_eq(our_traits.bit_depth, their_traits.bit_depth);
        ck_assert_uint_eq(our_traits.channels, their_traits.channels);
        ck_assert_int_eq(our_traits.colour, their_traits.colour);
        ck_assert_int_eq(our_traits.transparent, their_traits.transparent);
        ck_assert_uint_eq(our_traits.warnings, their_traits.warnings);
    }
    image_release(&ours);
    image_release(&theirs);
    return taken;
}

static void
expect(const struct fixture *f, bool taken)
{
    struct fastpng *fast = fastpng_new();
    struct buffer b = {0};
    uint32_t random = 7;

    fixture_png(&b, f);
    ck_assert_int_eq(fast_agrees(fast, &b), taken);
    if (f->depth == 8 && !f->interlaced && taken) {
        /* After unfiltering, the channels of a pixel differ, so only gray stays plain. */
        make_filtered(&b, f, &random);
        ck_assert_int_eq(fast_agrees(fast, &b), f->colour == GRAY);
    }
    buffer_release(&b);
    fastpng_free(fast);
}

TEST(the_forms_of_the_data_set_are_taken)
{
    expect(&(struct fixture){.width = 100, .height = 70, .colour = GRAY, .depth = 8, .sample = smooth}, true);
    expect(&(struct fixture){.width = 1, .height = 1, .colour = GRAY, .depth = 8, .sample = smooth}, true);
    expect(&(struct fixture){.width = 65, .height = 33, .colour = RGBA, .depth = 8, .sample = smooth_opaque}, true);
}

/* PNG specification, 9.4, for pixels that are all 255. */
static uint8_t
alpha_byte(unsigned type, uint32_t x, uint32_t y)
{
    int left = x > 0 ? 255 : 0, up = y > 0 ? 255 : 0;

    switch (type) {
    case 1:
        return (uint8_t)(255 - left);
    case 2:
        return (uint8_t)(255 - up);
    case 3:
        return (uint8_t)(255 - (left + up) / 2);
    case 4: /* the predictor is 0 only without neighbours */
        return x > 0 || y > 0 ? 0 : 255;
    default:
        return 255;
    }
}

/* Gray in three equal channels, opaque, every row with some filter; `spoil` changes one byte of the last pixel. */
static void
make_filtered_rgba(struct buffer *b, uint32_t width, uint32_t height, uint32_t *random, int spoil)
{
    struct fixture f = {.width = width, .height = height, .colour = RGBA, .depth = 8};
    size_t size = (1 + 4 * (size_t)width) * height;
    uint8_t *raw = malloc(size), *p = raw;
    struct buffer packed = {0};
    uint32_t x, y;

    for (y = 0; y < height; y++) {
        unsigned type = next_random(random) % 5;

        *p++ = (uint8_t)type;
        for (x = 0; x < width; x++, p += 4) {
            memset(p, (int)(next_random(random) >> 8 & 255), 3);
            p[3] = alpha_byte(type, x, y);
        }
    }
    if (spoil >= 0)
        p[spoil - 4] ^= 1;
    b->size = 0;
    fixture_header(b, &f);
    fixture_deflate(&packed, raw, size);
    fixture_chunk(b, "IDAT", packed.data, packed.size);
    fixture_chunk(b, "IEND", "", 0);
    buffer_release(&packed);
    free(raw);
}

TEST(gray_and_opaque_rgba_is_taken_with_any_filters)
{
    struct fastpng *fast = fastpng_new();
    struct buffer b = {0};
    uint32_t random = 17;
    int i;

    for (i = 0; i < 60; i++) {
        uint32_t width = 1 + next_random(&random) % 80, height = 1 + next_random(&random) % 70;

        make_filtered_rgba(&b, width, height, &random, -1);
        ck_assert(fast_agrees(fast, &b));
        make_filtered_rgba(&b, width, height, &random, i % 4);
        ck_assert(!fast_agrees(fast, &b));
    }
    buffer_release(&b);
    fastpng_free(fast);
}

/* Makes a gray file of random size and filters; every third has a wrong byte in its image data. */
static void
make_any(struct buffer *b, uint32_t *random)
{
    struct fixture f = {.width = 1 + next_random(random) % 300,
                        .height = 1 + next_random(random) % 500,
                        .colour = GRAY,
                        .depth = 8,
                        .sample = smooth};
    size_t at;

    make_filtered(b, &f, random);
    if (next_random(random) % 3 > 0)
        return;
    at = fixture_find(b, "IDAT") + 8;
    b->data[at + next_random(random) % (b->size - at - 16)] ^= 4;
    fixture_repair(b, fixture_find(b, "IDAT"));
}

TEST(two_images_in_one_loop_give_what_each_gives_alone)
{
    struct fastpng *fast[2] = {fastpng_new(), fastpng_new()}, *alone = fastpng_new();
    struct buffer b[2] = {{0}};
    struct image image[2] = {{0}}, want = {0};
    struct image_traits traits[2], want_traits;
    uint32_t random = 23, i, k, counts[2][2] = {{0}};

    for (i = 0; i < 200; i++) {
        bool taken[2];

        make_any(&b[0], &random);
        make_any(&b[1], &random);
        fastpng_decode_two(fast, (struct image_file[]){{b[0].data, b[0].size}, {b[1].data, b[1].size}}, &limits,
                           (struct image *[]){&image[0], &image[1]}, (struct image_traits *[]){&traits[0], &traits[1]},
                           taken);
        for (k = 0; k < 2; k++) {
            ck_assert_int_eq(taken[k], fastpng_decode(alone, b[k].data, b[k].size, &limits, &want, &want_traits));
            if (!taken[k])
                continue;
            ck_assert_uint_eq(image[k].width, want.width);
            ck_assert_uint_eq(image[k].height, want.height);
            ck_assert_mem_eq(image[k].data, want.data, (size_t)want.width * want.height);
            ck_assert_int_eq(traits[k].container, want_traits.container);
            ck_assert_uint_eq(traits[k].bit_depth, want_traits.bit_depth);
            ck_assert_uint_eq(traits[k].channels, want_traits.channels);
        }
        counts[taken[0]][taken[1]]++;
    }
    for (i = 0; i < 4; i++)
        ck_assert_uint_gt(counts[i / 2][i % 2], 5);
    for (k = 0; k < 2; k++) {
        buffer_release(&b[k]);
        image_release(&image[k]);
        fastpng_free(fast[k]);
    }
    image_release(&want);
    fastpng_free(alone);
}

TEST(other_forms_are_left_to_libpng)
{
    static const uint8_t trns[] = {0, 7};

    expect(&(struct fixture){.width = 65, .height = 33, .colour = RGBA, .depth = 8, .sample = coloured}, false);
    expect(&(struct fixture){.width = 65, .height = 33, .colour = RGBA, .depth = 8, .sample = translucent}, false);
    expect(&(struct fixture){.width = 65, .height = 33, .colour = RGB, .depth = 8, .sample = smooth}, false);
    expect(&(struct fixture){.width = 65, .height = 33, .colour = GRAY, .depth = 16, .sample = smooth}, false);
    expect(&(struct fixture){.width = 65, .height = 33, .colour = GRAY, .depth = 4, .sample = smooth}, false);
    expect(&(struct fixture){.width = 65, .height = 33, .colour = GRAY_ALPHA, .depth = 8, .sample = smooth}, false);
    expect(
        &(struct fixture){.width = 65, .height = 33, .colour = GRAY, .depth = 8, .sample = smooth, .interlaced = true},
        false);
    expect(
        &(struct fixture){
            .width = 65, .height = 33, .colour = GRAY, .depth = 8, .sample = smooth, .trns = trns, .trns_size = 2},
        false);
}

/* Any header with a correct checksum, and any order of chunks. */
TEST(headers_that_are_out_of_bounds_are_not_taken)
{
    static const struct {
        unsigned at; /* byte of IHDR */
        uint8_t bytes[4];
        unsigned count;
    } bad[] = {
        {0, {0, 0, 0, 0}, 4},
        {4, {0, 0, 0, 0}, 4},
        {0, {0x10, 0, 0, 0}, 4},
        {4, {0x80, 0, 0, 0}, 4},
        {0, {0xff, 0xff, 0xff, 0xff}, 4},
        {4, {0xff, 0xff, 0xff, 0xff}, 4},
        {8, {16}, 1},
        {9, {2}, 1},
        {9, {3}, 1},
        {10, {1}, 1},
        {11, {1}, 1},
        {12, {1}, 1},
        {12, {2}, 1},
    };
    const struct decode_limits boundless = {.max_pixels = UINT64_MAX};
    struct fixture f = {.width = 40, .height = 30, .colour = GRAY, .depth = 8, .sample = smooth};
    struct fastpng *fast = fastpng_new();
    struct image_traits traits;
    struct image image = {0};
    struct buffer good = {0}, b = {0};

    fixture_png(&good, &f);
    ck_assert(fastpng_decode(fast, good.data, good.size, &boundless, &image, &traits));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        b.size = 0;
        ck_assert_int_eq(buffer_append(&b, good.data, good.size, NULL), CHEX_OK);
        memcpy(b.data + fixture_find(&b, "IHDR") + 8 + bad[i].at, bad[i].bytes, bad[i].count);
        fixture_repair(&b, fixture_find(&b, "IHDR"));
        ck_assert_msg(!fastpng_decode(fast, b.data, b.size, &boundless, &image, &traits), "header %zu", i);
    }
    memcpy(good.data + fixture_find(&good, "IHDR") + 4, "IDAT", 4); /* no header */
    fixture_repair(&good, fixture_find(&good, "IDAT"));
    ck_assert(!fastpng_decode(fast, good.data, good.size, &boundless, &image, &traits));
    image_release(&image);
    buffer_release(&good);
    buffer_release(&b);
    fastpng_free(fast);
}

TEST(chunks_in_another_place_are_not_taken)
{
    enum { NOTHING, LONG_END, SECOND_DATA, LATE_TIME, NO_DATA, LONG_HEADER, SURPLUS, FORMS };
    struct fixture f = {.width = 40, .height = 30, .colour = GRAY, .depth = 8, .sample = smooth};
    struct fastpng *fast = fastpng_new();
    struct buffer raw = {0}, packed = {0};

    fixture_raw(&raw, &f);
    fixture_deflate(&packed, raw.data, raw.size);
    for (int form = 0; form < FORMS; form++) {
        struct buffer b = {0};
        struct image_traits traits;
        struct image image = {0};

        fixture_header(&b, &f);
        if (form == LONG_HEADER) {
            b.size = 8;
            fixture_chunk(&b, "IHDR", "\0\0\0\x28\0\0\0\x1e\x08\0\0\0\0", 14);
        }
        if (form != NO_DATA)
            fixture_chunk(&b, "IDAT", packed.data, packed.size);
        if (form == LATE_TIME)
            fixture_chunk(&b, "tIME", "\x07\xe6\1\1\1\1\1", 7);
        if (form == SECOND_DATA) {
            fixture_chunk(&b, "zzzz", "", 0);
            fixture_chunk(&b, "IDAT", "", 0);
        }
        fixture_chunk(&b, "IEND", "x", form == LONG_END);
        if (form == SURPLUS)
            fixture_chunk(&b, "IEND", "", 0);
        ck_assert_msg(fastpng_decode(fast, b.data, b.size, &limits, &image, &traits) == (form == NOTHING), "form %d",
                      form);
        image_release(&image);
        buffer_release(&b);
    }
    buffer_release(&raw);
    buffer_release(&packed);
    fastpng_free(fast);
}

TEST(a_file_cut_anywhere_is_not_taken)
{
    struct fixture f = {.width = 40, .height = 40, .colour = GRAY, .depth = 8, .sample = smooth};
    struct fastpng *fast = fastpng_new();
    struct buffer b = {0};
    uint32_t random = 3;
    size_t whole, cut;

    make_filtered(&b, &f, &random);
    whole = b.size;
    ck_assert(fast_agrees(fast, &b));
    for (cut = 0; cut < whole; cut++) {
        b.size = cut;
        ck_assert_msg(!fast_agrees(fast, &b), "taken though cut at byte %zu", cut);
    }
    buffer_release(&b);
    fastpng_free(fast);
}

TEST(every_flipped_bit_is_left_to_libpng)
{
    struct fixture f = {.width = 40, .height = 40, .colour = GRAY, .depth = 8, .sample = smooth};
    struct fastpng *fast = fastpng_new();
    struct buffer b = {0};
    uint32_t random = 5;
    size_t bit;

    make_filtered(&b, &f, &random);
    for (bit = 0; bit < 8 * b.size; bit++) {
        b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert_msg(!fast_agrees(fast, &b), "taken though bit %zu is flipped", bit);
        b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    buffer_release(&b);
    fastpng_free(fast);
}

/* Damage with correct chunk checksums: only zlib's own rules and Adler-32 can detect it. */
TEST(damage_under_a_right_checksum_is_never_taken_alone)
{
    struct fixture f = {.width = 48, .height = 36, .colour = GRAY, .depth = 8, .sample = smooth};
    struct fastpng *fast = fastpng_new();
    struct buffer good = {0}, b = {0};
    uint32_t random = 11;
    int i, k;

    make_filtered(&good, &f, &random);
    for (i = 0; i < 4000; i++) {
        size_t idat = fixture_find(&good, "IDAT"), at;

        b.size = 0;
        ck_assert_int_eq(buffer_append(&b, good.data, good.size, NULL), CHEX_OK);
        for (k = 0; k <= i % 3; k++) {
            at = idat + 8 + next_random(&random) % (good.size - idat - 24);
            b.data[at] = (uint8_t)next_random(&random);
        }
        fixture_repair(&b, idat);
        fast_agrees(fast, &b);
    }
    buffer_release(&good);
    buffer_release(&b);
    fastpng_free(fast);
}
