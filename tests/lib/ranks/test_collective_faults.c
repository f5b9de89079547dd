/*
 * test_collective_faults.c - ranks that fail, differ, or are lost (collective.h): the error is reported once, and no
 * rank waits forever
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "rank_fixture.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- meetings and errors -------------------------------------------------------------------------------------- */

/* rank[].status is the status of each rank. */
static void
play_agree(struct rank *r, struct collective *c)
{
    uint64_t flags = (uint64_t)collective_rank(c) << 8;

    if (r->status != CHEX_OK)
        error_set(&r->err, r->status, "trouble %d", collective_rank(c));
    r->status = collective_agree(c, r->status, &flags, &r->err);
    ck_assert_uint_eq(flags, 0x300);
}

TEST_CASE("collective", "faults", ranks_setup, NULL);

TEST(the_error_of_one_is_the_error_of_all_with_its_name)
{
    char want[256];

    rank[2].status = CHEX_ERR_READ;
    rank[3].status = CHEX_ERR_WRITE;
    ranks_play(4, 3, play_agree);
    ranks_expect(4, CHEX_ERR_READ);
    rank_host(want, sizeof(want), 2);
    strcat(want, ": trouble 2");
    ck_assert_str_eq(rank[0].err.text, want);
    ck_assert_str_eq(rank[1].err.text, want);
    ck_assert_str_eq(rank[2].err.text, "trouble 2");
    ck_assert_str_eq(rank[3].err.text, want);
    ck_assert(!rank[0].broken && rank[0].speaks && !rank[1].speaks);
}

TEST(to_be_stopped_is_less_than_an_error)
{
    rank[0].status = CHEX_ERR_STOPPED;
    rank[3].status = CHEX_ERR_DAMAGED;
    ranks_play(4, 3, play_agree);
    ranks_expect(4, CHEX_ERR_DAMAGED);
    ck_assert_ptr_nonnull(strstr(rank[0].err.text, "trouble 3"));
    ranks_setup();
    rank[1].status = CHEX_ERR_STOPPED;
    ranks_play(4, 3, play_agree);
    ranks_expect(4, CHEX_ERR_STOPPED);
}

/* Rank 1 has an error while the others wait in one of the calls; after the meeting all continue. */
static void
play_failure(struct rank *r, struct collective *c)
{
    double data[10] = {0};
    struct buffer all = {0};

    if (collective_rank(c) == 1) {
        r->status = error_set(&r->err, CHEX_ERR_DAMAGED, "bad record");
    } else if (r->count == 0) {
        r->status = collective_allgather(c, "x", 1, &all, NULL, &r->err);
    } else if (r->count == 1) {
        r->status = collective_allreduce_start(c, data, 10, &r->err);
        if (r->status == CHEX_OK)
            r->status = collective_allreduce_wait(c, &r->err);
    } else if (r->count == 2) {
        r->status = collective_broadcast(c, data, sizeof(data), &r->err);
        if (r->status == CHEX_OK) /* the call of this rank does not depend on rank 1 */
            r->status = collective_allgather(c, "x", 1, &all, NULL, &r->err);
    } else {
        r->status = CHEX_OK;
    }
    ck_assert(r->status != CHEX_OK || r->count == 3);
    r->status = collective_agree(c, r->status, NULL, &r->err);
    ranks_good(collective_allgather(c, "abc", (size_t)collective_rank(c), &all, NULL, &r->err), &r->err);
    ck_assert_uint_eq(all.size, 3);
    ck_assert_mem_eq(all.data, "aab", 3);
    buffer_release(&all);
}

LOOP_TEST(who_waits_hears_of_an_error_elsewhere, 0, 4)
{
    char want[256];

    for (unsigned seed = 1; seed <= 10; seed++) {
        ranks_setup();
        for (int i = 0; i < 3; i++)
            rank[i].count = (size_t)_i;
        ranks_play(3, seed, play_failure);
        ranks_expect(3, CHEX_ERR_DAMAGED);
        rank_host(want, sizeof(want), 1);
        strcat(want, ": bad record");
        ck_assert_str_eq(rank[0].err.text, want);
        ck_assert_str_eq(rank[1].err.text, "bad record");
        ck_assert_str_eq(rank[2].err.text, want);
        /*
         * An abandoned sum leaves open transfers, and so does a transfer from rank 0 to rank 1; rank 2 may have
         * received its part or not.
         */
        ck_assert(rank[0].broken == (_i == 1 || _i == 2));
        ck_assert(_i == 2 || rank[2].broken == (_i == 1));
    }
}

/* The last rank completes the sum before the others and fails after it; theirs must succeed. */
static void
play_late_failure(struct rank *r, struct collective *c)
{
    ranks_play_sum(r, c);
    if (collective_rank(c) == collective_size(c) - 1)
        r->status = error_set(&r->err, CHEX_ERR_WRITE, "disk full");
    r->status = collective_agree(c, r->status, NULL, &r->err);
}

TEST(an_error_after_a_sum_does_not_disturb_those_that_are_still_in_it)
{
    for (unsigned seed = 1; seed <= 30; seed++) {
        ranks_setup();
        for (int i = 0; i < 4; i++)
            rank[i].count = 999;
        ranks_play(4, seed, play_late_failure);
        ranks_expect(4, CHEX_ERR_WRITE);
        for (int i = 0; i < 4; i++)
            ck_assert(!rank[i].broken);
    }
}

static void
play_different(struct rank *r, struct collective *c)
{
    struct buffer all = {0};
    double data[4] = {0};

    if (collective_rank(c) == 0)
        r->status = collective_allgather(c, "x", 1, &all, NULL, &r->err);
    else if (r->count == 1)
        r->status = collective_broadcast(c, data, sizeof(data), &r->err);
    else if (r->count == 2 && (r->status = collective_allreduce_start(c, data, 4, &r->err)) == CHEX_OK)
        r->status = collective_allreduce_wait(c, &r->err);
    r->status = collective_agree(c, r->status, NULL, &r->err);
    buffer_release(&all);
}

LOOP_TEST(ranks_that_make_different_calls_are_a_bug_and_no_hang, 0, 3)
{
    for (int i = 0; i < 3; i++)
        rank[i].count = (size_t)_i;
    ranks_play(3, 1, play_different);
    ranks_expect(3, CHEX_ERR_BUG);
}

/* The text of one rank differs. */
static void
play_compare(struct rank *r, struct collective *c)
{
    static const char *const text[] = {"version 1\nseed 1\nbatch 64\n", "version 1\nseed 1\nbatch 64\n",
                                       "version 1\nseed 7\nbatch 32\n", "version 1\nseed 1\nbatch 64\nmore\n"};

    r->status = collective_compare(c, CHEX_OK, text[collective_rank(c)], &r->err);
}

TEST(ranks_that_do_something_else_are_named_with_the_difference)
{
    char want[256];

    ranks_play(2, 1, play_compare);
    ranks_expect(2, CHEX_OK);
    ranks_play(4, 1, play_compare);
    ranks_expect(4, CHEX_ERR_USAGE);
    rank_host(want, sizeof(want), 2);
    strcat(want, " does not do the same as rank 0: it has 'seed 7', rank 0 'seed 1'");
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(rank[i].err.text, want);
}

/* ---- lost ranks ----------------------------------------------------------------------------------------------- */

/* Timeout in seconds: on a busy machine a rank that is not lost may be a second late. */
#define PATIENT 3

/* The last rank falls silent after it was connected; count selects what the others wait in. */
static void
play_lost(struct rank *r, struct collective *c)
{
    struct buffer all = {0};
    double data[100] = {0};

    if (collective_rank(c) == collective_size(c) - 1)
        return;
    if (r->count == 0)
        r->status = collective_allgather(c, "x", 1, &all, NULL, &r->err);
    else if (r->count == 1)
        r->status = collective_agree(c, CHEX_OK, NULL, &r->err);
    else if ((r->status = collective_allreduce_start(c, data, 100, &r->err)) == CHEX_OK)
        r->status = collective_allreduce_wait(c, &r->err);
    ck_assert_int_eq(collective_agree(c, CHEX_OK, NULL, NULL), CHEX_ERR_LOST);
    ck_assert_int_eq(collective_agree(c, CHEX_ERR_READ, NULL, NULL), CHEX_ERR_READ);
    buffer_release(&all);
}

LOOP_TEST(a_rank_that_falls_silent_is_named_by_all_others, 0, 3)
{
    char want[256], who[128];

    for (int i = 0; i < 3; i++) {
        rank[i].options.timeout = PATIENT;
        rank[i].count = (size_t)_i;
    }
    ranks_play(3, 1, play_lost);
    rank_host(who, sizeof(who), 2);
    snprintf(want, sizeof(want), "%s is lost: no message for 3 s", who);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(rank[i].status, CHEX_ERR_LOST);
        ck_assert_str_eq(rank[i].err.text, want);
        ck_assert(rank[i].broken && rank[i].speaks == (i == 0));
    }
}

/* Rank 0 is silent, so rank 1 reports the error, and its abort ends the run. */
static void
play_without_lead(struct rank *r, struct collective *c)
{
    if (collective_rank(c) == 0)
        return;
    r->status = collective_agree(c, CHEX_OK, NULL, &r->err);
    if (collective_reports_errors(c))
        collective_abort(c, 8);
}

TEST(where_rank_0_is_lost_the_next_one_speaks)
{
    for (int i = 0; i < 3; i++)
        rank[i].options.timeout = PATIENT;
    ranks_play(3, 0, play_without_lead);
    ck_assert(!rank[2].speaks && rank[1].speaks);
    ck_assert_int_eq(ranks_office.aborted, 1);
    ck_assert_int_eq(ranks_office.exit_code, 8);
}

/* Rank 1 works for two timeouts and calls poll() now and then. */
static void
play_long_work(struct rank *r, struct collective *c)
{
    for (int i = 0; i < 40 && collective_rank(c) == 1; i++) {
        rank_sleep(r->options.timeout / 20);
        ranks_good(collective_poll(c, &r->err), &r->err);
    }
    r->status = collective_agree(c, CHEX_OK, NULL, &r->err);
}

TEST(a_rank_that_works_for_long_and_reports_it_is_not_lost)
{
    for (int i = 0; i < 3; i++)
        rank[i].options.timeout = PATIENT;
    ranks_play(3, 0, play_long_work);
    ranks_expect(3, CHEX_OK);
}

/* Ranks 0 and 2 wait for their devices and watch; rank 1 computes for a while, then is silent or has an error. */
static void
play_watch(struct rank *r, struct collective *c)
{
    double waited = 0;

    for (int i = 0; i < 20 && collective_rank(c) == 1; i++) {
        rank_sleep(r->options.timeout / 20);
        ranks_good(collective_poll(c, &r->err), &r->err);
    }
    if (collective_rank(c) == 1 && r->count == 0)
        return;
    if (collective_rank(c) == 1)
        r->status = error_set(&r->err, CHEX_ERR_DAMAGED, "bad record");
    while (r->status == CHEX_OK) {
        r->status = collective_watch(c, &waited, &r->err);
        rank_sleep(0.001);
    }
    r->status = collective_agree(c, r->status, NULL, &r->err);
    /* The time was spent waiting for the device, not for a rank. */
    ck_assert(collective_rank(c) == 1 || (waited >= r->options.timeout / 2 && collective_waited(c) < waited / 2));
}

LOOP_TEST(who_waits_for_its_device_hears_of_the_others_and_does_not_count_as_waiting_for_them, 0, 2)
{
    char want[256], who[128];

    for (int i = 0; i < 3; i++) {
        rank[i].options.timeout = PATIENT;
        rank[i].count = (size_t)_i;
    }
    ranks_play(3, 1, play_watch);
    rank_host(who, sizeof(who), 1);
    snprintf(want, sizeof(want), _i == 0 ? "%s is lost: no message for 3 s" : "%s: bad record", who);
    for (int i = 0; i < 3; i += 2) {
        ck_assert_int_eq(rank[i].status, _i == 0 ? CHEX_ERR_LOST : CHEX_ERR_DAMAGED);
        ck_assert_str_eq(rank[i].err.text, want);
        ck_assert(rank[i].broken == (_i == 0));
    }
}

static void
on_waiting(void *context, const char *text)
{
    struct rank *r = context;

    ck_assert_str_eq(r->told, "");
    snprintf(r->told, sizeof(r->told), "%s", text);
}

static void
set_hurry(int size)
{
    for (int i = 0; i < size; i++)
        rank[i].options = (struct collective_options){.timeout = 600,
                                                      .terminating = &ranks_hurry,
                                                      .grace = PATIENT,
                                                      .warn_waiting = on_waiting,
                                                      .context = &rank[i]};
    atomic_store(&ranks_hurry, true);
}

TEST(after_a_signal_nobody_waits_for_long)
{
    char want[256], who[128];

    set_hurry(3);
    ranks_play(3, 0, play_lost);
    rank_host(who, sizeof(who), 2);
    snprintf(want, sizeof(want), "waiting for %s", who);
    ck_assert_int_eq(rank[0].status, CHEX_ERR_LOST);
    /* The number of seconds depends on how quiet the ranks were before, as on a busy machine. */
    ck_assert_msg(strncmp(rank[0].err.text, who, strlen(who)) == 0 &&
                      strstr(rank[0].err.text, " is lost: no message for "),
                  "%s", rank[0].err.text);
    ck_assert_str_eq(rank[0].told, want);
}

/* All ranks were connected after the signal; then rank 1 saves for longer than the grace period. */
static void
play_saving(struct rank *r, struct collective *c)
{
    ranks_good(collective_agree(c, CHEX_OK, NULL, &r->err), &r->err);
    if (collective_rank(c) == 1)
        rank_sleep(1.5 * PATIENT);
    r->status = collective_agree(c, CHEX_OK, NULL, &r->err);
}

TEST(once_all_met_after_a_signal_saving_may_take_its_time)
{
    set_hurry(3);
    ranks_play(3, 0, play_saving);
    ranks_expect(3, CHEX_OK);
    ck_assert_str_eq(rank[0].told, "");
}
