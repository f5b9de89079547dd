/*
 * test_boxes.c - maps with values that are not finite; check_boxes.py compares the measures with other software
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "maps/boxes.h"

#include <math.h>

#define HEIGHT 3
#define WIDTH  4

static const struct map_box given = {1, 1, 3, 3};

/* Checks a map whose finite values are 0, but for 10 in column 2 of row 1. */
static void
check_one_hot(const float *map)
{
    struct map_regions r = {.count = 0};
    double value[BOX_MEASURES], x = 0, y = 0;
    struct chex_error err;

    ck_assert_int_eq(box_measure_map(&given, map, HEIGHT, WIDTH, &r, value, &err), CHEX_OK);
    ck_assert_uint_eq(r.count, 2); /* one of each cut */
    for (size_t i = 0; i < r.count; i++)
        ck_assert(r.box[i].left == 2 && r.box[i].top == 1 && r.box[i].right == 3 && r.box[i].bottom == 2);
    ck_assert(map_hottest(map, HEIGHT, WIDTH, &x, &y));
    ck_assert(x == 2.5 && y == 1.5);
    ck_assert_double_eq(value[BOX_POINT], 1);
    ck_assert_double_eq(value[BOX_MASS], 1);
    ck_assert_double_eq(value[BOX_IOU + 1], 1); /* 1 of 4 pixels: above 0.2, not above 0.3 */
    ck_assert_double_eq(value[BOX_IOU + 2], 0);
    map_regions_release(&r);
}

TEST_CASE("boxes", "boxes", NULL, NULL);

TEST(values_that_are_not_finite_are_never_hot)
{
    static const float first[HEIGHT * WIDTH] = {NAN, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0},
                                      inside[HEIGHT * WIDTH] = {0, 0, 0, 0, 0, NAN, 10, INFINITY, 0, 0, -INFINITY, 0},
                                      all[HEIGHT * WIDTH] = {INFINITY, 0, 0, NAN, 0, 0, 10, 0, 0, -INFINITY, 0, NAN},
                                      finite[HEIGHT * WIDTH] = {0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0};

    check_one_hot(finite);
    check_one_hot(first);
    check_one_hot(inside);
    check_one_hot(all);
}

TEST(a_map_without_two_different_finite_values_points_nowhere)
{
    static const float none[HEIGHT * WIDTH] = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN},
                                     one[HEIGHT * WIDTH] = {NAN, NAN, INFINITY, NAN, NAN,       3,
                                                            3,   NAN, NAN,      NAN, -INFINITY, NAN};
    struct map_regions r = {.count = 0};
    struct chex_error err;
    double x, y;

    ck_assert_int_eq(map_regions_find(&r, none, HEIGHT, WIDTH, &err), CHEX_OK);
    ck_assert_uint_eq(r.count, 0);
    ck_assert_int_eq(map_regions_find(&r, one, HEIGHT, WIDTH, &err), CHEX_OK);
    ck_assert_uint_eq(r.count, 0);
    ck_assert(!map_hottest(none, HEIGHT, WIDTH, &x, &y));
    ck_assert(!map_hottest(one, HEIGHT, WIDTH, &x, &y));
    map_regions_release(&r);
}
