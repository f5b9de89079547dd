/*
 * unxz.h - decompress an xz file of any length, piece by piece, within a limit of memory
 *
 * The header of a block says how much memory its decoder needs, up to 4 GiB, whatever the file's size.  libarchive
 * allocates that much; this decoder refuses a block that needs more than the caller allows.  All
 * checksums are compared.  Streams may follow each other, and zeros in multiples of four behind one, as the format
 * allows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_UNXZ_H
#define CHEX_LIB_UNXZ_H

#include "base/error.h"

#include <stdatomic.h>

struct unxz; /* used by one thread at a time */

/* Do these bytes, the first of a file, begin an xz file? */
bool unxz_magic(const uint8_t *data, size_t size);

/*
 * Decompress the open file fd from its beginning, with at most max_memory bytes for the decoder; fd stays the caller's,
 * *stop (or NULL) too.  Free with unxz_free().  NULL: no memory.
 */
struct unxz *unxz_new(int fd, uint64_t max_memory, const atomic_bool *stop);
void unxz_free(struct unxz *x); /* NULL is allowed */

/*
 * The next piece: *data points to *size bytes, valid until the next call; *size 0 at the end.
 * CHEX_ERR_TRUNCATED, CHEX_ERR_DAMAGED, CHEX_ERR_UNSUPPORTED, CHEX_ERR_READ
 * CHEX_ERR_LIMIT    a block needs more than max_memory: the text says how much
 * CHEX_ERR_MEMORY   that much is allowed, and not there
 * CHEX_ERR_STOPPED  *stop is set
 * Every later call fails alike.
 */
enum chex_status unxz_read(struct unxz *x, const uint8_t **data, size_t *size, struct chex_error *err);

/* Bytes of the compressed file that have been used. */
uint64_t unxz_offset(const struct unxz *x);

/* The version of liblzma. */
const char *unxz_version(void);

#endif
