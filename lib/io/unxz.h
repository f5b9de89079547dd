/*
 * unxz.h - decompresses an xz file of any length, piece by piece, within a memory limit
 *
 * The header of a block states how much memory its decoder needs: up to 4 GiB, for any size of the file.  libarchive
 * allocates that much.  This decoder refuses a block that needs more than the caller allows.  All checksums are
 * compared.  Streams may follow each other, with padding of zeros in multiples of four bytes, as the format allows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_UNXZ_H
#define CHEX_LIB_UNXZ_H

#include "base/error.h"

#include <stdatomic.h>

struct unxz; /* used by one thread at a time */

/* Returns whether the first bytes of a file are those of an xz file. */
bool unxz_magic(const uint8_t *data, size_t size);

/*
 * Decompress the open file fd from its beginning; the decoder uses at most max_memory bytes.  The caller keeps fd and
 * *stop (or NULL).  Free it with unxz_free().  Returns NULL when out of memory.
 */
struct unxz *unxz_new(int fd, uint64_t max_memory, const atomic_bool *stop);
void unxz_free(struct unxz *x); /* NULL is allowed */

/*
 * Get the next piece: *data points to *size bytes, valid until the next call; *size is 0 at the end.
 * CHEX_ERR_TRUNCATED, CHEX_ERR_DAMAGED, CHEX_ERR_UNSUPPORTED, CHEX_ERR_READ
 * CHEX_ERR_LIMIT    a block needs more than max_memory; the text has the amount
 * CHEX_ERR_MEMORY   the amount is allowed but not available
 * CHEX_ERR_STOPPED  *stop is set
 * All later calls fail with the same error.
 */
enum chex_status unxz_read(struct unxz *x, const uint8_t **data, size_t *size, struct chex_error *err);

/* Returns the bytes of the compressed file that were used so far. */
uint64_t unxz_offset(const struct unxz *x);

/* Returns the version of liblzma. */
const char *unxz_version(void);

#endif
