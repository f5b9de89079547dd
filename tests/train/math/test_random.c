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

/* The formula of random.c with the functions of the C library. */
static double
beta_of(const struct random_stream *s, uint32_t i, double alpha)
{
    const uint32_t counter[4] = {i, s->a, s->b, (uint32_t)s->purpose}, key[2] = {(uint32_t)s->seed, 0};
    uint32_t v[4];
    double w, t;

    random_philox(counter, key, v);
    w = pow((double)(((uint64_t)v[1] << 32 | v[0]) >> 11) * 0x1p-53 + 0x1p-53, 1 / alpha);
    t = sqrt((1 - w) / w) * sin(3.14159265358979323846 * (((double)v[3] * 0x1p-32 + (double)v[2] * 0x1p-64) - 0.5));
    return w > 0 ? 0.5 + t / (2 * sqrt(1 + t * t)) : t < 0 ? 0 : 1;
}

/* Distribution functions of Beta(a, a) in closed form. */
static double
share_below(double alpha, double x)
{
    if (alpha == 0.5)
        return 2 / 3.14159265358979323846 * asin(sqrt(x));
    return alpha == 1 ? x : x * x * (3 - 2 * x); /* 2 */
}

TEST(beta_numbers_have_their_distribution)
{
    static const double alphas[] = {0.5, 1, 2};
    const struct random_stream s = {.seed = 8, .purpose = RANDOM_MIXUP};
    enum { NUMBERS = 40000, PARTS = 8 };

    for (int k = 0; k < 3; k++) {
        unsigned below[PARTS] = {0};

        for (uint32_t i = 0; i < NUMBERS; i++) {
            double x = random_beta(&s, i, alphas[k]);

            ck_assert(x >= 0 && x <= 1);
            for (int part = 1; part < PARTS; part++)
                below[part] += x < (double)part / PARTS;
        }
        for (int part = 1; part < PARTS; part++) { /* five deviations of a binomial count */
            double p = share_below(alphas[k], (double)part / PARTS);

            ck_assert_double_le(fabs(below[part] - NUMBERS * p), 5 * sqrt(NUMBERS * p * (1 - p)));
        }
    }
}

TEST(beta_numbers_equal_the_formula_for_any_alpha)
{
    static const double alphas[] = {1e-5, 0.01, 0.1, 0.4, 1, 3, 100};
    const struct random_stream s = {.seed = 5, .purpose = RANDOM_MIXUP, .a = 2, .b = 1};

    for (int k = 0; k < 7; k++)
        for (uint32_t i = 0; i < 5000; i++)
            ck_assert_double_eq_tol(random_beta(&s, i, alphas[k]), beta_of(&s, i, alphas[k]), 1e-10);
}

/* Bits that every platform must have, because runs are repeated by them. */
TEST(beta_numbers_have_the_same_bits_everywhere)
{
    const struct random_stream s = {.seed = 1, .purpose = RANDOM_MIXUP};

    ck_assert_double_eq(random_beta(&s, 0, 0.4), 0x1.684e3c322d502p-1);
    ck_assert_double_eq(random_beta(&s, 1, 0.4), 0x1.1c54658ac735dp-1);
    ck_assert_double_eq(random_beta(&s, 2, 1), 0x1.1e74611c7c5a6p-1);
}
