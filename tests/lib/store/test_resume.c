/*
 * test_resume.c - a conversion that was interrupted anywhere resumes to the same bytes (store.h, journal.h)
 *
 * store_free() and changes to files imitate a killed run.  A slot counts as full if its record is valid.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calls.h"
#include "lib/dataset/record_fixture.h"
#include "resume_fixture.h"
#include "store_fixture.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Exchanges the names of two files. */
static void
swap(const char *a, const char *b)
{
    ck_assert_int_eq(renameat(resumed.folder.fd, a, resumed.folder.fd, "x"), 0);
    ck_assert_int_eq(renameat(resumed.folder.fd, b, resumed.folder.fd, a), 0);
    ck_assert_int_eq(renameat(resumed.folder.fd, "x", resumed.folder.fd, b), 0);
}

/* ---- runs that end -------------------------------------------------------------------------------------------- */

TEST_CASE("store", "resume", resume_setup, resume_teardown);

TEST(a_run_may_end_after_any_number_of_slots)
{
    for (uint32_t filled = 0; filled <= RESUME_IMAGES; filled++) {
        size_t order[RESUME_IMAGES];
        uint64_t state = filled;

        for (uint32_t i = 0; i < RESUME_IMAGES; i++) {
            uint32_t k = pick_below(&state, i + 1);

            order[i] = order[k];
            order[k] = i;
        }
        bench_move(&resumed);
        bench_open(&resumed);
        for (uint32_t i = 0; i < filled; i++)
            bench_item(&resumed, order[i]);
        bench_close(&resumed);
        bench_open(&resumed);
        for (uint32_t i = 0; i < RESUME_IMAGES; i++) {
            size_t shard;
            uint32_t index;

            bench_slot(&resumed, order[i], &shard, &index);
            /* Only finished shards remember a reject; others try it again. */
            ck_assert_int_eq(store_wants(resumed.store, shard, index),
                             !store_results(resumed.store)[shard].done && (i >= filled || resumed.rejected[order[i]]));
        }
        bench_fill(&resumed, filled);
        resume_expect_reference();
        bench_close(&resumed);
    }
}

TEST(a_run_may_end_after_every_slot)
{
    for (size_t i = 0; i < RESUME_IMAGES; i++) {
        bench_open(&resumed);
        bench_item(&resumed, (i * 7 + 3) % RESUME_IMAGES);
        bench_close(&resumed);
    }
    resume_complete(1);
}

TEST(the_state_of_an_earlier_run_is_reported)
{
    bench_open(&resumed);
    resume_expect_state(0, 0);
    for (size_t i = 0; i < 6; i++)
        bench_item(&resumed, i);
    bench_close(&resumed);
    bench_open(&resumed);
    /* The first shard was finished, but item 2 is tried again: the file may have been repaired. */
    resume_expect_state(0, 5);
    resume_expect_wanted("2 6 7 8 9 10");
    ck_assert_uint_le(store_space_needed(resumed.store), 8 * resumed.plan.layout.stride);
}

/* ---- parts ---------------------------------------------------------------------------------------------------- */

/* Three slots of the first shard are full; item 2, a reject, is not decided. */
static void
three_slots(void)
{
    bench_move(&resumed);
    bench_open(&resumed);
    bench_item(&resumed, 0);
    bench_item(&resumed, 1);
    bench_item(&resumed, 3);
    bench_close(&resumed);
}

TEST(a_flipped_byte_in_a_part_empties_its_slot)
{
    const struct record_layout *l = &resumed.plan.layout;
    const size_t offsets[] = {0,
                              11,
                              12,
                              l->pixel_offset,
                              l->label_offset,
                              l->texts_offset + 30,
                              resumed.plan.layout.stride - 5,
                              resumed.plan.layout.stride - 1};

    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        three_slots();
        bench_flip(&resumed, bench_part(&resumed, 0), (long)(resumed.plan.layout.stride + offsets[i]), 1);
        bench_open(&resumed);
        resume_expect_state(0, 2);
        resume_expect_wanted("1 2 4 5 6 7 8 9 10");
        bench_fill(&resumed, i);
        resume_expect_reference();
        bench_close(&resumed);
    }
}

TEST(a_part_of_another_size_is_read_as_far_as_it_goes)
{
    const long sizes[] = {0, 5, (long)resumed.plan.layout.stride, (long)(2 * resumed.plan.layout.stride - 1),
                          (long)(4 * resumed.plan.layout.stride + 7)};
    static const char *const wanted[] = {"0 1 2 3 4 5 6 7 8 9 10", "0 1 2 3 4 5 6 7 8 9 10", "1 2 3 4 5 6 7 8 9 10",
                                         "1 2 3 4 5 6 7 8 9 10", "2 4 5 6 7 8 9 10"};

    for (size_t i = 0; i < 5; i++) {
        three_slots();
        bench_resize(&resumed, bench_part(&resumed, 0), sizes[i]);
        bench_open(&resumed);
        resume_expect_wanted(wanted[i]);
        bench_fill(&resumed, i);
        resume_expect_reference();
        bench_close(&resumed);
    }
}

/* Good records, but of another place, another data set, or padding records. */
/* A bad block of the disk: its records are written again, also in a finished shard. */
TEST(unreadable_files_are_made_again)
{
    for (unsigned slots = 3; slots <= 4; slots++) {
        unsigned failed = 1, lost = 0;

        for (unsigned n = 1; failed > 0; n++) {
            enum chex_status status;

            bench_open(&resumed);
            for (size_t item = 0; item < slots; item++)
                bench_item(&resumed, item);
            bench_close(&resumed);
            calls_fail(CALL_READ, n, false, ENXIO); /* like EIO, but not tried again */
            status = bench_try_open(&resumed);
            failed = calls_end();
            ck_assert_msg(status == CHEX_OK || strstr(resumed.err.text, JOURNAL_NAME), "%s", resumed.err.text);
            if (status != CHEX_OK)
                bench_open(&resumed);
            lost += resumed.state.shards_done == 0 && resumed.state.slots_full < slots;
            bench_fill(&resumed, n);
            resume_expect_reference();
            bench_close(&resumed);
            bench_move(&resumed);
        }
        ck_assert_msg(slots == 4 || lost >= 3, "%u", lost);
    }
}

TEST(data_before_a_bad_block_is_kept)
{
    static const char *const wanted[] = {"0 1 2 3 4 5 6 7 8 9 10", "1 2 3 4 5 6 7 8 9 10", "2 3 4 5 6 7 8 9 10"};
    static const size_t slots[] = {0, 1, 3}; /* the block is at the end of this one, after the bytes of the journal */

    for (size_t i = 0; i < 3; i++) {
        three_slots();
        calls_bad_block((int64_t)(slots[i] * resumed.plan.layout.stride + resumed.plan.layout.stride - 1));
        bench_open(&resumed);
        calls_bad_block(-1);
        resume_expect_wanted(wanted[i]);
        bench_fill(&resumed, i);
        resume_expect_reference();
        bench_close(&resumed);
    }
}

TEST(a_record_in_the_wrong_slot_is_not_believed)
{
    struct buffer part;
    uint8_t *other;

    three_slots();
    part = bench_get(&resumed, bench_part(&resumed, 0));
    memcpy(part.data + 2 * resumed.plan.layout.stride, part.data + resumed.plan.layout.stride,
           resumed.plan.layout.stride);
    other = bench_record(&resumed, 0, 0, 0, 0);
    memcpy(part.data, other, resumed.plan.layout.stride);
    free(other);
    memcpy(resumed.plan.dataset_id, "0123456789abcdef", CHEX_ID_LENGTH);
    other = bench_record(&resumed, 0, 3, 3, 1);
    memcpy(part.data + 3 * resumed.plan.layout.stride, other, resumed.plan.layout.stride);
    free(other);
    bench_put(&resumed, bench_part(&resumed, 0), part.data, part.size);
    buffer_release(&part);
    plan_release(&resumed.plan);
    ck_assert_int_eq(plan_make(&resumed.spec, &resumed.labels, NULL, &resumed.plan, &resumed.err), CHEX_OK);
    bench_open(&resumed);
    resume_expect_wanted("0 2 3 4 5 6 7 8 9 10");
    bench_fill(&resumed, 1);
    resume_expect_reference();
}

TEST(parts_that_changed_places_are_not_believed)
{
    char first[128];

    bench_open(&resumed);
    bench_item(&resumed, 0);
    bench_item(&resumed, 4);
    bench_close(&resumed);
    snprintf(first, sizeof(first), "%s", bench_part(&resumed, 0));
    swap(first, bench_part(&resumed, 1));
    bench_open(&resumed);
    resume_expect_state(0, 0);
    bench_fill(&resumed, 1);
    resume_expect_reference();
}

/* ---- finished shards ------------------------------------------------------------------------------------------ */

TEST(finished_shards_are_not_done_again)
{
    resume_finished_without_rejects();
    bench_open(&resumed);
    resume_expect_state(RESUME_SHARDS, 0);
    resume_expect_wanted("");
    ck_assert_uint_eq(store_space_needed(resumed.store), 0);
    ck_assert_int_eq(store_finish(resumed.store, &resumed.err), CHEX_OK);
    resume_expect_reference();
}

/* A rejected file that was repaired is now an image, as if it had always been one. */
TEST(a_repaired_file_is_taken_by_the_next_run)
{
    resume_finished_run();
    resumed.rejected[2] = resumed.rejected[9] = false;
    bench_open(&resumed);
    resume_expect_wanted("2 9");
    bench_fill(&resumed, 1);
    bench_digest(&resumed, resume_reference);
    bench_close(&resumed);
    bench_move(&resumed);
    bench_run(&resumed, 1);
    resume_expect_reference();
}

TEST(a_damaged_shard_is_done_again)
{
    resume_finished_without_rejects();
    bench_flip(&resumed, resumed.plan.shard[1].name, (long)(2 * resumed.plan.layout.stride + 100), 0x80);
    bench_open(&resumed);
    resume_expect_state(2, 3);
    resume_expect_wanted("6");
    resume_complete(1);
    bench_flip(&resumed, resumed.plan.shard[0].name, 100, 0x80);
    bench_open(&resumed);
    resume_expect_state(2, 3);
    resume_expect_wanted("0");
    resume_complete(1);
}

/* Slot 3 of the last shard is a padding record, which needs no image. */
TEST(a_damaged_padding_record_is_made_again)
{
    resume_finished_without_rejects();
    bench_flip(&resumed, resumed.plan.shard[2].name, (long)(3 * resumed.plan.layout.stride + 100), 1);
    bench_open(&resumed);
    resume_expect_wanted("");
    resume_expect_state(RESUME_SHARDS, 0);
    ck_assert_int_eq(store_finish(resumed.store, &resumed.err), CHEX_OK);
    resume_expect_reference();
}

TEST(a_shard_that_is_missing_cut_or_longer_is_done_again)
{
    const char *name = resumed.plan.shard[1].name;

    resume_finished_without_rejects();
    ck_assert_int_eq(unlinkat(resumed.folder.fd, name, 0), 0);
    bench_open(&resumed);
    resume_expect_state(2, 0);
    resume_expect_wanted("4 5 6 7");
    resume_complete(1);
    bench_resize(&resumed, name, (long)(4 * resumed.plan.layout.stride - 1));
    bench_open(&resumed);
    resume_expect_wanted("7");
    resume_complete(1);
    /* The shard is complete, with some additional bytes. */
    bench_resize(&resumed, name, (long)(4 * resumed.plan.layout.stride + 64));
    resume_complete(1);
}

TEST(shards_that_changed_places_are_done_again)
{
    resume_finished_without_rejects();
    swap(resumed.plan.shard[0].name, resumed.plan.shard[1].name);
    bench_open(&resumed);
    resume_expect_state(1, 0);
    resume_complete(1);
}
