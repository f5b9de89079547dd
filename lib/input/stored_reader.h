/*
 * stored_reader.h - reads records of data sets and pushes their pixels into the queue
 *
 * A thread takes the next shard of a data set and reads the wanted records from its beginning to its end, so the reads
 * of a shard are sequential.  It compares both checksums of each record.  Private to image_reader.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_STORED_READER_H
#define CHEX_LIB_STORED_READER_H

#include "input/image_reader.h"

struct stored_reader;

/* Set r->wanted and list the wanted records.  CHEX_ERR_MEMORY */
enum chex_status stored_reader_new(struct image_reader *r, unsigned threads, struct stored_reader **out,
                                   struct chex_error *err);
void stored_reader_free(struct stored_reader *s); /* NULL is allowed */

/*
 * Read shards until none is left.  A damaged or unreadable record is not an error here: its queue entry gets the
 * reason.
 * CHEX_ERR_READ  a shard cannot be opened any more, or became shorter;  CHEX_ERR_MEMORY
 */
enum chex_status stored_reader_run(struct image_reader *r, struct stored_reader *s, uint64_t *item,
                                   struct chex_error *err);

#endif
