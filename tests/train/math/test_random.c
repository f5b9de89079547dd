/*
 * test_random.c - random numbers of the trainer
 *
 * Check values of Philox4x32-10: kat_vectors of Random123 1.09 (Salmon et al., SC 2011).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "math/random.h"

#include <math.h>
#include <string.h>

static void
expect_block(const uint32_t counter[4], const uint32_t key[2], const uint32_t expected[4])
{
    uint32_t out[4];

    random_philox(counter, key, out);
    ck_assert_mem_eq(out, expected, sizeof(out));
}

TEST_CASE("random", "philox", NULL, NULL);

TEST(philox_matches_the_published_vectors)
{
    const uint32_t zero[4] = {0}, ones[4] = {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff};
    const uint32_t pi[4] = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, pi_key[2] = {0xa4093822, 0x299f31d0};

    expect_block(zero, zero, (const uint32_t[4]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    expect_block(ones, ones, (const uint32_t[4]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    expect_block(pi, pi_key, (const uint32_t[4]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST(streams_of_other_purposes_seeds_and_places_differ)
{
    const struct random_stream base = {.seed = 7, .purpose = RANDOM_ORDER, .a = 1, .b = 2};
    struct random_stream other[4] = {base, base, base, base};

    other[0].seed = (uint64_t)7 << 32;
    other[1].purpose = RANDOM_AUGMENT;
    other[2].a = 3;
    other[3].b = 4;
    for (int i = 0; i < 4; i++)
        ck_assert(random_bits(&base, 0) != random_bits(&other[i], 0));
    ck_assert(random_bits(&base, 0) != random_bits(&base, 1));
    ck_assert(random_bits(&base, 5) == random_bits(&base, 5));
}

TEST(numbers_below_n_are_uniform)
{
    const struct random_stream s = {.seed = 1, .purpose = RANDOM_BOOTSTRAP};
    unsigned count[7] = {0};

    for (uint32_t i = 0; i < 70000; i++) {
        uint64_t n = random_below(&s, i, 7);

        ck_assert(n < 7);
        count[n]++;
    }
    /* Five deviations of a binomial count with n = 70,000 and p = 1/7 are 463. */
    for (int i = 0; i < 7; i++)
        ck_assert(count[i] > 10000 - 463 && count[i] < 10000 + 463);
}

TEST(normal_numbers_have_mean_0_and_deviation_1)
{
    const struct random_stream s = {.seed = 3, .purpose = RANDOM_INIT};
    double sum = 0, squares = 0;
    unsigned beyond = 0;

    for (uint32_t i = 0; i < 100000; i++) {
        double x = random_normal(&s, i);

        sum += x;
        squares += x * x;
        beyond += fabs(x) > 1.959964;
    }
    ck_assert_double_eq_tol(sum / 100000, 0, 0.016);     /* 5 / sqrt(100,000) */
    ck_assert_double_eq_tol(squares / 100000, 1, 0.023); /* 5 * sqrt(2 / 100,000) */
    ck_assert_uint_gt(beyond, 4655);                     /* 5 % of 100,000, five deviations of 69 */
    ck_assert_uint_lt(beyond, 5345);
}
