/*
 * gunzip.h - decompress a gzip file (RFC 1952) of any length, piece by piece
 *
 * libarchive reads gzip too, but does not compare the checksum at the end of the stream; here a file whose CRC-32 or
 * length differs is damaged.  Members may follow each other, as pigz and `cat a.gz b.gz` make them.  Zeros may
 * follow the last one up to the end of the file, as tapes pad it; any other byte is damage, since it may have been a
 * member: gzip(1) warns of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_GUNZIP_H
#define CHEX_LIB_GUNZIP_H

#include "base/error.h"

#include <stdatomic.h>

struct gunzip; /* used by one thread at a time */

/* Do these bytes, the first of a file, begin a gzip file? */
bool gunzip_magic(const uint8_t *data, size_t size);

/*
 * Decompress the open file fd from its beginning; fd stays the caller's, *stop (or NULL) too.  Free with gunzip_free().
 * NULL: no memory.
 */
struct gunzip *gunzip_new(int fd, const atomic_bool *stop);
void gunzip_free(struct gunzip *g); /* NULL is allowed */

/*
 * The next piece: *data points to *size bytes, valid until the next call; *size 0 at the end.
 * CHEX_ERR_TRUNCATED, CHEX_ERR_CHECKSUM, CHEX_ERR_DAMAGED, CHEX_ERR_READ; CHEX_ERR_STOPPED where *stop is set.  Every
 * later call fails alike.
 */
enum chex_status gunzip_read(struct gunzip *g, const uint8_t **data, size_t *size, struct chex_error *err);

/* Bytes of the compressed file that have been used. */
uint64_t gunzip_offset(const struct gunzip *g);

#endif
