/*
 * csv.h - reads the rows of a CSV file with libcsv (RFC 4180), plain or gzip-compressed
 *
 * It adds protection against hostile and hand-made files to libcsv: limits for file, line and number of fields; and
 * line numbers.  It skips a byte order mark, refuses NUL bytes and invalid UTF-8 (line_reader.h), and finds columns by
 * name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_TABLE_H
#define CHEX_LIB_TABLE_H

#include "base/memory.h"
#include "io/line_reader.h"

#define TABLE_MAX_FIELDS 520 /* predictions-SPLIT.csv has two columns for each of up to 254 findings, and 8 more */
#define TABLE_MAX_LINE   TEXT_MAX_LINE
#define TABLE_MAX_FILE   TEXT_MAX_FILE

/* A row.  field[i] is terminated and trimmed.  All pointers are valid only during the call. */
struct table_row {
    const char *path;   /* of the file, as passed to table_read() */
    unsigned long line; /* line number of the row's start, from 1 */
    size_t count;       /* number of fields, with empty fields at the end of the row */
    const char *field[TABLE_MAX_FIELDS];
    size_t length[TABLE_MAX_FIELDS];
};

/* Called for each row, also for the header.  Any status but CHEX_OK ends table_read(), which returns it. */
typedef enum chex_status table_row_fn(const struct table_row *row, void *context, struct chex_error *err);

/*
 * Read the file at path and call fn for each row that is not blank.
 * sha256   NULL, or DIGEST_HEX characters for the SHA-256 of the decompressed text
 * CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_MEMORY
 * CHEX_ERR_USAGE  with "PATH:LINE: ...": an unclosed or misplaced quote, a NUL byte, a line or row over TABLE_MAX_LINE,
 *                 text that is not UTF-8, more than TABLE_MAX_FIELDS fields, a file over TABLE_MAX_FILE, damaged gzip
 *                 data
 */
enum chex_status table_read(const char *path, table_row_fn *fn, void *context, char *sha256, struct chex_error *err);

/* Returns whether two names of columns are the same, ignoring case, blanks, '_' and '-'. */
bool table_same_name(const char *a, const char *b);
/*
 * Returns the column of the header with one of `names` (NULL-terminated), or -1.  The comparison ignores case, blanks,
 * '_' and '-'.
 */
int table_column(const struct table_row *header, const char *const *names);

/*
 * Check that the header has the column of table_column() only once.  If not, CHEX_ERR_USAGE: the choice would be
 * arbitrary.
 */
enum chex_status table_column_once(const struct table_row *header, const char *const *names, struct chex_error *err);

/* For a header without the required columns: CHEX_ERR_USAGE if the columns are separated by ';' or tabs. */
enum chex_status table_check_separator(const struct table_row *header, struct chex_error *err);

/* Append a field to a line that is written, quoted if RFC 4180 requires it.  CHEX_ERR_MEMORY */
enum chex_status table_append_field(struct buffer *b, const char *field, struct chex_error *err);

/* Fail with CHEX_ERR_USAGE and "PATH:LINE: FORMATTED". */
enum chex_status table_fail(const struct table_row *row, struct chex_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
