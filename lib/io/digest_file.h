/*
 * digest_file.h - SHA-256 of a file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_DIGEST_FILE_H
#define CHEX_LIB_DIGEST_FILE_H

#include "base/sha256.h"

/* Called with each piece of the file in turn.  Anything but CHEX_OK ends the reading. */
typedef enum chex_status digest_piece(void *context, const uint8_t *data, size_t size, struct chex_error *err);

/*
 * Read an open file from its start to its end, and compute its SHA-256.  piece, if not NULL, gets all that is read.
 * CHEX_ERR_READ, CHEX_ERR_MEMORY; of the piece function.  The texts do not name the file.
 */
enum chex_status digest_file(int fd, digest_piece *piece, void *context, char hex[DIGEST_HEX], struct chex_error *err);

#endif
