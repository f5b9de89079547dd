/*
 * test_shard_scan.c - the scan shows each record of a shard with its fault, as far as it can read
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "dataset/tfrecord.h"
#include "io/digest_file.h"
#include "small_dataset.h"
#include "unit.h"

static struct small_dataset small;
static struct chex_dataset *dataset;
static size_t stride;

/* The records that the visitor saw: "INDEX:FAULT[ NAME]" each. */
struct seen {
    char text[512];
    uint32_t end;  /* refuse the record with this index */
    bool odd;      /* accept only records with an odd index */
    uint8_t pixel; /* the first pixel of the last record */
};

static void
setup(void)
{
    char name[32];

    snprintf(name, sizeof(name), "scanned-%ld", (long)getpid());
    small_make(&small, name);
    stride = small.manifest.layout.stride;
    ck_assert_int_eq(chex_dataset_open(small.path, &dataset, NULL), CHEX_OK);
}

static void
teardown(void)
{
    chex_dataset_close(dataset);
    small_release(&small);
}

static enum chex_status
see(void *context, const struct scanned_record *record, struct chex_error *err)
{
    struct seen *seen = context;
    size_t used = strlen(seen->text);

    if (record->index == seen->end)
        return error_set(err, CHEX_ERR_LOCKED, "no more");
    ck_assert_uint_eq(record->offset, record->index * stride);
    snprintf(seen->text + used, sizeof(seen->text) - used, "%u:%d%s%.*s\n", record->index, record->fault,
             record->values.name.data ? " " : "", (int)record->values.name.size,
             record->values.name.data ? record->values.name.data : "");
    ck_assert((record->fault == RECORD_GOOD) == (record->why.status == CHEX_OK));
    if (record->bytes)
        seen->pixel = record->bytes[small.manifest.layout.pixel_offset];
    return CHEX_OK;
}

static bool
is_odd(void *context, uint32_t index)
{
    const struct seen *seen = context;

    return !seen->odd || index % 2 == 1;
}

static enum chex_status
scan_shard(struct shard_scan *scan, struct seen *seen, struct chex_error *err)
{
    uint64_t size;
    enum chex_status status;

    seen->text[0] = '\0';
    scan->shard = dataset_shard_identity(dataset, 0);
    scan->records = SMALL_RECORDS;
    scan->visit = see;
    scan->context = seen;
    ck_assert_int_eq(file_open(dataset->folder.fd, small.shard[0].name, &scan->fd, &size, err), CHEX_OK);
    status = shard_scan(scan, err);
    close(scan->fd);
    return status;
}

#define IMAGE_0 "0:0 00000000_000.png\n"
#define IMAGE_1 "1:0 00000001_000.png\n"
#define IMAGE_2 "2:0 00000002_000.png\n"

TEST_CASE("verify", "scan", setup, teardown);

TEST(each_record_is_shown_and_summed_up)
{
    struct seen seen = {.end = UINT32_MAX};
    _Atomic uint64_t bytes = 5;
    struct shard_scan scan = {.sha256 = true, .bytes = &bytes};
    struct chex_error err;
    char crc[CRC_HEX];

    ck_assert_int_eq(scan_shard(&scan, &seen, &err), CHEX_OK);
    ck_assert_str_eq(seen.text, IMAGE_0 IMAGE_1 IMAGE_2);
    ck_assert_uint_eq(scan.next, 3);
    ck_assert_uint_eq(scan.offset, small.size);
    ck_assert_uint_eq(scan.bytes_read, small.size);
    ck_assert_uint_eq(bytes, 5 + small.size);
    crc_hex(scan.crc32c, crc);
    ck_assert_str_eq(crc, small.crc32c[0]);
    ck_assert_str_eq(scan.sha256_hex, small.sha256[0]);
    ck_assert_uint_eq(seen.pixel, 40);
}

TEST(a_damaged_record_does_not_hide_the_next)
{
    const struct record_layout *l = &small.manifest.layout;
    const struct {
        size_t at;
        bool seal;
        enum record_fault fault;
        enum chex_status status;
    } flips[] = {{9, false, RECORD_LENGTH_CHECKSUM, CHEX_ERR_CHECKSUM},
                 {1, false, RECORD_LENGTH_CHECKSUM, CHEX_ERR_CHECKSUM},
                 {l->pixel_offset, false, RECORD_DATA_CHECKSUM, CHEX_ERR_CHECKSUM},
                 {stride - 1, false, RECORD_DATA_CHECKSUM, CHEX_ERR_CHECKSUM},
                 {TFRECORD_HEADER + 6, true, RECORD_FORM, CHEX_ERR_DAMAGED},
                 {l->slot_offset + RECORD_SLOT - 1, true, RECORD_PLACE, CHEX_ERR_INCOMPATIBLE},
                 {l->slot_offset, true, RECORD_PLACE, CHEX_ERR_INCOMPATIBLE}};

    for (size_t i = 0; i < sizeof(flips) / sizeof(flips[0]); i++) {
        uint8_t *record = small.bytes[0] + stride;
        const struct shard_identity identity = dataset_shard_identity(dataset, 0);
        struct seen seen = {.end = UINT32_MAX};
        struct shard_scan scan = {.sha256 = false};
        struct scanned_record one;
        struct chex_error err;
        char wanted[256];

        record[flips[i].at] ^= 1;
        if (flips[i].seal)
            record_seal(l, record);
        small_put_shard(&small, 0);
        ck_assert_int_eq(scan_shard(&scan, &seen, &err), CHEX_OK);
        snprintf(wanted, sizeof(wanted), "%s1:%d%s\n%s", IMAGE_0, flips[i].fault,
                 flips[i].fault == RECORD_FORM ? "" : " 00000001_000.png", IMAGE_2);
        ck_assert_str_eq(seen.text, wanted);
        ck_assert_int_eq(record_check(&identity, 1, record, true, &one), flips[i].status);
        ck_assert_int_eq(record_fail(&one, &err), flips[i].status);
        ck_assert_str_eq(err.text, one.why.text);
        /* Without checksums, only form and position are checked. */
        ck_assert((record_check(&identity, 1, record, false, &one) == CHEX_OK) ==
                  (flips[i].fault == RECORD_DATA_CHECKSUM || flips[i].at == 9));
        record[flips[i].at] ^= 1;
        record_seal(l, record);
    }
}

/* The kernel returns the pages before the block, and then the error. */
TEST(records_before_a_bad_block_or_the_end_of_the_file_are_shown)
{
    for (size_t at = 1; at < small.size; at += stride / 3) {
        for (unsigned cut = 0; cut < 2; cut++) {
            static const char *const all[] = {"", IMAGE_0, IMAGE_0 IMAGE_1};
            struct seen seen = {.end = UINT32_MAX};
            struct shard_scan scan = {.sha256 = false};
            struct chex_error err;
            enum chex_status status;

            small_put(&small, small.shard[0].name, small.bytes[0], cut ? at : small.size);
            if (!cut)
                calls_bad_block((int64_t)at);
            status = scan_shard(&scan, &seen, &err);
            calls_bad_block(-1);
            ck_assert_int_eq(status, cut ? CHEX_ERR_TRUNCATED : CHEX_ERR_READ);
            ck_assert_uint_eq(scan.next, at / stride);
            ck_assert_uint_eq(scan.offset, at / stride * stride);
            ck_assert_uint_eq(scan.bytes_read, at);
            ck_assert_str_eq(seen.text, all[at / stride]);
        }
    }
}

TEST(a_scan_reads_the_requested_records_and_ends_on_request)
{
    struct seen seen = {.end = UINT32_MAX, .odd = true};
    struct shard_scan scan = {.wants = is_odd};
    struct shard_scan ended = {.sha256 = false};
    atomic_bool stop = true;
    struct chex_error err;

    ck_assert_int_eq(scan_shard(&scan, &seen, &err), CHEX_OK);
    ck_assert_str_eq(seen.text, IMAGE_1);
    ck_assert_uint_eq(scan.bytes_read, stride);
    seen = (struct seen){.end = 1};
    ck_assert_int_eq(scan_shard(&ended, &seen, &err), CHEX_ERR_LOCKED);
    ck_assert_str_eq(err.text, "no more");
    ck_assert_uint_eq(ended.next, 1);
    ck_assert_str_eq(seen.text, IMAGE_0);
    ended = (struct shard_scan){.stop = &stop};
    ck_assert_int_eq(scan_shard(&ended, &seen, &err), CHEX_ERR_STOPPED);
    ck_assert_str_eq(seen.text, "");
}

/* A damaged pixel does not matter then; images of 8x8 are read nevertheless, larger ones are not. */
TEST(of_texts_no_checksum_is_checked_and_no_large_image_read)
{
    struct seen seen = {.end = UINT32_MAX};
    struct shard_scan scan = {.texts = true};
    struct chex_error err;
    struct record_layout large;
    const size_t texts[] = {record_text_size(2, 1, 3)};
    const struct label_form labels = {14, false};
    const uint8_t label[14] = {0};
    const struct record_values values = {.label = label,
                                         .weight = 1,
                                         .sex = 'M',
                                         .dataset_id = "0123456789abcdef",
                                         .view = {"PA", 2},
                                         .patient = {"7", 1},
                                         .name = {"abc", 3}};
    uint8_t *record;

    small.bytes[0][small.manifest.layout.pixel_offset] ^= 1;
    small_put_shard(&small, 0);
    ck_assert_int_eq(scan_shard(&scan, &seen, &err), CHEX_OK);
    ck_assert_str_eq(seen.text, IMAGE_0 IMAGE_1 IMAGE_2);

    ck_assert_int_eq(record_choose(65, 64, 64, labels, texts, 1, &large, &err), CHEX_OK);
    record = calloc(1, large.stride);
    record_encode(&large, &values, record);
    record_seal(&large, record);
    memset(record + large.pixel_offset, 1, large.pixel_size);
    small_put(&small, "large", record, large.stride);
    free(record);
    seen.text[0] = '\0';
    scan = (struct shard_scan){
        .shard = {&large, values.dataset_id, 0}, .records = 1, .texts = true, .visit = see, .context = &seen};
    ck_assert_int_eq(file_open(dataset->folder.fd, "large", &scan.fd, &scan.size, &err), CHEX_OK);
    ck_assert_int_eq(shard_scan(&scan, &err), CHEX_OK);
    close(scan.fd);
    ck_assert_str_eq(seen.text, "0:0 abc\n");
    ck_assert_uint_eq(scan.bytes_read, large.stride - large.pixel_size);
}

/* If the size is a multiple of the stride, continue one stride further; otherwise only the record's length is known. */
TEST(of_any_other_file_the_lengths_say_where_records_are)
{
    for (unsigned extra = 0; extra < 2; extra++) {
        struct seen seen = {.end = UINT32_MAX};
        struct shard_scan scan = {.visit = see, .context = &seen};
        struct chex_error err;
        uint8_t *file = calloc(1, small.size + 1);

        memcpy(file, small.bytes[0], small.size);
        file[stride] ^= 1;
        small_put(&small, "any", file, small.size + extra);
        free(file);
        ck_assert_int_eq(file_open(dataset->folder.fd, "any", &scan.fd, &scan.size, &err), CHEX_OK);
        ck_assert_int_eq(shard_scan(&scan, &err), CHEX_OK);
        close(scan.fd);
        ck_assert_str_eq(seen.text, extra ? "0:0\n1:2\n" : "0:0\n1:2\n2:0\n");
    }
}

static enum chex_status
count_piece(void *context, const uint8_t *data, size_t size, struct chex_error *err)
{
    size_t *left = context;

    ck_assert_ptr_nonnull(data);
    if (size > *left)
        return error_set(err, CHEX_ERR_WRITE, "full");
    *left -= size;
    return CHEX_OK;
}

TEST(the_digest_of_a_file_is_the_digest_of_its_bytes)
{
    char hex[DIGEST_HEX];
    size_t left = small.size;
    struct chex_error err;
    uint64_t size;
    int fd;

    ck_assert_int_eq(file_open(dataset->folder.fd, small.shard[1].name, &fd, &size, &err), CHEX_OK);
    ck_assert_int_eq(digest_file(fd, count_piece, &left, hex, &err), CHEX_OK);
    ck_assert_str_eq(hex, small.sha256[1]);
    ck_assert_uint_eq(left, 0);
    ck_assert_int_eq(digest_file(fd, count_piece, &left, hex, &err), CHEX_ERR_WRITE);
    calls_bad_block(7);
    ck_assert_int_eq(digest_file(fd, NULL, NULL, hex, &err), CHEX_ERR_READ);
    calls_bad_block(-1);
    close(fd);
}
