/*
 * test_evaluate_ranks.c - an evaluation by several ranks gives the same numbers, and one error for all
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "evaluate_fixture.h"
#include "unit.h"

#include "fakes/comm/post_office.h"
#include "ranks/collective.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* A thread that evaluates as one of several ranks. */
struct member {
    struct comm *comm;
    double timeout;  /* 0: long */
    struct scorer b; /* small, ds and samples are shared */
    enum chex_status status;
    struct chex_error err;
    struct collective *c;
};

static atomic_int ended; /* members */

static void *
member_live(void *argument)
{
    struct member *m = argument;
    const struct collective_options options = {.timeout = m->timeout > 0 ? m->timeout : 600};

    ck_assert_int_eq(collective_new(m->comm, &options, &m->c, &m->err), CHEX_OK);
    m->b.o.collective = m->c;
    m->status = evaluate(&m->b.o, &m->b.e, &m->err);
    atomic_fetch_add(&ended, 1);
    return NULL;
}

/* Runs one member per rank, each with the data of one bench; change() makes one of them different. */
static void
evaluate_together(struct scorer *shared, int ranks, struct member *member, void (*change)(struct member *, int))
{
    static struct post_office office;

    post_office_init(&office, ranks, 7);
    atomic_store(&ended, 0);
    for (int i = 0; i < ranks; i++) {
        member[i] = (struct member){.comm = &office.comm[i], .b = {.stub = shared->stub, .o = shared->o}};
        member[i].b.o.plan = (struct plan *)&member[i].b.stub;
        if (change)
            change(&member[i], i);
    }
    post_office_run(ranks, member_live, member, sizeof(*member));
    for (int i = 0; i < ranks; i++)
        collective_free(member[i].c);
    post_office_release(&office);
}

static void
members_release(struct member *member, int ranks)
{
    for (int i = 0; i < ranks; i++)
        evaluation_release(&member[i].b.e);
}

static void
expect_same(const struct evaluation *a, const struct evaluation *b)
{
    ck_assert_uint_eq(a->count, b->count);
    ck_assert_uint_eq(a->patients, b->patients);
    ck_assert_mem_eq(a->probability, b->probability, a->count * a->outputs * sizeof(float));
    ck_assert_mem_eq(a->label, b->label, a->count * a->outputs);
    ck_assert_mem_eq(&a->loss, &b->loss, sizeof(double));
    ck_assert_mem_eq(&a->metrics.finding, &b->metrics.finding, sizeof(a->metrics.finding));
    ck_assert_mem_eq(&a->metrics.mean, &b->metrics.mean, sizeof(a->metrics.mean));
    ck_assert_uint_eq(a->skipped_count, b->skipped_count);
    for (size_t i = 0; i < a->count; i++) {
        ck_assert_str_eq(a->image[i].name, b->image[i].name);
        ck_assert_str_eq(a->image[i].person, b->image[i].person);
        ck_assert_uint_eq(a->image[i].patient, b->image[i].patient);
    }
}

/* Passes of eight: none, one for all ranks, fewer than eight ranks, as many, more, the last one not full. */
static const unsigned replicates[] = {0, 5, 20, 64, 203};

TEST_CASE("evaluate", "ranks", NULL, NULL);

LOOP_TEST(ranks_change_nothing, 0, (int)(sizeof(replicates) / sizeof(replicates[0])))
{
    static struct member member[POST_RANKS];
    struct scorer b;

    scorer_make(&b);
    scorer_damage(&b, 1, 0);
    b.o.skip_bad = true;
    b.o.replicates = replicates[_i];
    scorer_run(&b);
    for (int ranks = 1; ranks <= POST_RANKS; ranks++) {
        /* Six images: with micro-batches of 2, some of more than three ranks have none. */
        b.o.batch = b.stub.batch = (unsigned)ranks % 2 + 1;
        b.o.threads = (unsigned)ranks % 3 + 1;
        evaluate_together(&b, ranks, member, NULL);
        for (int i = 0; i < ranks; i++) {
            ck_assert_msg(member[i].status == CHEX_OK, "%s", member[i].err.text);
            expect_same(&b.e, &member[i].b.e);
        }
        members_release(member, ranks);
    }
    scorer_release(&b);
}

TEST(a_bad_record_of_one_rank_is_the_error_of_all)
{
    static struct member member[3];
    struct scorer b;

    scorer_make(&b);
    scorer_damage(&b, 0, 1);
    b.o.batch = b.stub.batch = 1; /* record 1 belongs to rank 1 */
    evaluate_together(&b, 3, member, NULL);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(member[i].status, CHEX_ERR_CHECKSUM);
        ck_assert_ptr_nonnull(strstr(member[i].err.text, "' record 1 ("));
        ck_assert_int_eq(strncmp(member[i].err.text, "rank 1 ", 7) == 0, i != 1);
    }
    members_release(member, 3);
    scorer_release(&b);
}

static atomic_bool told;

static void
stop_the_second(struct member *m, int rank)
{
    m->b.o.batch = m->b.stub.batch = 1;
    if (rank == 1)
        m->b.o.stop = &told;
}

TEST(one_that_is_to_stop_stops_all)
{
    static struct member member[2];
    struct scorer b;

    scorer_make(&b);
    atomic_store(&told, true);
    evaluate_together(&b, 2, member, stop_the_second);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(member[i].status, CHEX_ERR_STOPPED);
    members_release(member, 2);
    scorer_release(&b);
}

/* ---- a rank that is lost ---------------------------------------------------------------------------------------- */

/*
 * The bytes of one pass of the bootstrap: eight replicates of two metrics, for all findings and their mean.  Scores
 * take less.
 */
enum { PASS_BYTES = 8 * METRIC_COUNT * (FINDINGS + 1) * (int)sizeof(double) };

static const struct comm_ops *talking;

/* The results of this rank are never sent; it stays silent until the others have ended. */
static enum chex_status
fall_silent(struct comm *comm, int to, int tag, const void *data, size_t size, struct chex_error *err)
{
    if (size < PASS_BYTES)
        return talking->send(comm, to, tag, data, size, err);
    for (int i = 0; i < 60000 && atomic_load(&ended) < comm->size - 1; i++)
        usleep(10000);
    return error_set(err, CHEX_ERR_LOST, "silent");
}

static void
silence_the_second(struct member *m, int rank)
{
    static struct comm_ops silent;

    m->timeout = 10;
    if (rank != 1)
        return;
    talking = m->comm->ops;
    silent = *talking;
    silent.send = fall_silent;
    m->comm->ops = &silent;
}

TEST(a_rank_that_is_lost_while_they_draw_is_named_by_all_others)
{
    static struct member member[3];
    struct scorer b;

    scorer_make(&b);
    evaluate_together(&b, 3, member, silence_the_second);
    ck_assert_str_eq(member[1].err.text, "silent");
    for (int i = 0; i < 3; i += 2) {
        ck_assert_int_eq(member[i].status, CHEX_ERR_LOST);
        ck_assert_msg(strncmp(member[i].err.text, "rank 1 ", 7) == 0 &&
                          strstr(member[i].err.text, " is lost: no message for 10 s"),
                      "%s", member[i].err.text);
        ck_assert(isnan(member[i].b.e.metrics.mean[METRIC_AUROC].low));
    }
    members_release(member, 3);
    scorer_release(&b);
}
