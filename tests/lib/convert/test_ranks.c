/*
 * test_ranks.c - ranks that work independently and meet (rank_work.h)
 *
 * The ranks are threads (post_office.h), so a silent rank is easy to make.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/rank_work.h"
#include "fakes/comm/post_office.h"
#include "ranks/collective_private.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { RANKS = 4, MEETINGS = 50, NUMBERS = 4 };

static struct post_office office;

/* The work of a rank before it meets, and its result. */
struct member {
    struct comm *comm;
    enum chex_status status; /* its status at the meeting */
    bool silent;             /* it sends nothing after it is connected */
    bool old;                /* its program is of another version */
    bool waits_for_stop;     /* it works until it has to stop */
    bool slow_start;
    const atomic_bool *user_stop;
    double timeout;
    unsigned meetings;         /* number of meetings, until one returns an error */
    enum chex_status returned; /* status of the last one */
    struct chex_error err;
    uint64_t sum[NUMBERS];
    unsigned wrong; /* sums that were wrong */
    struct collective *ranks;
};

static struct member member[RANKS];

static void
meet_often(struct member *m, struct rank_work *work)
{
    for (unsigned i = 0; i < m->meetings && m->returned == CHEX_OK; i++) {
        uint64_t rank = (uint64_t)m->comm->rank, sum[NUMBERS] = {1, rank, i};

        m->returned = rank_work_meet(work, m->status, sum, NUMBERS, &m->err);
        memcpy(m->sum, sum, sizeof(sum));
        m->wrong += sum[0] != RANKS || sum[1] != RANKS * (RANKS - 1) / 2 || sum[2] != i * (uint64_t)RANKS;
    }
}

/* The first message of a version with another protocol. */
static void
connect_as_another_version(struct comm *comm)
{
    char message[sizeof(struct head) + 64] = {0};
    int length = snprintf(message + sizeof(struct head), 64, "chex-collective 0 n07");
    struct chex_error err;

    for (int i = 0; i < RANKS; i++)
        if (i != comm->rank)
            ck_assert_int_eq(comm->ops->send(comm, i, TAG_GATHER, message, sizeof(struct head) + (size_t)length, &err),
                             CHEX_OK);
}

static void *
live(void *argument)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    struct member *m = argument;
    const struct collective_options options = {
        .timeout = m->timeout, .slow_start = m->slow_start, .stop = m->user_stop};
    struct rank_work work = {0};

    m->err.text[0] = '\0';
    if (m->old) {
        connect_as_another_version(m->comm);
        return NULL;
    }
    m->returned = collective_new(m->comm, &options, &m->ranks, &m->err);
    if (m->returned != CHEX_OK || m->silent)
        return NULL;
    work.ranks = m->ranks;
    if (m->waits_for_stop) {
        for (; !atomic_load(&work.stop); nanosleep(&pause, NULL))
            rank_work_poll(&work);
        m->status = error_stopped(&m->err);
    } else if (m->status != CHEX_OK) {
        error_set(&m->err, m->status, "error of %d", m->comm->rank);
    }
    meet_often(m, &work);
    return NULL;
}

static void
setup(void)
{
    post_office_init(&office, RANKS, 0);
    for (int i = 0; i < RANKS; i++)
        member[i] = (struct member){.comm = &office.comm[i], .timeout = 60, .meetings = 1};
}

static void
teardown(void)
{
    for (int i = 0; i < RANKS; i++)
        collective_free(member[i].ranks);
    post_office_release(&office);
}

static void
run_ranks(void)
{
    post_office_run(RANKS, live, member, sizeof(member[0]));
}

/* Requires the same result on all ranks. */
static void
expect_all(enum chex_status status, const char *text)
{
    for (int i = 0; i < RANKS; i++) {
        ck_assert_msg(member[i].returned == status, "rank %d: %s", i, chex_status_name(member[i].returned));
        ck_assert_msg(!text || strstr(member[i].err.text, text), "rank %d: %s", i, member[i].err.text);
    }
}

/* ---- meetings ------------------------------------------------------------------------------------------------- */

TEST_CASE("store", "ranks", setup, teardown);

TEST(a_process_that_is_alone_waits_for_none)
{
    struct comm alone = comm_self();
    uint64_t sum[2] = {7, 8};
    struct rank_work work = {0};
    struct chex_error err;

    ck_assert_int_eq(alone.size, 1);
    ck_assert_int_eq(collective_new(&alone, NULL, &work.ranks, &err), CHEX_OK);
    rank_work_poll(&work);
    ck_assert(!atomic_load(&work.stop));
    ck_assert_int_eq(rank_work_meet(&work, CHEX_OK, sum, 2, &err), CHEX_OK);
    ck_assert(sum[0] == 7 && sum[1] == 8);
    error_set(&err, CHEX_ERR_WRITE, "disk full");
    ck_assert_int_eq(rank_work_meet(&work, CHEX_ERR_WRITE, NULL, 0, &err), CHEX_ERR_WRITE);
    ck_assert_str_eq(err.text, "disk full");
    ck_assert_int_eq(alone.ops->send(&alone, 1, 0, "", 0, &err), CHEX_ERR_BUG);
    collective_free(work.ranks);
}

TEST(all_ranks_get_the_sums)
{
    run_ranks();
    expect_all(CHEX_OK, NULL);
    for (int i = 0; i < RANKS; i++) {
        ck_assert_uint_eq(member[i].sum[0], RANKS);
        ck_assert_uint_eq(member[i].sum[1], 6);
        ck_assert_uint_eq(member[i].sum[3], 0);
    }
}

/* Messages come late, and a rank may already be at the next meeting. */
TEST(meetings_one_after_the_other_are_not_mixed_up)
{
    post_office_release(&office);
    post_office_init(&office, RANKS, 7);
    for (int i = 0; i < RANKS; i++)
        member[i].meetings = MEETINGS;
    run_ranks();
    expect_all(CHEX_OK, NULL);
    for (int i = 0; i < RANKS; i++)
        ck_assert_uint_eq(member[i].wrong, 0);
}

TEST(after_an_error_the_sums_still_cover_all_ranks)
{
    member[2].status = CHEX_ERR_WRITE;
    run_ranks();
    expect_all(CHEX_ERR_WRITE, "error of 2");
    for (int i = 0; i < RANKS; i++)
        ck_assert_uint_eq(member[i].wrong, 0);
}

TEST(the_first_error_in_the_order_of_ranks_counts_and_rank_0_reports_it_with_the_name)
{
    member[2].status = CHEX_ERR_WRITE;
    member[3].status = CHEX_ERR_READ;
    run_ranks();
    expect_all(CHEX_ERR_WRITE, "error of 2");
    ck_assert_ptr_eq(strstr(member[0].err.text, "rank 2 "), member[0].err.text);
    ck_assert_ptr_nonnull(strstr(member[0].err.text, ": error of 2"));
}

TEST(rank_0_reports_its_own_error_without_a_name)
{
    member[0].status = CHEX_ERR_LOCKED;
    member[3].status = CHEX_ERR_WRITE;
    run_ranks();
    expect_all(CHEX_ERR_LOCKED, "error of 0");
    ck_assert_str_eq(member[0].err.text, "error of 0");
}

/* The ranks stop because of the error, and stopping does not hide it. */
TEST(an_error_stops_the_ranks_that_still_work)
{
    member[0].waits_for_stop = member[1].waits_for_stop = member[3].waits_for_stop = true;
    member[2].status = CHEX_ERR_READ;
    run_ranks();
    expect_all(CHEX_ERR_READ, "error of 2");
}

/* Rank 2 works, or already waits for the others. */
LOOP_TEST(a_request_to_stop_at_one_rank_stops_all, 0, 2)
{
    static const atomic_bool request = true;

    for (int i = 0; i < RANKS; i++)
        member[i].waits_for_stop = i != 2 || _i == 0;
    member[2].user_stop = &request;
    run_ranks();
    expect_all(CHEX_ERR_STOPPED, "stopped on request");
}

TEST(another_version_of_the_program_is_reported)
{
    member[3].old = true;
    run_ranks();
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(member[i].returned, CHEX_ERR_USAGE);
        ck_assert_str_eq(member[i].err.text, "rank 3 runs another version of this program");
    }
}

/* ---- lost ranks ----------------------------------------------------------------------------------------------- */

/* Rank 0 waits, works until it has to stop, or has an error of its own, which explains more than the loss. */
LOOP_TEST(ranks_that_work_or_wait_notice_that_one_is_lost, 0, 3)
{
    for (int i = 0; i < RANKS; i++)
        member[i].timeout = 6; /* a busy machine is silent for a while, too */
    member[3].silent = true;
    member[0].waits_for_stop = member[1].waits_for_stop = _i == 1;
    member[0].status = _i == 2 ? CHEX_ERR_WRITE : CHEX_OK;
    run_ranks();
    for (int i = 0; i < 3; i++) {
        bool own = _i == 2 && i == 0;

        ck_assert_int_eq(member[i].returned, own ? CHEX_ERR_WRITE : CHEX_ERR_LOST);
        ck_assert_msg(own || (strncmp(member[i].err.text, "rank 3 ", 7) == 0 &&
                              strstr(member[i].err.text, " is lost: no message for 6 s")),
                      "%s", member[i].err.text);
        ck_assert(collective_broken(member[i].ranks) && collective_reports_errors(member[i].ranks) == (i == 0));
    }
}

/* The ranks of a conversion read labels and lists before they meet for the first time. */
TEST(a_slow_start_has_six_times_as_long)
{
    for (int i = 0; i < RANKS; i++) {
        member[i].timeout = 0.5;
        member[i].slow_start = true;
    }
    member[3].silent = true;
    run_ranks();
    ck_assert_int_eq(member[0].returned, CHEX_ERR_LOST);
    ck_assert_ptr_nonnull(strstr(member[0].err.text, " is lost: no message for 3 s"));
}
