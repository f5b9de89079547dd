/*
 * png_file.h - PNG files for the fuzz targets: made, mutated, and with their checksums repaired
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_FUZZ_PNG_FILE_H
#define CHEX_TESTS_FUZZ_PNG_FILE_H

#include "fuzz.h"

#include "base/memory.h"

/* One image of noise and gradients, by random numbers. */
struct png_form {
    uint32_t width, height;
    unsigned colour, depth; /* as in IHDR */
    bool interlaced;        /* says so only: the rows are not in passes */
    int level, strategy;    /* of zlib */
    unsigned pieces;        /* IDATs, at least 1 */
    bool ancillary;         /* with pHYs, gAMA, tIME */
};

/* Append the file to b. */
void png_file_make(const struct png_form *form, uint64_t random, struct buffer *b);

/* Inflate the image's rows, let `change` have them, deflate them again.  False where that cannot be done. */
bool png_file_change_rows(struct buffer *file, size_t (*change)(uint8_t *, size_t, size_t), uint64_t *random);

/*
 * Write the right CRC-32 into every chunk that is whole, and the right Adler-32 behind the zlib stream, which then ends
 * with the IDATs: what is behind its end is cut off.
 */
void png_file_repair(struct buffer *file, bool adler);

#endif
