/*
 * dataset.h - the data set as the tools see it, with more detail than chex.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_DATASET_H
#define CHEX_LIB_DATASET_H

#include "dataset/manifest.h"
#include "dataset/shard_scan.h"
#include "io/file.h"

struct chex_dataset {
    struct folder folder;
    struct manifest manifest;
    struct chex_dataset_info info;
    struct chex_split_info *split;
    struct chex_shard_info *shard;
};

struct chex_shard {
    const struct chex_dataset *dataset;
    unsigned number;
    int fd;
};

/* Open the data set in an open folder.  The data set takes over the folder, which is closed also on failure. */
enum chex_status dataset_open_in(struct folder *folder, struct chex_dataset **out, struct chex_error *err);

/* Returns whether a withdrawal of patients has begun in the folder and is not finished. */
bool withdrawal_is_unfinished(int folder_fd);
#define WITHDRAWAL_UNFINISHED \
    "a withdrawal of patients is not finished: run the same chex-convert --withdraw command again"

/* Returns the layout, data set and number that all records of a shard must have. */
struct shard_identity dataset_shard_identity(const struct chex_dataset *ds, unsigned shard);

/*
 * Check that the shard exists with its size, and that its first record is from this data set and shard.  A damaged
 * first record is not an error here: it is a fault of the record, not of the shard.
 * CHEX_ERR_INCOMPATIBLE a shard of another data set or number; statuses of chex_shard_open() and chex_shard_read()
 */
enum chex_status dataset_check_shard(const struct chex_dataset *ds, unsigned shard, struct chex_error *err);

/* Make the view of a record from its decoded values; *out points into record. */
void record_view(const struct record_layout *layout, const struct record_values *values, const uint8_t *record,
                 struct chex_record *out);

#endif
