/*
 * dataset.h - what the tools see of a data set beyond chex.h
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

/* Open the data set in an opened folder, which is then the data set's; it is closed also on failure. */
enum chex_status dataset_open_in(struct folder *folder, struct chex_dataset **out, struct chex_error *err);

/* What the records of a shard must be. */
struct shard_identity dataset_shard_identity(const struct chex_dataset *ds, unsigned shard);

/*
 * Is the shard there, with its size, and is its first record one of this data set and shard?  A damaged first record
 * does not count: that is a fault of this record, not of the shard.
 * CHEX_ERR_INCOMPATIBLE it is of another data set or shard; statuses of chex_shard_open() and chex_shard_read()
 */
enum chex_status dataset_check_shard(const struct chex_dataset *ds, unsigned shard, struct chex_error *err);

/* The view of a record from its decoded values; *out points into record. */
void record_view(const struct record_layout *layout, const struct record_values *values, const uint8_t *record,
                 struct chex_record *out);

#endif
