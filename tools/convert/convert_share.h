/*
 * convert_share.h - what chex-convert says where several processes share the work
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_CONVERT_SHARE_H
#define CHEX_TOOLS_CONVERT_SHARE_H

#include "convert/convert_crew.h"
#include "convert/convert_options.h"

#define SHARE_NAME (CREW_HOST + 32)

/* "rank 3 n07: " for a rank that is not the lead; for the lead, and a process that is alone, "".  Returns out. */
const char *name_rank(const struct crew *crew, char out[SHARE_NAME]);

/* How the shards are shared: a line after the plan; nothing where one process has all. */
void report_share(const struct convert *c, const struct cli_common *common);

/* The end of --part: what is done, and what to run next. */
void report_part(const struct convert *c, const struct cli_common *common);

#endif
