/*
 * append.h - a file that grows while people read it: a log, whose loss ends no run
 *
 * The model to keep in mind: append_put() only collects, append_flush() writes the collected text as a whole.  Where
 * that fails the file is cut back to its last whole piece, and the text is kept for the next flush, up to a
 * limit; beyond that the newest pieces are dropped.  So a reader never sees half a piece for long, and a
 * disk that was full for a while leaves no hole.
 *
 * Not for what must survive: that is lib/io/file.h's safe_file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_APPEND_H
#define CHEX_TRAIN_APPEND_H

#include "io/file.h"

#define APPEND_LIMIT (1u << 20) /* bytes that are kept while nothing can be written; one piece may be larger */

struct append;

/*
 * Open a file for appending.
 * fresh  it must not be there yet (CHEX_ERR_WRITE, cause EEXIST); else its content stays
 * CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status append_open(const struct folder *folder, const char *name, bool fresh, struct append **out,
                             struct chex_error *err);

/* Collect a piece: a line, a record.  CHEX_ERR_MEMORY; CHEX_ERR_LIMIT it was dropped. */
enum chex_status append_put(struct append *a, const void *data, size_t size, struct chex_error *err);

/* Write the collected text.  CHEX_ERR_WRITE: it is kept; also where the file is gone from its folder. */
enum chex_status append_flush(struct append *a, struct chex_error *err);
/* Flush, and fsync. */
enum chex_status append_sync(struct append *a, struct chex_error *err);

void append_free(struct append *a); /* NULL is allowed; does not flush */

#endif
