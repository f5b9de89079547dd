/*
 * test_progress.c - progress, rate and remaining time (progress.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/clock.h"
#include "base/number_format.h"
#include "base/progress.h"
#include "unit.h"

TEST_CASE("plan", "progress", NULL, NULL);

TEST(numbers_are_written_as_people_read_them)
{
    static const struct {
        uint64_t n;
        const char *count, *bytes;
    } numbers[] = {
        {0, "0", "0 bytes"},
        {999, "999", "999 bytes"},
        {1000, "1,000", "1.0 kB"},
        {112120, "112,120", "112 kB"},
        {999999, "999,999", "999 kB"},
        {7420000000u, "7,420,000,000", "7.4 GB"},
        {UINT64_MAX, "18,446,744,073,709,551,615", "18.4 EB"},
    };
    static const struct {
        double seconds;
        const char *text;
    } times[] = {{-5, "0:00"},   {0, "0:00"},         {7.6, "0:08"},     {59.6, "1:00"},
                 {754, "12:34"}, {3599.7, "1:00:00"}, {3723, "1:02:03"}, {1e300, "0:00"}};
    char text[FORMAT_TEXT];

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ck_assert_str_eq(format_count(numbers[i].n, text), numbers[i].count);
        ck_assert_str_eq(format_bytes(numbers[i].n, text), numbers[i].bytes);
    }
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        ck_assert_str_eq(format_seconds(times[i].seconds, text), times[i].text);
}

TEST(two_sizes_that_differ_read_differently)
{
    char text[FORMAT_TEXT];

    ck_assert_str_eq(format_bytes_compared(4412032, 4411000, text), "4,412,032 bytes");
    ck_assert_str_eq(format_bytes_compared(4411000, 4412032, text), "4,411,000 bytes");
    ck_assert_str_eq(format_bytes_compared(4412032, 4500000, text), "4.4 MB");
    ck_assert_str_eq(format_bytes_compared(4412032, 4412032, text), "4.4 MB");
    ck_assert_str_eq(format_bytes_compared(UINT64_MAX, UINT64_MAX - 1, text), "18,446,744,073,709,551,615 bytes");
}

/* Advances the clock: sets the stored last time back by this number of seconds. */
static void
let_pass(struct progress *p, double seconds)
{
    p->started -= seconds;
    p->sampled -= seconds;
}

TEST(the_rate_is_an_average_at_first_and_fades_in_a_stall)
{
    struct progress p;

    progress_start(&p, 1000);
    ck_assert_double_lt(progress_left(&p), 0);
    progress_update(&p, 5); /* at once: too early for a rate */
    ck_assert_double_lt(progress_left(&p), 0);
    let_pass(&p, 10);
    progress_update(&p, 100);
    ck_assert_double_eq_tol(p.rate, 10, 0.1);
    ck_assert_double_eq_tol(progress_left(&p), 90, 1);
    let_pass(&p, 5);
    progress_update(&p, 100); /* nothing in five seconds: half */
    ck_assert_double_eq_tol(p.rate, 5, 0.1);
    ck_assert_double_eq_tol(progress_left(&p), 180, 2);
    progress_update(&p, 1000);
    ck_assert_double_eq(progress_left(&p), 0);
}

TEST(progress_of_an_earlier_run_does_not_raise_the_rate)
{
    struct progress p;

    progress_start(&p, 1000);
    p.first = p.sampled_done = 900;
    let_pass(&p, 10);
    progress_update(&p, 910);
    ck_assert_double_eq_tol(p.rate, 1, 0.1);
    ck_assert_double_eq_tol(progress_left(&p), 90, 5);
    ck_assert_double_ge(clock_now(), 0);
}
