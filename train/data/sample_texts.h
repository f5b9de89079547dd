/*
 * sample_texts.h - reads the records of samples without their pixels: patient, name, labels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_SAMPLE_TEXTS_H
#define CHEX_TRAIN_SAMPLE_TEXTS_H

#include "data/order.h"
#include "dataset/record.h"

/* Called for sample i, in turn.  values is NULL if its record is damaged.  Any status but CHEX_OK ends the reading. */
typedef enum chex_status sample_fn(void *context, size_t i, const struct record_values *values, struct chex_error *err);

/*
 * Read the records of samples in the order of the shards, from samples_list().  skip_bad: call fn for damaged records
 * too; otherwise the first one is an error.  Statuses of shard_scan(), of records and of fn
 */
enum chex_status samples_read_texts(const struct chex_dataset *ds, const struct samples *s, bool skip_bad,
                                    sample_fn *fn, void *context, struct chex_error *err);

#endif
