/*
 * dali_index.h - the index that NVIDIA DALI's TFRecord reader wants beside each shard
 *
 * A line "OFFSET SIZE" for each record, as DALI's tfrecord2idx writes it; with a constant stride it says little.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_DALI_INDEX_H
#define CHEX_LIB_DALI_INDEX_H

#include "file.h"
#include "plan.h"

#define DALI_INDEX_SUFFIX ".idx"

/* Write SHARD.idx for every shard of the plan, where it is not there. */
enum chex_status dali_index_write(const struct folder *folder, const struct plan *plan, struct chex_error *err);

#endif
