/*
 * synth_png.c - see synth_png.h
 *
 * libpng with its defaults wrote the real gray files: IDAT of 8192 bytes, zlib header 78 9c, and row filters chosen by
 * its heuristic (59 % Paeth, 29 % Average, 11 % Up, 1 % Sub or None).  Level 6 takes 0.2 s per image, mostly to search
 * noise for repetitions that do not exist.  So this file draws the filter of each row with the same proportions, and
 * zlib only searches for runs (Z_RLE).  That takes a tenth of the time, and the files have about the same size.  The
 * two bits of the zlib header that give the level, which are only informative, are then set as in the real files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "synth/synth_png.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "draw/png_memory.h"
#include "synth/synth_random.h"

static int
row_filter(uint64_t key, unsigned row)
{
    unsigned drawn = (unsigned)(random_hash(key, row) % 200);

    /*
     * Of 200 rows: 118 Paeth, 58 Average, 22 Up, 1 Sub, 1 None.  With Paeth in the first row, libpng keeps the previous
     * row.
     */
    if (row == 0 || drawn < 118)
        return PNG_FILTER_PAETH;
    if (drawn < 176)
        return PNG_FILTER_AVG;
    if (drawn < 198)
        return PNG_FILTER_UP;
    return drawn < 199 ? PNG_FILTER_SUB : PNG_FILTER_NONE;
}

/* Converts one row of gray values to the form.  The palette is the inverted gray scale, so a decoder must apply it. */
static void
convert_row(const uint8_t *gray, unsigned size, enum form form, uint8_t *row)
{
    static const uint8_t bytes[FORMS] = {1, 4, 2, 1, 1, 2, 3};
    unsigned i, k;

    for (i = 0; i < size; i++) {
        for (k = 0; k < bytes[form]; k++)
            row[i * bytes[form] + k] = form == FORM_PALETTE ? (uint8_t)(255 - gray[i]) : gray[i];
        if (form == FORM_RGBA || form == FORM_GRAY_ALPHA)
            row[i * bytes[form] + bytes[form] - 1] = 255;
    }
}

static void
write_header(png_structp png, png_infop info, unsigned size, enum form form)
{
    static const int types[FORMS] = {PNG_COLOR_TYPE_GRAY,    PNG_COLOR_TYPE_RGBA, PNG_COLOR_TYPE_GRAY,
                                     PNG_COLOR_TYPE_PALETTE, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                     PNG_COLOR_TYPE_RGB};
    png_color palette[256];
    unsigned k;

    png_set_IHDR(png, info, size, size, form == FORM_GRAY16 ? 16 : 8, types[form],
                 form == FORM_ADAM7 ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, form == FORM_RGBA ? 2 : 1);
    png_set_compression_strategy(png, form == FORM_RGBA ? Z_FILTERED : Z_RLE);
    if (form == FORM_RGBA)
        png_set_compression_buffer_size(png, 65524);
    if (form == FORM_ADAM7)
        png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_ALL_FILTERS);
    if (form == FORM_PALETTE) {
        for (k = 0; k < 256; k++)
            palette[k] = (png_color){(uint8_t)(255 - k), (uint8_t)(255 - k), (uint8_t)(255 - k)};
        png_set_PLTE(png, info, palette, 256);
    }
    png_write_info(png, info);
    if (form == FORM_RGBA) {
        /* as in the real RGBA files; libpng would write gAMA first */
        png_write_chunk(png, (png_const_bytep) "sRGB", (png_const_bytep) "\0", 1);
        png_write_chunk(png, (png_const_bytep) "gAMA", (png_const_bytep) "\0\0\xb1\x8f", 4);
        png_write_chunk(png, (png_const_bytep) "pHYs", (png_const_bytep) "\0\0\x0e\xc4\0\0\x0e\xc4\1", 9);
    }
}

static void
write_rows(png_structp png, const uint8_t *pixels, unsigned size, enum form form, uint64_t key, uint8_t *row)
{
    int passes = form == FORM_ADAM7 ? png_set_interlace_handling(png) : 1;
    unsigned j;

    for (; passes > 0; passes--)
        for (j = 0; j < size; j++) {
            if (form != FORM_ADAM7)
                png_set_filter(png, PNG_FILTER_TYPE_BASE, row_filter(key, j));
            if (form == FORM_GRAY8 || form == FORM_ADAM7) {
                png_write_row(png, pixels + (size_t)j * size);
            } else {
                convert_row(pixels + (size_t)j * size, size, form, row);
                png_write_row(png, row);
            }
        }
}

/* Sets the level in the zlib header of the first IDAT to the default (78 9c), and updates the CRC of that chunk. */
static void
set_zlib_level(uint8_t *png, size_t size)
{
    size_t at = 8;

    while (at + 12 <= size) {
        uint32_t length = png_get_uint_32(png + at);

        if (memcmp(png + at + 4, "IDAT", 4) == 0) {
            png[at + 8] = 0x78;
            png[at + 9] = 0x9c;
            png_save_uint_32(png + at + 8 + length, (uint32_t)crc32(0, png + at + 4, length + 4));
            return;
        }
        at += 12 + (size_t)length;
    }
}

/* A function of its own, so that longjmp() cannot clobber local variables. */
static bool
encode(png_structp png, png_infop info, const uint8_t *pixels, unsigned size, enum form form, uint64_t key,
       uint8_t *row)
{
    if (setjmp(png_jmpbuf(png)))
        return false;
    write_header(png, info, size, form);
    write_rows(png, pixels, size, form, key, row);
    png_write_end(png, NULL);
    return true;
}

enum chex_status
synth_png(const uint8_t *pixels, unsigned size, enum form form, uint64_t key, struct buffer *out,
          struct chex_error *err)
{
    struct memory_png m;
    uint8_t *row = malloc((size_t)size * 4);

    out->size = 0;
    if (memory_png_begin(&m, out, err) == CHEX_OK && !row)
        m.status = error_memory(err);
    if (m.status == CHEX_OK && encode(m.png, m.info, pixels, size, form, key, row) && form != FORM_RGBA)
        set_zlib_level(out->data, out->size);
    free(row);
    return memory_png_end(&m);
}
