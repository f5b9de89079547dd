/*
 * append.h - a growing log file; a failure to write it never ends a run
 *
 * append_put() only collects text; append_flush() writes the collected text.  If that fails, the file is truncated
 * after its last complete piece, and the text is kept for the next flush, up to a limit.  Beyond the limit the newest
 * pieces are dropped.  So a reader hardly ever sees an incomplete piece, and a temporarily full disk loses nothing.
 *
 * Files that must survive a crash use safe_file (lib/io/file.h) instead.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_APPEND_H
#define CHEX_TRAIN_APPEND_H

#include "io/file.h"

#define APPEND_LIMIT (1u << 20) /* bytes kept while the file cannot be written; a single piece may be larger */

struct append;

/*
 * Open a file for appending.  fresh the file must not exist (CHEX_ERR_WRITE, cause EEXIST); otherwise its content is
 * kept CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status append_open(const struct folder *folder, const char *name, bool fresh, struct append **out,
                             struct chex_error *err);

/* Collect a piece (a line, a record).  CHEX_ERR_MEMORY; CHEX_ERR_LIMIT: it was dropped */
enum chex_status append_put(struct append *a, const void *data, size_t size, struct chex_error *err);

/* Write the collected text.  CHEX_ERR_WRITE: the text is kept; also if the file was removed from its folder */
enum chex_status append_flush(struct append *a, struct chex_error *err);
/* Flush, and fsync. */
enum chex_status append_sync(struct append *a, struct chex_error *err);

void append_free(struct append *a); /* NULL is allowed; does not flush */

#endif
