/*
 * test_verify.c - every fault of a data set is found, and reported once for the right record
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/tfrecord.h"
#include "lib/dataset/small_dataset.h"
#include "unit.h"
#include "verify_fixture.h"

TEST_CASE("verify", "verify", NULL, NULL);

TEST(a_good_data_set_has_no_faults)
{
    struct small_dataset s;
    struct heard h;
    struct verify v;

    small_make(&s, "good");
    v = heard_run(&s, VERIFY_FULL, 2, &h);
    ck_assert_uint_eq(v.faults, 0);
    ck_assert_uint_eq(v.shards_good, 3);
    ck_assert_uint_eq(v.records_read, 9);
    ck_assert_uint_eq(v.bytes_read, 3 * s.size);
    ck_assert_uint_eq(v.notes, 1); /* image 5 is constant */
    v = heard_run(&s, VERIFY_SAMPLE, 2, &h);
    ck_assert_uint_eq(v.faults, 0);
    ck_assert_uint_eq(v.records_read, 9);
    v = heard_run(&s, VERIFY_QUICK, 1, &h);
    ck_assert_uint_eq(v.faults, 0);
    ck_assert_uint_eq(v.bytes_read, 0);
    small_release(&s);
}

/* Fault rows 54 to 56: every single bit of the file. */
LOOP_TEST(every_flipped_bit_is_noticed_in_its_record, 0, 8)
{
    struct small_dataset s;
    struct heard h;
    char name[32];
    size_t i;
    unsigned bit;

    snprintf(name, sizeof(name), "flips%d", _i);
    small_make(&s, name);
    for (i = (size_t)_i; i < s.size; i += 8) {
        for (bit = 0; bit < 8; bit++) {
            char place[32];

            s.bytes[1][i] ^= (uint8_t)(1u << bit);
            small_put_shard(&s, 1);
            s.bytes[1][i] ^= (uint8_t)(1u << bit);
            heard_run(&s, VERIFY_FULL, 1, &h);
            snprintf(place, sizeof(place), "[%zu@", i / s.manifest.layout.stride);
            ck_assert_msg(h.count == 1 && strstr(h.text, place) && h.status == CHEX_ERR_CHECKSUM, "byte %zu bit %u: %s",
                          i, bit, h.text);
        }
    }
    small_release(&s);
}

/* Fault rows 57 and 58. */
TEST(every_truncation_is_noticed)
{
    struct small_dataset s;
    struct heard h;
    size_t stride, i;

    small_make(&s, "truncations");
    stride = s.manifest.layout.stride;
    for (i = 0; i < s.size; i++) {
        struct verify v;
        char place[64];

        small_put(&s, s.shard[2].name, s.bytes[2], i);
        v = heard_run(&s, i % 16 ? VERIFY_QUICK : VERIFY_FULL, 1, &h);
        ck_assert_uint_eq(v.faults, 1);
        ck_assert_uint_eq(v.shards_good, 2);
        ck_assert_int_eq(h.status, i == 0 ? CHEX_ERR_EMPTY : CHEX_ERR_TRUNCATED);
        /* The first incomplete record, and its offset. */
        snprintf(place, sizeof(place), "[%zu@%zu]: ", i / stride, i / stride * stride);
        ck_assert_msg(strstr(h.text, place) != NULL, "cut to %zu bytes: no %s in %s", i, place, h.text);
    }
    small_release(&s);
}

TEST(sizes_are_reported_in_records)
{
    struct small_dataset s;
    size_t stride;
    uint8_t *longer;
    char text[256];

    small_make(&s, "sizes");
    stride = s.manifest.layout.stride;
    small_put(&s, s.shard[2].name, s.bytes[2], 2 * stride);
    snprintf(text, sizeof(text), "%s[2@%zu]: file ends before it: 2 records, manifest says 3 (-)\n", s.shard[2].name,
             2 * stride);
    heard_expect(&s, VERIFY_QUICK, text);
    small_put(&s, s.shard[2].name, s.bytes[2], 2 * stride + 10);
    snprintf(text, sizeof(text), "%s[2@%zu]: file ends 10 bytes inside the record (-)\n", s.shard[2].name, 2 * stride);
    heard_expect(&s, VERIFY_FULL, text);
    longer = calloc(1, s.size + stride + 1);
    memcpy(longer, s.bytes[2], s.size);
    small_put(&s, s.shard[2].name, longer, s.size + stride);
    heard_expect(&s, VERIFY_FULL, "chestxray14-val.tfrecord-00000-of-00001[-1@0]: 4 records, manifest says 3 (-)\n");
    small_put(&s, s.shard[2].name, longer, s.size + 1);
    heard_expect(&s, VERIFY_QUICK,
                 "chestxray14-val.tfrecord-00000-of-00001[-1@0]: 3 records and 1 byte, manifest says 3 records (-)\n");
    free(longer);
    small_remove(&s, s.shard[2].name);
    heard_expect(&s, VERIFY_FULL,
                 "chestxray14-val.tfrecord-00000-of-00001[-1@0]: cannot open: No such file or directory (-)\n");
    small_release(&s);
}

TEST(the_damaged_field_is_named)
{
    struct small_dataset s;
    size_t stride, data;
    uint8_t *record;
    char text[512];

    small_make(&s, "fields");
    stride = s.manifest.layout.stride;
    data = stride - TFRECORD_FRAME;
    record = s.bytes[0] + stride;

    record[0] ^= 1;
    small_put_shard(&s, 0);
    snprintf(text, sizeof(text),
             "%s[1@%zu]: length checksum mismatch, in the length: %zu, should be %zu (00000001_000.png)\n",
             s.shard[0].name, stride, data ^ 1, data);
    heard_expect(&s, VERIFY_FULL, text);
    record[0] ^= 1;

    record[9] ^= 1;
    small_put_shard(&s, 0);
    snprintf(text, sizeof(text), "%s[1@%zu]: length checksum mismatch, in the checksum (00000001_000.png)\n",
             s.shard[0].name, stride);
    heard_expect(&s, VERIFY_SAMPLE, text);
    record[9] ^= 1;

    record[stride - 1] ^= 1;
    small_put_shard(&s, 0);
    snprintf(text, sizeof(text), "%s[1@%zu]: data checksum mismatch, in the checksum (00000001_000.png)\n",
             s.shard[0].name, stride);
    heard_expect(&s, VERIFY_FULL, text);
    record[stride - 1] ^= 1;

    record[s.manifest.layout.pixel_offset + 5] ^= 1;
    small_put_shard(&s, 0);
    snprintf(text, sizeof(text),
             "%s[1@%zu]: data checksum mismatch, in the pixels or the checksum (00000001_000.png)\n", s.shard[0].name,
             stride);
    heard_expect(&s, VERIFY_FULL, text);
    small_release(&s);
}

/* Fault rows 56, 59, 60, 66: the checksums are correct. */
TEST(wrong_values_with_correct_checksums_are_reported)
{
    struct small_dataset s;
    const struct record_layout *layout;
    uint8_t *record, *name, was;
    char text[512];
    size_t at[3];

    small_make(&s, "meant");
    layout = &s.manifest.layout;
    record = s.bytes[0];

    record[layout->label_offset + 3] = 7;
    record_seal(layout, record);
    small_put_shard(&s, 0);
    snprintf(text, sizeof(text), "%s[0@0]: label Infiltration is 7, not 0 or 1 (-)\n", s.shard[0].name);
    heard_expect(&s, VERIFY_FULL, text);
    record[layout->label_offset + 3] = 0;

    put_u32le(record + layout->age_offset, 0x7f800000);
    record_seal(layout, record);
    small_put_shard(&s, 0);
    snprintf(text, sizeof(text), "%s[0@0]: age is inf, not 0 to 120 or NaN (00000000_000.png)\n", s.shard[0].name);
    heard_expect(&s, VERIFY_FULL, text);
    put_u32le(record + layout->age_offset, 0);

    name = memmem(record, layout->stride, "00000000_000.png", 16);
    ck_assert_ptr_nonnull(name);
    for (const char *p = "\n\\\x1b"; *p; p++) { /* the writer never writes these */
        name[8] = (uint8_t)*p;
        record_seal(layout, record);
        small_put_shard(&s, 0);
        snprintf(text, sizeof(text), "%s[0@0]: unsafe file name (00000000%c000.png)\n", s.shard[0].name, *p);
        heard_expect(&s, VERIFY_FULL, text);
    }
    memcpy(name + 8, "/../", 4);
    record_seal(layout, record);
    small_put_shard(&s, 0);
    snprintf(text, sizeof(text), "%s[0@0]: unsafe file name (00000000/../.png)\n", s.shard[0].name);
    heard_expect(&s, VERIFY_FULL, text);
    memcpy(name + 8, "_000", 4);

    record_text_offsets(layout, s.manifest.view_size, s.manifest.patient_size, s.manifest.name_size, at);
    was = record[at[1]];
    record[at[1]] = '\n';
    record_seal(layout, record);
    small_put_shard(&s, 0);
    snprintf(text, sizeof(text), "%s[0@0]: the patient id contains a control character (00000000_000.png)\n",
             s.shard[0].name);
    heard_expect(&s, VERIFY_FULL, text);
    record[at[1]] = was;

    record[TFRECORD_HEADER + 6] ^= 1;
    record_seal(layout, record);
    small_put_shard(&s, 0);
    snprintf(text, sizeof(text), "%s[0@0]: record header differs from the manifest at byte 18 (-)\n", s.shard[0].name);
    heard_expect(&s, VERIFY_FULL, text);
    record[TFRECORD_HEADER + 6] ^= 1;

    put_u64le(record, 1ull << 63);
    put_u32le(record + 8, chex_crc32c_mask(chex_crc32c(0, record, 8)));
    small_put_shard(&s, 0);
    snprintf(text, sizeof(text),
             "%s[0@0]: record with 9,223,372,036,854,775,808 bytes of data, manifest says %zu (00000000_000.png)\n",
             s.shard[0].name, layout->stride - TFRECORD_FRAME);
    heard_expect(&s, VERIFY_FULL, text);
    small_release(&s);
}

/* Fault rows 61 to 63, and a label that was changed together with its checksum. */
TEST(records_in_the_wrong_place_are_noticed)
{
    struct small_dataset s;
    size_t stride;
    uint8_t *moved;
    char text[1024];

    small_make(&s, "places");
    stride = s.manifest.layout.stride;
    small_put(&s, s.shard[0].name, s.bytes[1], s.size);
    small_put(&s, s.shard[1].name, s.bytes[0], s.size);
    snprintf(text, sizeof(text), "%s[-1@0]: holds the records of '%s' (-)\n%s[-1@0]: holds the records of '%s' (-)\n",
             s.shard[0].name, s.shard[1].name, s.shard[1].name, s.shard[0].name);
    heard_expect(&s, VERIFY_FULL, text);
    small_put_shard(&s, 0);
    small_put_shard(&s, 1);

    moved = malloc(s.size);
    memcpy(moved, s.bytes[0], s.size);
    memcpy(moved, s.bytes[0] + stride, stride);
    memcpy(moved + stride, s.bytes[0], stride);
    small_put(&s, s.shard[0].name, moved, s.size);
    snprintf(text, sizeof(text),
             "%s[0@0]: holds the record of slot 1 (00000001_000.png)\n"
             "%s[1@%zu]: holds the record of slot 0 (00000000_000.png)\n",
             s.shard[0].name, s.shard[0].name, stride);
    heard_expect(&s, VERIFY_FULL, text);

    memcpy(moved, s.bytes[0], s.size);
    memcpy(moved + stride, s.bytes[2] + stride, stride);
    small_put(&s, s.shard[0].name, moved, s.size);
    snprintf(text, sizeof(text), "%s[1@%zu]: holds a record of '%s' (00000007_000.png)\n", s.shard[0].name, stride,
             s.shard[2].name);
    heard_expect(&s, VERIFY_FULL, text);

    memcpy(moved, s.bytes[0], s.size);
    moved[s.manifest.layout.label_offset] = 1;
    record_seal(&s.manifest.layout, moved);
    small_put(&s, s.shard[0].name, moved, s.size);
    snprintf(text, sizeof(text),
             "%s[-1@0]: every record is good, but they are not those of the manifest (crc32c) (-)\n", s.shard[0].name);
    heard_expect(&s, VERIFY_FULL, text);
    free(moved);
    small_release(&s);
}

/* The first record contains the data set id and the number of the shard; its checksums and pixels are not read. */
TEST(the_quick_check_finds_a_shard_of_another_data_set_or_place)
{
    struct small_dataset s;
    struct heard h;
    struct verify v;
    char text[1024];

    small_make(&s, "quick");
    small_put(&s, s.shard[0].name, s.bytes[1], s.size);
    snprintf(text, sizeof(text), "%s[0@0]: holds a record of '%s' (00000003_000.png)\n", s.shard[0].name,
             s.shard[1].name);
    heard_expect(&s, VERIFY_QUICK, text);
    small_put_shard(&s, 0);
    s.manifest.dataset_id[0] = 'f';
    small_put_manifest(&s, false);
    v = heard_run(&s, VERIFY_QUICK, 2, &h);
    ck_assert_uint_eq(v.faults, 3);
    ck_assert_uint_eq(v.records_read, 0);
    ck_assert_msg(
        strstr(h.text, "[0@0]: holds a record of data set '0123456789abcdef', this one is 'f123456789abcdef'"), "%s",
        h.text);
    s.manifest.dataset_id[0] = '0';
    small_put_manifest(&s, false);
    s.bytes[0][s.manifest.layout.pixel_offset + 1] ^= 1;
    small_put_shard(&s, 0);
    heard_expect(&s, VERIFY_QUICK, "");
    small_release(&s);
}

/* ---- without a manifest ---------------------------------------------------------------------------------------- */

static unsigned
run_file(const struct small_dataset *s, const char *name, struct heard *h)
{
    struct verify v = {.depth = VERIFY_FULL, .fault = heard_fault, .context = h};
    struct chex_error err = {.text = ""};
    char path[1024];

    *h = (struct heard){.count = 0};
    snprintf(path, sizeof(path), "%s/%s", s->path, name);
    ck_assert_msg(verify_file(&v, path, &err) == CHEX_OK, "%s", err.text);
    ck_assert_uint_eq(v.shards_good, h->count == 0);
    return (unsigned)v.faults;
}

TEST(a_file_without_manifest_is_checked_by_itself)
{
    struct small_dataset s;
    struct heard h;
    size_t i, stride;
    uint8_t *moved;

    small_make(&s, "alone");
    stride = s.manifest.layout.stride;
    ck_assert_uint_eq(run_file(&s, s.shard[1].name, &h), 0);
    for (i = 0; i < s.size; i++) {
        s.bytes[1][i] ^= 0x10;
        small_put(&s, "flipped", s.bytes[1], s.size);
        s.bytes[1][i] ^= 0x10;
        ck_assert_msg(run_file(&s, "flipped", &h) > 0, "byte %zu", i);
    }
    /* A file that was cut between two records is just shorter: its original length is unknown. */
    for (i = 0; i < s.size; i += 7) {
        small_put(&s, "cut", s.bytes[1], i);
        ck_assert_msg((run_file(&s, "cut", &h) > 0) == (i == 0 || i % stride != 0), "byte %zu", i);
    }
    moved = malloc(s.size);
    memcpy(moved, s.bytes[1], s.size);
    memcpy(moved + stride, s.bytes[0] + stride, stride);
    small_put(&s, "moved", moved, s.size);
    ck_assert_uint_eq(run_file(&s, "moved", &h), 1);
    ck_assert_ptr_nonnull(strstr(h.text, "of shard 0, those before it are of shard 1"));
    memcpy(moved + stride, s.bytes[1] + 2 * stride, stride);
    small_put(&s, "moved", moved, s.size);
    ck_assert_uint_eq(run_file(&s, "moved", &h), 1);
    ck_assert_ptr_nonnull(strstr(h.text, "holds the record of slot 2"));
    free(moved);
    small_release(&s);
}

TEST(it_can_be_stopped)
{
    atomic_bool stop = true;
    struct small_dataset s;
    struct chex_dataset *ds;
    struct chex_error err;
    struct heard h = {.count = 0};
    char path[700];

    small_make(&s, "stopped");
    ck_assert_int_eq(chex_dataset_open(s.path, &ds, NULL), CHEX_OK);
    for (unsigned depth = VERIFY_SAMPLE; depth <= VERIFY_FULL; depth++) {
        struct verify v = {.dataset = ds,
                           .depth = (enum verify_depth)depth,
                           .sample_percent = 100,
                           .threads = 1,
                           .fault = heard_fault,
                           .context = &h,
                           .stop = &stop};

        ck_assert_int_eq(verify_run(&v, &err), CHEX_ERR_STOPPED);
        snprintf(path, sizeof(path), "%s/%s", s.path, s.shard[0].name);
        v.dataset = NULL;
        ck_assert_int_eq(verify_file(&v, path, &err), CHEX_ERR_STOPPED);
    }
    ck_assert_uint_eq(h.count, 0);
    chex_dataset_close(ds);
    small_release(&s);
}
