/*
 * png_fixture.h - PNG files for the tests, written chunk by chunk with zlib only, so that any part can be wrong
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_PNG_FIXTURE_H
#define CHEX_TESTS_PNG_FIXTURE_H

#include "image/image.h"
#include "unit.h"

/* Colour types of the PNG specification, table 11.1. */
enum { GRAY = 0, RGB = 2, INDEXED = 3, GRAY_ALPHA = 4, RGBA = 6 };

struct fixture {
    uint32_t width, height;
    int colour, depth;
    bool interlaced;
    unsigned (*sample)(uint32_t x, uint32_t y, int channel); /* any number; cut to `depth` bits */
    const uint8_t *palette;                                  /* [palette_size][3], or NULL */
    size_t palette_size;
    const uint8_t *trns; /* as in the chunk, or NULL */
    size_t trns_size;
};

int fixture_channels(int colour);
/* Returns a sample as stored. */
unsigned fixture_sample(const struct fixture *f, uint32_t x, uint32_t y, int channel);

/* These append to b.  A chunk gets its correct CRC. */
void fixture_signature(struct buffer *b);
void fixture_chunk(struct buffer *b, const char *type, const void *data, size_t size);
void fixture_header(struct buffer *b, const struct fixture *f); /* signature, IHDR, PLTE, tRNS */

/* The rows with their filter bytes (all 0), one pass after another, before and after compression. */
void fixture_raw(struct buffer *b, const struct fixture *f);
void fixture_deflate(struct buffer *b, const void *raw, size_t size);

/* Appends a complete file. */
void fixture_png(struct buffer *b, const struct fixture *f);

/* Returns the offset of the first chunk of this type (of its length); it must exist. */
size_t fixture_find(const struct buffer *b, const char *type);
/* Corrects the CRC of the chunk at this offset. */
void fixture_repair(struct buffer *b, size_t at);

void png_faults_case(Suite *suite); /* test_png_faults.c */
void png_bounds_case(Suite *suite); /* test_png_bounds.c */

#endif
