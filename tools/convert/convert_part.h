/*
 * convert_part.h - reports the part of a process if several processes share the work of chex-convert
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_CONVERT_PART_H
#define CHEX_TOOLS_CONVERT_PART_H

#include "convert/convert_options.h"
#include "ranks/collective.h"

#define RANK_NAME 96

static inline bool
is_rank_0(const struct collective *ranks)
{
    return collective_rank(ranks) == 0;
}

/* Write "rank 3 n07: ", or "" for rank 0 and for a single process.  Returns out. */
const char *name_rank(const struct collective *ranks, char out[RANK_NAME]);

/* Returns the part of this process: that of its rank, or of --part. */
struct part part_of(const struct convert *c);

/* Print the number of parts after the plan; nothing if one process does all shards. */
void report_parts(const struct convert *c, const struct cli_common *common);

/* Print the result of --part and the next command. */
void report_part_done(const struct convert *c, const struct cli_common *common);

#endif
