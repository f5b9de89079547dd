/*
 * convert_part.h - what chex-convert says where several processes share the work
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_CONVERT_PART_H
#define CHEX_TOOLS_CONVERT_PART_H

#include "base/ranks.h"
#include "convert/convert_options.h"

#define RANK_NAME (RANKS_HOST + 32)

static inline bool
is_rank_0(const struct ranks *ranks)
{
    return ranks->comm->rank == 0;
}

/* "rank 3 n07: " for a rank other than 0; for rank 0, and a process that is alone, "".  Returns out. */
const char *name_rank(const struct ranks *ranks, char out[RANK_NAME]);

/* The part that this process does: its rank's, or that of --part. */
struct part part_of(const struct convert *c);

/* Into how many parts the shards are divided: a line after the plan; nothing where one process has all. */
void report_parts(const struct convert *c, const struct cli_common *common);

/* The end of --part: what is done, and what to run next. */
void report_part_done(const struct convert *c, const struct cli_common *common);

#endif
