/*
 * example.h - any tf.train.Example with the keys of chex-shard(5), read by protobuf-c
 *
 * For files that no manifest describes, and as the second opinion in tests: order, padding and offsets do not
 * matter here; of a key that stands twice the last value counts.  Slower than record.h: it copies.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_EXAMPLE_H
#define CHEX_LIB_EXAMPLE_H

#include "base/error.h"

struct example; /* owns what the record's pointers refer to */

/*
 * Parse the data of one record (without its frame).  Free *out with example_free().
 * CHEX_ERR_DAMAGED  not an Example, a key is missing or of another type, a label is not 0 or 1, sides and number of
 *                   pixels do not agree
 * CHEX_ERR_LIMIT    many times its size would be needed to hold it
 */
enum chex_status example_parse(const uint8_t *data, size_t size, struct example **out, struct chex_record *record,
                               struct chex_error *err);
void example_free(struct example *e); /* NULL is allowed */

#endif
