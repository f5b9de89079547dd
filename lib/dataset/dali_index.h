/*
 * dali_index.h - writes the index files that NVIDIA DALI's TFRecord reader needs, one per shard
 *
 * An index has one line "OFFSET SIZE" per record, as written by DALI's tfrecord2idx.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_DALI_INDEX_H
#define CHEX_LIB_DALI_INDEX_H

#include "dataset/format.h"
#include "io/file.h"

#define DALI_INDEX_SUFFIX ".idx"

/* Write the index of a shard to *text, replacing its content.  CHEX_ERR_MEMORY */
enum chex_status dali_index_format(uint32_t records, size_t stride, struct buffer *text, struct chex_error *err);

/* Write SHARD.idx into the folder, unless the file exists with the right content. */
enum chex_status dali_index_write(const struct folder *folder, const char *shard, uint32_t records, size_t stride,
                                  struct chex_error *err);

#endif
