/*
 * test_dataset.c - reads a data set as other programs do: the functions of chex.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calls.h"
#include "unit.h"

#include "dataset/tfrecord.h"
#include "small_dataset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- record by record ------------------------------------------------------------------------------------------- */

TEST_CASE("manifest", "dataset", NULL, NULL);

TEST(a_data_set_is_read_by_the_public_names)
{
    struct small_dataset s;
    struct chex_dataset *ds;
    struct chex_shard *shard;
    struct chex_record r;
    uint8_t *buffer;
    unsigned i;

    small_make(&s, "public");
    ck_assert_int_eq(chex_dataset_open(s.path, &ds, NULL), CHEX_OK);
    ck_assert_uint_eq(chex_dataset_info(ds)->image_count, SMALL_IMAGES);
    ck_assert_int_eq(chex_dataset_find_split(ds, "val"), 1);
    ck_assert_int_eq(chex_dataset_find_split(ds, "test"), -1);
    ck_assert_uint_eq(chex_dataset_split(ds, 1)->first_shard, 2);
    ck_assert_ptr_null(chex_dataset_split(ds, 2));
    ck_assert_ptr_null(chex_dataset_shard(ds, 3));
    ck_assert_int_eq(chex_shard_open(ds, 3, &shard, NULL), CHEX_ERR_USAGE);
    ck_assert_int_eq(chex_shard_open(ds, 2, &shard, NULL), CHEX_OK);
    buffer = malloc(s.size);
    ck_assert_int_eq(chex_shard_read(shard, 0, 4, buffer, NULL), CHEX_ERR_USAGE);
    ck_assert_int_eq(chex_shard_read(shard, UINT32_MAX, 2, buffer, NULL), CHEX_ERR_USAGE);
    ck_assert_int_eq(chex_shard_read(shard, 1, 2, buffer, NULL), CHEX_OK);
    ck_assert_int_eq(chex_record_view(ds, 2, 1, buffer, true, &r, NULL), CHEX_OK);
    ck_assert_uint_eq(r.pixels[0], 140);
    ck_assert_int_eq(r.label[7], 1);
    ck_assert_int_eq(r.sex, 'F');
    ck_assert_uint_eq(r.name.size, 16);
    ck_assert_mem_eq(r.name.data, "00000007_000.png", 16);
    ck_assert_int_eq(chex_record_view(ds, 2, 2, buffer, true, &r, NULL), CHEX_ERR_INCOMPATIBLE);
    ck_assert_int_eq(chex_record_view(ds, 1, 1, buffer, true, &r, NULL), CHEX_ERR_INCOMPATIBLE);
    buffer[chex_dataset_info(ds)->pixel_offset] ^= 1;
    ck_assert_int_eq(chex_record_view(ds, 2, 1, buffer, true, &r, NULL), CHEX_ERR_CHECKSUM);
    ck_assert_int_eq(chex_record_view(ds, 2, 1, buffer, false, &r, NULL), CHEX_OK);
    /* A length with a correct checksum that is not the record's length, longer or shorter: a fault of the form. */
    for (i = 0; i < 2; i++) {
        put_u64le(buffer, i ? 7 : UINT64_MAX / 2);
        put_u32le(buffer + 8, chex_crc32c_mask(chex_crc32c(0, buffer, 8)));
        ck_assert_int_eq(chex_record_view(ds, 2, 1, buffer, true, &r, NULL), CHEX_ERR_DAMAGED);
        ck_assert_int_eq(chex_record_view(ds, 2, 1, buffer, false, &r, NULL), CHEX_ERR_DAMAGED);
    }
    free(buffer);
    chex_shard_close(shard);
    chex_dataset_close(ds);
    small_release(&s);
}

TEST(an_incomplete_data_set_is_not_opened)
{
    struct small_dataset s;
    struct chex_dataset *ds;
    struct chex_shard *shard;
    struct chex_error err;

    small_make(&s, "broken");
    ck_assert_int_eq(chex_dataset_open("/nowhere/at/all", &ds, NULL), CHEX_ERR_MISSING);
    ck_assert_ptr_null(ds);
    ck_assert_int_eq(chex_dataset_open(s.path, &ds, NULL), CHEX_OK);
    small_put(&s, s.shard[0].name, s.bytes[0], s.size - 1);
    ck_assert_int_eq(chex_shard_open(ds, 0, &shard, &err), CHEX_ERR_TRUNCATED);
    small_put(&s, s.shard[0].name, "", 0);
    ck_assert_int_eq(chex_shard_open(ds, 0, &shard, &err), CHEX_ERR_TRUNCATED);
    small_remove(&s, s.shard[0].name);
    ck_assert_int_eq(chex_shard_open(ds, 0, &shard, &err), CHEX_ERR_MISSING);
    ck_assert_ptr_nonnull(strstr(err.text, s.shard[0].name));
    chex_dataset_close(ds);
    small_put(&s, MANIFEST_NAME, "{}", 2);
    ck_assert_int_eq(chex_dataset_open(s.path, &ds, &err), CHEX_ERR_DAMAGED);
    ck_assert_ptr_nonnull(strstr(err.text, MANIFEST_NAME));
    small_remove(&s, MANIFEST_NAME);
    ck_assert_int_eq(chex_dataset_open(s.path, &ds, &err), CHEX_ERR_MISSING);
    small_release(&s);
}

/* ---- batch by batch ------------------------------------------------------------------------------------------ */

enum { SMALL_PIXELS = SMALL_SIDE * SMALL_SIDE };

/* Checks image `number` in the batch: its first pixel (image 5 is constant) and its label. */
static void
check_image(const struct chex_batch *batch, size_t at, unsigned number)
{
    const uint8_t *pixels = batch->pixels + at * SMALL_PIXELS;

    ck_assert_uint_eq(pixels[SMALL_SIDE + 2], number == 5 ? pixels[0] : number * 20 + 3);
    for (unsigned k = 0; k < 14; k++)
        ck_assert_uint_eq(batch->labels[at * 14 + k], number > 0 && k == number);
}

/* Train has images 0 to 5 in two shards; val has 6 and 7 and a padding record. */
TEST(a_split_is_read_in_batches_of_any_size)
{
    static const struct {
        const char *split;
        unsigned first, count;
    } splits[] = {{"train", 0, 6}, {"val", 6, 2}};
    uint8_t pixels[8 * SMALL_PIXELS], labels[8 * 14];
    struct chex_batch batch = {.pixels = pixels, .labels = labels};
    struct chex_reader *reader;
    struct chex_dataset *ds;
    struct small_dataset s;

    small_make(&s, "batches");
    ck_assert_int_eq(chex_dataset_open(s.path, &ds, NULL), CHEX_OK);
    ck_assert_uint_eq(chex_dataset_info(ds)->pixel_size, SMALL_PIXELS);
    for (unsigned round = 0; round < 16; round++) {
        unsigned k = round % 2, next = 0;

        batch.capacity = round / 2 + 1;
        ck_assert_int_eq(chex_reader_open(ds, splits[k].split, &reader, NULL), CHEX_OK);
        do {
            ck_assert_int_eq(chex_reader_next(reader, &batch, NULL), CHEX_OK);
            ck_assert_uint_eq(batch.count,
                              splits[k].count - next < batch.capacity ? splits[k].count - next : batch.capacity);
            for (size_t i = 0; i < batch.count; i++)
                check_image(&batch, i, splits[k].first + next++);
        } while (batch.count > 0);
        ck_assert_uint_eq(next, splits[k].count);
        chex_reader_close(reader);
    }
    chex_dataset_close(ds);
    small_release(&s);
}

TEST(arrays_that_are_not_wanted_are_not_filled)
{
    uint8_t labels[8 * 14];
    struct chex_batch batch = {.capacity = 8, .labels = labels};
    struct chex_reader *reader;
    struct chex_error err;
    struct chex_dataset *ds;
    struct small_dataset s;

    small_make(&s, "unwanted");
    ck_assert_int_eq(chex_dataset_open(s.path, &ds, NULL), CHEX_OK);
    ck_assert_int_eq(chex_reader_open(ds, "nowhere", &reader, &err), CHEX_ERR_USAGE);
    ck_assert_ptr_null(reader);
    ck_assert_int_eq(chex_reader_open(ds, "train", &reader, NULL), CHEX_OK);
    ck_assert_int_eq(chex_reader_next(reader, &batch, NULL), CHEX_OK);
    ck_assert_uint_eq(batch.count, 6);
    ck_assert_uint_eq(labels[3 * 14 + 3], 1);
    batch.capacity = 0;
    ck_assert_int_eq(chex_reader_next(reader, &batch, &err), CHEX_ERR_USAGE);
    chex_reader_close(reader);
    chex_reader_close(NULL);
    chex_dataset_close(ds);
    small_release(&s);
}

/* The unreadable record is named.  After a repair, the same call gives the batch that it would have given. */
TEST(a_batch_that_failed_may_be_read_again)
{
    uint8_t pixels[4 * SMALL_PIXELS], labels[4 * 14];
    struct chex_batch batch = {.capacity = 4, .pixels = pixels, .labels = labels};
    struct chex_reader *reader;
    struct chex_error err;
    struct chex_dataset *ds;
    struct small_dataset s;
    size_t at;

    small_make(&s, "again");
    at = s.manifest.layout.pixel_offset;
    ck_assert_int_eq(chex_dataset_open(s.path, &ds, NULL), CHEX_OK);
    ck_assert_int_eq(chex_reader_open(ds, "train", &reader, NULL), CHEX_OK);
    small_remove(&s, s.shard[1].name);
    ck_assert_int_eq(chex_reader_next(reader, &batch, &err), CHEX_ERR_MISSING);
    ck_assert_int_eq(err.cause, ENOENT);
    ck_assert_uint_eq(batch.count, 0);
    s.bytes[1][at] ^= 1;
    small_put_shard(&s, 1);
    ck_assert_int_eq(chex_reader_next(reader, &batch, &err), CHEX_ERR_CHECKSUM);
    ck_assert_msg(strstr(err.text, s.shard[1].name) && strstr(err.text, "record 0"), "%s", err.text);
    ck_assert(chex_status_is_data(err.status) && err.cause == 0);
    s.bytes[1][at] ^= 1;
    small_put_shard(&s, 1);
    for (unsigned next = 0; next < 6; next += 4) {
        ck_assert_int_eq(chex_reader_next(reader, &batch, &err), CHEX_OK);
        ck_assert_uint_eq(batch.count, next == 0 ? 4 : 2);
        for (size_t i = 0; i < batch.count; i++)
            check_image(&batch, i, next + (unsigned)i);
    }
    chex_reader_close(reader);
    chex_dataset_close(ds);
    small_release(&s);
}

static struct small_dataset faulty;

static enum chex_status
read_batches(struct chex_error *err)
{
    uint8_t pixels[4 * SMALL_PIXELS], labels[4 * 14];
    struct chex_batch batch = {.capacity = 4, .pixels = pixels, .labels = labels};
    struct chex_reader *reader = NULL;
    struct chex_dataset *ds;
    size_t images = 0;
    enum chex_status status = chex_dataset_open(faulty.path, &ds, err);

    if (status == CHEX_OK)
        status = chex_reader_open(ds, "train", &reader, err);
    while (status == CHEX_OK && (status = chex_reader_next(reader, &batch, err)) == CHEX_OK && batch.count > 0)
        images += batch.count;
    chex_reader_close(reader);
    chex_dataset_close(ds);
    return status == CHEX_OK && images != 6 ? error_set(err, CHEX_ERR_BUG, "%zu images", images) : status;
}

TEST(each_failed_call_of_a_reader_is_said)
{
    small_make(&faulty, "faulty");
    calls_each(CALL_MEMORY, ENOMEM, read_batches, NULL, CHEX_ERR_MEMORY, 0);
    calls_each(CALL_READ, ENXIO, read_batches, NULL, CHEX_ERR_READ, 0);
    calls_each(CALL_OPEN, EMFILE, read_batches, NULL, CHEX_ERR_MEMORY, 0);
    small_release(&faulty);
}
