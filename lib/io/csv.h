/*
 * csv.h - rows of a CSV file, by libcsv (RFC 4180), plain or gzip-compressed
 *
 * Adds to libcsv for hostile and hand-made files: bounds on file, line and field count, and line numbers; it skips a
 * byte order mark, refuses NUL bytes and invalid UTF-8 (line_reader.h), and finds columns by their names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_TABLE_H
#define CHEX_LIB_TABLE_H

#include "io/line_reader.h"

#define TABLE_MAX_FIELDS 64
#define TABLE_MAX_LINE   TEXT_MAX_LINE
#define TABLE_MAX_FILE   TEXT_MAX_FILE

/* One row.  field[i] is terminated and free of blanks at both ends; all pointers are valid during the call only. */
struct table_row {
    const char *path;   /* of the file, as given */
    unsigned long line; /* where the row starts, counted from 1 */
    size_t count;       /* fields; empty ones at the end of a row count too */
    const char *field[TABLE_MAX_FIELDS];
    size_t length[TABLE_MAX_FIELDS];
};

/* Called for each row, the header too.  Anything but CHEX_OK stops the reading and is returned from table_read(). */
typedef enum chex_status table_row_fn(const struct table_row *row, void *context, struct chex_error *err);

/*
 * Read the file at path and call fn for each row that is not blank.
 * sha256   NULL, or room for DIGEST_HEX characters: SHA-256 of the text after decompression
 * CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_MEMORY, or CHEX_ERR_USAGE with "PATH:LINE: what is wrong": an unclosed or
 * misplaced quote, a NUL byte, a line or a row over TABLE_MAX_LINE, text that is not UTF-8, more than
 * TABLE_MAX_FIELDS fields, a file over TABLE_MAX_FILE, damaged gzip data.
 */
enum chex_status table_read(const char *path, table_row_fn *fn, void *context, char *sha256, struct chex_error *err);

/*
 * The column of the header whose name is one of `names` (NULL-terminated; compared without case, blanks, '_' and
 * '-'), or -1.
 */
int table_column(const struct table_row *header, const char *const *names);

/*
 * CHEX_ERR_USAGE where the header has the column of table_column() twice: nobody knows which one is meant.
 */
enum chex_status table_column_once(const struct table_row *header, const char *const *names, struct chex_error *err);

/* For a header without the columns that it needs: CHEX_ERR_USAGE if its columns are separated by ';' or tabs. */
enum chex_status table_check_separator(const struct table_row *header, struct chex_error *err);

/* CHEX_ERR_USAGE with "PATH:LINE: FORMATTED". */
enum chex_status table_fail(const struct table_row *row, struct chex_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
