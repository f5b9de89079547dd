/*
 * line_reader.h - reads the lines of an untrusted text file, plain or gzip-compressed
 *
 * The CSV reader (csv.h) and the lists of names (name_list.h) use it.  The first bytes decide whether a file is
 * compressed, not its name.  A line ends with LF, CR LF, a lone CR, or the end of the file.  The reader refuses a file
 * that begins like another format (content.h), NUL bytes, invalid UTF-8, overlong lines, and more text than a label
 * file can have, so that a small gzip file cannot fill the memory.  It skips a UTF-8 byte order mark.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_TEXT_H
#define CHEX_LIB_TEXT_H

#include "base/sha256.h"

#define TEXT_MAX_LINE 65536        /* bytes without the line's end */
#define TEXT_MAX_FILE (256u << 20) /* bytes after decompression */

struct line_reader; /* an open file; used by one thread */

struct text_line {
    const char *data;     /* not terminated, valid until the next call; NULL at the end of the file */
    size_t size;          /* without the line ending */
    size_t full;          /* with it: data[size .. full - 1] is LF, CR LF, CR or nothing */
    unsigned long number; /* from 1 */
};

/*
 * Open the file at path.  path is not copied: it must live as long as *out.  Free *out with text_close().
 * hash   also compute text_sha256()
 * CHEX_ERR_MISSING  the file is missing, unreadable, a folder, FIFO or device (never blocks);  CHEX_ERR_MEMORY
 */
enum chex_status text_open(const char *path, bool hash, struct line_reader **out, struct chex_error *err);
void text_close(struct line_reader *t); /* NULL is allowed */

/*
 * Read the next line.  CHEX_ERR_READ, CHEX_ERR_MEMORY; with "PATH:LINE: ..." CHEX_ERR_USAGE, or CHEX_ERR_MISSING for a
 * file of another format.  After a failure only text_close() is allowed.
 */
enum chex_status text_next(struct line_reader *t, struct text_line *line, struct chex_error *err);

/*
 * Get the SHA-256 of the decompressed text, including a byte order mark.  Call it once, after text_next() reached the
 * end.
 */
void text_sha256(struct line_reader *t, char hex[DIGEST_HEX]);

#endif
