/*
 * format.h - the constants and words of the format that chex-shard(5) describes
 *
 * What a plan decides and a manifest says in the same words, so that neither needs the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_FORMAT_H
#define CHEX_LIB_FORMAT_H

#define FORMAT_VERSION 1 /* of the shards */

#define SHARD_PREFIX   "chestxray14"
#define SHARD_NAME_MAX 96 /* with its terminator */
#define SHARDS_MAX     99999

#define SPLIT_MAX      16
#define SPLIT_NAME_MAX 24 /* with its terminator; [a-z0-9_]+ */

/* What becomes of the last shard of a split, which its images do not fill. */
enum tail { TAIL_PAD, TAIL_SHORT, TAIL_DROP };
extern const char *const tail_names[]; /* "pad", "short", "drop", NULL */

#endif
