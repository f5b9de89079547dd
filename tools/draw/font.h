/*
 * font.h - two bitmap fonts for text in pictures
 *
 * Each font covers printable ASCII with 1 bit per pixel.  Widths are proportional, but all digits have the same width.
 * The glyphs are part of the source, so a picture has the same bytes on every machine: a font file would be a further
 * input, and the rendering of FreeType differs between versions.
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
    /* [height]: '#' is ink; only the first `width` characters of each row belong to the glyph */
    const char *row[FONT_MAX_HEIGHT];
    unsigned width, height;
};

/* The distance from the top of a line to its baseline; the space between two glyphs. */
unsigned font_baseline(const struct font *font);
unsigned font_spacing(const struct font *font);

/* Sets *out to the glyph of a character; outside printable ASCII, to the glyph of '?'. */
void font_glyph(const struct font *font, char c, struct glyph *out);

/* Returns the width of a text in pixels. */
unsigned font_width(const struct font *font, const char *text, size_t length);

#endif
