/*
 * png_chunk.h - the chunks of a PNG in memory, without their meaning
 *
 * libpng does the decoding; this answers what it does not tell.  Only png.c uses it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PNG_CHUNK_H
#define CHEX_LIB_PNG_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct png_chunk {
    char type[5]; /* terminated; letters only */
    uint32_t length;
    const uint8_t *body; /* type, length bytes of data, CRC; points into the file */
};

/* The chunk at *position, which moves behind it; false where none is whole.  Begin at PNG_FIRST_CHUNK. */
bool png_chunk_next(const uint8_t *data, size_t size, size_t *position, struct png_chunk *chunk);
#define PNG_FIRST_CHUNK 8 /* behind the signature */

/* APNG: an acTL before the first IDAT. */
bool png_chunk_is_animated(const uint8_t *data, size_t size);

/* At this position stands an IDAT that is not empty. */
bool png_chunk_is_image_data(const uint8_t *data, size_t size, size_t position);

/* The first critical chunk whose CRC is wrong; false where there is none. */
bool png_chunk_find_bad(const uint8_t *data, size_t size, struct png_chunk *chunk);

#endif
