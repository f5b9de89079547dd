/*
 * test_evaluate_ranks.c - an evaluation by several ranks: the same numbers, and one error of all
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cases.h"
#include "evaluate_fixture.h"

#include "comm/collective.h"
#include "post_office.h"

#include <string.h>

/* A thread that evaluates as one of several ranks. */
struct member {
    struct comm *comm;
    struct scorer b; /* small, ds and samples are those of all */
    enum chex_status status;
    struct chex_error err;
};

static void *
member_live(void *argument)
{
    const struct collective_options options = {.timeout = 60};
    struct member *m = argument;
    struct collective *c;

    ck_assert_int_eq(collective_new(m->comm, &options, &c, &m->err), CHEX_OK);
    m->b.o.collective = c;
    m->status = evaluate(&m->b.o, &m->b.e, &m->err);
    collective_free(c);
    return NULL;
}

/* As many members as ranks, each with the data of one bench; change() makes one of them different. */
static void
evaluate_together(struct scorer *shared, int ranks, struct member *member, void (*change)(struct member *, int))
{
    static struct post_office office;

    post_office_init(&office, ranks, 7);
    for (int i = 0; i < ranks; i++) {
        member[i] = (struct member){.comm = &office.comm[i], .b = {.stub = shared->stub, .o = shared->o}};
        member[i].b.o.plan = (struct plan *)&member[i].b.stub;
        if (change)
            change(&member[i], i);
    }
    post_office_run(ranks, member_live, member, sizeof(*member));
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
    ck_assert_mem_eq(&a->metrics.mean[METRIC_AUROC], &b->metrics.mean[METRIC_AUROC],
                     sizeof(a->metrics.mean[METRIC_AUROC]));
    ck_assert_uint_eq(a->skipped_count, b->skipped_count);
    for (size_t i = 0; i < a->count; i++) {
        ck_assert_str_eq(a->image[i].name, b->image[i].name);
        ck_assert_str_eq(a->image[i].person, b->image[i].person);
        ck_assert_uint_eq(a->image[i].patient, b->image[i].patient);
    }
}

START_TEST(ranks_change_nothing)
{
    static struct member member[POST_RANKS];
    struct scorer b;

    scorer_make(&b);
    scorer_damage(&b, 1, 0);
    b.o.skip_bad = true;
    scorer_run(&b);
    for (int ranks = 1; ranks <= POST_RANKS; ranks++) {
        /* Six images: with micro-batches of 2 some of more than three ranks have none. */
        b.o.batch = b.stub.batch = (unsigned)ranks % 2 + 1;
        evaluate_together(&b, ranks, member, NULL);
        for (int i = 0; i < ranks; i++) {
            ck_assert_msg(member[i].status == CHEX_OK, "%s", member[i].err.text);
            expect_same(&b.e, &member[i].b.e);
        }
        members_release(member, ranks);
    }
    scorer_release(&b);
}
END_TEST

START_TEST(a_bad_record_of_one_rank_is_the_error_of_all)
{
    static struct member member[3];
    struct scorer b;

    scorer_make(&b);
    scorer_damage(&b, 0, 1);
    b.o.batch = b.stub.batch = 1; /* record 1 is rank 1's */
    evaluate_together(&b, 3, member, NULL);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(member[i].status, CHEX_ERR_CHECKSUM);
        ck_assert_ptr_nonnull(strstr(member[i].err.text, "' record 1 ("));
        ck_assert_int_eq(strncmp(member[i].err.text, "rank 1 ", 7) == 0, i != 1);
    }
    members_release(member, 3);
    scorer_release(&b);
}
END_TEST

static atomic_bool told;

static void
stop_the_second(struct member *m, int rank)
{
    m->b.o.batch = m->b.stub.batch = 1;
    if (rank == 1)
        m->b.o.stop = &told;
}

START_TEST(one_that_is_to_stop_stops_all)
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
END_TEST

void
evaluate_ranks_case(Suite *suite)
{
    TCase *c = tcase_create("ranks");

    tcase_add_test(c, ranks_change_nothing);
    tcase_add_test(c, a_bad_record_of_one_rank_is_the_error_of_all);
    tcase_add_test(c, one_that_is_to_stop_stops_all);
    suite_add_tcase(suite, c);
}
