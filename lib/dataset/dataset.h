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

/* The view of a record from its decoded values; *out points into record. */
void record_view(const struct record_layout *layout, const struct record_values *values, const uint8_t *record,
                 struct chex_record *out);

#endif
