/*
 * test_collective.c - collective operations of ranks (collective.h): sums, broadcast, gathering
 *
 * Sums are compared bit by bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "rank_fixture.h"
#include "unit.h"

#include "base/clock.h"
#include "comm/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TEST_CASE("collective", "collective", ranks_setup, NULL);

TEST(a_process_that_is_alone_has_all_calls)
{
    struct comm alone = comm_self();
    struct collective *c;
    struct chex_error err;
    struct buffer all = {0};
    double sum[2] = {1, 2};
    uint64_t flags = 6;
    size_t size;

    ck_assert_int_eq(collective_new(&alone, NULL, &c, &err), CHEX_OK);
    ck_assert_int_eq(collective_rank(c), 0);
    ck_assert_int_eq(collective_size(c), 1);
    ck_assert(collective_local_rank(c) == 0 && collective_local_size(c) == 1);
    ck_assert_uint_gt(strlen(collective_host(c, 0)), 0);
    ck_assert_int_eq(collective_allreduce_start(c, sum, 2, &err), CHEX_OK);
    ck_assert_int_eq(collective_poll(c, &err), CHEX_OK);
    ck_assert_int_eq(collective_allreduce_wait(c, &err), CHEX_OK);
    ck_assert(sum[0] == 1 && sum[1] == 2);
    ck_assert_int_eq(collective_broadcast(c, sum, sizeof(sum), &err), CHEX_OK);
    ck_assert_int_eq(collective_allgather(c, "abc", 3, &all, &size, &err), CHEX_OK);
    ck_assert_int_eq(collective_allgather(c, "de", 2, &all, &size, &err), CHEX_OK);
    ck_assert_uint_eq(size, 2);
    ck_assert_uint_eq(all.size, 2);
    ck_assert_mem_eq(all.data, "de", 2);
    ck_assert_int_eq(collective_agree(c, CHEX_OK, &flags, &err), CHEX_OK);
    ck_assert_uint_eq(flags, 6);
    ck_assert_int_eq(collective_agree(c, error_set(&err, CHEX_ERR_WRITE, "disk full"), &flags, &err), CHEX_ERR_WRITE);
    ck_assert_str_eq(err.text, "disk full");
    ck_assert_int_eq(collective_compare(c, CHEX_OK, "seed 1\n", &err), CHEX_OK);
    ck_assert(!collective_broken(c) && collective_reports_errors(c) && collective_waited(c) == 0);
    buffer_release(&all);
    collective_free(c);
}

/* ---- sums ----------------------------------------------------------------------------------------------------- */

LOOP_TEST(sums_have_the_bits_of_adding_in_the_order_of_ranks, 0, 5)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 8, 9, 64, 1000, 4099};
    static const int sizes[] = {1, 2, 3, 4, 8};

    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        for (int i = 0; i < POST_RANKS; i++)
            rank[i].count = counts[k];
        ranks_play(sizes[_i], (unsigned)(k + 1), ranks_play_sum);
    }
}

/* With these numbers the order matters; otherwise the test above would prove nothing. */
TEST(another_order_of_adding_would_give_other_bits)
{
    size_t differ = 0;

    for (size_t i = 0; i < 1000; i++) {
        double backwards = rank_number(1, 2, i) + rank_number(1, 1, i) + rank_number(1, 0, i);

        differ += backwards != ranks_sum(1, 3, i);
    }
    ck_assert_uint_gt(differ, 100);
}

enum { ARENA = 10007, BUCKET = 1500 };

/* Like a step: sums buckets from the end of an arena, each started while the previous ones are in flight. */
static void
play_buckets(struct rank *r, struct collective *c)
{
    double *arena = malloc(ARENA * sizeof(*arena));

    for (unsigned step = 0; step < 3; step++) {
        uint64_t flags = 1ull << collective_rank(c);

        for (size_t i = 0; i < ARENA; i++)
            arena[i] = rank_number(r->seed + step, collective_rank(c), i);
        ranks_good(collective_agree(c, CHEX_OK, &flags, &r->err), &r->err);
        ck_assert_uint_eq(flags, (1ull << collective_size(c)) - 1);
        for (size_t end = ARENA; end > 0;) {
            size_t count = end < BUCKET ? end : BUCKET;

            end -= count;
            ranks_good(collective_allreduce_start(c, arena + end, count, &r->err), &r->err);
            for (int turn = 0; turn < 5; turn++)
                ranks_good(collective_poll(c, &r->err), &r->err);
        }
        ranks_good(collective_allreduce_wait(c, &r->err), &r->err);
        for (size_t i = 0; i < ARENA; i++)
            ck_assert(arena[i] == ranks_sum(r->seed + step, collective_size(c), i));
    }
    free(arena);
}

LOOP_TEST(buckets_are_summed_while_others_are_under_way, 0, 5)
{
    static const int sizes[] = {1, 2, 3, 4, 8};

    ranks_play(sizes[_i], 5, play_buckets);
}

/* ---- broadcast and gathering ---------------------------------------------------------------------------------- */

static void
play_broadcast(struct rank *r, struct collective *c)
{
    uint8_t *data = calloc(1, r->count + 1), *want = calloc(1, r->count + 1);

    for (size_t i = 0; i < r->count; i++)
        want[i] = (uint8_t)(i * 31 + i / 256 + r->seed + 1);
    if (collective_rank(c) == 0)
        memcpy(data, want, r->count);
    ranks_good(collective_broadcast(c, data, r->count, &r->err), &r->err);
    ck_assert(memcmp(data, want, r->count + 1) == 0);
    free(data);
    free(want);
}

LOOP_TEST(a_broadcast_reaches_all, 0, 4)
{
    static const size_t counts[] = {0, 1, 5, 1000003};

    for (int size = 1; size <= POST_RANKS; size++) {
        for (int i = 0; i < POST_RANKS; i++)
            rank[i].count = counts[_i];
        ranks_play(size, (unsigned)size, play_broadcast);
    }
}

TEST(a_long_broadcast_goes_in_pieces)
{
    for (int i = 0; i < POST_RANKS; i++)
        rank[i].count = COLLECTIVE_PIECE + 3;
    ranks_play(3, 1, play_broadcast);
}

static void
play_gather(struct rank *r, struct collective *c)
{
    struct buffer all = {0};
    size_t sizes[POST_RANKS];

    /* All ranks are on this machine. */
    ck_assert_int_eq(collective_local_rank(c), collective_rank(c));
    ck_assert_int_eq(collective_local_size(c), collective_size(c));
    for (unsigned round = 0; round < 20; round++) {
        uint8_t own[64];
        size_t size = (unsigned)collective_rank(c) * round % 23, at = 0;

        memset(own, collective_rank(c) + (int)round, sizeof(own));
        ranks_good(collective_allgather(c, own, size, &all, sizes, &r->err), &r->err);
        for (int i = 0; i < collective_size(c); i++) {
            ck_assert_uint_eq(sizes[i], (unsigned)i * round % 23);
            for (size_t k = 0; k < sizes[i]; k++)
                ck_assert_uint_eq(all.data[at++], (unsigned)i + round);
        }
        ck_assert_uint_eq(all.size, at);
    }
    buffer_release(&all);
}

TEST(every_rank_gets_the_values_of_all_in_the_order_of_ranks)
{
    for (int size = 1; size <= POST_RANKS; size++)
        ranks_play(size, (unsigned)size, play_gather);
}

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

#define ROUNDING 1e-8 /* the last bit of the largest clock, 7e6 s, is 1e-9 s */

/* The clock of each rank is ahead by a different amount. */
static double
skewed(void *context)
{
    return clock_now() + *(const double *)context;
}

static double
skew_of(int of)
{
    return of == 0 ? 5 : of % 2 == 0 ? -300.25 * of : 1e6 * of;
}

static void
play_clock(struct rank *r, struct collective *c)
{
    double skew = skew_of(collective_rank(c)), ahead = skew - skew_of(0), now;
    struct clock_map m = {.measured = false};

    for (unsigned i = 0; i < 2; i++) {
        ranks_good(collective_clock(c, skewed, &skew, &m, &r->err), &r->err);
        now = skewed(&skew);
        if (collective_rank(c) == 0) {
            ck_assert(m.now.least == 0 && m.now.most == 0 && clock_map_time(&m, now) == now);
            continue;
        }
        /* The true difference is within the bounds, and these are no further apart than a round trip takes. */
        ck_assert_double_lt(m.now.most - m.now.least, 5);
        ck_assert(m.now.least <= ahead + ROUNDING && ahead - ROUNDING <= m.now.most);
        /* A second measurement so soon may change the offset by less than its bounds require: clock_map_add(). */
        ck_assert(i > 0 || (m.now.least - ROUNDING <= now - clock_map_time(&m, now) &&
                            now - clock_map_time(&m, now) <= m.now.most + ROUNDING));
    }
}

TEST(clocks_are_compared_by_messages_that_come_late)
{
    for (int size = 1; size <= POST_RANKS; size++)
        ranks_play(size, (unsigned)size, play_clock);
}

/*
 * The peer's clock is 10 ahead.  Rank 0 sends at 100, which arrives by 113; this rank sends at 120 (110 there), which
 * arrives there by 115.  So the clock is between 5 and 13 ahead.  Better messages narrow that range, worse ones do not
 * change it.
 */
TEST(bounds_of_a_clock_become_tighter_only)
{
    struct clock_distance d = {.least = -HUGE_VAL, .most = HUGE_VAL};

    clock_distance_from_0(&d, 100, 113);
    clock_distance_to_0(&d, 120, 115);
    ck_assert(d.least == 5 && d.most == 13);
    clock_distance_from_0(&d, 200, 215);
    clock_distance_to_0(&d, 220, 217);
    ck_assert(d.least == 5 && d.most == 13);
    clock_distance_from_0(&d, 300, 310.5);
    clock_distance_to_0(&d, 320, 310.25);
    ck_assert(d.least == 9.75 && d.most == 10.5);
}

/* A busy machine: the difference of two equal clocks is measured as -0.1 to 0.1, then 0.2 to 1, then 0 to 0. */
TEST(times_keep_their_order_whatever_is_measured_of_the_clock)
{
    static const struct clock_distance found[] = {{-0.1, 0.1}, {0.2, 1}, {-3, -3}, {0, 0}, {-1, 1}};
    struct clock_map m = {.measured = false};
    double last = -HUGE_VAL, now = 10;

    for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++, now += 1) {
        clock_map_add(&m, &found[i], now);
        for (double time = now - 1 + 0x1p-10; time <= now; time += 0x1p-10) {
            ck_assert_msg(clock_map_time(&m, time) > last, "at %g: %g after %g", time, clock_map_time(&m, time), last);
            last = clock_map_time(&m, time);
        }
    }
    ck_assert(clock_map_time(&m, now - 1) == now - 1);
}

/* No more than the bounds require; linear between them. */
TEST(the_distance_of_a_clock_changes_within_a_piece)
{
    struct clock_map m = {.measured = false};

    clock_map_add(&m, &(struct clock_distance){4, 6}, 100);
    ck_assert(clock_map_time(&m, 90) == 85 && clock_map_time(&m, 100) == 95);
    clock_map_add(&m, &(struct clock_distance){5.5, 9}, 104);
    ck_assert(clock_map_time(&m, 100) == 95 && clock_map_time(&m, 102) == 96.75 && clock_map_time(&m, 104) == 98.5);
    clock_map_add(&m, &(struct clock_distance){3, 7}, 108);
    ck_assert(clock_map_time(&m, 104) == 98.5 && clock_map_time(&m, 108) == 102.5);
    clock_map_add(&m, &(struct clock_distance){105, 105}, 110); /* half of the time at most */
    ck_assert(clock_map_time(&m, 108) == 102.5 && clock_map_time(&m, 110) == 103.5);
}
