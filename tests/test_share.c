/*
 * test_share.c - several processes on one folder: locks of parts, journals, and the slots of a share (lock.h,
 * journal.h, store.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "cases.h"
#include "convert/convert_crew.h"
#include "io/lock.h"
#include "record_fixture.h"
#include "store_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IMAGES = 23, SHARDS = 6, PARTS = 3 };

static struct bench bench;
static char reference[DIGEST_HEX];

static void
setup(void)
{
    struct spec spec = bench_spec();

    bench_make(&bench, &spec, IMAGES);
    bench_run(&bench, 1);
    bench_digest(&bench, reference);
    bench_move(&bench);
}

static void
teardown(void)
{
    bench_release(&bench);
}

static enum chex_status
take(struct lock *lock, unsigned part, unsigned of)
{
    return lock_take_share(lock, &bench.folder, (struct share){part, of}, false, &bench.err);
}

/* ---- locks ---------------------------------------------------------------------------------------------------- */

START_TEST(parts_of_one_number_work_side_by_side_and_keep_all_others_out)
{
    struct lock first, second, other;

    ck_assert_int_eq(take(&first, 0, 4), CHEX_OK);
    ck_assert_int_eq(take(&second, 3, 4), CHEX_OK);
    ck_assert(bench_has(&bench, ".chex.lock-00001-of-00004") && bench_has(&bench, ".chex.lock-00004-of-00004"));
    ck_assert_int_eq(take(&other, 0, 4), CHEX_ERR_LOCKED); /* twice the same */
    ck_assert_ptr_nonnull(strstr(bench.err.text, "part 1 of 4"));
    ck_assert_int_eq(take(&other, 4, 5), CHEX_ERR_LOCKED); /* another number of parts */
    ck_assert(!bench_has(&bench, ".chex.lock-00005-of-00005"));
    ck_assert_int_eq(take(&other, 0, 0), CHEX_ERR_LOCKED); /* the whole folder */
    ck_assert(!bench_has(&bench, LOCK_NAME));
    lock_drop(&first, NULL);
    ck_assert_int_eq(take(&other, 0, 0), CHEX_ERR_LOCKED);
    lock_drop(&second, NULL);
    ck_assert_int_eq(take(&other, 0, 0), CHEX_OK);
    ck_assert_int_eq(take(&first, 0, 4), CHEX_ERR_LOCKED);
    ck_assert(!bench_has(&bench, ".chex.lock-00001-of-00004"));
    ck_assert(lock_check(&other, NULL) == CHEX_OK);
    ck_assert(lock_has_text(&bench.folder, other.text));
    lock_drop(&other, NULL);
    ck_assert(!lock_has_text(&bench.folder, other.text));
}
END_TEST

START_TEST(the_lock_of_a_dead_part_is_in_nobodys_way)
{
    struct lock lock;
    pid_t child = fork();

    if (child == 0)
        _exit(take(&lock, 1, 4) == CHEX_OK ? 0 : 1);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert(bench_has(&bench, ".chex.lock-00002-of-00004"));
    ck_assert_int_eq(take(&lock, 0, 0), CHEX_OK);
    ck_assert(!bench_has(&bench, ".chex.lock-00002-of-00004"));
    lock_drop(&lock, NULL);
}
END_TEST

/* Its parent has not collected it; in a container without an init nobody ever does. */
START_TEST(the_lock_of_a_zombie_is_taken_over)
{
    struct lock lock;
    siginfo_t ended;
    pid_t child = fork();

    if (child == 0)
        _exit(take(&lock, 0, 0) == CHEX_OK ? 0 : 1);
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
    ck_assert(bench_has(&bench, LOCK_NAME));
    ck_assert_msg(take(&lock, 0, 0) == CHEX_OK, "%s", bench.err.text);
    lock_drop(&lock, NULL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}
END_TEST

/* ---- shares --------------------------------------------------------------------------------------------------- */

/* Do the share of one part: all its slots, nothing of the others'. */
static void
run_part(unsigned part, unsigned of)
{
    bench.options.share = (struct share){part, of};
    bench_open(&bench);
    for (size_t item = 0; item < IMAGES; item++) {
        size_t shard;
        uint32_t index;

        bench_slot(&bench, item, &shard, &index);
        if (shard % of != part)
            ck_assert(!store_wants(bench.store, shard, index));
        bench_item(&bench, item); /* where it is wanted */
    }
    bench_close(&bench);
}

/* The last process: all is there, or is done now. */
static void
run_last(size_t shards_done)
{
    char now[DIGEST_HEX];

    bench.options.share = (struct share){0};
    bench_open(&bench);
    ck_assert_uint_eq(bench.state.shards, SHARDS);
    ck_assert_uint_eq(bench.state.shards_done, shards_done);
    bench_fill(&bench, 3);
    bench_expect_shards(&bench);
    bench_publish(&bench);
    bench_close(&bench);
    ck_assert(!bench_has(&bench, JOURNAL_NAME) && !bench_has(&bench, ".chex-journal-00002-of-00003.jsonl"));
    ck_assert_int_eq(unlinkat(bench.folder.fd, "manifest.json", 0), 0);
    bench_digest(&bench, now);
    ck_assert_str_eq(now, reference);
}

START_TEST(parts_one_after_the_other_make_the_whole)
{
    for (unsigned part = PARTS; part-- > 0;)
        run_part(part, PARTS);
    ck_assert(bench_has(&bench, ".chex-journal-00001-of-00003.jsonl"));
    run_last(SHARDS);
}
END_TEST

START_TEST(the_last_process_does_what_a_lost_part_left)
{
    run_part(0, PARTS);
    run_part(2, PARTS);
    run_last(SHARDS - SHARDS / PARTS);
}
END_TEST

START_TEST(another_number_of_parts_goes_on)
{
    run_part(1, PARTS);
    run_part(0, 4);
    bench.options.share = (struct share){3, 4};
    bench_open(&bench);
    ck_assert_uint_eq(bench.state.shards, 1); /* number 3 of 6 */
    ck_assert_uint_eq(bench.state.shards_done, 0);
    bench_close(&bench);
    run_last(3); /* 1 and 4; 0 and 4 */
}
END_TEST

START_TEST(shards_that_are_read_by_many_threads_are_the_same)
{
    for (unsigned part = 0; part < PARTS; part++)
        run_part(part, PARTS);
    bench.options.threads = 4;
    run_last(SHARDS);
}
END_TEST

/* The lead would fill its shards with copies of other images. */
START_TEST(results_of_a_part_that_left_images_out_are_refused)
{
    const struct share part = {1, PARTS};
    struct convert c = {.plan = bench.plan};
    struct buffer results = {0};

    bench.options.share = part;
    bench_open(&bench);
    ck_assert_int_eq(convert_pack(&c, bench.store, part, &results, &bench.err), CHEX_OK);
    bench_close(&bench);
    bench.options.share = (struct share){0, PARTS};
    bench_open(&bench);
    ck_assert_int_eq(convert_unpack(&c, bench.store, part, &results, &bench.err), CHEX_ERR_BUG);
    buffer_release(&results);
}
END_TEST

START_TEST(a_journal_of_another_data_set_is_refused_whoever_wrote_it)
{
    bench_text(&bench, ".chex-journal-00007-of-00009.jsonl",
               "{\"journal\":1,\"dataset_id\":\"0123456789abcdef\",\"spec\":\"another\"}\n");
    ck_assert_int_eq(bench_try_open(&bench), CHEX_ERR_INCOMPATIBLE);
    ck_assert_ptr_nonnull(strstr(bench.err.text, "another"));
    bench.options.force = true;
    bench_open(&bench);
    ck_assert(!bench_has(&bench, ".chex-journal-00007-of-00009.jsonl"));
}
END_TEST

/* ---- lines ---------------------------------------------------------------------------------------------------- */

START_TEST(a_line_with_rejects_comes_back_as_it_was)
{
    struct reject reject[2] = {{3, CHEX_ERR_TRUNCATED, (char *)(uintptr_t) "ends \"early\""},
                               {5, CHEX_ERR_READ, (char *)(uintptr_t) "\xc3\xa9"}};
    struct shard_result
        there = {.done = true, .size = 7, .images = 2, .sum = 4, .squares = 8, .reject = reject, .reject_count = 2},
        back;
    struct buffer b = {0};
    size_t shard;

    memset(there.sha256, 'a', DIGEST_HEX - 1);
    memset(there.crc32c, 'b', CRC_HEX - 1);
    for (unsigned done = 0; done < 2; done++) {
        there.done = done;
        b.size = 0;
        ck_assert_int_eq(journal_format(4, &there, true, &b, &bench.err), CHEX_OK);
        ck_assert_int_eq(journal_parse((char *)b.data, b.size - 1, 4, &shard, &back, &bench.err),
                         CHEX_ERR_DAMAGED); /* there are four */
        ck_assert_int_eq(journal_parse((char *)b.data, b.size - 2, 9, &shard, &back, &bench.err),
                         CHEX_ERR_DAMAGED); /* torn */
        ck_assert_int_eq(journal_parse((char *)b.data, b.size - 1, 9, &shard, &back, &bench.err), CHEX_OK);
        ck_assert_uint_eq(shard, 4);
        ck_assert_uint_eq(back.done, done);
        ck_assert_uint_eq(back.reject_count, 2);
        ck_assert_uint_eq(back.reject[1].index, 5);
        ck_assert_int_eq(back.reject[1].status, CHEX_ERR_READ);
        ck_assert_str_eq(back.reject[0].text, "ends \"early\"");
        ck_assert_str_eq(back.reject[1].text, "\xc3\xa9");
        shard_result_release(&back);
    }
    buffer_release(&b);
}
END_TEST

START_TEST(only_names_of_journals_are_names_of_journals)
{
    char name[JOURNAL_NAME_SIZE];

    journal_name((struct share){0}, name);
    ck_assert_str_eq(name, ".chex-journal.jsonl");
    journal_name((struct share){2, 16}, name);
    ck_assert_str_eq(name, ".chex-journal-00003-of-00016.jsonl");
    ck_assert(journal_is_name(name));
    ck_assert(!journal_is_name(".chex-journal-00003-of-00016.jsonl~"));
    ck_assert(!journal_is_name(".chex-journal-00003-of-00016"));
    ck_assert(!journal_is_name(".chex-journal-notes.jsonl"));
    ck_assert(!journal_is_name("chex-journal.jsonl"));
}
END_TEST

void
share_case(Suite *suite)
{
    TCase *tests = tcase_create("share");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, parts_of_one_number_work_side_by_side_and_keep_all_others_out);
    tcase_add_test(tests, the_lock_of_a_dead_part_is_in_nobodys_way);
    tcase_add_test(tests, the_lock_of_a_zombie_is_taken_over);
    tcase_add_test(tests, parts_one_after_the_other_make_the_whole);
    tcase_add_test(tests, the_last_process_does_what_a_lost_part_left);
    tcase_add_test(tests, another_number_of_parts_goes_on);
    tcase_add_test(tests, shards_that_are_read_by_many_threads_are_the_same);
    tcase_add_test(tests, results_of_a_part_that_left_images_out_are_refused);
    tcase_add_test(tests, a_journal_of_another_data_set_is_refused_whoever_wrote_it);
    tcase_add_test(tests, a_line_with_rejects_comes_back_as_it_was);
    tcase_add_test(tests, only_names_of_journals_are_names_of_journals);
    suite_add_tcase(suite, tests);
}
