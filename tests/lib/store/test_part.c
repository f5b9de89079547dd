/*
 * test_part.c - several processes on one folder: the shards, locks, journals and slots of a part (part.h, lock.h,
 * journal.h, store.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/lock.h"
#include "lib/dataset/record_fixture.h"
#include "store_fixture.h"
#include "unit.h"

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
    return lock_take_part(lock, &bench.folder, (struct part){part, of}, false, &bench.err);
}

/* ---- locks ---------------------------------------------------------------------------------------------------- */

TEST_CASE("store", "part", setup, teardown);

TEST(parts_of_one_number_work_side_by_side_and_keep_all_others_out)
{
    struct lock first, second, other;

    ck_assert_int_eq(take(&first, 0, 4), CHEX_OK);
    ck_assert_int_eq(take(&second, 3, 4), CHEX_OK);
    ck_assert(bench_has(&bench, ".chex.lock-00001-of-00004") && bench_has(&bench, ".chex.lock-00004-of-00004"));
    ck_assert(!lock_is_held(&bench.folder));               /* as a whole */
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
    lock_drop(&other, NULL);
}

TEST(the_lock_of_a_dead_part_is_in_nobodys_way)
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

/* Its parent has not waited for it; in a container without an init no process ever does. */
TEST(the_lock_of_a_zombie_is_taken_over)
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

/* ---- parts ---------------------------------------------------------------------------------------------------- */

/* Runs one part: all its slots, and no others. */
static void
run_part(unsigned part, unsigned of)
{
    bench.options.part = (struct part){part, of};
    bench_open(&bench);
    for (size_t item = 0; item < IMAGES; item++) {
        size_t shard;
        uint32_t index;

        bench_slot(&bench, item, &shard, &index);
        if (shard % of != part)
            ck_assert(!store_wants(bench.store, shard, index));
        bench_item(&bench, item); /* if it is wanted */
    }
    bench_close(&bench);
}

/* The last process: everything is done, or is done now. */
static void
run_last(size_t shards_done)
{
    char now[DIGEST_HEX];

    bench.options.part = (struct part){0};
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

TEST(parts_in_sequence_make_the_complete_data_set)
{
    for (unsigned part = PARTS; part-- > 0;)
        run_part(part, PARTS);
    ck_assert(bench_has(&bench, ".chex-journal-00001-of-00003.jsonl"));
    run_last(SHARDS);
}

TEST(the_last_process_finishes_a_lost_part)
{
    run_part(0, PARTS);
    run_part(2, PARTS);
    run_last(SHARDS - SHARDS / PARTS);
}

TEST(another_number_of_parts_goes_on)
{
    run_part(1, PARTS);
    run_part(0, 4);
    bench.options.part = (struct part){3, 4};
    bench_open(&bench);
    ck_assert_uint_eq(bench.state.shards, 1); /* number 3 of 6 */
    ck_assert_uint_eq(bench.state.shards_done, 0);
    bench_close(&bench);
    run_last(3); /* 1 and 4; 0 and 4 */
}

TEST(shards_that_are_read_by_many_threads_are_the_same)
{
    for (unsigned part = 0; part < PARTS; part++)
        run_part(part, PARTS);
    bench.options.threads = 4;
    run_last(SHARDS);
}

TEST(a_journal_of_another_data_set_is_refused_whatever_part_wrote_it)
{
    bench_text(&bench, ".chex-journal-00007-of-00009.jsonl",
               "{\"journal\":1,\"dataset_id\":\"0123456789abcdef\",\"spec\":\"another\"}\n");
    ck_assert_int_eq(bench_try_open(&bench), CHEX_ERR_INCOMPATIBLE);
    ck_assert_ptr_nonnull(strstr(bench.err.text, "another"));
    bench.options.force = true;
    bench_open(&bench);
    ck_assert(!bench_has(&bench, ".chex-journal-00007-of-00009.jsonl"));
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

TEST(every_shard_is_in_one_part)
{
    for (unsigned count = 1; count <= 20; count++) {
        for (size_t shard = 0; shard < 50; shard++) {
            unsigned owners = 0;

            for (unsigned index = 0; index < count; index++)
                owners += part_has((struct part){index, count}, shard);
            ck_assert_uint_eq(owners, 1);
        }
    }
    ck_assert(part_has((struct part){0}, 7) && part_is_whole((struct part){0}));
}

TEST(the_numbers_in_names_are_exact)
{
    static const char *const wrong[] = {"",
                                        "-00001-of-0004",
                                        "-00000-of-00004",
                                        "-00005-of-00004",
                                        "-00001-of-10000",
                                        "-0001-of-000004",
                                        "-+0001-of-00004",
                                        "-00001-of_00004"};
    struct part part;

    ck_assert(part_parse_suffix("-00003-of-00016.jsonl", &part));
    ck_assert_uint_eq(part.index, 2);
    ck_assert_uint_eq(part.count, 16);
    ck_assert(part_parse_suffix("-09999-of-09999", &part));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(!part_parse_suffix(wrong[i], &part), "'%s'", wrong[i]);
}

TEST(only_names_of_journals_are_names_of_journals)
{
    char name[JOURNAL_NAME_SIZE];

    journal_name((struct part){0}, name);
    ck_assert_str_eq(name, ".chex-journal.jsonl");
    journal_name((struct part){2, 16}, name);
    ck_assert_str_eq(name, ".chex-journal-00003-of-00016.jsonl");
    ck_assert(journal_is_name(name));
    ck_assert(!journal_is_name(".chex-journal-00003-of-00016.jsonl~"));
    ck_assert(!journal_is_name(".chex-journal-00003-of-00016"));
    ck_assert(!journal_is_name(".chex-journal-notes.jsonl"));
    ck_assert(!journal_is_name("chex-journal.jsonl"));
}
