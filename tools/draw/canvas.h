/*
 * canvas.h - draws on a canvas and encodes pictures as PNG or JPEG
 *
 * A canvas is RGB, 8 bits, row-major without gaps.  Everything is clipped to it.  A file is encoded row by row, so that
 * only a part of a large picture has to be in memory.
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

/* Make it this large (checked) and of one colour; reused.  Zero-initialise; release with canvas_release(). */
enum chex_status canvas_start(struct canvas *c, uint32_t width, uint32_t height, picture_color color,
                              struct chex_error *err);
void canvas_release(struct canvas *c);

void canvas_fill(struct canvas *c, int64_t x, int64_t y, uint32_t width, uint32_t height, picture_color color);
/* width * height bytes of a gray image. */
void canvas_gray(struct canvas *c, int64_t x, int64_t y, uint32_t width, uint32_t height, const uint8_t *gray);
/* y is the top of the line.  bold: each stem twice as wide. */
void canvas_text(struct canvas *c, int64_t x, int64_t y, const struct font *font, bool bold, picture_color color,
                 const char *text, size_t length);

/* ---- files ----------------------------------------------------------------------------------------------------- */

/* What a file says about itself: PNG tEXt (iTXt where it is not ASCII), JPEG comment.  ASCII or UTF-8, no NUL. */
struct picture_note {
    const char *key; /* 1 to 79 characters */
    const char *text;
};

#define PICTURE_RESEARCH  "Research use only, not for diagnosis"
#define PICTURE_SYNTHETIC "SYNTHETIC images and labels, drawn by chex-synth"
#define PICTURE_JPEG_MAX  65500 /* pixels a side */

struct picture_spec {
    uint32_t width, height, channels; /* 1 gray, 3 RGB */
    const struct picture_note *notes;
    size_t note_count;
    const uint8_t *pixels; /* row after row; NULL: row() makes them */
    /* Row y, asked for in order; valid until the next call.  NULL, with the reason, ends the encoding. */
    const uint8_t *(*row)(void *context, uint32_t y, struct chex_error *err);
    void *context;
};

static inline const uint8_t *
picture_row(const struct picture_spec *spec, uint32_t y, struct chex_error *err)
{
    return spec->pixels ? spec->pixels + (size_t)y * spec->width * spec->channels : spec->row(spec->context, y, err);
}

/*
 * The file's bytes, appended to out.  They depend on nothing but the spec (and on the versions of the libraries).
 * JPEG has quality 90 without subsampling of colours, so that coloured writing stays sharp.
 */
enum chex_status picture_png(const struct picture_spec *spec, struct buffer *out, struct chex_error *err);
enum chex_status picture_jpeg(const struct picture_spec *spec, struct buffer *out, struct chex_error *err);

/* Whether the name ends so, in upper or lower case. */
bool picture_name_ends(const char *name, const char *end);

#endif
