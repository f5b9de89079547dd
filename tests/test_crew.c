/*
 * test_crew.c - processes that go through phases together (comm.h, crew.h), and what each of them does (share.h)
 *
 * The processes are threads here (post_office.h): what is tested is the crew, and one that falls silent is easy to
 * have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "base/crew.h"
#include "base/share.h"
#include "cases.h"
#include "post_office.h"

#include <stdio.h>
#include <string.h>

enum { RANKS = 4 };

static struct post_office office;

/* ---- a crew --------------------------------------------------------------------------------------------------- */

/* What a rank does in its one phase, and how it ended. */
struct member {
    struct comm *comm;
    enum chex_status status; /* it reports */
    bool silent;             /* it says nothing at all */
    bool waits_for_stop;     /* it works until it is told to stop */
    double silence;
    enum chex_status reported; /* what its report gave back */
    enum chex_status verdict;
    struct chex_error err;
    char word[32]; /* the lead's */
    size_t heard;  /* bytes of reports that the lead got */
};

static struct member member[RANKS];

static void *
live(void *argument)
{
    struct member *m = argument;
    struct buffer word = {0};
    struct crew crew;

    m->err.text[0] = '\0';
    if (m->silent || crew_init(&crew, m->comm, &m->err) != CHEX_OK)
        return NULL;
    crew.silence = m->silence;
    if (m->waits_for_stop) {
        while (!atomic_load(&crew.stop))
            crew_tick(&crew);
        m->status = chex_fail(&m->err, CHEX_ERR_STOPPED, "stopped on request");
    } else if (m->status != CHEX_OK) {
        chex_fail(&m->err, m->status, "error of %d", m->comm->rank);
    }
    (void)buffer_append(&word, "report", 6, NULL);
    m->reported = m->verdict = crew_report(&crew, m->status, &word, &m->err);
    word.size = 0;
    if (crew_leads(&crew)) {
        for (int i = 1; i < RANKS; i++)
            m->heard += crew.peer[i].data.size;
        (void)buffer_append(&word, "go on", 6, NULL);
    }
    m->verdict = crew_verdict(&crew, m->verdict, &word, &m->err);
    if (word.size > 0)
        snprintf(m->word, sizeof(m->word), "%s", (char *)word.data);
    buffer_release(&word);
    crew_release(&crew);
    return NULL;
}

static void
setup(void)
{
    post_office_init(&office, RANKS, 0);
    for (int i = 0; i < RANKS; i++)
        member[i] = (struct member){.comm = &office.comm[i], .silence = 60};
}

static void
teardown(void)
{
    post_office_release(&office);
}

static void
run_crew(void)
{
    post_office_run(RANKS, live, member, sizeof(member[0]));
}

static void
expect_all(enum chex_status status)
{
    for (int i = 0; i < RANKS; i++)
        ck_assert_msg(member[i].verdict == status, "rank %d: %s", i, chex_status_name(member[i].verdict));
}

/* ---- tests ---------------------------------------------------------------------------------------------------- */

START_TEST(a_process_that_is_alone_meets_nobody)
{
    struct comm alone = comm_self();
    struct chex_error err;
    struct crew crew;

    ck_assert_int_eq(alone.size, 1);
    ck_assert_int_eq(crew_init(&crew, &alone, &err), CHEX_OK);
    ck_assert(crew_leads(&crew));
    crew_tick(&crew);
    crew_progress(&crew, 1, 0);
    ck_assert_int_eq(crew_agree(&crew, CHEX_OK, &err), CHEX_OK);
    ck_assert_int_eq(crew_agree(&crew, chex_fail(&err, CHEX_ERR_WRITE, "disk full"), &err), CHEX_ERR_WRITE);
    ck_assert_str_eq(err.text, "disk full");
    ck_assert_int_eq(alone.ops->send(&alone, 1, 0, "", 0, &err), CHEX_ERR_BUG);
    crew_release(&crew);
}
END_TEST

START_TEST(all_get_the_word_of_the_lead_and_the_lead_that_of_all)
{
    run_crew();
    expect_all(CHEX_OK);
    for (int i = 0; i < RANKS; i++)
        ck_assert_str_eq(member[i].word, "go on");
    ck_assert_uint_eq(member[0].heard, 6 * (RANKS - 1));
}
END_TEST

START_TEST(the_error_of_one_is_the_error_of_all_and_names_the_rank)
{
    member[2].status = CHEX_ERR_WRITE;
    run_crew();
    expect_all(CHEX_ERR_WRITE);
    ck_assert_ptr_eq(strstr(member[0].err.text, "rank 2 "), member[0].err.text);
    ck_assert_ptr_nonnull(strstr(member[0].err.text, ": error of 2"));
    ck_assert_ptr_nonnull(strstr(member[3].err.text, "error of 2"));
}
END_TEST

START_TEST(an_error_of_the_lead_needs_no_name)
{
    member[0].status = CHEX_ERR_LOCKED;
    run_crew();
    expect_all(CHEX_ERR_LOCKED);
    ck_assert_str_eq(member[1].err.text, "error of 0");
}
END_TEST

/* The others stop because of it, and what they say does not hide it. */
START_TEST(an_error_stops_those_that_still_work)
{
    member[0].waits_for_stop = member[1].waits_for_stop = member[3].waits_for_stop = true;
    member[2].status = CHEX_ERR_READ;
    run_crew();
    expect_all(CHEX_ERR_READ);
}
END_TEST

START_TEST(one_that_falls_silent_is_lost_and_nobody_waits_for_ever)
{
    for (int i = 0; i < RANKS; i++)
        member[i].silence = i == 0 ? 0.3 : 2; /* a busy machine is silent for a while, too */
    member[3].silent = true;
    run_crew();
    ck_assert_int_eq(member[0].verdict, CHEX_ERR_LOST);
    ck_assert_msg(strstr(member[0].err.text, "rank 3 is lost"), "%s", member[0].err.text);
    /* Before the verdict, too: who goes on with a report that never came calls it torn, which is a bug. */
    ck_assert_int_eq(member[0].reported, CHEX_ERR_LOST);
    /* The launcher ends them; where it does not, they notice that the lead is gone. */
    ck_assert_int_eq(member[1].verdict, CHEX_ERR_LOST);
    ck_assert_ptr_nonnull(strstr(member[1].err.text, "rank 0"));
}
END_TEST

/* A lead that works is stopped by the loss: that is the reason, and no wish to stop. */
START_TEST(a_lead_that_is_stopped_by_the_loss_says_that_one_is_lost)
{
    for (int i = 0; i < RANKS; i++)
        member[i].silence = i == 0 ? 0.3 : 2;
    member[0].waits_for_stop = true;
    member[3].silent = true;
    run_crew();
    ck_assert_int_eq(member[0].reported, CHEX_ERR_LOST);
    ck_assert_int_eq(member[0].verdict, CHEX_ERR_LOST);
    ck_assert_msg(strstr(member[0].err.text, "rank 3 is lost"), "%s", member[0].err.text);
}
END_TEST

START_TEST(every_shard_is_in_one_share)
{
    for (unsigned of = 1; of <= 20; of++) {
        for (size_t shard = 0; shard < 50; shard++) {
            unsigned owners = 0;

            for (unsigned part = 0; part < of; part++)
                owners += share_has((struct share){part, of}, shard);
            ck_assert_uint_eq(owners, 1);
        }
    }
    ck_assert(share_has((struct share){0}, 7) && share_is_whole((struct share){0}));
}
END_TEST

START_TEST(the_numbers_in_names_are_exact)
{
    static const char *const wrong[] = {"",
                                        "-00001-of-0004",
                                        "-00000-of-00004",
                                        "-00005-of-00004",
                                        "-00001-of-10000",
                                        "-0001-of-000004",
                                        "-+0001-of-00004",
                                        "-00001-of_00004"};
    struct share share;

    ck_assert(share_parse_suffix("-00003-of-00016.jsonl", &share));
    ck_assert_uint_eq(share.part, 2);
    ck_assert_uint_eq(share.of, 16);
    ck_assert(share_parse_suffix("-09999-of-09999", &share));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(!share_parse_suffix(wrong[i], &share), "'%s'", wrong[i]);
}
END_TEST

void
crew_case(Suite *suite)
{
    TCase *tests = tcase_create("crew");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_process_that_is_alone_meets_nobody);
    tcase_add_test(tests, all_get_the_word_of_the_lead_and_the_lead_that_of_all);
    tcase_add_test(tests, the_error_of_one_is_the_error_of_all_and_names_the_rank);
    tcase_add_test(tests, an_error_of_the_lead_needs_no_name);
    tcase_add_test(tests, an_error_stops_those_that_still_work);
    tcase_add_test(tests, one_that_falls_silent_is_lost_and_nobody_waits_for_ever);
    tcase_add_test(tests, a_lead_that_is_stopped_by_the_loss_says_that_one_is_lost);
    tcase_add_test(tests, every_shard_is_in_one_share);
    tcase_add_test(tests, the_numbers_in_names_are_exact);
    suite_add_tcase(suite, tests);
}
