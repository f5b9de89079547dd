/*
 * png_chunk.h - the chunks of a PNG in memory, without their meaning
 *
 * libpng decodes.  These functions check what libpng does not report, or what its versions report differently.
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

/* Read a big-endian number at any alignment. */
uint32_t get_u32be(const uint8_t *p);

/* Read the chunk at *position and advance *position.  Returns false if none is complete.  Start at CHUNK_FIRST. */
bool chunk_next(const uint8_t *data, size_t size, size_t *position, struct chunk *chunk);
#define CHUNK_FIRST 8 /* after the signature */

/* Returns whether the file is an APNG: an acTL precedes the first IDAT. */
bool chunk_is_animated(const uint8_t *data, size_t size);

/* Returns whether an IDAT that is not empty begins at this position. */
bool chunk_is_image_data(const uint8_t *data, size_t size, size_t position);

/* The result of checking all chunks up to IEND or up to the first incomplete one. */
struct chunk_checks {
    char bad[5];        /* the first critical chunk with a wrong CRC; "" if there is none */
    unsigned bad_other; /* number of ancillary chunks with a wrong CRC */
    bool ended;         /* the file has a complete IEND */
};

void chunk_check(const uint8_t *data, size_t size, struct chunk_checks *out);

/*
 * Sets *small if the inflated image data has at most `most` bytes or is damaged before that.  So a few compressed bytes
 * after the pixels cannot cost much time.  Returns CHEX_OK or CHEX_ERR_MEMORY.
 */
enum chex_status chunk_measure(const uint8_t *data, size_t size, uint64_t most, bool *small, struct chex_error *err);

#endif
