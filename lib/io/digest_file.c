/*
 * digest_file.c - see digest_file.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/digest_file.h"

#include "io/file.h"

#include <stdlib.h>

#define PIECE ((size_t)1 << 20)

enum chex_status
digest_file(int fd, digest_piece *piece, void *context, char hex[DIGEST_HEX], struct chex_error *err)
{
    struct digest *digest = digest_new();
    uint8_t *data = malloc(PIECE), hash[DIGEST_SIZE];
    uint64_t offset = 0;
    size_t got = 0;
    enum chex_status status = CHEX_OK;

    if (!digest || !data) {
        digest_free(digest);
        free(data);
        return error_memory(err);
    }
    digest_start(digest);
    do {
        status = file_pread(fd, offset, data, PIECE, &got, err);
        if (status == CHEX_OK && got > 0) {
            digest_add(digest, data, got);
            if (piece)
                status = piece(context, data, got, err);
        }
        offset += got;
    } while (status == CHEX_OK && got > 0);
    digest_finish(digest, hash);
    digest_hex(hash, DIGEST_SIZE, hex);
    digest_free(digest);
    free(data);
    return status;
}
