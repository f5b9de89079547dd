/*
 * small_dataset.h - a data set of three shards with three records each, made by hand
 *
 * It uses only record.h and manifest.h, so readers are tested without the usual writer.  Images are 8x8.
 *
 *     train  2 shards: 6 images of patients 0 to 5; image 5 is constant
 *     val    1 shard: images of patients 6 and 7, and a padding record, a copy of the first
 *
 * Image i has the pixels i * 20 + x + y, findings 1 << i (image 0: none), age i * 10 (image 1: unknown).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_SMALL_DATASET_H
#define CHEX_TESTS_SMALL_DATASET_H

#include "base/sha256.h"
#include "dataset/manifest.h"

enum { SMALL_SIDE = 8, SMALL_RECORDS = 3, SMALL_SHARDS = 3, SMALL_IMAGES = 8 };

struct small_dataset {
    char path[512]; /* its folder, inside the folder of the test process */
    struct manifest manifest;
    struct manifest_split split[2];
    struct manifest_shard shard[SMALL_SHARDS];
    char sha256[SMALL_SHARDS][DIGEST_HEX], crc32c[SMALL_SHARDS][CRC_HEX];
    uint8_t *bytes[SMALL_SHARDS]; /* the content of the files */
    size_t size;                  /* of each file */
    bool compare_sha256;          /* for who checks it */
};

/*
 * Makes it in a new folder of this name.  small_release() frees the memory; the files are removed with the test
 * process.
 */
void small_make(struct small_dataset *s, const char *name);
void small_release(struct small_dataset *s);

/* Write a file of the folder; remove it. */
void small_put(const struct small_dataset *s, const char *name, const void *data, size_t size);
void small_remove(const struct small_dataset *s, const char *name);
/* Writes shard `shard` with its current bytes. */
void small_put_shard(const struct small_dataset *s, unsigned shard);
/* Computes crc32c of shard `shard` from its current bytes. */
void small_sum_shard(struct small_dataset *s, unsigned shard);
/* Writes the current manifest; with fix_hashes, first computes the hashes of the shards' current bytes. */
void small_put_manifest(struct small_dataset *s, bool fix_hashes);

#endif
