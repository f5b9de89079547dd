/*
 * inspect_describe.h - what a data set is, from its manifest alone
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_DESCRIBE_H
#define CHEX_TOOLS_INSPECT_DESCRIBE_H

#include "inspect/inspect.h"

/* The first line: which data set, how large.  For a shard also which one. */
void describe_head(const struct inspect *in, const struct target *t);
/* Images, records, splits. */
void describe_rest(const struct inspect *in, const struct target *t);

/* "dataset" of the --json document; NULL when out of memory. */
json_t *describe_json(const struct target *t);

#endif
