/*
 * test_resume.c - a conversion that ended anywhere goes on to the same bytes (store.h, journal.h)
 *
 * What a killed run leaves is made with store_free() and by changing files: a slot is believed for what is in it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "calls.h"
#include "cases.h"
#include "record_fixture.h"
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IMAGES = 11, SHARDS = 3 }; /* four, four, three and a slot of the tail */

static struct bench bench;
static size_t stride;
static char reference[DIGEST_HEX];

/* One run without a break, with two rejects, says what must come out; then a new folder. */
static void
setup(void)
{
    struct spec spec = bench_spec();

    bench_make(&bench, &spec, IMAGES);
    stride = bench.plan.layout.stride;
    bench.rejected[2] = bench.rejected[9] = true;
    bench_run(&bench, 1);
    bench_digest(&bench, reference);
    bench_move(&bench);
}

static void
teardown(void)
{
    bench_release(&bench);
}

static void
expect_reference(void)
{
    char now[DIGEST_HEX];

    bench_expect_shards(&bench);
    bench_digest(&bench, now);
    ck_assert_str_eq(now, reference);
}

/* Go on from what is there, to the end. */
static void
complete(uint64_t seed)
{
    bench_close(&bench);
    bench_open(&bench);
    bench_fill(&bench, seed);
    expect_reference();
    bench_close(&bench);
}

/* A whole run in a new folder, before its journal is published away; the store is closed. */
static void
finished_run(void)
{
    bench_move(&bench);
    bench_run(&bench, 1);
}

/* The same without rejects, which would be tried again: every shard is finished for good. */
static void
finished_without_rejects(void)
{
    memset(bench.rejected, 0, sizeof(bench.rejected));
    finished_run();
    bench_digest(&bench, reference);
}

static void
expect_state(size_t shards_done, size_t slots_full)
{
    ck_assert_uint_eq(bench.state.shards_done, shards_done);
    ck_assert_uint_eq(bench.state.slots_full, slots_full);
    ck_assert(!bench.state.complete);
}

/* Of the items, those of the list "0 3 4" are wanted and no other. */
static void
expect_wanted(const char *wanted)
{
    char text[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < IMAGES; i++) {
        size_t shard;
        uint32_t index;

        bench_slot(&bench, i, &shard, &index);
        if (store_wants(bench.store, shard, index))
            used += (size_t)sprintf(text + used, "%s%zu", used ? " " : "", i);
    }
    ck_assert_str_eq(text, wanted);
}

/* Two files change their names. */
static void
swap(const char *a, const char *b)
{
    ck_assert_int_eq(renameat(bench.folder.fd, a, bench.folder.fd, "x"), 0);
    ck_assert_int_eq(renameat(bench.folder.fd, b, bench.folder.fd, a), 0);
    ck_assert_int_eq(renameat(bench.folder.fd, "x", bench.folder.fd, b), 0);
}

/* ---- runs that end -------------------------------------------------------------------------------------------- */

START_TEST(a_run_may_end_after_any_number_of_slots)
{
    for (uint32_t filled = 0; filled <= IMAGES; filled++) {
        size_t order[IMAGES];
        uint64_t state = filled;

        for (uint32_t i = 0; i < IMAGES; i++) {
            uint32_t k = pick_below(&state, i + 1);

            order[i] = order[k];
            order[k] = i;
        }
        bench_move(&bench);
        bench_open(&bench);
        for (uint32_t i = 0; i < filled; i++)
            bench_item(&bench, order[i]);
        bench_close(&bench);
        bench_open(&bench);
        for (uint32_t i = 0; i < IMAGES; i++) {
            size_t shard;
            uint32_t index;

            bench_slot(&bench, order[i], &shard, &index);
            /* A reject is known of finished shards only: it is tried again. */
            ck_assert_int_eq(store_wants(bench.store, shard, index),
                             !store_results(bench.store)[shard].done && (i >= filled || bench.rejected[order[i]]));
        }
        bench_fill(&bench, filled);
        expect_reference();
        bench_close(&bench);
    }
}
END_TEST

START_TEST(a_run_may_end_after_every_slot)
{
    for (size_t i = 0; i < IMAGES; i++) {
        bench_open(&bench);
        bench_item(&bench, (i * 7 + 3) % IMAGES);
        bench_close(&bench);
    }
    complete(1);
}
END_TEST

START_TEST(what_was_there_is_told)
{
    bench_open(&bench);
    expect_state(0, 0);
    for (size_t i = 0; i < 6; i++)
        bench_item(&bench, i);
    bench_close(&bench);
    bench_open(&bench);
    /* The first shard was finished, but item 2 is tried again: the file may have been repaired since. */
    expect_state(0, 5);
    expect_wanted("2 6 7 8 9 10");
    ck_assert_uint_le(store_space_needed(bench.store), 8 * stride);
}
END_TEST

/* ---- parts ---------------------------------------------------------------------------------------------------- */

/* Three slots of the first shard are full; item 2, a reject, is not decided. */
static void
three_slots(void)
{
    bench_move(&bench);
    bench_open(&bench);
    bench_item(&bench, 0);
    bench_item(&bench, 1);
    bench_item(&bench, 3);
    bench_close(&bench);
}

START_TEST(a_flipped_byte_in_a_part_empties_its_slot)
{
    const struct record_layout *l = &bench.plan.layout;
    const size_t offsets[] = {0,          11,        12, l->pixel_offset, l->label_offset, l->texts_offset + 30,
                              stride - 5, stride - 1};

    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        three_slots();
        bench_flip(&bench, bench_part(&bench, 0), (long)(stride + offsets[i]), 1);
        bench_open(&bench);
        expect_state(0, 2);
        expect_wanted("1 2 4 5 6 7 8 9 10");
        bench_fill(&bench, i);
        expect_reference();
        bench_close(&bench);
    }
}
END_TEST

START_TEST(a_part_of_another_size_is_read_as_far_as_it_goes)
{
    const long sizes[] = {0, 5, (long)stride, (long)(2 * stride - 1), (long)(4 * stride + 7)};
    static const char *const wanted[] = {"0 1 2 3 4 5 6 7 8 9 10", "0 1 2 3 4 5 6 7 8 9 10", "1 2 3 4 5 6 7 8 9 10",
                                         "1 2 3 4 5 6 7 8 9 10", "2 4 5 6 7 8 9 10"};

    for (size_t i = 0; i < 5; i++) {
        three_slots();
        bench_resize(&bench, bench_part(&bench, 0), sizes[i]);
        bench_open(&bench);
        expect_wanted(wanted[i]);
        bench_fill(&bench, i);
        expect_reference();
        bench_close(&bench);
    }
}
END_TEST

/* Good records, but of another place, another data set, or filling. */
/* A bad block of the disk: what it held is made anew.  It may be in a finished shard too. */
START_TEST(what_cannot_be_read_is_made_anew)
{
    for (unsigned slots = 3; slots <= 4; slots++) {
        unsigned failed = 1, lost = 0;

        for (unsigned n = 1; failed > 0; n++) {
            enum chex_status status;

            bench_open(&bench);
            for (size_t item = 0; item < slots; item++)
                bench_item(&bench, item);
            bench_close(&bench);
            calls_fail(CALL_READ, n, false, ENXIO); /* as EIO, but it is not tried again */
            status = bench_try_open(&bench);
            failed = calls_end();
            ck_assert_msg(status == CHEX_OK || strstr(bench.err.text, JOURNAL_NAME), "%s", bench.err.text);
            if (status != CHEX_OK)
                bench_open(&bench);
            lost += bench.state.shards_done == 0 && bench.state.slots_full < slots;
            bench_fill(&bench, n);
            expect_reference();
            bench_close(&bench);
            bench_move(&bench);
        }
        ck_assert_msg(slots == 4 || lost >= 3, "%u", lost);
    }
}
END_TEST

START_TEST(what_lies_before_a_bad_block_is_kept)
{
    static const char *const wanted[] = {"0 1 2 3 4 5 6 7 8 9 10", "1 2 3 4 5 6 7 8 9 10", "2 3 4 5 6 7 8 9 10"};
    static const size_t slots[] = {0, 1, 3}; /* the block lies at the end of this one, behind the journal's bytes */

    for (size_t i = 0; i < 3; i++) {
        three_slots();
        calls_bad_block((int64_t)(slots[i] * stride + stride - 1));
        bench_open(&bench);
        calls_bad_block(-1);
        expect_wanted(wanted[i]);
        bench_fill(&bench, i);
        expect_reference();
        bench_close(&bench);
    }
}
END_TEST

START_TEST(a_record_in_the_wrong_slot_is_not_believed)
{
    struct buffer part;
    uint8_t *filling;

    three_slots();
    part = bench_get(&bench, bench_part(&bench, 0));
    memcpy(part.data + 2 * stride, part.data + stride, stride);
    filling = bench_record(&bench, 0, 0, 0, 0);
    memcpy(part.data, filling, stride);
    free(filling);
    memcpy(bench.plan.dataset_id, "0123456789abcdef", CHEX_ID_LENGTH);
    filling = bench_record(&bench, 0, 3, 3, 1);
    memcpy(part.data + 3 * stride, filling, stride);
    free(filling);
    bench_put(&bench, bench_part(&bench, 0), part.data, part.size);
    buffer_release(&part);
    plan_release(&bench.plan);
    ck_assert_int_eq(plan_make(&bench.spec, &bench.labels, NULL, &bench.plan, &bench.err), CHEX_OK);
    bench_open(&bench);
    expect_wanted("0 2 3 4 5 6 7 8 9 10");
    bench_fill(&bench, 1);
    expect_reference();
}
END_TEST

START_TEST(parts_that_changed_places_are_not_believed)
{
    char first[128];

    bench_open(&bench);
    bench_item(&bench, 0);
    bench_item(&bench, 4);
    bench_close(&bench);
    snprintf(first, sizeof(first), "%s", bench_part(&bench, 0));
    swap(first, bench_part(&bench, 1));
    bench_open(&bench);
    expect_state(0, 0);
    bench_fill(&bench, 1);
    expect_reference();
}
END_TEST

/* ---- finished shards ------------------------------------------------------------------------------------------ */

START_TEST(finished_shards_are_not_done_again)
{
    finished_without_rejects();
    bench_open(&bench);
    expect_state(SHARDS, 0);
    expect_wanted("");
    ck_assert_uint_eq(store_space_needed(bench.store), 0);
    ck_assert_int_eq(store_finish(bench.store, &bench.err), CHEX_OK);
    expect_reference();
}
END_TEST

/* What was rejected and has been repaired is an image now, as if it had always been one. */
START_TEST(a_repaired_file_is_taken_by_the_next_run)
{
    finished_run();
    bench.rejected[2] = bench.rejected[9] = false;
    bench_open(&bench);
    expect_wanted("2 9");
    bench_fill(&bench, 1);
    bench_digest(&bench, reference);
    bench_close(&bench);
    bench_move(&bench);
    bench_run(&bench, 1);
    expect_reference();
}
END_TEST

START_TEST(a_damaged_shard_is_done_again)
{
    finished_without_rejects();
    bench_flip(&bench, bench.plan.shard[1].name, (long)(2 * stride + 100), 0x80);
    bench_open(&bench);
    expect_state(2, 3);
    expect_wanted("6");
    complete(1);
    bench_flip(&bench, bench.plan.shard[0].name, 100, 0x80);
    bench_open(&bench);
    expect_state(2, 3);
    expect_wanted("0");
    complete(1);
}
END_TEST

/* Slot 3 of the last shard is filling: no image is needed to make it again. */
START_TEST(damaged_filling_is_made_again)
{
    finished_without_rejects();
    bench_flip(&bench, bench.plan.shard[2].name, (long)(3 * stride + 100), 1);
    bench_open(&bench);
    expect_wanted("");
    expect_state(SHARDS, 0);
    ck_assert_int_eq(store_finish(bench.store, &bench.err), CHEX_OK);
    expect_reference();
}
END_TEST

START_TEST(a_shard_that_is_missing_cut_or_longer_is_done_again)
{
    const char *name = bench.plan.shard[1].name;

    finished_without_rejects();
    ck_assert_int_eq(unlinkat(bench.folder.fd, name, 0), 0);
    bench_open(&bench);
    expect_state(2, 0);
    expect_wanted("4 5 6 7");
    complete(1);
    bench_resize(&bench, name, (long)(4 * stride - 1));
    bench_open(&bench);
    expect_wanted("7");
    complete(1);
    /* All of it is there, and something more. */
    bench_resize(&bench, name, (long)(4 * stride + 64));
    complete(1);
}
END_TEST

START_TEST(shards_that_changed_places_are_done_again)
{
    finished_without_rejects();
    swap(bench.plan.shard[0].name, bench.plan.shard[1].name);
    bench_open(&bench);
    expect_state(1, 0);
    complete(1);
}
END_TEST

/* ---- the journal ---------------------------------------------------------------------------------------------- */

/* A kill between the rename of a shard and its line, and any torn write of a line: every cut of the journal. */
START_TEST(a_journal_may_end_anywhere)
{
    struct buffer journal;

    finished_run();
    journal = bench_get(&bench, JOURNAL_NAME);
    for (size_t size = 0; size < journal.size; size += 1 + journal.size / 25) {
        bench_put(&bench, JOURNAL_NAME, journal.data, size);
        complete(size);
    }
    buffer_release(&journal);
}
END_TEST

START_TEST(garbage_behind_the_last_good_line_is_dropped)
{
    static const char *const tails[] = {"garbage\n", "{\"shard\":1", "{}\n", "{\"shard\":99,\"size\":1}\n",
                                        "\n",        "[]\n"};
    struct buffer journal;

    finished_without_rejects();
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        journal = bench_get(&bench, JOURNAL_NAME);
        ck_assert_int_eq(buffer_append(&journal, tails[i], strlen(tails[i]), NULL), CHEX_OK);
        bench_put(&bench, JOURNAL_NAME, journal.data, journal.size);
        buffer_release(&journal);
        bench_open(&bench);
        expect_state(SHARDS, 0);
        bench_close(&bench);
    }
}
END_TEST

/* Renamed, but the line never came: looked at as a part, and finished without an image where none was rejected. */
START_TEST(a_shard_that_the_journal_does_not_know_is_taken_over)
{
    struct buffer journal;
    uint8_t *newline;

    bench_open(&bench);
    for (size_t i = 4; i < 8; i++)
        bench_item(&bench, i);
    bench_close(&bench);
    journal = bench_get(&bench, JOURNAL_NAME);
    newline = memchr(journal.data, '\n', journal.size);
    ck_assert_ptr_nonnull(newline);
    bench_resize(&bench, JOURNAL_NAME, (long)(newline + 1 - journal.data));
    buffer_release(&journal);
    bench_open(&bench);
    expect_wanted("0 1 2 3 8 9 10");
    ck_assert(store_results(bench.store)[1].done);
    /* Each slot counts once: in a shard that is done, or as a full one in a shard that is not. */
    expect_state(1, 0);
    complete(1);
}
END_TEST

/* Write `to` over what begins with `from` in the line of the first shard. */
static void
change_journal(const char *from, const char *to)
{
    struct buffer journal = bench_get(&bench, JOURNAL_NAME);
    char *line, *place;

    ck_assert_int_eq(buffer_append(&journal, "", 1, NULL), CHEX_OK); /* a terminator */
    line = strstr((char *)journal.data, "\"shard\":0");
    ck_assert_ptr_nonnull(line);
    place = strstr(line, from);
    ck_assert_ptr_nonnull(place);
    memcpy(place, to, strlen(to));
    bench_put(&bench, JOURNAL_NAME, journal.data, journal.size - 1);
    buffer_release(&journal);
}

/* A byte of the journal that went bad must not reach the manifest, nor index memory. */
START_TEST(a_line_that_does_not_fit_its_shard_is_not_believed)
{
    static const char *const changes[][2] = {
        {"\"rejects\":0", "\"rejects\":1"},  {"\"images\":4", "\"images\":2"},  {"\"sha256\":\"", "\"sha256\":\"~"},
        {"\"sum\":", "\"sum\":9"},           {"\"squares\":", "\"squares\":9"}, {"\"size\":", "\"size\":9"},
        {"\"crc32c\":\"", "\"crc32c\":\"~"},
    };

    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        finished_without_rejects();
        change_journal(changes[i][0], changes[i][1]);
        bench_open(&bench);
        bench_fill(&bench, i);
        expect_reference();
        bench_close(&bench);
    }
}
END_TEST

void
resume_case(Suite *suite)
{
    TCase *tests = tcase_create("resume");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_run_may_end_after_any_number_of_slots);
    tcase_add_test(tests, a_run_may_end_after_every_slot);
    tcase_add_test(tests, what_was_there_is_told);
    tcase_add_test(tests, a_flipped_byte_in_a_part_empties_its_slot);
    tcase_add_test(tests, a_part_of_another_size_is_read_as_far_as_it_goes);
    tcase_add_test(tests, what_cannot_be_read_is_made_anew);
    tcase_add_test(tests, what_lies_before_a_bad_block_is_kept);
    tcase_add_test(tests, a_record_in_the_wrong_slot_is_not_believed);
    tcase_add_test(tests, parts_that_changed_places_are_not_believed);
    tcase_add_test(tests, finished_shards_are_not_done_again);
    tcase_add_test(tests, a_repaired_file_is_taken_by_the_next_run);
    tcase_add_test(tests, a_damaged_shard_is_done_again);
    tcase_add_test(tests, damaged_filling_is_made_again);
    tcase_add_test(tests, a_shard_that_is_missing_cut_or_longer_is_done_again);
    tcase_add_test(tests, shards_that_changed_places_are_done_again);
    tcase_add_test(tests, a_journal_may_end_anywhere);
    tcase_add_test(tests, garbage_behind_the_last_good_line_is_dropped);
    tcase_add_test(tests, a_shard_that_the_journal_does_not_know_is_taken_over);
    tcase_add_test(tests, a_line_that_does_not_fit_its_shard_is_not_believed);
    suite_add_tcase(suite, tests);
}
