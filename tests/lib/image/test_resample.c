/*
 * test_resample.c - compares resizing with values from Pillow, with plain references, and with itself
 *
 * More sizes, and real images compared with Pillow byte by byte: png_cases.py.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/ascii.h"
#include "image/resample.h"
#include "kernels/convolve_private.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 0xa5

static const enum resample_method methods[] = {RESAMPLE_BILINEAR, RESAMPLE_AREA, RESAMPLE_LANCZOS};

static const uint32_t sizes[][4] = {
    {1, 1, 1, 1},    {1, 1, 5, 3},    {2, 1, 1, 1},     {64, 64, 16, 16}, {64, 64, 64, 16}, {64, 64, 16, 64},
    {37, 23, 11, 7}, {11, 7, 37, 23}, {37, 23, 7, 40},  {100, 3, 33, 2},  {3, 100, 2, 33},  {16, 16, 15, 17},
    {500, 1, 1, 1},  {1, 700, 1, 2},  {17, 33, 34, 66}, {48, 5, 3, 5},    {5, 48, 5, 3},    {40, 40, 1, 1},
};

/* Makes rows with a larger stride, with guard bytes between them. */
static void
make(struct image *image, uint32_t width, uint32_t height, uint8_t (*sample)(uint32_t, uint32_t))
{
    size_t stride = width + 3;

    *image = (struct image){.width = width, .height = height, .stride = stride};
    ck_assert_int_eq(buffer_reserve(&image->pixels, stride * height, NULL), CHEX_OK);
    image->data = image->pixels.data;
    memset(image->data, GUARD, stride * height);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            image->data[y * stride + x] = sample(x, y);
}

/* Requires that exactly width * height bytes are written; free() them. */
static uint8_t *
run(struct resampler *r, enum resample_method method, const struct image *in, uint32_t width, uint32_t height)
{
    size_t size = (size_t)width * height;
    uint8_t *out = malloc(size + 64);

    ck_assert_ptr_nonnull(out);
    memset(out, GUARD, size + 64);
    ck_assert_int_eq(resampler_run(r, method, in, width, height, out + 32, NULL), CHEX_OK);
    for (int i = 0; i < 32; i++)
        ck_assert(out[i] == GUARD && out[size + 32 + (size_t)i] == GUARD);
    memmove(out, out + 32, size);
    return out;
}

static uint8_t
texture(uint32_t x, uint32_t y)
{
    return (uint8_t)(x * 37 + y * 91 + x * y * 13 + 77);
}

static uint8_t
noise(uint32_t x, uint32_t y)
{
    uint32_t v = (x + 1) * 2654435761u ^ (y + 1) * 2246822519u;

    return (uint8_t)((v ^ v >> 15) * 2246822519u >> 24);
}

/* ---- Pillow -------------------------------------------------------------------------------------------------- */

/*
 * Pillow 9.4.0: y, x = numpy.mgrid[0:h, 0:w]; a = (x * 37 + y * 91 + x * y * 13 + 77) % 256;
 * Image.fromarray(a.astype("uint8")).resize((w2, h2), Image.BILINEAR or Image.LANCZOS)
 */
static const struct {
    enum resample_method method;
    uint32_t width, height, new_width, new_height;
    uint8_t out[35];
} pillow[] = {
    {RESAMPLE_BILINEAR, 9, 7, 4, 3, {118, 132, 120, 102, 116, 141, 132, 136, 121, 134, 105, 110}},
    {RESAMPLE_LANCZOS, 9, 7, 4, 3, {114, 139, 123, 96, 108, 146, 131, 146, 126, 135, 102, 105}},
    {RESAMPLE_BILINEAR, 4, 3, 7, 5, {77,  90,  111, 133, 154, 175, 188, 113, 128, 152, 126, 99,
                                     123, 138, 168, 186, 214, 115, 16,  44,  62,  69,  90,  123,
                                     105, 86,  119, 140, 3,   26,  62,  98,  133, 169, 192}},
    {RESAMPLE_LANCZOS, 4, 3, 7, 5, {60,  68,  93,  134, 174, 200, 208, 117, 142, 165, 129, 92,
                                    115, 140, 155, 199, 224, 115, 6,   31,  75,  59,  88,  125,
                                    102, 77,  115, 145, 0,   0,   39,  97,  154, 199, 214}},
    {RESAMPLE_BILINEAR,
     9,
     7,
     9,
     2,
     {96, 136, 116, 132, 171, 110, 126, 88, 146, 92, 121, 162, 137, 113, 112, 111, 140, 103}},
    {RESAMPLE_LANCZOS,
     9,
     7,
     9,
     2,
     {93, 130, 120, 131, 179, 107, 125, 86, 156, 95, 122, 163, 138, 105, 120, 111, 142, 103}},
    {RESAMPLE_BILINEAR, 9, 7, 3, 7, {123, 140, 71,  135, 112, 90,  82,  170, 172, 157, 142,
                                     127, 104, 114, 114, 116, 115, 133, 159, 116, 87}},
    {RESAMPLE_LANCZOS, 9, 7, 3, 7, {132, 138, 62,  124, 112, 100, 83,  168, 171, 158, 142,
                                    126, 106, 116, 116, 120, 117, 126, 155, 126, 76}},
    {RESAMPLE_BILINEAR, 1, 1, 3, 2, {77, 77, 77, 77, 77, 77}},
    {RESAMPLE_LANCZOS, 1, 1, 3, 2, {77, 77, 77, 77, 77, 77}},
    {RESAMPLE_BILINEAR, 40, 2, 3, 1, {116, 129, 131}},
    {RESAMPLE_LANCZOS, 40, 2, 3, 1, {115, 128, 132}},
};

TEST_CASE("resample", "resample", NULL, NULL);

TEST(bilinear_and_lanczos_equal_pillow)
{
    for (size_t i = 0; i < sizeof(pillow) / sizeof(pillow[0]); i++) {
        struct resampler r = {0};
        struct image in;
        uint8_t *out;

        make(&in, pillow[i].width, pillow[i].height, texture);
        out = run(&r, pillow[i].method, &in, pillow[i].new_width, pillow[i].new_height);
        ck_assert_mem_eq(out, pillow[i].out, pillow[i].new_width * pillow[i].new_height);
        free(out);
        image_release(&in);
        resampler_release(&r);
    }
}

/* ---- plain references ---------------------------------------------------------------------------------------- */

/* Returns how much of input sample i the output sample o covers, in input samples. */
static double
covered(uint32_t i, uint32_t o, uint32_t in, uint32_t out)
{
    double scale = (double)in / out;
    double from = fmax(i, o * scale), to = fmin(i + 1.0, (o + 1) * scale);

    return to > from ? to - from : 0.0;
}

static double
area_mean(const struct image *in, uint32_t width, uint32_t height, uint32_t ox, uint32_t oy)
{
    double sum = 0.0;

    for (uint32_t y = 0; y < in->height; y++)
        for (uint32_t x = 0; x < in->width; x++)
            sum += covered(x, ox, in->width, width) * covered(y, oy, in->height, height) * in->data[y * in->stride + x];
    return sum * width * height / ((double)in->width * in->height);
}

/* The double is accurate to 1e-6; if the mean is that close to a half, both roundings are accepted. */
TEST(area_is_the_mean_of_the_covered_area)
{
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint32_t width = sizes[i][2], height = sizes[i][3];
        struct resampler r = {0};
        struct image in;
        uint8_t *out;

        make(&in, sizes[i][0], sizes[i][1], noise);
        out = run(&r, RESAMPLE_AREA, &in, width, height);
        for (uint32_t y = 0; y < height; y++) {
            for (uint32_t x = 0; x < width; x++) {
                double mean = area_mean(&in, width, height, x, y);

                ck_assert_double_le(fabs(out[y * width + x] - mean), 0.5 + 1e-6);
            }
        }
        free(out);
        image_release(&in);
        resampler_release(&r);
    }
}

static uint8_t
checkerboard(uint32_t x, uint32_t y)
{
    return (x + y) % 2 ? 255 : 0;
}

/* The mean is 127.5 exactly. */
TEST(area_rounds_a_half_up)
{
    struct resampler r = {0};
    struct image in;
    uint8_t *out;

    make(&in, 64, 32, checkerboard);
    out = run(&r, RESAMPLE_AREA, &in, 8, 2);
    for (int i = 0; i < 16; i++)
        ck_assert_uint_eq(out[i], 128);
    free(out);
    image_release(&in);
    resampler_release(&r);
}

static uint8_t
white(uint32_t x, uint32_t y)
{
    (void)x, (void)y;
    return 255;
}

/* 70,000 times 255: the sum of a row exceeds 24 bits, and that of the image 32. */
TEST(long_lines_do_not_overflow)
{
    for (int m = 0; m < 3; m++) {
        struct resampler r = {0};
        struct image in;
        uint8_t *out;

        make(&in, 70000, methods[m] == RESAMPLE_AREA ? 260 : 3, white);
        out = run(&r, methods[m], &in, 7, 2);
        for (int i = 0; i < 14; i++)
            ck_assert_uint_eq(out[i], 255);
        free(out);
        image_release(&in);
        resampler_release(&r);
    }
}

/* ---- properties ---------------------------------------------------------------------------------------------- */

static uint8_t
zero(uint32_t x, uint32_t y)
{
    (void)x, (void)y;
    return 0;
}

static uint8_t
flat(uint32_t x, uint32_t y)
{
    (void)x, (void)y;
    return 101;
}

static void
check_flat(enum resample_method method, const uint32_t size[4], uint8_t (*sample)(uint32_t, uint32_t))
{
    struct resampler r = {0};
    struct image in;
    uint8_t *out;

    make(&in, size[0], size[1], sample);
    out = run(&r, method, &in, size[2], size[3]);
    for (uint32_t i = 0; i < size[2] * size[3]; i++)
        ck_assert_uint_eq(out[i], sample(0, 0));
    free(out);
    image_release(&in);
    resampler_release(&r);
}

TEST(a_flat_image_stays_flat)
{
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int m = 0; m < 3; m++) {
            check_flat(methods[m], sizes[i], zero);
            check_flat(methods[m], sizes[i], flat);
            check_flat(methods[m], sizes[i], white);
        }
    }
}

static uint8_t
transposed_noise(uint32_t x, uint32_t y)
{
    return noise(y, x);
}

/* Only one direction each: rows and columns use different code, with blocks and remainders. */
TEST(rows_and_columns_are_treated_alike)
{
    static const uint32_t lengths[][2] = {{64, 16}, {37, 11}, {11, 37}, {5, 1}, {1, 5}, {200, 3}, {33, 34}};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        for (uint32_t across = 1; across < 40; across += 6) {
            uint32_t in_length = lengths[i][0], out_length = lengths[i][1];

            for (int m = 0; m < 3; m++) {
                struct resampler r = {0};
                struct image in, turned;
                uint8_t *columns, *rows;

                make(&in, across, in_length, noise);
                make(&turned, in_length, across, transposed_noise);
                columns = run(&r, methods[m], &in, across, out_length);
                rows = run(&r, methods[m], &turned, out_length, across);
                for (uint32_t y = 0; y < out_length; y++)
                    for (uint32_t x = 0; x < across; x++)
                        ck_assert_uint_eq(columns[y * across + x], rows[x * out_length + y]);
                free(columns);
                free(rows);
                image_release(&in);
                image_release(&turned);
                resampler_release(&r);
            }
        }
    }
}

/* Compares every implementation of this CPU with the last one, plain C. */
static void
compare_kinds(enum resample_method method, uint32_t width, uint32_t height, uint32_t new_width, uint32_t new_height,
              uint8_t (*sample)(uint32_t, uint32_t))
{
    const struct convolve_kind *kind = convolve_kinds, *plain = convolve_kinds;
    struct resampler r = {0};
    struct image in;
    uint8_t *want;

    while (plain[1].name)
        plain++;
    make(&in, width, height, sample);
    r.kind = plain;
    want = run(&r, method, &in, new_width, new_height);
    for (; kind != plain; kind++) {
        uint8_t *got;

        if (!kind->supported())
            continue;
        r.kind = kind;
        got = run(&r, method, &in, new_width, new_height);
        ck_assert_msg(memcmp(got, want, (size_t)new_width * new_height) == 0, "%s differs, %ux%u to %ux%u", kind->name,
                      width, height, new_width, new_height);
        free(got);
    }
    free(want);
    image_release(&in);
    resampler_release(&r);
}

TEST(every_implementation_equals_plain_c)
{
    static const uint32_t lengths[][2] = {{1024, 256}, {512, 128}, {128, 32},  {64, 32}, {64, 8},  {72, 18}, {4, 1},
                                          {8, 2},      {12, 3},    {640, 160}, {90, 13}, {31, 62}, {50, 50}};
    const size_t count = sizeof(lengths) / sizeof(lengths[0]);

    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            for (int m = 0; m < 3; m++)
                compare_kinds(methods[m], lengths[i][0], lengths[j][0] / 4 + 1, lengths[i][1], lengths[j][1] / 4 + 1,
                              noise);
    /* Shrinks by 4 to every width: blocks, overlapping ends, widths below a block. */
    for (uint32_t width = 1; width < 200; width++)
        compare_kinds(RESAMPLE_BILINEAR, 4 * width, 16, width, 4, noise);
    /* From 1024 to odd widths, also larger ones, and rows that do not fill a strip. */
    for (uint32_t width = 1; width < 1100; width += 37)
        for (int m = 0; m < 3; m += 2)
            compare_kinds(methods[m], 1024, 1 + width % 70, width, 1 + width % 41, noise);
    compare_kinds(RESAMPLE_BILINEAR, 1024, 1024, 224, 320, noise);
    compare_kinds(RESAMPLE_LANCZOS, 1024, 1024, 320, 224, noise);
    compare_kinds(RESAMPLE_BILINEAR, 1024, 1024, 256, 256, noise);
    compare_kinds(RESAMPLE_BILINEAR, 1024, 1024, 256, 256, white);
}

static uint32_t narrowest; /* the least number of columns in a call of note_columns() */

static void
note_columns(const uint8_t *from, size_t stride, const struct small_factors *f, uint32_t width, uint8_t *out)
{
    narrowest = width < narrowest ? width : narrowest;
    convolve_small_columns_c(from, stride, f, width, out);
}

/* A kernel computes columns that do not fill a register one by one, which is many times slower. */
TEST(the_row_pass_hands_whole_registers_to_the_kernels)
{
    static const struct convolve_kind kind = {"test",
                                              NULL,
                                              note_columns,
                                              convolve_small_rows_c,
                                              convolve_wide_columns_c,
                                              convolve_turn_c,
                                              convolve_turn_back_c};
    static const uint32_t widths[] = {128, 512};

    for (int i = 0; i < 2; i++) {
        struct resampler r = {.kind = &kind};
        struct image in;

        make(&in, 1024, 64, noise);
        narrowest = UINT32_MAX;
        free(run(&r, RESAMPLE_BILINEAR, &in, widths[i], 64)); /* the same height: only rows */
        ck_assert_uint_eq(narrowest, CONVOLVE_STRIP);
        image_release(&in);
        resampler_release(&r);
    }
}

/* The sums by definition, in integers: Pillow's factors of a reduction by 4 inside an image, over 32. */
TEST(a_reduction_by_four_is_the_sum_of_its_definition)
{
    static const unsigned factor[8] = {1, 3, 5, 7, 7, 5, 3, 1};
    const uint32_t side = 300;
    struct resampler r = {0};
    struct image in;
    uint8_t *out;

    make(&in, 4 * side, 4, noise);
    out = run(&r, RESAMPLE_BILINEAR, &in, side, 4); /* the same height: only rows */
    for (uint32_t y = 0; y < 4; y++) {
        for (uint32_t x = 1; x < side - 1; x++) {
            unsigned sum = 16;

            for (uint32_t t = 0; t < 8; t++)
                sum += factor[t] * noise(4 * x - 2 + t, y);
            ck_assert_uint_eq(out[y * side + x], sum / 32);
        }
    }
    free(out);
    image_release(&in);
    resampler_release(&r);
}

TEST(tables_are_kept_and_renewed_as_sizes_and_methods_change)
{
    struct resampler kept = {0};

    for (size_t round = 0; round < 2 * sizeof(sizes) / sizeof(sizes[0]); round++) {
        const uint32_t *size = sizes[round / 2];

        for (int m = 0; m < 3; m++) {
            struct resampler fresh = {0};
            struct image in;
            uint8_t *a, *b;

            make(&in, size[0], size[1], noise);
            a = run(&kept, methods[m], &in, size[2], size[3]);
            b = run(&fresh, methods[m], &in, size[2], size[3]);
            ck_assert_mem_eq(a, b, (size_t)size[2] * size[3]);
            free(a);
            free(b);
            image_release(&in);
            resampler_release(&fresh);
        }
    }
    resampler_release(&kept);
}

TEST(the_same_size_is_a_copy_with_every_method)
{
    for (int m = 0; m < 4; m++) {
        enum resample_method method = m < 3 ? methods[m] : RESAMPLE_NONE;
        struct resampler r = {0};
        struct image in;
        uint8_t *out;

        make(&in, 19, 6, noise);
        out = run(&r, method, &in, 19, 6);
        for (uint32_t y = 0; y < 6; y++)
            ck_assert_mem_eq(out + y * 19, in.data + y * in.stride, 19);
        free(out);
        image_release(&in);
        resampler_release(&r);
    }
}

TEST(none_refuses_another_size)
{
    struct resampler r = {0};
    struct chex_error err;
    struct image in;
    uint8_t out[4];

    make(&in, 1024, 3, flat);
    ck_assert_int_eq(resampler_run(&r, RESAMPLE_NONE, &in, 2, 2, out, &err), CHEX_ERR_LIMIT);
    ck_assert_str_eq(err.text, "1024x3 is not 2x2");
    ck_assert_int_eq(resampler_run(&r, RESAMPLE_NONE, &in, 2, 2, out, NULL), CHEX_ERR_LIMIT);
    image_release(&in);
    resampler_release(&r);
}

TEST(methods_have_names)
{
    static const char *const names[] = {"bilinear", "area", "lanczos", "none"};

    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(name_index(resample_names, names[i]), i);
        ck_assert_str_eq(resample_names[i], names[i]);
    }
    ck_assert_int_lt(name_index(resample_names, "bicubic"), 0);
    ck_assert_int_lt(name_index(resample_names, ""), 0);
    ck_assert_int_lt(name_index(resample_names, "Bilinear"), 0);
}
