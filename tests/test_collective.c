/*
 * test_collective.c - what ranks do together (collective.h)
 *
 * The ranks are threads (post_office.h); everything that comes, comes late at random.  Sums are compared bit by bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "collective_private.h"
#include "post_office.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- ranks ---------------------------------------------------------------------------------------------------- */

struct rank {
    struct comm *comm;
    struct collective_options options;
    void (*play)(struct rank *, struct collective *);
    struct collective *c;
    unsigned seed;
    size_t count;
    enum chex_status status; /* of what it did last */
    struct chex_error err;
    bool broken, speaks;
    char told[128];
};

static struct post_office office;
static struct rank rank[POST_RANKS];
static atomic_bool hurry;

static void *
live(void *argument)
{
    struct rank *r = argument;

    ck_assert_int_eq(collective_new(r->comm, &r->options, &r->c, &r->err), CHEX_OK);
    r->play(r, r->c);
    r->broken = collective_broken(r->c);
    r->speaks = collective_speaks(r->c);
    return NULL;
}

/* So many ranks play; what they left in rank[] can be looked at.  seed: of the delays, and of the data. */
static void
play(int size, unsigned seed, void (*part)(struct rank *, struct collective *))
{
    post_office_init(&office, size, seed);
    for (int i = 0; i < size; i++) {
        rank[i].comm = &office.comm[i];
        rank[i].play = part;
        rank[i].seed = seed;
    }
    post_office_run(size, live, rank, sizeof(rank[0]));
    /* After all have ended, since a transfer that one forgets may be another's. */
    for (int i = 0; i < size; i++)
        collective_free(rank[i].c);
    post_office_release(&office);
}

static void
setup(void)
{
    memset(rank, 0, sizeof(rank));
    atomic_store(&hurry, false);
}

static void
expect_all(int size, enum chex_status status)
{
    for (int i = 0; i < size; i++)
        ck_assert_msg(rank[i].status == status, "rank %d: %s: %s", i, chex_status_name(rank[i].status),
                      rank[i].err.text);
}

static void
good(enum chex_status status, const struct chex_error *err)
{
    ck_assert_msg(status == CHEX_OK, "%s", err->text);
}

/* "rank 2 n07" */
static void
name_host(char *out, size_t size, int of)
{
    char host[COLLECTIVE_HOST];

    ck_assert_int_eq(gethostname(host, sizeof(host)), 0);
    snprintf(out, size, "rank %d %s", of, host);
}

static void
sleep_for(double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&pause, NULL);
}

START_TEST(a_process_that_is_alone_has_all_calls)
{
    struct comm alone = comm_self();
    struct collective *c;
    struct chex_error err;
    struct buffer all = {0};
    float sum[2] = {1, 2};
    uint64_t flags = 6;
    size_t size;

    ck_assert_int_eq(collective_new(&alone, NULL, &c, &err), CHEX_OK);
    ck_assert_int_eq(collective_rank(c), 0);
    ck_assert_int_eq(collective_size(c), 1);
    ck_assert_uint_gt(strlen(collective_host(c, 0)), 0);
    ck_assert_int_eq(collective_sum_start(c, sum, 2, &err), CHEX_OK);
    ck_assert_int_eq(collective_sum_poll(c, &err), CHEX_OK);
    ck_assert_int_eq(collective_sum_wait(c, &err), CHEX_OK);
    ck_assert(sum[0] == 1 && sum[1] == 2);
    ck_assert_int_eq(collective_broadcast(c, sum, sizeof(sum), &err), CHEX_OK);
    ck_assert_int_eq(collective_gather(c, "abc", 3, &all, &size, &err), CHEX_OK);
    ck_assert_int_eq(collective_gather(c, "de", 2, &all, &size, &err), CHEX_OK);
    ck_assert_uint_eq(size, 2);
    ck_assert_uint_eq(all.size, 2);
    ck_assert_mem_eq(all.data, "de", 2);
    ck_assert_int_eq(collective_agree(c, CHEX_OK, &flags, &err), CHEX_OK);
    ck_assert_uint_eq(flags, 6);
    ck_assert_int_eq(collective_agree(c, chex_fail(&err, CHEX_ERR_WRITE, "disk full"), &flags, &err), CHEX_ERR_WRITE);
    ck_assert_str_eq(err.text, "disk full");
    ck_assert_int_eq(collective_compare(c, CHEX_OK, "seed 1\n", &err), CHEX_OK);
    ck_assert(!collective_broken(c) && collective_speaks(c));
    buffer_release(&all);
    collective_free(c);
}
END_TEST

/* ---- sums ----------------------------------------------------------------------------------------------------- */

/* Numbers of very different size, so that another order of adding them gives other bits. */
static float
number_of(unsigned seed, int of, size_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u + (uint32_t)of * 40503u + seed * 97u;

    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    return (float)((int)(x % 2001) - 1000) * (float)(1u << (x >> 27)) * 0.37f;
}

static float
sum_of(unsigned seed, int size, size_t i)
{
    float sum = number_of(seed, 0, i);

    for (int of = 1; of < size; of++)
        sum += number_of(seed, of, i);
    return sum;
}

#define GUARD 12345.0f

/* A sum of r->count numbers between two guards. */
static void
play_sum(struct rank *r, struct collective *c)
{
    float *data = malloc((r->count + 2) * sizeof(*data));

    data[0] = data[r->count + 1] = GUARD;
    for (size_t i = 0; i < r->count; i++)
        data[i + 1] = number_of(r->seed, collective_rank(c), i);
    good(collective_sum_start(c, data + 1, r->count, &r->err), &r->err);
    good(collective_sum_wait(c, &r->err), &r->err);
    for (size_t i = 0; i < r->count; i++) {
        float want = sum_of(r->seed, collective_size(c), i);

        ck_assert_msg(memcmp(&data[i + 1], &want, sizeof(want)) == 0, "number %zu of %zu on rank %d of %d: %g, not %g",
                      i, r->count, collective_rank(c), collective_size(c), (double)data[i + 1], (double)want);
    }
    ck_assert(data[0] == GUARD && data[r->count + 1] == GUARD);
    free(data);
}

START_TEST(sums_have_the_bits_of_adding_in_the_order_of_ranks)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 8, 9, 64, 1000, 4099};
    static const int sizes[] = {1, 2, 3, 4, 8};

    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        for (int i = 0; i < POST_RANKS; i++)
            rank[i].count = counts[k];
        play(sizes[_i], (unsigned)(k + 1), play_sum);
    }
}
END_TEST

/* The numbers are such that it matters: this is what keeps the test above honest. */
START_TEST(another_order_of_adding_would_give_other_bits)
{
    size_t differ = 0;

    for (size_t i = 0; i < 1000; i++) {
        float backwards = number_of(1, 2, i) + number_of(1, 1, i) + number_of(1, 0, i);

        differ += backwards != sum_of(1, 3, i);
    }
    ck_assert_uint_gt(differ, 100);
}
END_TEST

enum { ARENA = 10007, BUCKET = 1500 };

/* As a step does it: buckets from the end of an arena on, each begun while the ones before it are under way. */
static void
play_buckets(struct rank *r, struct collective *c)
{
    float *arena = malloc(ARENA * sizeof(*arena));

    for (unsigned step = 0; step < 3; step++) {
        uint64_t flags = 1ull << collective_rank(c);

        for (size_t i = 0; i < ARENA; i++)
            arena[i] = number_of(r->seed + step, collective_rank(c), i);
        good(collective_agree(c, CHEX_OK, &flags, &r->err), &r->err);
        ck_assert_uint_eq(flags, (1ull << collective_size(c)) - 1);
        for (size_t end = ARENA; end > 0;) {
            size_t count = end < BUCKET ? end : BUCKET;

            end -= count;
            good(collective_sum_start(c, arena + end, count, &r->err), &r->err);
            for (int turn = 0; turn < 5; turn++)
                good(collective_sum_poll(c, &r->err), &r->err);
        }
        good(collective_sum_wait(c, &r->err), &r->err);
        for (size_t i = 0; i < ARENA; i++)
            ck_assert(arena[i] == sum_of(r->seed + step, collective_size(c), i));
    }
    free(arena);
}

START_TEST(buckets_are_summed_while_others_are_under_way)
{
    static const int sizes[] = {1, 2, 3, 4, 8};

    play(sizes[_i], 5, play_buckets);
}
END_TEST

/* ---- broadcast and gathering ---------------------------------------------------------------------------------- */

static void
play_broadcast(struct rank *r, struct collective *c)
{
    uint8_t *data = calloc(1, r->count + 1), *want = calloc(1, r->count + 1);

    for (size_t i = 0; i < r->count; i++)
        want[i] = (uint8_t)(i * 31 + i / 256 + r->seed + 1);
    if (collective_rank(c) == 0)
        memcpy(data, want, r->count);
    good(collective_broadcast(c, data, r->count, &r->err), &r->err);
    ck_assert(memcmp(data, want, r->count + 1) == 0);
    free(data);
    free(want);
}

START_TEST(a_broadcast_reaches_all)
{
    static const size_t counts[] = {0, 1, 5, 1000003};

    for (int size = 1; size <= POST_RANKS; size++) {
        for (int i = 0; i < POST_RANKS; i++)
            rank[i].count = counts[_i];
        play(size, (unsigned)size, play_broadcast);
    }
}
END_TEST

START_TEST(a_long_broadcast_goes_in_pieces)
{
    for (int i = 0; i < POST_RANKS; i++)
        rank[i].count = COLLECTIVE_PIECE + 3;
    play(3, 1, play_broadcast);
}
END_TEST

static void
play_gather(struct rank *r, struct collective *c)
{
    struct buffer all = {0};
    size_t sizes[POST_RANKS];

    for (unsigned round = 0; round < 20; round++) {
        uint8_t own[64];
        size_t size = (unsigned)collective_rank(c) * round % 23, at = 0;

        memset(own, collective_rank(c) + (int)round, sizeof(own));
        good(collective_gather(c, own, size, &all, sizes, &r->err), &r->err);
        for (int i = 0; i < collective_size(c); i++) {
            ck_assert_uint_eq(sizes[i], (unsigned)i * round % 23);
            for (size_t k = 0; k < sizes[i]; k++)
                ck_assert_uint_eq(all.data[at++], (unsigned)i + round);
        }
        ck_assert_uint_eq(all.size, at);
    }
    buffer_release(&all);
}

START_TEST(everyone_gets_what_all_have_in_the_order_of_ranks)
{
    for (int size = 1; size <= POST_RANKS; size++)
        play(size, (unsigned)size, play_gather);
}
END_TEST

/* ---- meetings and errors -------------------------------------------------------------------------------------- */

/* rank[].status is what each brings. */
static void
play_agree(struct rank *r, struct collective *c)
{
    uint64_t flags = (uint64_t)collective_rank(c) << 8;

    if (r->status != CHEX_OK)
        chex_fail(&r->err, r->status, "trouble %d", collective_rank(c));
    r->status = collective_agree(c, r->status, &flags, &r->err);
    ck_assert_uint_eq(flags, 0x300);
}

START_TEST(the_error_of_one_is_the_error_of_all_with_its_name)
{
    char want[256];

    rank[2].status = CHEX_ERR_READ;
    rank[3].status = CHEX_ERR_WRITE;
    play(4, 3, play_agree);
    expect_all(4, CHEX_ERR_READ);
    name_host(want, sizeof(want), 2);
    strcat(want, ": trouble 2");
    ck_assert_str_eq(rank[0].err.text, want);
    ck_assert_str_eq(rank[1].err.text, want);
    ck_assert_str_eq(rank[2].err.text, "trouble 2");
    ck_assert_str_eq(rank[3].err.text, want);
    ck_assert(!rank[0].broken && rank[0].speaks && !rank[1].speaks);
}
END_TEST

START_TEST(to_be_stopped_is_less_than_an_error)
{
    rank[0].status = CHEX_ERR_STOPPED;
    rank[3].status = CHEX_ERR_DAMAGED;
    play(4, 3, play_agree);
    expect_all(4, CHEX_ERR_DAMAGED);
    ck_assert_ptr_nonnull(strstr(rank[0].err.text, "trouble 3"));
    setup();
    rank[1].status = CHEX_ERR_STOPPED;
    play(4, 3, play_agree);
    expect_all(4, CHEX_ERR_STOPPED);
}
END_TEST

/* Rank 1 has an error where the others wait in one of the calls; after the meeting all go on. */
static void
play_failure(struct rank *r, struct collective *c)
{
    float data[10] = {0};
    struct buffer all = {0};

    if (collective_rank(c) == 1) {
        r->status = chex_fail(&r->err, CHEX_ERR_DAMAGED, "bad record");
    } else if (r->count == 0) {
        r->status = collective_gather(c, "x", 1, &all, NULL, &r->err);
    } else if (r->count == 1) {
        r->status = collective_sum_start(c, data, 10, &r->err);
        if (r->status == CHEX_OK)
            r->status = collective_sum_wait(c, &r->err);
    } else if (r->count == 2) {
        r->status = collective_broadcast(c, data, sizeof(data), &r->err);
        if (r->status == CHEX_OK) /* its way did not lead through rank 1 */
            r->status = collective_gather(c, "x", 1, &all, NULL, &r->err);
    } else {
        r->status = CHEX_OK;
    }
    ck_assert(r->status != CHEX_OK || r->count == 3);
    r->status = collective_agree(c, r->status, NULL, &r->err);
    good(collective_gather(c, "abc", (size_t)collective_rank(c), &all, NULL, &r->err), &r->err);
    ck_assert_uint_eq(all.size, 3);
    ck_assert_mem_eq(all.data, "aab", 3);
    buffer_release(&all);
}

START_TEST(who_waits_hears_of_an_error_elsewhere)
{
    char want[256];

    for (unsigned seed = 1; seed <= 10; seed++) {
        setup();
        for (int i = 0; i < 3; i++)
            rank[i].count = (size_t)_i;
        play(3, seed, play_failure);
        expect_all(3, CHEX_ERR_DAMAGED);
        name_host(want, sizeof(want), 1);
        strcat(want, ": bad record");
        ck_assert_str_eq(rank[0].err.text, want);
        ck_assert_str_eq(rank[1].err.text, "bad record");
        ck_assert_str_eq(rank[2].err.text, want);
        /* A sum that a rank did not take part in leaves transfers, and so does what rank 0 sends to rank 1; rank 2 may
         * have got its part or not. */
        ck_assert(rank[0].broken == (_i == 1 || _i == 2));
        ck_assert(_i == 2 || rank[2].broken == (_i == 1));
    }
}
END_TEST

/* The last rank ends the sum before all others do and fails after it: theirs ends well. */
static void
play_late_failure(struct rank *r, struct collective *c)
{
    play_sum(r, c);
    if (collective_rank(c) == collective_size(c) - 1)
        r->status = chex_fail(&r->err, CHEX_ERR_WRITE, "disk full");
    r->status = collective_agree(c, r->status, NULL, &r->err);
}

START_TEST(an_error_after_a_sum_does_not_disturb_those_that_are_still_in_it)
{
    for (unsigned seed = 1; seed <= 30; seed++) {
        setup();
        for (int i = 0; i < 4; i++)
            rank[i].count = 999;
        play(4, seed, play_late_failure);
        expect_all(4, CHEX_ERR_WRITE);
        for (int i = 0; i < 4; i++)
            ck_assert(!rank[i].broken);
    }
}
END_TEST

static void
play_different(struct rank *r, struct collective *c)
{
    struct buffer all = {0};
    float data[4] = {0};

    if (collective_rank(c) == 0)
        r->status = collective_gather(c, "x", 1, &all, NULL, &r->err);
    else if (r->count == 1)
        r->status = collective_broadcast(c, data, sizeof(data), &r->err);
    else if (r->count == 2 && (r->status = collective_sum_start(c, data, 4, &r->err)) == CHEX_OK)
        r->status = collective_sum_wait(c, &r->err);
    r->status = collective_agree(c, r->status, NULL, &r->err);
    buffer_release(&all);
}

START_TEST(ranks_that_make_different_calls_are_a_bug_and_no_hang)
{
    for (int i = 0; i < 3; i++)
        rank[i].count = (size_t)_i;
    play(3, 1, play_different);
    expect_all(3, CHEX_ERR_BUG);
}
END_TEST

/* What one rank says it does differs. */
static void
play_compare(struct rank *r, struct collective *c)
{
    static const char *const text[] = {"version 1\nseed 1\nbatch 64\n", "version 1\nseed 1\nbatch 64\n",
                                       "version 1\nseed 7\nbatch 32\n", "version 1\nseed 1\nbatch 64\nmore\n"};

    r->status = collective_compare(c, CHEX_OK, text[collective_rank(c)], &r->err);
}

START_TEST(ranks_that_do_something_else_are_named_with_the_difference)
{
    char want[256];

    play(2, 1, play_compare);
    expect_all(2, CHEX_OK);
    play(4, 1, play_compare);
    expect_all(4, CHEX_ERR_USAGE);
    name_host(want, sizeof(want), 2);
    strcat(want, " does not do the same as rank 0: it has 'seed 7', rank 0 'seed 1'");
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(rank[i].err.text, want);
}
END_TEST

/* ---- who is lost ---------------------------------------------------------------------------------------------- */

/* The last rank falls silent after it was there; count says what the others wait in. */
static void
play_lost(struct rank *r, struct collective *c)
{
    struct buffer all = {0};
    float data[100] = {0};

    if (collective_rank(c) == collective_size(c) - 1)
        return;
    if (r->count == 0)
        r->status = collective_gather(c, "x", 1, &all, NULL, &r->err);
    else if (r->count == 1)
        r->status = collective_agree(c, CHEX_OK, NULL, &r->err);
    else if ((r->status = collective_sum_start(c, data, 100, &r->err)) == CHEX_OK)
        r->status = collective_sum_wait(c, &r->err);
    ck_assert_int_eq(collective_agree(c, CHEX_OK, NULL, NULL), CHEX_ERR_LOST);
    ck_assert_int_eq(collective_agree(c, CHEX_ERR_READ, NULL, NULL), CHEX_ERR_READ);
    buffer_release(&all);
}

START_TEST(a_rank_that_falls_silent_is_named_by_all_others)
{
    char want[256], who[128];

    for (int i = 0; i < 3; i++) {
        rank[i].options.timeout = 0.6;
        rank[i].count = (size_t)_i;
    }
    play(3, 1, play_lost);
    name_host(who, sizeof(who), 2);
    snprintf(want, sizeof(want), "no progress for 0.6 s; waiting for %s", who);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(rank[i].status, CHEX_ERR_LOST);
        ck_assert_str_eq(rank[i].err.text, want);
        ck_assert(rank[i].broken && rank[i].speaks == (i == 0));
    }
}
END_TEST

/* Rank 0 is the silent one: rank 1 speaks, and its abort ends the run. */
static void
play_without_lead(struct rank *r, struct collective *c)
{
    if (collective_rank(c) == 0)
        return;
    r->status = collective_agree(c, CHEX_OK, NULL, &r->err);
    if (collective_speaks(c))
        collective_abort(c, 8);
}

START_TEST(where_rank_0_is_lost_the_next_one_speaks)
{
    for (int i = 0; i < 3; i++)
        rank[i].options.timeout = 0.6;
    play(3, 0, play_without_lead);
    ck_assert(!rank[2].speaks && rank[1].speaks);
    ck_assert_int_eq(office.aborted, 1);
    ck_assert_int_eq(office.exit_code, 8);
}
END_TEST

/* Rank 1 works three timeouts long, and calls poll() now and then. */
static void
play_long_work(struct rank *r, struct collective *c)
{
    for (int i = 0; i < 60 && collective_rank(c) == 1; i++) {
        sleep_for(r->options.timeout / 20);
        good(collective_sum_poll(c, &r->err), &r->err);
    }
    r->status = collective_agree(c, CHEX_OK, NULL, &r->err);
}

START_TEST(a_rank_that_works_for_long_and_tells_so_is_not_lost)
{
    for (int i = 0; i < 3; i++)
        rank[i].options.timeout = 0.6;
    play(3, 0, play_long_work);
    expect_all(3, CHEX_OK);
}
END_TEST

static void
on_hurried(void *context, const char *text)
{
    struct rank *r = context;

    ck_assert_str_eq(r->told, "");
    snprintf(r->told, sizeof(r->told), "%s", text);
}

static void
set_hurry(int size)
{
    for (int i = 0; i < size; i++)
        rank[i].options = (struct collective_options){
            .timeout = 60, .hurry = &hurry, .grace = 0.4, .hurried = on_hurried, .context = &rank[i]};
    atomic_store(&hurry, true);
}

START_TEST(after_a_signal_nobody_waits_for_long)
{
    char want[256], who[128];

    set_hurry(3);
    play(3, 0, play_lost);
    name_host(who, sizeof(who), 2);
    snprintf(want, sizeof(want), "no progress for 0.4 s; waiting for %s", who);
    ck_assert_int_eq(rank[0].status, CHEX_ERR_LOST);
    ck_assert_str_eq(rank[0].err.text, want);
    snprintf(want, sizeof(want), "waiting for %s", who);
    ck_assert_str_eq(rank[0].told, want);
}
END_TEST

/* All were there after the signal; then rank 1 saves for longer than the grace. */
static void
play_saving(struct rank *r, struct collective *c)
{
    good(collective_agree(c, CHEX_OK, NULL, &r->err), &r->err);
    if (collective_rank(c) == 1)
        sleep_for(1.0);
    r->status = collective_agree(c, CHEX_OK, NULL, &r->err);
}

START_TEST(once_all_met_after_a_signal_saving_may_take_its_time)
{
    set_hurry(3);
    play(3, 0, play_saving);
    expect_all(3, CHEX_OK);
    ck_assert_str_eq(rank[0].told, "");
}
END_TEST

Suite *
collective_suite(void)
{
    Suite *suite = suite_create("collective");
    TCase *tests = tcase_create("collective");

    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_add_test(tests, a_process_that_is_alone_has_all_calls);
    tcase_add_loop_test(tests, sums_have_the_bits_of_adding_in_the_order_of_ranks, 0, 5);
    tcase_add_test(tests, another_order_of_adding_would_give_other_bits);
    tcase_add_loop_test(tests, buckets_are_summed_while_others_are_under_way, 0, 5);
    tcase_add_loop_test(tests, a_broadcast_reaches_all, 0, 4);
    tcase_add_test(tests, a_long_broadcast_goes_in_pieces);
    tcase_add_test(tests, everyone_gets_what_all_have_in_the_order_of_ranks);
    tcase_add_test(tests, the_error_of_one_is_the_error_of_all_with_its_name);
    tcase_add_test(tests, to_be_stopped_is_less_than_an_error);
    tcase_add_loop_test(tests, who_waits_hears_of_an_error_elsewhere, 0, 4);
    tcase_add_test(tests, an_error_after_a_sum_does_not_disturb_those_that_are_still_in_it);
    tcase_add_loop_test(tests, ranks_that_make_different_calls_are_a_bug_and_no_hang, 0, 3);
    tcase_add_test(tests, ranks_that_do_something_else_are_named_with_the_difference);
    tcase_add_loop_test(tests, a_rank_that_falls_silent_is_named_by_all_others, 0, 3);
    tcase_add_test(tests, where_rank_0_is_lost_the_next_one_speaks);
    tcase_add_test(tests, a_rank_that_works_for_long_and_tells_so_is_not_lost);
    tcase_add_test(tests, after_a_signal_nobody_waits_for_long);
    tcase_add_test(tests, once_all_met_after_a_signal_saving_may_take_its_time);
    suite_add_tcase(suite, tests);
    return suite;
}
