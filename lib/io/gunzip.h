/*
 * gunzip.h - decompresses a gzip file (RFC 1952) of any length, piece by piece
 *
 * libarchive also reads gzip, but it does not compare the checksum at the end of the stream.  Here a file with a wrong
 * CRC-32 or length is damaged.  Members may follow each other, as written by pigz and `cat a.gz b.gz`.  Zeros may
 * follow the last member up to the end of the file, as padding of tapes.  Any other byte is damage, because it may have
 * been a member; gzip(1) only warns of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_GUNZIP_H
#define CHEX_LIB_GUNZIP_H

#include "base/error.h"

#include <stdatomic.h>

struct gunzip; /* used by one thread at a time */

/* Returns whether the first bytes of a file are those of a gzip file. */
bool gunzip_magic(const uint8_t *data, size_t size);

/*
 * Decompress the open file fd from its beginning.  The caller keeps fd and *stop (or NULL).  Free it with
 * gunzip_free().  Returns NULL when out of memory.
 */
struct gunzip *gunzip_new(int fd, const atomic_bool *stop);
void gunzip_free(struct gunzip *g); /* NULL is allowed */

/*
 * Get the next piece: *data points to *size bytes, valid until the next call; *size is 0 at the end.
 * CHEX_ERR_TRUNCATED, CHEX_ERR_CHECKSUM, CHEX_ERR_DAMAGED, CHEX_ERR_READ; CHEX_ERR_STOPPED if *stop is set.  All later
 * calls fail with the same error.
 */
enum chex_status gunzip_read(struct gunzip *g, const uint8_t **data, size_t *size, struct chex_error *err);

/* Returns the bytes of the compressed file that were used so far. */
uint64_t gunzip_offset(const struct gunzip *g);

#endif
