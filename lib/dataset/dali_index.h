/*
 * dali_index.h - the index that NVIDIA DALI's TFRecord reader wants beside each shard
 *
 * A line "OFFSET SIZE" for each record, as DALI's tfrecord2idx writes it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_DALI_INDEX_H
#define CHEX_LIB_DALI_INDEX_H

#include "dataset/format.h"
#include "io/file.h"

#define DALI_INDEX_SUFFIX ".idx"

/* The text of the index of a shard: replaces what is in it.  CHEX_ERR_MEMORY */
enum chex_status dali_index_format(uint32_t records, size_t stride, struct buffer *text, struct chex_error *err);

/* Write SHARD.idx into the folder, unless it is there and right. */
enum chex_status dali_index_write(const struct folder *folder, const char *shard, uint32_t records, size_t stride,
                                  struct chex_error *err);

#endif
