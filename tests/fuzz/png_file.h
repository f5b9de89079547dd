/*
 * png_file.h - makes PNG files for the fuzz targets, mutates them and repairs their checksums
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_FUZZ_PNG_FILE_H
#define CHEX_TESTS_FUZZ_PNG_FILE_H

#include "fuzz.h"

#include "base/memory.h"

/* An image of noise and gradients, from random numbers. */
struct png_form {
    uint32_t width, height;
    unsigned colour, depth; /* as in IHDR */
    bool interlaced;        /* only the header says so: the rows are not in passes */
    int level, strategy;    /* for zlib */
    unsigned pieces;        /* number of IDATs, at least 1 */
    bool ancillary;         /* with pHYs, gAMA, tIME */
};

/* Append the file to b. */
void png_file_make(const struct png_form *form, uint64_t random, struct buffer *b);

/*
 * Inflates the rows of the image, passes them to `change` and deflates them again.  Returns false if that is
 * impossible.
 */
bool png_file_change_rows(struct buffer *file, size_t (*change)(uint8_t *, size_t, size_t), uint64_t *random);

/*
 * Writes the correct CRC-32 into every complete chunk, and the correct Adler-32 at the end of the zlib stream.  Cuts
 * off what follows the end of the stream in the IDATs.
 */
void png_file_repair(struct buffer *file, bool adler);

#endif
