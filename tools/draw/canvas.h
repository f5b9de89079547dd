/*
 * canvas.h - draws on a canvas and encodes pictures as PNG or JPEG
 *
 * A canvas is RGB, 8 bits, row-major without gaps.  Drawing is clipped to it.  The encoders take one row at a time, so
 * only part of a large picture must be in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PICTURE_H
#define CHEX_TOOLS_PICTURE_H

#include "base/memory.h"
#include "draw/font.h"

/* ---- canvas (canvas.c) --------------------------------------------------------------------------------- */

struct canvas {
    uint32_t width, height;
    uint8_t *rgb;
    struct buffer pixels; /* owned */
};

/* 0xRRGGBB */
typedef uint32_t picture_color;

/*
 * Sets the size (checked) and fills the canvas with one colour; reuses its memory.  Zero-initialise; release with
 * canvas_release().
 */
enum chex_status canvas_start(struct canvas *c, uint32_t width, uint32_t height, picture_color color,
                              struct chex_error *err);
void canvas_release(struct canvas *c);

void canvas_fill(struct canvas *c, int64_t x, int64_t y, uint32_t width, uint32_t height, picture_color color);
/* Draws a gray image of width * height bytes. */
void canvas_gray(struct canvas *c, int64_t x, int64_t y, uint32_t width, uint32_t height, const uint8_t *gray);
/* y is the top of the line.  bold doubles the width of each stem. */
void canvas_text(struct canvas *c, int64_t x, int64_t y, const struct font *font, bool bold, picture_color color,
                 const char *text, size_t length);

/* ---- files ----------------------------------------------------------------------------------------------------- */

/* Metadata of a file: PNG tEXt (iTXt if it is not ASCII), JPEG comment.  ASCII or UTF-8, no NUL. */
struct picture_note {
    const char *key; /* 1 to 79 characters */
    const char *text;
};

#define PICTURE_RESEARCH  "Research use only, not for diagnosis"
#define PICTURE_SYNTHETIC "SYNTHETIC images and labels, drawn by chex-synth"
#define PICTURE_JPEG_MAX  65500 /* pixels per side */

struct picture_spec {
    uint32_t width, height, channels; /* 1 gray, 3 RGB */
    const struct picture_note *notes;
    size_t note_count;
    const uint8_t *pixels; /* all rows; NULL: row() returns them */
    /*
     * Returns row y; called in order; the row must stay valid until the next call.  NULL with an error ends the
     * encoding.
     */
    const uint8_t *(*row)(void *context, uint32_t y, struct chex_error *err);
    void *context;
};

static inline const uint8_t *
picture_row(const struct picture_spec *spec, uint32_t y, struct chex_error *err)
{
    return spec->pixels ? spec->pixels + (size_t)y * spec->width * spec->channels : spec->row(spec->context, y, err);
}

/*
 * Append the encoded file to out.  The bytes depend only on the spec and the versions of the libraries.  JPEG uses
 * quality 90 without chroma subsampling, so that coloured text stays sharp.
 */
enum chex_status picture_png(const struct picture_spec *spec, struct buffer *out, struct chex_error *err);
enum chex_status picture_jpeg(const struct picture_spec *spec, struct buffer *out, struct chex_error *err);

/* Returns true if the name has this ending, in upper or lower case. */
bool picture_name_ends(const char *name, const char *end);

#endif
