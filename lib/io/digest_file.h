/*
 * digest_file.h - SHA-256 of a file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_DIGEST_FILE_H
#define CHEX_LIB_DIGEST_FILE_H

#include "base/sha256.h"

/* Called with each piece of the file in turn.  Any status but CHEX_OK ends the reading. */
typedef enum chex_status digest_piece(void *context, const uint8_t *data, size_t size, struct chex_error *err);

/*
 * Read an open file from start to end and compute its SHA-256.  If piece is not NULL, it is called with all data.
 * Error texts do not contain the path.
 * CHEX_ERR_READ, CHEX_ERR_MEMORY; any status of the piece function
 */
enum chex_status digest_file(int fd, digest_piece *piece, void *context, char hex[DIGEST_HEX], struct chex_error *err);

#endif
