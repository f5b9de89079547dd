/*
 * test_bf16.c - bf16 on the CPU: its definition
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "math/bf16.h"

#include <math.h>

TEST_CASE("bf16", "bf16", NULL, NULL);

/* ---- definition -------------------------------------------------------------------------------------------------- */

TEST(conversion_rounds_to_nearest_even_and_flushes_denormals)
{
    ck_assert_uint_eq(bf16_round(1.0f), 0x3f80);
    ck_assert_uint_eq(bf16_round(bits_float(0x3f808000)), 0x3f80); /* ties */
    ck_assert_uint_eq(bf16_round(bits_float(0x3f818000)), 0x3f82);
    ck_assert_uint_eq(bf16_round(bits_float(0x3f808001)), 0x3f81);
    ck_assert_uint_eq(bf16_round(bits_float(0x3f807fff)), 0x3f80);
    ck_assert_uint_eq(bf16_round(bits_float(0x7f7fffff)), 0x7f80); /* the largest float: infinity */
    ck_assert_uint_eq(bf16_round(bits_float(0xff800000)), 0xff80);
    ck_assert_uint_eq(bf16_round(bits_float(0x7f800001)), 0x7fc0); /* NaN, not infinity */
    ck_assert_uint_eq(bf16_round(bits_float(0x007fffff)), 0);      /* not 0x0080 */
    ck_assert_uint_eq(bf16_round(bits_float(0x807fffff)), 0x8000);
    ck_assert_uint_eq(bf16_round(bits_float(0x00800000)), 0x0080);
}

static uint32_t
pair_of(float first, float second)
{
    return bf16_round(first) | (uint32_t)bf16_round(second) << 16;
}

static void
check_dot(float sum, uint32_t x, uint32_t w, uint32_t wanted)
{
    ck_assert_uint_eq(float_bits(bf16_dot(sum, x, w)), wanted);
}

TEST(a_dot_adds_the_second_product_first_each_with_one_rounding)
{
    /* 1 + 2^-24 is 1; then 2^-24 + 2^-23 more is lost unless the second product comes first. */
    check_dot(1, pair_of(0x1p-23f, 0x1p-24f), pair_of(1, 1), float_bits(1 + 0x1p-23f));
    check_dot(1, pair_of(0x1p-24f, 0x1p-23f), pair_of(1, 1), float_bits(1 + 0x1p-22f));
    /* 0x1.81p0 squared has more bits than a float near 2^24 keeps: it is not rounded before the sum. */
    check_dot(-0x1p24f, pair_of(0, 0x1.02p12f), pair_of(0, 0x1p12f), float_bits(0x1p17f));
    check_dot(0, pair_of(0, 0x1p-60f), pair_of(0, 0x1p-66f), 0x00800000); /* 2^-126 stays */
    check_dot(0, pair_of(0, 0x1p-60f), pair_of(-0.0f, -0x1p-67f), 0x80000000);
    /* 2^-126 - 0.4 2^-149 is 2^-126 as a denormal, but less with 24 bits: 0.  0.2 2^-149 rounds up in both. */
    check_dot(0x1p-126f, pair_of(0, -0x1.98p-75f), pair_of(0, 0x1p-76f), 0);
    check_dot(0x1p-126f, pair_of(0, -0x1.98p-76f), pair_of(0, 0x1p-76f), 0x00800000);
    ck_assert(isnan(bf16_dot(0, pair_of(0, INFINITY), pair_of(0, 0))));
}
