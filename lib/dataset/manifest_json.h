/*
 * manifest_json.h - what the writer and the reader of the manifest share, and the one way to write JSON into a file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_MANIFEST_JSON_H
#define CHEX_LIB_MANIFEST_JSON_H

#include "dataset/manifest.h"

#include <jansson.h>

/*
 * The "dtype" of the data set: what np.dtype() makes a structured type of, which lies over a shard as it is.  The
 * three texts are in it only as far as their places are the same in all records.  NULL when out of memory.
 */
json_t *manifest_dtype(const struct manifest *m);

/* The last key: SHA-256 of the text before its line. */
#define MANIFEST_SUM_KEY "manifest_sha256"

/*
 * The two lines, terminated, that end a manifest which begins with this text.  CHEX_ERR_MEMORY
 */
#define MANIFEST_SUM_ROOM 128
enum chex_status manifest_sum(const void *text, size_t size, char out[MANIFEST_SUM_ROOM], struct chex_error *err);

/*
 * Whether the values are those that a manifest can have: names and hashes of their form, numbers in their ranges, sums
 * that agree.  The writer refuses what the reader would refuse.  CHEX_ERR_DAMAGED, CHEX_ERR_MEMORY
 */
enum chex_status manifest_check(const struct manifest *m, struct chex_error *err);

#endif
