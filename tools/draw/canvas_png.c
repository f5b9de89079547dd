/*
 * canvas_png.c - PNG by libpng; see canvas.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "draw/canvas.h"

#include "draw/png_memory.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

static bool
is_ascii(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text > 0x7e)
            return false;
    return true;
}

/* libpng copies the texts. */
static void
add_notes(png_structp png, png_infop info, const struct picture_spec *spec)
{
    size_t i;

    for (i = 0; i < spec->note_count; i++) {
        png_text note = {.key = (char *)(uintptr_t)spec->notes[i].key, .text = (char *)(uintptr_t)spec->notes[i].text};

        note.compression = is_ascii(note.text) ? PNG_TEXT_COMPRESSION_NONE : PNG_ITXT_COMPRESSION_NONE;
        png_set_text(png, info, &note, 1);
    }
}

/* A function of its own, so that longjmp() cannot clobber local variables. */
static void
encode(struct memory_png *m, const struct picture_spec *spec)
{
    uint32_t y;

    if (setjmp(png_jmpbuf(m->png)))
        return;
    png_set_IHDR(m->png, m->info, spec->width, spec->height, 8,
                 spec->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_user_limits(m->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    add_notes(m->png, m->info, spec);
    png_write_info(m->png, m->info);
    for (y = 0; y < spec->height; y++) {
        const uint8_t *row = picture_row(spec, y, m->err);

        if (!row) {
            m->status = m->err->status;
            return;
        }
        png_write_row(m->png, row);
    }
    png_write_end(m->png, NULL);
}

enum chex_status
picture_png(const struct picture_spec *spec, struct buffer *out, struct chex_error *err)
{
    struct memory_png m;

    if (memory_png_begin(&m, out, err) == CHEX_OK)
        encode(&m, spec);
    return memory_png_end(&m);
}
