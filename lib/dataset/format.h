/*
 * format.h - the constants, words and shard names of the format that chex-shard(5) describes
 *
 * Plans and manifests both use this file, so that neither depends on the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_FORMAT_H
#define CHEX_LIB_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#define FORMAT_VERSION 1 /* of the shards */

#define SHARD_PREFIX   "chestxray14"
#define SHARD_NAME_MAX 96 /* with its terminator */
#define SHARDS_MAX     99999

#define SPLIT_MAX      16
#define SPLIT_NAME_MAX 24 /* with its terminator; [a-z0-9_]+ */

/* The journal of an unfinished withdrawal of patients (chex-convert --withdraw). */
#define WITHDRAWAL_NAME ".chex-withdrawal"
#define WITHDRAWALS_MAX 10000 /* of one data set */

/* The data sets from which one data set is made, and the text before their names and patients (--id-prefix). */
#define SOURCES_MAX       100
#define ID_PREFIX_MAX     32 /* bytes */
#define ID_PREFIX_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* Write the name of shard `number` of `of` of a split, "chestxray14-train.tfrecord-00012-of-00338". */
void shard_name_format(char name[SHARD_NAME_MAX], const char *split, size_t number, size_t of);

/* Returns the end of the shard name at the start of p, or NULL if p does not begin with one. */
const char *shard_name_end(const char *p);

/* Returns whether a file has the name of a shard, also with the prefix of another program. */
bool shard_is_name(const char *name);

/* The treatment of the last shard of a split if its images do not fill it. */
enum tail { TAIL_PAD, TAIL_SHORT, TAIL_DROP };
extern const char *const tail_names[]; /* "pad", "short", "drop", NULL */

#endif
