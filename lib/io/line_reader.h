/*
 * line_reader.h - the lines of a text file from outside, plain or gzip-compressed
 *
 * The CSV reader (csv.h) and the lists of names (name_list.h) use it.  The first bytes decide whether a file is
 * compressed, not its name.  A line ends with LF, CR LF, a lone CR, or the file.  Refused are: a file that begins like
 * something else (content.h), NUL bytes, invalid UTF-8, overlong lines, and more bytes than a label file can have (so a
 * small gzip file cannot fill the memory).  A UTF-8 byte order mark is skipped.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_TEXT_H
#define CHEX_LIB_TEXT_H

#include "base/sha256.h"

#define TEXT_MAX_LINE 65536        /* bytes without the line's end */
#define TEXT_MAX_FILE (256u << 20) /* bytes after decompression */

struct line_reader; /* an open file; one thread */

struct text_line {
    const char *data;     /* not terminated, valid until the next call; NULL at the end of the file */
    size_t size;          /* without its end */
    size_t full;          /* with it: data[size .. full - 1] is LF, CR LF, CR or nothing */
    unsigned long number; /* from 1 */
};

/*
 * Open the file at path (kept by reference: it must live as long as *out).  text_close() frees *out.
 * hash   also compute text_sha256()
 * CHEX_ERR_MISSING  no such file, not readable, a folder, FIFO or device (never blocks);  CHEX_ERR_MEMORY
 */
enum chex_status text_open(const char *path, bool hash, struct line_reader **out, struct chex_error *err);
void text_close(struct line_reader *t); /* NULL is allowed */

/*
 * The next line.  CHEX_ERR_READ, CHEX_ERR_MEMORY; with "PATH:LINE: what is wrong" CHEX_ERR_USAGE, or CHEX_ERR_MISSING
 * for a file of another kind.  After a failure the file may only be closed.
 */
enum chex_status text_next(struct line_reader *t, struct text_line *line, struct chex_error *err);

/* SHA-256 of the whole text, decompressed, with a byte order mark; after text_next() gave the end, once. */
void text_sha256(struct line_reader *t, char hex[DIGEST_HEX]);

#endif
