/*
 * test_ranks.c - ranks that meet at barriers (comm.h, ranks.h)
 *
 * The ranks are threads here (post_office.h): what is tested is ranks.c, and one that sends nothing is easy to have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "cases.h"
#include "post_office.h"
#include "ranks/ranks.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { RANKS = 4, BARRIERS = 50 };

static struct post_office office;

/* What a rank does before its barrier, and how that ended. */
struct member {
    struct comm *comm;
    enum chex_status status; /* with which it comes */
    bool silent;             /* it sends nothing at all */
    bool waits_for_stop;     /* it works until it has to stop */
    const atomic_bool *user_stop;
    const char *compares; /* a text, NULL: it does not */
    double silence;
    unsigned barriers;         /* how many, one behind the other */
    enum chex_status returned; /* by the last */
    struct chex_error err;
    uint64_t sum[RANKS_SUMS];
    unsigned wrong; /* sums */
};

static struct member member[RANKS];

static void
pass_barriers(struct member *m, struct ranks *ranks)
{
    for (unsigned i = 0; i < m->barriers && m->returned == CHEX_OK; i++) {
        uint64_t rank = (uint64_t)m->comm->rank, sum[RANKS_SUMS] = {1, rank, i};

        m->returned = ranks_barrier(ranks, m->status, sum, &m->err);
        memcpy(m->sum, sum, sizeof(sum));
        m->wrong += sum[0] != RANKS || sum[1] != RANKS * (RANKS - 1) / 2 || sum[2] != i * (uint64_t)RANKS;
    }
}

static void *
live(void *argument)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    struct member *m = argument;
    struct ranks ranks;

    m->err.text[0] = '\0';
    if (m->silent || ranks_init(&ranks, m->comm, &m->err) != CHEX_OK)
        return NULL;
    ranks.silence = m->silence;
    ranks.user_stop = m->user_stop;
    if (m->waits_for_stop) {
        for (; !atomic_load(&ranks.stop); nanosleep(&pause, NULL))
            ranks_poll(&ranks);
        m->status = error_stopped(&m->err);
    } else if (m->status != CHEX_OK) {
        error_set(&m->err, m->status, "error of %d", m->comm->rank);
    }
    if (m->compares)
        m->returned = ranks_compare(&ranks, m->status, m->compares, &m->err);
    else
        pass_barriers(m, &ranks);
    ranks_release(&ranks);
    return NULL;
}

static void
setup(void)
{
    post_office_init(&office, RANKS, 0);
    for (int i = 0; i < RANKS; i++)
        member[i] = (struct member){.comm = &office.comm[i], .silence = 60, .barriers = 1};
}

static void
teardown(void)
{
    post_office_release(&office);
}

static void
run_ranks(void)
{
    post_office_run(RANKS, live, member, sizeof(member[0]));
}

/* All ranks know the same. */
static void
expect_all(enum chex_status status, const char *text)
{
    for (int i = 0; i < RANKS; i++) {
        ck_assert_msg(member[i].returned == status, "rank %d: %s", i, chex_status_name(member[i].returned));
        ck_assert_msg(!text || strstr(member[i].err.text, text), "rank %d: %s", i, member[i].err.text);
    }
}

/* ---- barriers ------------------------------------------------------------------------------------------------- */

START_TEST(a_process_that_is_alone_waits_for_none)
{
    struct comm alone = comm_self();
    uint64_t sum[RANKS_SUMS] = {7};
    struct chex_error err;
    struct ranks ranks;

    ck_assert_int_eq(alone.size, 1);
    ck_assert_int_eq(ranks_init(&ranks, &alone, &err), CHEX_OK);
    ranks_poll(&ranks);
    ck_assert_int_eq(ranks_barrier(&ranks, CHEX_OK, sum, &err), CHEX_OK);
    ck_assert_uint_eq(sum[0], 7);
    ck_assert_int_eq(ranks_barrier(&ranks, error_set(&err, CHEX_ERR_WRITE, "disk full"), NULL, &err), CHEX_ERR_WRITE);
    ck_assert_str_eq(err.text, "disk full");
    ck_assert_int_eq(ranks_compare(&ranks, CHEX_OK, "seed 1\n", &err), CHEX_OK);
    ck_assert_int_eq(alone.ops->send(&alone, 1, 0, "", 0, &err), CHEX_ERR_BUG);
    ranks_release(&ranks);
}
END_TEST

START_TEST(all_ranks_get_the_sums)
{
    run_ranks();
    expect_all(CHEX_OK, NULL);
    for (int i = 0; i < RANKS; i++) {
        ck_assert_uint_eq(member[i].sum[0], RANKS);
        ck_assert_uint_eq(member[i].sum[1], 6);
        ck_assert_uint_eq(member[i].sum[3], 0);
    }
}
END_TEST

/* Messages come late, and a rank may be at the next barrier already. */
START_TEST(barriers_one_behind_the_other_are_not_mixed_up)
{
    post_office_release(&office);
    post_office_init(&office, RANKS, 7);
    for (int i = 0; i < RANKS; i++)
        member[i].barriers = BARRIERS;
    run_ranks();
    expect_all(CHEX_OK, NULL);
    for (int i = 0; i < RANKS; i++)
        ck_assert_uint_eq(member[i].wrong, 0);
}
END_TEST

START_TEST(the_error_of_one_is_the_error_of_all_and_names_the_rank)
{
    member[2].status = CHEX_ERR_WRITE;
    run_ranks();
    expect_all(CHEX_ERR_WRITE, "error of 2");
    ck_assert_ptr_eq(strstr(member[0].err.text, "rank 2 "), member[0].err.text);
    ck_assert_ptr_nonnull(strstr(member[0].err.text, ": error of 2"));
}
END_TEST

START_TEST(an_error_of_rank_0_needs_no_name)
{
    member[0].status = CHEX_ERR_LOCKED;
    member[3].status = CHEX_ERR_WRITE;
    run_ranks();
    expect_all(CHEX_ERR_LOCKED, NULL);
    ck_assert_str_eq(member[1].err.text, "error of 0");
}
END_TEST

/* They stop because of it, and that does not hide it. */
START_TEST(an_error_stops_the_peers_that_still_work)
{
    member[0].waits_for_stop = member[1].waits_for_stop = member[3].waits_for_stop = true;
    member[2].status = CHEX_ERR_READ;
    run_ranks();
    expect_all(CHEX_ERR_READ, "error of 2");
}
END_TEST

START_TEST(a_wish_to_stop_at_one_rank_stops_all)
{
    static const atomic_bool wish = true;

    for (int i = 0; i < RANKS; i++)
        member[i].waits_for_stop = true;
    member[2].user_stop = &wish;
    run_ranks();
    expect_all(CHEX_ERR_STOPPED, "stopped on request");
}
END_TEST

/* ---- comparing ------------------------------------------------------------------------------------------------ */

START_TEST(ranks_that_do_the_same_are_told_nothing)
{
    for (int i = 0; i < RANKS; i++)
        member[i].compares = "seed 1\nsize 256\n";
    run_ranks();
    expect_all(CHEX_OK, NULL);
}
END_TEST

START_TEST(the_first_line_in_which_a_rank_differs_is_told)
{
    for (int i = 0; i < RANKS; i++)
        member[i].compares = i < 2 ? "seed 1\nsize 256\nview PA\n" : "seed 1\nsize 64\nview AP\n";
    run_ranks();
    expect_all(CHEX_ERR_USAGE, "does not do the same as rank 0: it has 'size 64', rank 0 'size 256'");
    ck_assert_ptr_eq(strstr(member[0].err.text, "rank 2 "), member[0].err.text);
}
END_TEST

START_TEST(a_rank_that_failed_before_is_not_compared)
{
    for (int i = 0; i < RANKS; i++)
        member[i].compares = "seed 1\n";
    member[1].status = CHEX_ERR_MISSING;
    run_ranks();
    expect_all(CHEX_ERR_MISSING, "error of 1");
}
END_TEST

START_TEST(another_version_of_the_program_is_told)
{
    struct chex_error err;

    member[3].silent = true;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(office.comm[3].ops->send(&office.comm[3], i, 3, "0\nhost\n\n", 8, &err), CHEX_OK);
    run_ranks();
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(member[i].returned, CHEX_ERR_USAGE);
        ck_assert_str_eq(member[i].err.text, "rank 3 runs another version of this program");
    }
}
END_TEST

/* ---- lost ranks ----------------------------------------------------------------------------------------------- */

START_TEST(one_that_falls_silent_is_lost_and_none_waits_for_ever)
{
    for (int i = 0; i < RANKS; i++)
        member[i].silence = i == 0 ? 0.3 : 2; /* a busy machine is silent for a while, too */
    member[3].silent = true;
    run_ranks();
    ck_assert_int_eq(member[0].returned, CHEX_ERR_LOST);
    ck_assert_msg(strstr(member[0].err.text, "rank 3 is lost"), "%s", member[0].err.text);
    /* The launcher ends them; where it does not, they notice that rank 0 is gone. */
    ck_assert_int_eq(member[1].returned, CHEX_ERR_LOST);
    ck_assert_ptr_nonnull(strstr(member[1].err.text, "rank 0"));
}
END_TEST

/* A rank 0 that works is stopped by the loss: that is the reason, and no wish to stop. */
START_TEST(a_rank_0_that_is_stopped_by_the_loss_says_that_one_is_lost)
{
    for (int i = 0; i < RANKS; i++)
        member[i].silence = i == 0 ? 0.3 : 2;
    member[0].waits_for_stop = true;
    member[3].silent = true;
    run_ranks();
    ck_assert_int_eq(member[0].returned, CHEX_ERR_LOST);
    ck_assert_msg(strstr(member[0].err.text, "rank 3 is lost"), "%s", member[0].err.text);
}
END_TEST

/* An error of its own explains more than the loss that followed it. */
START_TEST(an_error_of_rank_0_is_told_beside_a_loss)
{
    for (int i = 0; i < RANKS; i++)
        member[i].silence = i == 0 ? 0.3 : 2;
    member[0].status = CHEX_ERR_WRITE;
    member[3].silent = true;
    run_ranks();
    ck_assert_int_eq(member[0].returned, CHEX_ERR_WRITE);
    ck_assert_str_eq(member[0].err.text, "error of 0");
}
END_TEST

void
ranks_case(Suite *suite)
{
    TCase *tests = tcase_create("ranks");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_process_that_is_alone_waits_for_none);
    tcase_add_test(tests, all_ranks_get_the_sums);
    tcase_add_test(tests, barriers_one_behind_the_other_are_not_mixed_up);
    tcase_add_test(tests, the_error_of_one_is_the_error_of_all_and_names_the_rank);
    tcase_add_test(tests, an_error_of_rank_0_needs_no_name);
    tcase_add_test(tests, an_error_stops_the_peers_that_still_work);
    tcase_add_test(tests, a_wish_to_stop_at_one_rank_stops_all);
    tcase_add_test(tests, ranks_that_do_the_same_are_told_nothing);
    tcase_add_test(tests, the_first_line_in_which_a_rank_differs_is_told);
    tcase_add_test(tests, a_rank_that_failed_before_is_not_compared);
    tcase_add_test(tests, another_version_of_the_program_is_told);
    tcase_add_test(tests, one_that_falls_silent_is_lost_and_none_waits_for_ever);
    tcase_add_test(tests, a_rank_0_that_is_stopped_by_the_loss_says_that_one_is_lost);
    tcase_add_test(tests, an_error_of_rank_0_is_told_beside_a_loss);
    suite_add_tcase(suite, tests);
}
