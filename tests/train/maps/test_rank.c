/*
 * test_rank.c - the rank correlation; the expected numbers are computed by hand from the ranks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "maps/rank.h"

#include <math.h>

static double
rank_of(const float *a, const float *b, size_t count)
{
    struct chex_error err;
    double out;

    ck_assert_int_eq(rank_correlation(a, b, count, &out, &err), CHEX_OK);
    return out;
}

TEST_CASE("rank", "rank", NULL, NULL);

TEST(equal_numbers_share_the_mean_of_their_ranks)
{
    static const float up[] = {1, 2, 3, 4, 5}, down[] = {9, 7, 0, -1, -1e30f}, tied[] = {5, 6, 7, 8, 7},
                       more[] = {2, 2, 1, 2, 0.5f}, signs[] = {-0.0f, 0, 1, 2, 2};

    ck_assert_double_eq_tol(rank_of(up, down, 5), -1, 1e-15);
    ck_assert_double_eq_tol(rank_of(up, tied, 5), 8 / sqrt(10 * 9.5), 1e-15);     /* 1 2 3.5 5 3.5 */
    ck_assert_double_eq_tol(rank_of(more, tied, 5), -2.5 / sqrt(8 * 9.5), 1e-15); /* 4 4 2 4 1 and 1 2 3.5 5 3.5 */
    ck_assert_double_eq_tol(rank_of(signs, up, 5), 9 / sqrt(10 * 9), 1e-15);      /* -0 and 0 are equal */
}

TEST(there_is_no_rank_correlation_of_equal_or_infinite_numbers)
{
    static const float up[] = {1, 2, 3}, same[] = {4, 4, 4}, endless[] = {1, INFINITY, 2}, none[] = {1, NAN, 2};

    ck_assert(isnan(rank_of(up, same, 3)));
    ck_assert(isnan(rank_of(same, up, 3)));
    ck_assert(isnan(rank_of(up, endless, 3)));
    ck_assert(isnan(rank_of(none, up, 3)));
    ck_assert(isnan(rank_of(up, up, 1)));
    ck_assert(isnan(rank_of(up, up, 0)));
}
