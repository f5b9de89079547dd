/*
 * png_chunk.h - the chunks of a PNG in memory, without their meaning
 *
 * libpng decodes; these functions answer what it does not report, or not in all versions alike.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PNG_CHUNK_H
#define CHEX_LIB_PNG_CHUNK_H

#include "base/error.h"

#include <stddef.h>

struct chunk {
    char type[5]; /* terminated; letters only */
    uint32_t length;
    const uint8_t *body; /* type, length bytes of data, CRC; points into the file */
};

/* The chunk at *position, which moves behind it; false where none is whole.  Begin at CHUNK_FIRST. */
bool chunk_next(const uint8_t *data, size_t size, size_t *position, struct chunk *chunk);
#define CHUNK_FIRST 8 /* behind the signature */

/* APNG: an acTL before the first IDAT. */
bool chunk_is_animated(const uint8_t *data, size_t size);

/* At this position stands an IDAT that is not empty. */
bool chunk_is_image_data(const uint8_t *data, size_t size, size_t position);

/* What all chunks say together, up to IEND or to the first that is not whole. */
struct chunk_checks {
    char bad[5];        /* the first critical one whose CRC is wrong; "" where there is none */
    unsigned bad_other; /* ancillary ones whose CRC is wrong */
    bool ended;         /* IEND is there, and whole */
};

void chunk_check(const uint8_t *data, size_t size, struct chunk_checks *out);

/*
 * *small: the image data, inflated, is at most `most` bytes, or damaged before.  So a few bytes behind the pixels
 * cannot take time by becoming many.  CHEX_ERR_MEMORY.
 */
enum chex_status chunk_measure(const uint8_t *data, size_t size, uint64_t most, bool *small, struct chex_error *err);

#endif
