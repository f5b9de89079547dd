/*
 * convert_crew.h - several processes on one conversion (crew.h): what they tell each other
 *
 * Every process makes the same plan and fills the shards of its share; what became of them goes to the lead as lines of
 * the journal, so that it need not read what others wrote.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CONVERT_CREW_H
#define CHEX_LIB_CONVERT_CREW_H

#include "base/crew.h"
#include "convert/convert.h"

/*
 * After convert_prepare(), whether it was good (status) or not: the processes were started alike, and all have the same
 * plan.  Every process calls it; the outcome is the same for all.
 * purpose  what they are going to do, such as "convert" or "dry run"
 * CHEX_ERR_USAGE  "rank 3 n07 has other options than rank 0: ..."; or what convert_prepare() said, of the first of them
 */
enum chex_status convert_join(struct crew *crew, const struct convert *c, const char *purpose, enum chex_status status,
                              struct chex_error *err);

/* The shard results of this process's share, and its counts, appended to b. */
enum chex_status convert_pack(const struct convert *c, const struct store *store, struct share share, struct buffer *b,
                              struct chex_error *err);
/* Take them over, as those of share `share`; every shard of it must be there.  CHEX_ERR_BUG where one is not. */
enum chex_status convert_unpack(struct convert *c, struct store *store, struct share share, const struct buffer *b,
                                struct chex_error *err);

#endif
