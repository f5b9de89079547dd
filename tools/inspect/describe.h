/*
 * describe.h - describes a data set from its manifest, without reading records
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_DESCRIBE_H
#define CHEX_TOOLS_INSPECT_DESCRIBE_H

#include "inspect/inspect.h"

/* Print the first line: the data set and its size; for a shard also the shard. */
void describe_head(const struct inspect *in, const struct target *t);
/* Print the numbers of images and records, and the splits. */
void describe_rest(const struct inspect *in, const struct target *t);

/* Returns the object "dataset" of the --json document, or NULL when out of memory. */
json_t *describe_json(const struct target *t);

#endif
