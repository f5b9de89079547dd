/*
 * test_rank_times.c - where the ranks spent their time (rank_times.h): factors, advice, JSON
 *
 * The factors are those of POP, https://co-design.pop-coe.eu/metrics/; each case was computed by hand.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "base/json.h"
#include "log/rank_times.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NEAR 1e-12

static struct rank_time rank[4];

/* Ranks with these seconds of work in a total time, on hosts n00, n01 ...; they compute, and wait for the sums. */
static struct rank_times
times_of(unsigned ranks, const double *work, double seconds, double ideal)
{
    unsigned r;

    for (r = 0; r < ranks; r++) {
        rank[r] = (struct rank_time){.seconds = seconds,
                                     .work = work[r],
                                     .busy = (double)NAN,
                                     .modelled = (double)NAN,
                                     .cpu = work[r],
                                     .useful = work[r],
                                     .threads = 1};
        snprintf(rank[r].host, sizeof(rank[r].host), "n%02u", r);
        rank[r].parts.seconds[PART_BACKWARD] = rank[r].parts.cpu[PART_BACKWARD] = work[r];
        rank[r].parts.seconds[PART_REDUCE] = seconds - work[r];
    }
    return (struct rank_times){.rank = rank, .ranks = ranks, .steps = 10, .seconds = seconds, .ideal = ideal};
}

static const char *
advice_of(const struct rank_times *t)
{
    static char text[RANK_ADVICE];

    return rank_times_advice(t, text);
}

/* ---- factors ----------------------------------------------------------------------------------------------------- */

static void
check_factors(const struct rank_times *t, const double wanted[FACTOR_COUNT])
{
    double got[FACTOR_COUNT];
    unsigned i;

    rank_times_factors(t, got);
    for (i = 0; i < FACTOR_COUNT; i++)
        if (isnan(wanted[i]))
            ck_assert(isnan(got[i]));
        else
            ck_assert_double_eq_tol(got[i], wanted[i], NEAR);
    if (!isnan(got[FACTOR_TRANSFER]))
        ck_assert_double_eq_tol(got[FACTOR_COMMUNICATION], got[FACTOR_SERIALISATION] * got[FACTOR_TRANSFER], NEAR);
    ck_assert_double_eq_tol(got[FACTOR_PARALLEL], got[FACTOR_BALANCE] * got[FACTOR_COMMUNICATION], NEAR);
}

TEST_CASE("rank_times", "rank_times", NULL, NULL);

/* Mean work 6, largest 8, time 10, on an ideal network 9. */
TEST(factors_follow_pop)
{
    const double work[] = {8, 6, 4, 6};
    const struct rank_times t = times_of(4, work, 10, 9);

    check_factors(&t, (const double[]){0.6, 0.75, 0.8, 8.0 / 9, 0.9, (double)NAN, (double)NAN, 1});
}

TEST(a_rank_that_is_alone_and_works_all_the_time_has_all_factors_one)
{
    const double work[] = {10};
    struct rank_times t = times_of(1, work, 10, 10);

    check_factors(&t, (const double[]){1, 1, 1, 1, 1, (double)NAN, (double)NAN, 1});
    rank[0].busy = 7;
    check_factors(&t, (const double[]){1, 1, 1, 1, 1, 0.7, (double)NAN, (double)NAN});
    rank[0].modelled = 4.9;
    check_factors(&t, (const double[]){1, 1, 1, 1, 1, 0.7, 0.7, (double)NAN});
    rank[0].modelled = 8.4; /* a model that is too slow is visible */
    check_factors(&t, (const double[]){1, 1, 1, 1, 1, 0.7, 1.2, (double)NAN});
}

/* The number of entries differs if one of them was lost for lack of memory. */
TEST(without_an_ideal_network_serialisation_and_transfer_are_not_known)
{
    const double work[] = {8, 6};
    const struct rank_times t = times_of(2, work, 10, (double)NAN);

    check_factors(&t, (const double[]){0.7, 0.875, 0.8, (double)NAN, (double)NAN, (double)NAN, (double)NAN, 1});
}

/* The clock of one rank may exceed the total time by rounding. */
TEST(no_factor_is_above_one_and_none_without_a_time)
{
    const double work[] = {10.0001, 10};
    struct rank_times t = times_of(2, work, 10, 10.0002);
    double got[FACTOR_COUNT];
    unsigned i;

    rank_times_factors(&t, got);
    for (i = 0; i < FACTOR_BUSY; i++)
        ck_assert(got[i] <= 1 && got[i] > 0.9999);
    t.seconds = 0;
    rank_times_factors(&t, got);
    ck_assert(isnan(got[FACTOR_PARALLEL]));
}

/*
 * Two ranks that are slow in turn: 3, 1, 3, 1 and 1, 3, 1, 3.  Each works 8 seconds, so their load is balanced; but
 * every step takes 3, so an ideal network would need 12.
 */
TEST(ranks_that_are_slow_in_turn_are_serialised)
{
    static const float a[] = {3, 1, 3, 1}, b[] = {1, 3, 1, 3};
    const float *const both[] = {a, b};
    const size_t counts[] = {4, 4}, differ[] = {4, 3};
    const double work[] = {8, 8};
    struct rank_times t;

    ck_assert(rank_times_ideal(both, counts, 2) == 12);
    ck_assert(isnan(rank_times_ideal(both, differ, 2)));
    ck_assert(rank_times_ideal(both, counts, 1) == 8);
    t = times_of(2, work, 16, 12);
    check_factors(&t, (const double[]){0.5, 1, 0.5, 8.0 / 12, 0.75, (double)NAN, (double)NAN, 1});
}

TEST(epochs_are_added_rank_by_rank)
{
    const double first[] = {8, 6}, second[] = {2, 4};
    struct rank_times sum = {.rank = NULL}, t = times_of(2, first, 10, 9);
    struct chex_error err;

    ck_assert_int_eq(rank_times_add(&sum, &t, &err), CHEX_OK);
    t = times_of(2, second, 5, 4.5);
    ck_assert_int_eq(rank_times_add(&sum, &t, &err), CHEX_OK);
    ck_assert_str_eq(sum.rank[1].host, "n01");
    ck_assert(sum.steps == 20 && sum.seconds == 15 && sum.ideal == 13.5);
    ck_assert(sum.rank[0].work == 10 && sum.rank[1].work == 10 && sum.rank[1].seconds == 15);
    ck_assert(sum.rank[0].parts.seconds[PART_REDUCE] == 5);
    check_factors(&sum, (const double[]){10.0 / 15, 1, 10.0 / 15, 10 / 13.5, 0.9, (double)NAN, (double)NAN, 1});
    t.ranks = 1;
    ck_assert_int_eq(rank_times_add(&sum, &t, &err), CHEX_ERR_BUG);
    rank_times_release(&sum);
}

/* ---- CPU time ---------------------------------------------------------------------------------------------------- */

/* Four ranks that share a core: each computes for 9.5 of 10 seconds by the wall clock, and for 2.4 by the CPU clock. */
static struct rank_times
shared_core(void)
{
    const double work[] = {9.5, 9.5, 9.5, 9.5};
    const struct rank_times t = times_of(4, work, 10, 9.8);
    unsigned r;

    for (r = 0; r < 4; r++)
        rank[r].cpu = rank[r].useful = rank[r].parts.cpu[PART_BACKWARD] = 2.375;
    return t;
}

TEST(ranks_that_share_a_core_are_not_efficient)
{
    const struct rank_times t = shared_core();

    check_factors(&t, (const double[]){0.2375, 1, 0.2375, 2.375 / 9.8, 0.98, (double)NAN, (double)NAN, 0.25});
    ck_assert_str_eq(advice_of(&t), "ranks had 25 % of their cores: fewer ranks on a host or a smaller -j; look for "
                                    "other processes");
}

TEST(a_rank_with_28_percent_of_a_core_gets_advice)
{
    const double work[] = {10};
    const struct rank_times t = times_of(1, work, 10, 10);

    rank[0].cpu = rank[0].useful = rank[0].parts.cpu[PART_BACKWARD] = 2.8;
    ck_assert_str_eq(advice_of(&t), "ranks had 28 % of their cores: fewer ranks on a host or a smaller -j; look for "
                                    "other processes");
    rank[0].threads = 2; /* 2.8 of 20 core seconds */
    ck_assert_double_eq_tol(rank_time_cores(&rank[0]).share, 0.14, NEAR);
    ck_assert_double_eq_tol(rank_time_cores(&rank[0]).lost, 8.6, NEAR);
    rank[0].threads = 1;
    rank[0].busy = 10; /* a device computes */
    ck_assert(isnan(rank_time_cores(&rank[0]).share));
    ck_assert_str_eq(advice_of(&t), "ranks work 100 % of the time: nothing to change");
}

/* POP: 2.4 of 4 x 2.375 seconds; the product with 0.2375 is 2.4 / (4 x 10). */
TEST(two_runs_have_a_computation_scaling_and_a_global_efficiency)
{
    const double work[] = {2.4};
    struct rank_time alone;
    struct rank_times one = times_of(1, work, 2.4, 2.4), four;
    struct rank_scaling s;

    alone = rank[0];
    one.rank = &alone;
    four = shared_core();
    s = rank_times_scaling(&one, &four);
    ck_assert_double_eq_tol(s.computation, 2.4 / 9.5, NEAR);
    ck_assert_double_eq_tol(s.global, 2.4 / 40, NEAR);
    s = rank_times_scaling(&one, &one);
    ck_assert_double_eq_tol(s.global, 1, NEAR);
    alone.threads = 2; /* of two threads each, twice the CPU time */
    ck_assert_double_eq_tol(rank_times_scaling(&one, &four).computation, 4.8 / 9.5, NEAR);
    rank[2].useful = (double)NAN;
    s = rank_times_scaling(&one, &four);
    ck_assert(isnan(s.computation) && isnan(s.global));
}

TEST(times_without_cpu_times_have_no_factors_but_advice)
{
    const double work[] = {10};
    const struct rank_times t = times_of(1, work, 10, 10);
    struct rank_times back;
    struct chex_error err;
    json_t *object = json_object(), *first;
    double factor[FACTOR_COUNT];
    unsigned i;

    ck_assert(rank_times_json_add(object, &t));
    first = json_array_get(json_object_get(object, "ranks"), 0);
    ck_assert(json_object_del(first, "cpu") == 0 && json_object_del(first, "useful") == 0);
    ck_assert(json_object_del(first, "threads") == 0 && json_object_del(first, "cpu_parts") == 0);
    ck_assert_int_eq(rank_times_json_read(object, &back, &err), CHEX_OK);
    rank_times_factors(&back, factor);
    for (i = 0; i < FACTOR_COUNT; i++)
        ck_assert(i == FACTOR_TRANSFER ? factor[i] == 1 : isnan(factor[i]));
    ck_assert_str_eq(advice_of(&back), "ranks work 100 % of the time: their share of the cores is not known");
    rank_times_release(&back);
    json_decref(object);
}

/* ---- what to change ---------------------------------------------------------------------------------------------- */

/*
 * Of 10 seconds, rank 3 works for 9.9 and the others for 7.9: they wait 2 for it.  The cause is its part that takes
 * 2 seconds longer.
 */
LOOP_TEST(the_slow_rank_is_named_with_its_cause, 0, 6)
{
    static const struct {
        enum step_part part;
        const char *text;
    } cases[] = {
        {PART_WAIT, "ranks wait 20 % for rank 3, n03: its reading; --stage"},
        {PART_COPY, "ranks wait 20 % for rank 3, n03: its copies to the GPU; look at the link of that GPU"},
        {PART_FORWARD, "ranks wait 20 % for rank 3, n03: its computing; look for other processes on that machine, and "
                       "for a lower clock"},
        {PART_EVALUATE, "ranks wait 20 % for rank 3, n03: its evaluation; a smaller --bootstrap"},
        {PART_SAVE, "ranks wait 20 % for rank 3, n03: its checkpoints; a longer --checkpoint-every"},
        {PART_COUNT, "ranks wait 20 % for rank 3, n03: its bookkeeping; look for other processes on that machine, and "
                     "for a lower clock"},
    };
    const double work[] = {7.9, 7.9, 7.9, 9.9};
    struct rank_times t = times_of(4, work, 10, 9.95);

    rank[3].parts.seconds[PART_BACKWARD] = 7.9;
    if (cases[_i].part < PART_COUNT)
        rank[3].parts.seconds[cases[_i].part] = 2;
    ck_assert_str_eq(advice_of(&t), cases[_i].text);
}

/* Each works 8 of 16 seconds; on an ideal network they would take 12: 4 are lost by taking turns, 4 by messages. */
TEST(waits_without_a_slow_rank_are_distinguished)
{
    const double work[] = {8, 8};
    struct rank_times t = times_of(2, work, 16, 13);

    ck_assert_str_eq(advice_of(&t), "ranks wait 31 % for one another in turn: look for other processes on that "
                                    "machine, and for a lower clock");
    rank[0].parts.seconds[PART_WAIT] = rank[1].parts.seconds[PART_WAIT] = 4;
    rank[0].parts.seconds[PART_BACKWARD] = rank[1].parts.seconds[PART_BACKWARD] = 4;
    rank[0].parts.cpu[PART_BACKWARD] = rank[1].parts.cpu[PART_BACKWARD] = 4;
    ck_assert_str_eq(advice_of(&t), "ranks wait 31 % for one another in turn: their reading; --stage");
    t.in_use[SAVER_STAGE] = true;
    ck_assert_str_eq(advice_of(&t), "ranks wait 31 % for one another in turn: their reading; a faster disk");
    t.ideal = 9;
    ck_assert_str_eq(advice_of(&t), "messages between the ranks take 44 %: a larger --batch or --accumulate, or a "
                                    "faster network");
    t.ideal = (double)NAN;
    ck_assert_str_eq(advice_of(&t), "messages between the ranks take 50 %: a larger --batch or --accumulate, or a "
                                    "faster network");
}

TEST(a_rank_that_is_alone_gets_advice_too)
{
    const double work[] = {10};
    struct rank_times t = times_of(1, work, 10, 10);
    double *part = rank[0].parts.seconds;

    ck_assert_str_eq(advice_of(&t), "ranks work 100 % of the time: nothing to change");
    part[PART_WAIT] = 0.19; /* below 2 % */
    ck_assert_str_eq(advice_of(&t), "ranks work 100 % of the time: nothing to change");
    part[PART_WAIT] = 3;
    ck_assert_str_eq(advice_of(&t), "images are waited for 30 % of the time: --cache or --stage");
    t.in_use[SAVER_STAGE] = true;
    ck_assert_str_eq(advice_of(&t), "images are waited for 30 % of the time: --cache");
    t.in_use[SAVER_CACHE] = true;
    ck_assert_str_eq(advice_of(&t), "images are waited for 30 % of the time: a faster disk");
    part[PART_EVALUATE] = rank[0].parts.cpu[PART_EVALUATE] = 4;
    ck_assert_str_eq(advice_of(&t), "evaluations take 40 %: a smaller --bootstrap, or --tta none");
    t.in_use[SAVER_NO_TTA] = true;
    ck_assert_str_eq(advice_of(&t), "evaluations take 40 %: a smaller --bootstrap");
    t.in_use[SAVER_NO_BOOTSTRAP] = true;
    ck_assert_str_eq(advice_of(&t), "evaluations take 40 %: a smaller validation split");
    t.in_use[SAVER_NO_TTA] = false;
    ck_assert_str_eq(advice_of(&t), "evaluations take 40 %: --tta none");
    part[PART_SAVE] = 5;
    ck_assert_str_eq(advice_of(&t), "checkpoints take 50 %: a longer --checkpoint-every");
    t.seconds = 0;
    ck_assert_str_eq(advice_of(&t), "no time was measured");
}

/* From a damaged file. */
TEST(no_share_is_above_one)
{
    const double work[] = {1, 1e308};
    struct rank_times t = times_of(2, work, 1e-300, 1e308);

    ck_assert_ptr_nonnull(strstr(advice_of(&t), " 100 % "));
    t.ideal = 1;
    ck_assert_ptr_nonnull(strstr(advice_of(&t), " 100 % "));
}

/* Of 10 seconds the device computes 6; 1 is data wait, 0.5 the copy; 2.5 belong to no part. */
TEST(a_device_that_is_idle_waits_for_its_host)
{
    const double work[] = {10};
    struct rank_times t = times_of(1, work, 10, 10);

    rank[0].parts.seconds[PART_BACKWARD] = rank[0].busy = 6;
    rank[0].parts.seconds[PART_WAIT] = 1;
    rank[0].parts.seconds[PART_COPY] = 0.5;
    rank[0].parts.seconds[PART_MEET] = 9; /* overlaps with the other parts */
    ck_assert_str_eq(advice_of(&t), "GPUs wait 25 % for their hosts: a larger --micro-batch");
    ck_assert_double_eq_tol(rank_time_rest(&rank[0]), 2.5, NEAR);
    rank[0].busy = (double)NAN; /* without a clock of its own it is a part */
    ck_assert(rank_time_rest(&rank[0]) == 0);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *
document_of(const struct rank_times *t)
{
    json_t *object = json_object();

    ck_assert(rank_times_json_add(object, t));
    return object;
}

TEST(times_are_written_and_read_the_same)
{
    const double work[] = {8, 6, 4, 6};
    struct rank_times t = times_of(4, work, 10, 9), back;
    struct chex_error err;
    json_t *object;
    unsigned r;

    rank[1].busy = 3;
    rank[1].modelled = 2;
    t.in_use[SAVER_STAGE] = t.in_use[SAVER_NO_BOOTSTRAP] = true;
    object = document_of(&t);
    ck_assert_str_eq(json_string_value(json_object_get(object, "advice")), advice_of(&t));
    ck_assert_double_eq_tol(json_number_value(json_object_get(json_object_get(object, "factors"), "load_balance")),
                            0.75, NEAR);
    ck_assert(json_is_null(json_object_get(json_object_get(object, "factors"), "device_busy")));
    ck_assert_int_eq(rank_times_json_read(object, &back, &err), CHEX_OK);
    ck_assert_mem_eq(back.in_use, t.in_use, sizeof(t.in_use));
    ck_assert(back.ranks == 4 && back.steps == 10 && back.seconds == 10 && back.ideal == 9);
    for (r = 0; r < 4; r++) {
        ck_assert_str_eq(back.rank[r].host, rank[r].host);
        ck_assert_mem_eq(&back.rank[r].parts, &rank[r].parts, sizeof(rank[r].parts));
        ck_assert(back.rank[r].work == rank[r].work && back.rank[r].seconds == 10);
        ck_assert(r == 1 ? back.rank[r].busy == 3 : isnan(back.rank[r].busy));
        ck_assert(r == 1 ? back.rank[r].modelled == 2 : isnan(back.rank[r].modelled));
    }
    rank_times_release(&back);
    json_decref(object);
}

TEST(other_documents_are_refused)
{
    static const char *const bad[] = {
        "{}",
        "{\"ranks\": [], \"steps\": 1, \"seconds\": 1, \"ideal_seconds\": 1}",
        "{\"ranks\": [{}], \"steps\": 1, \"seconds\": 1, \"ideal_seconds\": 1}",
        "{\"ranks\": [7], \"steps\": 1, \"seconds\": 1, \"ideal_seconds\": 1}",
        "{\"ranks\": {\"host\": \"a\"}, \"steps\": 1, \"seconds\": 1, \"ideal_seconds\": 1}",
    };
    static const char *const members[] = {"seconds", "ideal_seconds", "steps"};
    static const char *const of_rank[] = {"host", "seconds", "work", "busy", "parts"};
    const double work[] = {8, 6};
    const struct rank_times t = times_of(2, work, 10, 9);
    struct rank_times out;
    struct chex_error err;
    size_t i;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        json_t *object = json_loads(bad[i], 0, NULL);

        ck_assert_int_eq(rank_times_json_read(object, &out, &err), CHEX_ERR_DAMAGED);
        rank_times_release(&out);
        json_decref(object);
    }
    for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        json_t *object = document_of(&t);

        json_object_set_new(object, members[i], json_integer(-1));
        ck_assert_int_eq(rank_times_json_read(object, &out, &err), CHEX_ERR_DAMAGED);
        rank_times_release(&out);
        json_decref(object);
    }
    for (i = 0; i < sizeof(of_rank) / sizeof(of_rank[0]); i++) {
        json_t *object = document_of(&t);

        json_object_set_new(json_array_get(json_object_get(object, "ranks"), 1), of_rank[i], json_true());
        ck_assert_int_eq(rank_times_json_read(object, &out, &err), CHEX_ERR_DAMAGED);
        rank_times_release(&out);
        json_decref(object);
    }
}
