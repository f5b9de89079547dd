/*
 * canvas.c - see canvas.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "draw/canvas.h"

#include <string.h>

enum chex_status
canvas_start(struct canvas *c, uint32_t width, uint32_t height, picture_color color, struct chex_error *err)
{
    size_t size;
    enum chex_status status;

    if (!size_mul(width, height, &size) || !size_mul(size, 3, &size))
        return error_memory(err);
    status = buffer_reserve(&c->pixels, size, err);
    if (status != CHEX_OK)
        return status;
    c->width = width;
    c->height = height;
    c->rgb = c->pixels.data;
    canvas_fill(c, 0, 0, width, height, color);
    return CHEX_OK;
}

void
canvas_release(struct canvas *c)
{
    buffer_release(&c->pixels);
}

/* Returns the pixel at x, y, or NULL outside. */
static uint8_t *
pixel(struct canvas *c, int64_t x, int64_t y)
{
    if (x < 0 || y < 0 || x >= c->width || y >= c->height)
        return NULL;
    return c->rgb + ((size_t)y * c->width + (size_t)x) * 3;
}

static void
put(struct canvas *c, int64_t x, int64_t y, picture_color color)
{
    uint8_t *p = pixel(c, x, y);

    if (p) {
        p[0] = (uint8_t)(color >> 16);
        p[1] = (uint8_t)(color >> 8);
        p[2] = (uint8_t)color;
    }
}

void
canvas_fill(struct canvas *c, int64_t x, int64_t y, uint32_t width, uint32_t height, picture_color color)
{
    uint32_t i, j;

    for (j = 0; j < height; j++)
        for (i = 0; i < width; i++)
            put(c, x + i, y + j, color);
}

void
canvas_gray(struct canvas *c, int64_t x, int64_t y, uint32_t width, uint32_t height, const uint8_t *gray)
{
    uint32_t i, j;

    for (j = 0; j < height; j++)
        for (i = 0; i < width; i++)
            put(c, x + i, y + j, gray[(size_t)j * width + i] * 0x010101u);
}

void
canvas_text(struct canvas *c, int64_t x, int64_t y, const struct font *font, bool bold, picture_color color,
            const char *text, size_t length)
{
    struct glyph glyph;
    unsigned i, j;

    for (; length > 0; text++, length--, x += glyph.width + font_spacing(font)) {
        font_glyph(font, *text, &glyph);
        for (j = 0; j < glyph.height; j++) {
            for (i = 0; i < glyph.width; i++) {
                if (glyph.row[j][i] != '#')
                    continue;
                put(c, x + i, y + j, color);
                if (bold)
                    put(c, x + i + 1, y + j, color);
            }
        }
    }
}
