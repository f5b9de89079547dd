/*
 * font.h - provides two bitmap fonts for text in pictures
 *
 * One bit a pixel, printable ASCII, proportional; the ten digits are of one width.  Our own and in the source, so that
 * a picture has the same bytes on every machine: a font file would be another input, and FreeType's rendering differs
 * between its versions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_FONT_H
#define CHEX_TOOLS_FONT_H

#include <stddef.h>

#define FONT_MAX_HEIGHT 12

struct font; /* constant */

extern const struct font font_large, font_small;

struct glyph {
    const char *row[FONT_MAX_HEIGHT]; /* [height]: '#' is ink; only the first `width` characters belong to it */
    unsigned width, height;
};

/* From the top of a line to that on which the letters stand; between two letters. */
unsigned font_baseline(const struct font *font);
unsigned font_spacing(const struct font *font);

/* The glyph of a character; that of '?' for one outside printable ASCII. */
void font_glyph(const struct font *font, char c, struct glyph *out);

/* Returns the width of a text in pixels. */
unsigned font_width(const struct font *font, const char *text, size_t length);

#endif
