/*
 * example.h - reads any tf.train.Example with the keys of chex-shard(5), with protobuf-c
 *
 * It reads files without a manifest, and tests compare it with record.h.  Order, padding and offsets do not matter.  If
 * a key occurs twice, the last value counts.  It is slower than record.h because it copies.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_EXAMPLE_H
#define CHEX_LIB_EXAMPLE_H

#include "base/error.h"

struct example; /* owns the data that the record's pointers point to */

/*
 * Parse the data of one record (without its frame).  Free *out with example_free().
 * CHEX_ERR_DAMAGED  not an Example, a key is missing or has another type, a label is not 0, 1 or unknown, or height,
 *                   width and channels do not match the number of pixels
 * CHEX_ERR_LIMIT    parsing would need many times the size of the data
 */
enum chex_status example_parse(const uint8_t *data, size_t size, struct example **out, struct chex_record *record,
                               struct chex_error *err);
void example_free(struct example *e); /* NULL is allowed */

#endif
