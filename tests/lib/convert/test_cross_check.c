/*
 * test_cross_check.c - the images that --cross-check includes, and the differences that it finds
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/cross_check.h"
#include "image/decode.h"
#include "lib/image/png_fixture.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static unsigned
diagonal(uint32_t x, uint32_t y, int channel)
{
    (void)channel;
    return (x + y) & 255;
}

TEST_CASE("cross_check", "cross_check", NULL, NULL);

TEST(a_larger_share_includes_the_images_of_a_smaller_one)
{
    const double per_cent[] = {0, 0.1, 1, 50, 100};
    uint32_t count[5] = {0};
    char name[32];
    int i, k;

    for (i = 0; i < 112120; i++) {
        bool before = false;

        snprintf(name, sizeof(name), "%08d_%03d.png", i / 4, i % 4);
        for (k = 0; k < 5; k++) {
            bool now = cross_check_includes(name, per_cent[k]);

            ck_assert(now || !before);
            count[k] += now;
            before = now;
        }
    }
    /* Four standard deviations of a binomial distribution. */
    ck_assert_uint_eq(count[0], 0);
    ck_assert_msg(count[1] > 70 && count[1] < 155, "%u", count[1]);
    ck_assert_msg(count[2] > 987 && count[2] < 1255, "%u", count[2]);
    ck_assert_msg(count[3] > 55390 && count[3] < 56730, "%u", count[3]);
    ck_assert_uint_eq(count[4], 112120);
}

TEST(each_difference_is_reported)
{
    struct fixture f = {.width = 40, .height = 30, .colour = GRAY, .depth = 8, .sample = diagonal};
    struct decode_limits limits = {.max_pixels = 1 << 20, .min_side = 1};
    struct image image = {0}, again = {0};
    struct image_traits traits;
    struct decoder d = {0};
    struct buffer b = {0};
    struct chex_error err;
    atomic_bool stop = true;

    fixture_png(&b, &f);
    ck_assert_int_eq(decoder_init(&d, &err), CHEX_OK);
    ck_assert_int_eq(decode_image(&d, b.data, b.size, &limits, &image, &traits, &err), CHEX_OK);
    ck_assert(traits.fast);
    ck_assert_int_eq(cross_check(b.data, b.size, &limits, &image, &again, &err), CHEX_OK);

    image.data[29 * image.stride + 39] ^= 1;
    ck_assert_int_eq(cross_check(b.data, b.size, &limits, &image, &again, &err), CHEX_ERR_BUG);
    ck_assert_str_eq(err.text, "libpng decodes other pixels: 68, not 69, in row 29, column 39");
    image.data[29 * image.stride + 39] ^= 1;

    image.height--;
    ck_assert_int_eq(cross_check(b.data, b.size, &limits, &image, &again, &err), CHEX_ERR_BUG);
    ck_assert_str_eq(err.text, "libpng decodes 40x30 pixels, not 40x29");
    image.height++;

    ck_assert_int_eq(cross_check(b.data, b.size - 20, &limits, &image, &again, &err), CHEX_ERR_BUG);
    ck_assert_ptr_nonnull(strstr(err.text, "libpng refuses an image that the fast decoder accepts: "));

    limits.stop = &stop;
    ck_assert_int_eq(cross_check(b.data, b.size, &limits, &image, &again, &err), CHEX_ERR_STOPPED);
    buffer_release(&b);
    image_release(&image);
    image_release(&again);
    decoder_release(&d);
}
