/*
 * test_store.c - the slots of a conversion: filled in any order, rejected, borrowed (store.h)
 *
 * Interrupted and resumed runs: test_resume.c.  Other files in the folder: test_store_folder.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/threads.h"
#include "calls.h"
#include "lib/dataset/record_fixture.h"
#include "store_fixture.h"
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static struct bench bench;

static void
teardown(void)
{
    bench_release(&bench);
}

/* ---- order and threads ---------------------------------------------------------------------------------------- */

static size_t order[BENCH_MAX_IMAGES];

static enum chex_status
work(void *context, void *worker, size_t item, struct chex_error *err)
{
    (void)worker;
    return bench_try_item(context, order[item], err);
}

/* Fills all slots in the order of `order` with this number of threads. */
static void
fill_with_threads(unsigned threads)
{
    struct parallel p = {.count = bench.plan.image_count, .threads = threads, .work = work, .context = &bench};

    ck_assert_msg(parallel_for(&p, &bench.err) == CHEX_OK, "%s", bench.err.text);
    ck_assert_uint_eq(p.threads_used, threads);
    ck_assert_msg(store_finish(bench.store, &bench.err) == CHEX_OK, "%s", bench.err.text);
}

TEST_CASE("store", "store", NULL, teardown);

TEST(neither_order_nor_threads_change_a_byte)
{
    const unsigned threads[] = {1, 2, 7};
    struct spec spec = bench_spec();
    char first[DIGEST_HEX], now[DIGEST_HEX];
    uint64_t state = 1;

    spec.split = bench_two_splits();
    bench_make(&bench, &spec, 37);
    for (size_t i = 0; i < 37; i++)
        bench.rejected[i] = i % 5 == 3 || (i >= 4 && i < 8); /* the whole second shard is one of them */
    for (uint32_t round = 0; round < 6; round++) {
        for (uint32_t i = 0; i < bench.plan.image_count; i++) {
            uint32_t k = round == 0 ? i : pick_below(&state, i + 1);

            order[i] = order[k];
            order[k] = i;
        }
        bench_move(&bench);
        bench_open(&bench);
        fill_with_threads(threads[round % 3]);
        bench_expect_shards(&bench);
        bench_close(&bench);
        bench_digest(&bench, now);
        if (round == 0)
            strcpy(first, now);
        ck_assert_str_eq(now, first);
    }
}

TEST(a_slot_is_wanted_until_it_is_decided)
{
    struct spec spec = bench_spec();

    bench_make(&bench, &spec, 6);
    bench.rejected[1] = true;
    bench_open(&bench);
    ck_assert_uint_eq(store_space_needed(bench.store), plan_size(&bench.plan));
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert(store_wants(bench.store, 0, i));
        bench_item(&bench, i);
        ck_assert(!store_wants(bench.store, 0, i));
    }
    ck_assert(bench_has(&bench, bench.plan.shard[0].name));
    ck_assert(store_results(bench.store)[0].done);
    ck_assert(store_wants(bench.store, 1, 0));
    ck_assert_uint_eq(store_space_needed(bench.store), 4 * bench.plan.layout.stride);
    ck_assert_int_eq(store_finish(bench.store, &bench.err), CHEX_ERR_BUG);
    ck_assert_str_eq(bench.err.text, "shard 1 is not finished");
    bench_fill(&bench, 1);
    ck_assert_uint_eq(store_space_needed(bench.store), 0);
    bench_expect_shards(&bench);
}

/* ---- padding records ------------------------------------------------------------------------------------------ */

TEST(every_choice_of_rejects_is_filled_by_the_rule)
{
    struct spec spec = bench_spec();

    bench_make(&bench, &spec, 7); /* four and three, and a slot of the tail */
    for (unsigned set = 0; set < 127; set += set % 7 == 0 ? 5 : 8) {
        for (unsigned i = 0; i < 7; i++)
            bench.rejected[i] = set >> i & 1;
        bench_move(&bench);
        bench_open(&bench);
        bench_fill(&bench, set);
        bench_expect_shards(&bench);
        bench_close(&bench);
    }
}

TEST(a_reject_keeps_its_reason)
{
    struct spec spec = bench_spec();
    const struct shard_result *r;

    bench_make(&bench, &spec, 4);
    bench.rejected[0] = bench.rejected[2] = true;
    bench_open(&bench);
    bench_item(&bench, 2);
    bench_item(&bench, 0);
    bench_fill(&bench, 1);
    r = store_results(bench.store);
    ck_assert(r->reject_count == 2 && r->reject[0].index == 0 && r->reject[1].index == 2);
    ck_assert_str_eq(r->reject[1].text, "item 2 is \"bad\"");
}

/* The lender is the first usable image of the same split. */
TEST(a_shard_without_any_image_borrows_from_its_split)
{
    struct spec spec = bench_spec();
    char late[DIGEST_HEX], early[DIGEST_HEX];
    const struct plan_shard *s;

    spec.split = bench_two_splits();
    bench_make(&bench, &spec, 36);
    ck_assert_uint_eq(bench.plan.splits.count, 2);
    for (size_t i = 0; i < bench.plan.shard_count; i++) {
        s = &bench.plan.shard[i];
        for (uint32_t k = 0; k < s->images; k++)
            bench.rejected[s->first + k] = s->number == 0 || (s->number == 1 && k == 0) || s->number == 2;
    }
    bench_open(&bench);
    bench_fill(&bench, 1);
    bench_expect_shards(&bench);
    bench_close(&bench);
    bench_digest(&bench, early);
    /* A borrowed shard in the journal is done; one that is not in the journal is borrowed again. */
    bench_resize(&bench, JOURNAL_NAME, (long)strlen("{\"journal\":1}"));
    bench_open(&bench);
    bench_fill(&bench, 2);
    bench_expect_shards(&bench);
    bench_close(&bench);
    bench_digest(&bench, late);
    ck_assert_str_eq(late, early);
}

TEST(a_split_without_any_image_ends_the_run)
{
    struct spec spec = bench_spec();

    spec.split = bench_two_splits();
    bench_make(&bench, &spec, 12);
    ck_assert_str_eq(bench.plan.splits.name[1], "test");
    for (size_t i = 0; i < 12; i++)
        bench.rejected[i] = bench.plan.splits.of_entry[bench.plan.image[i]] == 1;
    bench_open(&bench);
    for (size_t i = 0; i < 12; i++)
        bench_item(&bench, i);
    ck_assert_int_eq(store_finish(bench.store, &bench.err), CHEX_ERR_DAMAGED);
    ck_assert_str_eq(bench.err.text, "no image of split 'test' could be read");
}

TEST(tails_are_written_as_planned)
{
    struct spec spec = bench_spec();
    const enum tail tails[] = {TAIL_PAD, TAIL_SHORT, TAIL_DROP};

    for (size_t i = 0; i < 3; i++) {
        spec.tail = tails[i];
        bench_make(&bench, &spec, 9);
        bench.rejected[8 % bench.plan.image_count] = tails[i] == TAIL_DROP;
        bench.options.verify = true;
        bench_open(&bench);
        bench_fill(&bench, i);
        bench_expect_shards(&bench);
        bench_release(&bench);
    }
}

/* A tail of one image with --tail short, and that image is bad: the shard has nothing to copy. */
TEST(a_short_shard_may_borrow_too)
{
    struct spec spec = bench_spec();

    spec.tail = TAIL_SHORT;
    bench_make(&bench, &spec, 9);
    bench.rejected[8] = true;
    bench_open(&bench);
    bench_fill(&bench, 1);
    bench_expect_shards(&bench);
}

/* ---- errors --------------------------------------------------------------------------------------------------- */

/*
 * The limit is reached when the part is created (space is reserved), or in a write if the file system cannot reserve.
 */
TEST(a_write_error_keeps_the_data_that_the_next_run_needs)
{
    const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    struct rlimit limit = none;
    struct spec spec = bench_spec();
    size_t item = 0;

    /* Check's own messages go to a file too: two records are much larger than these, however long the paths. */
    spec.size = 128;
    bench_make(&bench, &spec, 12);
    bench_open(&bench);
    for (; item < 4; item++)
        bench_item(&bench, item);
    signal(SIGXFSZ, SIG_IGN);
    limit.rlim_cur = 2 * bench.plan.layout.stride;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    while (item < 8 && bench_try_item(&bench, item, &bench.err) == CHEX_OK)
        item++;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
    ck_assert_uint_lt(item, 8);
    ck_assert_int_eq(bench.err.status, CHEX_ERR_WRITE);
    ck_assert_msg(strstr(bench.err.text, bench.plan.shard[1].name), "%s", bench.err.text);
    bench_close(&bench);
    ck_assert(bench_has(&bench, bench.plan.shard[0].name));
    ck_assert(!bench_has(&bench, bench.plan.shard[1].name));
    bench_open(&bench);
    ck_assert_uint_eq(bench.state.shards_done, 1);
    bench_fill(&bench, 1);
    bench_expect_shards(&bench);
}

/* It can still be read, with good checksums, until the page cache evicts it. */
TEST(data_that_was_not_synced_is_not_trusted_by_the_next_run)
{
    struct spec spec = bench_spec();
    size_t item = 0;

    bench_make(&bench, &spec, 4);
    bench_open(&bench);
    calls_fail(CALL_SYNC, 1, true, EIO);
    while (item < 8 && bench_try_item(&bench, item % 4, &bench.err) == CHEX_OK)
        item++;
    ck_assert_uint_eq(calls_end(), 2);
    ck_assert_uint_eq(item, 7); /* all of them were put twice */
    ck_assert_int_eq(bench.err.status, CHEX_ERR_WRITE);
    ck_assert(!bench_has(&bench, bench_part(&bench, 0)));
    bench_close(&bench);
    bench_open(&bench);
    ck_assert_uint_eq(bench.state.slots_full, 0);
    bench_fill(&bench, 1);
    bench_expect_shards(&bench);
}

/* NFS reports a quota this way.  With few descriptors a part is closed between two puts. */
TEST(a_part_that_cannot_be_closed_is_an_error_and_not_believed)
{
    struct spec spec = bench_spec();
    struct rlimit before, few;
    enum chex_status status;

    bench_make(&bench, &spec, 12);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 64;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    bench_open(&bench);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    bench_item(&bench, 0);
    bench_item(&bench, 4);
    calls_fail(CALL_CLOSE, 1, false, EDQUOT);
    status = bench_try_item(&bench, 8, &bench.err);
    ck_assert_uint_eq(calls_end(), 1);
    ck_assert_int_eq(status, CHEX_ERR_WRITE);
    ck_assert_msg(strstr(bench.err.text, "cannot close"), "%s", bench.err.text);
    ck_assert(!bench_has(&bench, bench_part(&bench, 2)));
    /* The last error of a stopped run: nothing reports it, but the part is gone. */
    calls_fail(CALL_CLOSE, 1, false, EDQUOT);
    bench_close(&bench);
    ck_assert_uint_eq(calls_end(), 1);
    ck_assert(!bench_has(&bench, bench_part(&bench, 0)));
    bench_open(&bench);
    ck_assert_uint_eq(bench.state.slots_full, 1);
    bench_fill(&bench, 1);
    bench_expect_shards(&bench);
}

/* Puts `count` items at once.  Their slots follow each other. */
static enum chex_status
put_several(size_t item, uint32_t count)
{
    const size_t stride = bench.plan.layout.stride;
    uint8_t *records = malloc(count * stride);
    enum chex_status status;
    size_t shard;
    uint32_t first, i;

    bench_slot(&bench, item, &shard, &first);
    for (i = 0; i < count; i++) {
        uint8_t *record = bench_record(&bench, shard, first + i, item + i, 1);

        memcpy(records + i * stride, record, stride);
        free(record);
    }
    status = store_put(bench.store, shard, first, count, records, &bench.err);
    free(records);
    return status;
}

TEST(records_of_several_slots_are_put_at_once)
{
    struct spec spec = bench_spec();

    bench_make(&bench, &spec, 8);
    bench_open(&bench);
    ck_assert_int_eq(put_several(0, 4), CHEX_OK); /* a whole shard */
    ck_assert(bench_has(&bench, bench.plan.shard[0].name));
    calls_fail(CALL_WRITE, 1, false, ENOSPC);
    ck_assert_int_eq(put_several(5, 2), CHEX_ERR_WRITE);
    calls_end();
    for (uint32_t i = 0; i < 4; i++)
        ck_assert(store_wants(bench.store, 1, i));
    ck_assert_int_eq(put_several(5, 2), CHEX_OK);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_int_eq(store_wants(bench.store, 1, i), i == 0 || i == 3);
    bench_fill(&bench, 1);
    bench_expect_shards(&bench);
}

/* Every record is read back before the shard gets its name. */
TEST(a_record_in_the_wrong_slot_is_not_published)
{
    struct spec spec = bench_spec();
    unsigned shards;
    uint8_t *record;

    bench_make(&bench, &spec, 4);
    bench_open(&bench);
    record = bench_record(&bench, 0, 2, 3, 1); /* for slot 2, put into slot 3 */
    for (size_t i = 0; i < 3; i++)
        bench_item(&bench, i);
    /* The disk may be faulty: nothing of the shard is trusted, and all of it is wanted again. */
    ck_assert_int_eq(store_put(bench.store, 0, 3, 1, record, &bench.err), CHEX_OK);
    ck_assert_uint_eq(store_rewrites(bench.store, &shards), 4);
    ck_assert_uint_eq(shards, 1);
    ck_assert(!bench_has(&bench, bench.plan.shard[0].name) && !bench_has(&bench, bench_part(&bench, 0)));
    for (size_t i = 0; i < 3; i++)
        bench_item(&bench, i);
    ck_assert_int_eq(store_put(bench.store, 0, 3, 1, record, &bench.err), CHEX_ERR_WRITE);
    ck_assert_msg(strstr(bench.err.text, "reading back record 3 of"), "%s", bench.err.text);
    free(record);
    ck_assert(!bench_has(&bench, bench.plan.shard[0].name));
    bench_close(&bench);
    bench_open(&bench);
    ck_assert_uint_eq(bench.state.slots_full, 3);
    bench_fill(&bench, 1);
    bench_expect_shards(&bench);
}
