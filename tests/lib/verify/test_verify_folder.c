/*
 * test_verify_folder.c - faults of a whole data set: index, manifest, foreign files (verify.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/tfrecord.h"
#include "lib/dataset/small_dataset.h"
#include "unit.h"
#include "verify/verify.h"
#include "verify_fixture.h"

#include <stdio.h>
#include <string.h>

TEST_CASE("verify", "verify folder", NULL, NULL);

/* The index is a list of offsets; any other text misleads a reader. */
TEST(every_flip_and_cut_of_an_index_is_noticed)
{
    struct small_dataset s;
    struct heard h;
    char index[256], name[128];
    size_t size, i, stride;

    small_make(&s, "index");
    stride = s.manifest.layout.stride;
    size = (size_t)snprintf(index, sizeof(index), "0 %zu\n%zu %zu\n%zu %zu\n", stride, stride, stride, 2 * stride,
                            stride);
    snprintf(name, sizeof(name), "%s.idx", s.shard[1].name);
    small_put(&s, name, index, size);
    heard_expect(&s, VERIFY_FULL, "");
    for (i = 0; i < 8 * size; i++) {
        index[i / 8] ^= (char)(1 << i % 8);
        small_put(&s, name, index, size);
        heard_run(&s, VERIFY_FULL, 1, &h);
        ck_assert_msg(h.count == 1 && strncmp(h.text, name, strlen(name)) == 0, "bit %zu: %s", i, h.text);
        index[i / 8] ^= (char)(1 << i % 8);
    }
    for (i = 0; i < size; i++) {
        small_put(&s, name, index, i);
        heard_run(&s, VERIFY_FULL, 1, &h);
        ck_assert_msg(h.count == 1 && h.status == CHEX_ERR_TRUNCATED, "%zu bytes: %s", i, h.text);
    }
    index[stride < 1000 ? 7 : 8] ^= 1;
    small_put(&s, name, index, size);
    heard_run(&s, VERIFY_FULL, 1, &h);
    ck_assert_msg(strstr(h.text, "line 2 is not the place of record 1"), "%s", h.text);
    small_release(&s);
}

/* If a record is changed together with its checksum and with crc32c in the manifest, only SHA-256 detects it. */
TEST(a_change_with_adapted_checksums_is_found_by_sha256)
{
    struct small_dataset s;
    char text[1024];

    small_make(&s, "tampered");
    s.compare_sha256 = true;
    heard_expect(&s, VERIFY_FULL, "");
    s.bytes[0][s.manifest.layout.pixel_offset] ^= 1;
    record_seal(&s.manifest.layout, s.bytes[0]);
    small_put_shard(&s, 0);
    small_sum_shard(&s, 0);
    small_put_manifest(&s, false);
    snprintf(text, sizeof(text), "%s[-1@0]: every record is good, but SHA-256 is not that of the manifest (-)\n",
             s.shard[0].name);
    heard_expect(&s, VERIFY_FULL, text);
    s.compare_sha256 = false;
    heard_expect(&s, VERIFY_FULL, "");
    /* A manifest from before this key existed. */
    s.bytes[0][s.manifest.layout.pixel_offset] ^= 2;
    record_seal(&s.manifest.layout, s.bytes[0]);
    small_put_shard(&s, 0);
    s.shard[0].crc32c = NULL;
    small_put_manifest(&s, false);
    heard_expect(&s, VERIFY_FULL, "");
    small_release(&s);
}

TEST(the_manifest_of_another_run_is_noticed)
{
    struct small_dataset s;
    char text[1024];

    small_make(&s, "stale");
    s.manifest.dataset_id[0] = 'f';
    small_put_manifest(&s, false);
    snprintf(text, sizeof(text),
             "%s[-1@0]: holds records of data set '0123456789abcdef', this one is 'f123456789abcdef' (-)\n"
             "%s[-1@0]: holds records of data set '0123456789abcdef', this one is 'f123456789abcdef' (-)\n"
             "%s[-1@0]: holds records of data set '0123456789abcdef', this one is 'f123456789abcdef' (-)\n",
             s.shard[0].name, s.shard[1].name, s.shard[2].name);
    heard_expect(&s, VERIFY_FULL, text);
    s.manifest.dataset_id[0] = '0';

    s.split[0].positives[0] = 3;
    small_put_manifest(&s, false);
    heard_expect(&s, VERIFY_FULL,
                 "manifest.json[-1@0]: split 'train': 3 images with Atelectasis, the records have 0 (-)\n");
    s.split[0].positives[0] = 0;

    s.shard[2].images = 3;
    s.split[1].images = 3;
    small_put_manifest(&s, false);
    snprintf(text, sizeof(text), "%s[-1@0]: 2 images of weight 1, manifest says 3 (-)\n", s.shard[2].name);
    heard_expect(&s, VERIFY_FULL, text);
    small_release(&s);
}

/* Fault row 65. */
TEST(foreign_files_in_the_folder_are_listed)
{
    struct small_dataset s;

    small_make(&s, "strangers");
    small_put(&s, "README.txt", "x", 1);
    small_put(&s, "rejects.jsonl", "", 0);
    small_put(&s, "chestxray14-val.tfrecord-00000-of-00001.idx", "x", 1);
    small_put(&s, "chestxray14-val.tfrecord-00001-of-00002", "x", 1);
    small_put(&s, ".chestxray14-val.tfrecord-00000-of-00001.part", "x", 1);
    small_put(&s, ".manifest.json.tmp.4242", "x", 1);
    small_put(&s, ".chex.lock", "x", 1);
    small_put(&s, ".chex-journal.jsonl", "x", 1);
    heard_expect(
        &s, VERIFY_QUICK,
        ".chestxray14-val.tfrecord-00000-of-00001.part[-1@0]: left over from a conversion that was interrupted "
        "(-)\n"
        ".chex-journal.jsonl[-1@0]: journal of an unfinished conversion (-)\n"
        ".chex.lock[-1@0]: lock of a conversion that is running or was killed (-)\n"
        ".manifest.json.tmp.4242[-1@0]: left over from a conversion that was interrupted (-)\n"
        "chestxray14-val.tfrecord-00001-of-00002[-1@0]: a shard that is not in the manifest (-)\n");
    small_release(&s);
}

TEST(faults_come_in_order_whatever_the_number_of_threads)
{
    struct small_dataset s;
    struct heard one, many;
    unsigned i;

    small_make(&s, "order");
    for (i = 0; i < SMALL_SHARDS; i++) {
        s.bytes[i][100] ^= 1;
        s.bytes[i][s.size - 1] ^= 1;
        small_put_shard(&s, i);
    }
    heard_run(&s, VERIFY_FULL, 1, &one);
    ck_assert_uint_eq(one.count, 6);
    for (i = 0; i < 50; i++) {
        heard_run(&s, VERIFY_FULL, 3, &many);
        ck_assert_str_eq(one.text, many.text);
    }
    small_release(&s);
}
