/*
 * test_crop.c - crop, flip, rotation and brightness of an image
 *
 * check_crop.py compares with torchvision.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "backend/crop.h"

#include <math.h>
#include <string.h>

#define SIDE_MAX 9

/* Pixels with levels that differ in every row and column. */
static void
draw(uint8_t *pixels, unsigned side)
{
    for (unsigned i = 0; i < side * side; i++)
        pixels[i] = (uint8_t)(37 * i + i * i / 5 + 11);
}

static void
read_levels(const struct crop *crop, const uint8_t *pixels, unsigned source, unsigned side, uint8_t *out)
{
    for (unsigned y = 0; y < side; y++) {
        struct crop_row row;

        crop_row_start(&row, crop, pixels, source, side, y);
        for (unsigned x = 0; x < side; x++)
            *out++ = crop_level(&row, x);
    }
}

TEST_CASE("crop", "levels", NULL, NULL);

TEST(quarter_turns_move_pixels_counterclockwise)
{
    for (unsigned side = 1; side <= SIDE_MAX; side++)
        for (int turns = -4; turns <= 4; turns++) {
            uint8_t pixels[SIDE_MAX * SIDE_MAX], got[SIDE_MAX * SIDE_MAX];
            struct crop crop = {.x = 0};

            draw(pixels, side);
            crop_rotate(&crop, 90.0 * turns);
            read_levels(&crop, pixels, side, side, got);
            for (unsigned y = 0; y < side; y++)
                for (unsigned x = 0; x < side; x++) {
                    unsigned u = x, v = y;

                    /* The source of a pixel after one turn to the left: the column becomes the row from above. */
                    for (int k = 0; k < (turns + 4) % 4; k++) {
                        unsigned left = u;

                        u = side - 1 - v;
                        v = left;
                    }
                    ck_assert_uint_eq(got[y * side + x], pixels[v * side + u]);
                }
        }
}

/* Angles for which the four neighbours of many pixels are partly outside. */
TEST(a_rotation_interpolates_between_four_neighbours_and_zeros_outside)
{
    for (int angle = -170; angle <= 170; angle += 17) {
        uint8_t pixels[SIDE_MAX * SIDE_MAX], got[SIDE_MAX * SIDE_MAX];
        double sine = sin(angle * 3.14159265358979323846 / 180), cosine = cos(angle * 3.14159265358979323846 / 180);
        struct crop crop = {.x = 0};

        draw(pixels, SIDE_MAX);
        crop_rotate(&crop, angle);
        read_levels(&crop, pixels, SIDE_MAX, SIDE_MAX, got);
        for (int i = 0; i < SIDE_MAX * SIDE_MAX; i++) {
            double x = i % SIDE_MAX - 4.0, y = i / SIDE_MAX - 4.0, u = x * cosine - y * sine + 4;
            double v = x * sine + y * cosine + 4, wanted = 0;

            for (int k = 0; k < SIDE_MAX * SIDE_MAX; k++) {
                double far_x = fabs(u - k % SIDE_MAX), far_y = fabs(v - k / SIDE_MAX);

                if (far_x < 1 && far_y < 1)
                    wanted += (1 - far_x) * (1 - far_y) * pixels[k];
            }
            /* Half a level of rounding, and 255 levels times the rounding of the position. */
            ck_assert_double_le(fabs(wanted - got[i]), 0.5 + 2 * 255.0 / (2 << CROP_FRACTION));
        }
    }
}

TEST(crop_and_flip_come_after_the_rotation)
{
    uint8_t pixels[SIDE_MAX * SIDE_MAX], all[SIDE_MAX * SIDE_MAX], part[SIDE_MAX * SIDE_MAX];
    struct crop whole = {.x = 0}, crop;

    draw(pixels, SIDE_MAX);
    crop_rotate(&whole, 33);
    read_levels(&whole, pixels, SIDE_MAX, SIDE_MAX, all);
    crop = whole;
    crop.x = 3;
    crop.y = 1;
    for (int flip = 0; flip <= 1; flip++) {
        crop.flip = flip;
        read_levels(&crop, pixels, SIDE_MAX, 5, part);
        for (unsigned y = 0; y < 5; y++)
            for (unsigned x = 0; x < 5; x++)
                ck_assert_uint_eq(part[y * 5 + x], all[(y + 1) * SIDE_MAX + 3 + (flip ? 4 - x : x)]);
    }
}

TEST(brightness_multiplies_rounds_and_stops_at_255)
{
    for (int32_t gain = -CROP_GAIN; gain <= CROP_GAIN; gain += CROP_GAIN / 16)
        for (unsigned level = 0; level < 256; level++) {
            uint8_t pixel = (uint8_t)level, got;
            const struct crop crop = {.gain = gain};
            double wanted = floor(level * (1 + (double)gain / CROP_GAIN) + 0.5);

            read_levels(&crop, &pixel, 1, 1, &got);
            ck_assert_uint_eq(got, (unsigned)fmin(wanted, 255));
        }
}

TEST(positions_in_the_largest_images_are_exact)
{
    static const uint8_t pixels[2 * 65535] = {200};
    struct crop crop = {.x = 65534, .y = 65534};
    struct crop_row row;

    /* Half a turn: the last pixel comes from the first one. */
    crop_rotate(&crop, 180);
    crop_row_start(&row, &crop, pixels, 65535, 1, 0);
    ck_assert_int_eq(row.u, CROP_OFFSET);
    ck_assert_int_eq(row.v, CROP_OFFSET);
    ck_assert_uint_eq(crop_level(&row, 0), 200);
}
