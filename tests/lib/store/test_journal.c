/*
 * test_journal.c - how far a resumed conversion trusts its journal (journal.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "resume_fixture.h"
#include "store_fixture.h"
#include "unit.h"

#include <string.h>
#include <unistd.h>

TEST_CASE("store", "journal", resume_setup, resume_teardown);

/* A kill between the rename of a shard and its line, or a torn write of a line: cuts the journal anywhere. */
TEST(a_journal_may_end_anywhere)
{
    struct buffer journal;

    resume_finished_run();
    journal = bench_get(&resumed, JOURNAL_NAME);
    for (size_t size = 0; size < journal.size; size += 1 + journal.size / 25) {
        bench_put(&resumed, JOURNAL_NAME, journal.data, size);
        resume_complete(size);
    }
    buffer_release(&journal);
}

TEST(garbage_after_the_last_good_line_is_dropped)
{
    static const char *const tails[] = {"garbage\n", "{\"shard\":1", "{}\n", "{\"shard\":99,\"size\":1}\n",
                                        "\n",        "[]\n"};
    struct buffer journal;

    resume_finished_without_rejects();
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        journal = bench_get(&resumed, JOURNAL_NAME);
        ck_assert_int_eq(buffer_append(&journal, tails[i], strlen(tails[i]), NULL), CHEX_OK);
        bench_put(&resumed, JOURNAL_NAME, journal.data, journal.size);
        buffer_release(&journal);
        bench_open(&resumed);
        resume_expect_state(RESUME_SHARDS, 0);
        bench_close(&resumed);
    }
}

/*
 * The shard is renamed, but its line is missing.  It is checked like a part, and finished without images if none was
 * rejected.
 */
TEST(a_shard_that_the_journal_does_not_know_is_taken_over)
{
    struct buffer journal;
    uint8_t *newline;

    bench_open(&resumed);
    for (size_t i = 4; i < 8; i++)
        bench_item(&resumed, i);
    bench_close(&resumed);
    journal = bench_get(&resumed, JOURNAL_NAME);
    newline = memchr(journal.data, '\n', journal.size);
    ck_assert_ptr_nonnull(newline);
    bench_resize(&resumed, JOURNAL_NAME, (long)(newline + 1 - journal.data));
    buffer_release(&journal);
    bench_open(&resumed);
    resume_expect_wanted("0 1 2 3 8 9 10");
    ck_assert(store_results(resumed.store)[1].done);
    /* Each slot counts once: in a finished shard, or as a full slot in an unfinished one. */
    resume_expect_state(1, 0);
    resume_complete(1);
}

/* Overwrites the text that starts with `from` in the line of the first shard with `to`. */
static void
change_journal(const char *from, const char *to)
{
    struct buffer journal = bench_get(&resumed, JOURNAL_NAME);
    char *line, *place;

    ck_assert_int_eq(buffer_append(&journal, "", 1, NULL), CHEX_OK); /* a terminator */
    line = strstr((char *)journal.data, "\"shard\":0");
    ck_assert_ptr_nonnull(line);
    place = strstr(line, from);
    ck_assert_ptr_nonnull(place);
    memcpy(place, to, strlen(to));
    bench_put(&resumed, JOURNAL_NAME, journal.data, journal.size - 1);
    buffer_release(&journal);
}

/* A damaged byte of the journal must not reach the manifest, nor be used as an index. */
TEST(a_line_that_does_not_fit_its_shard_is_not_believed)
{
    static const char *const changes[][2] = {
        {"\"rejects\":0", "\"rejects\":1"},  {"\"images\":4", "\"images\":2"},  {"\"sha256\":\"", "\"sha256\":\"~"},
        {"\"sum\":", "\"sum\":9"},           {"\"squares\":", "\"squares\":9"}, {"\"size\":", "\"size\":9"},
        {"\"crc32c\":\"", "\"crc32c\":\"~"},
    };

    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        resume_finished_without_rejects();
        change_journal(changes[i][0], changes[i][1]);
        bench_open(&resumed);
        bench_fill(&resumed, i);
        resume_expect_reference();
        bench_close(&resumed);
    }
}
