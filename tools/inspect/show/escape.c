/*
 * escape.c - encodes images as escape sequences for terminals; see show.h
 *
 * kitty   https://sw.kovidgoyal.net/kitty/graphics-protocol/   a PNG in base64, in pieces of 4096 characters
 * iTerm2  https://iterm2.com/documentation-images.html         a PNG in base64, as an inline file
 * sixel   DEC STD 070, chapter 9: bands of six rows, one pass for each of 64 grays
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/show/show.h"

#include <string.h>

#define PIECE 4096 /* of base64, kitty's limit */
#define GRAYS 64

/* ---- PNG in base64 ----------------------------------------------------------------------------------------------- */

static enum chex_status
base64(const struct buffer *in, struct buffer *out, struct chex_error *err)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; i < in->size && status == CHEX_OK; i += 3) {
        size_t left = in->size - i;
        uint32_t bits = (uint32_t)in->data[i] << 16 | (left > 1 ? (uint32_t)in->data[i + 1] << 8 : 0) |
                        (left > 2 ? in->data[i + 2] : 0u);
        char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63], left > 1 ? digits[bits >> 6 & 63] : '=',
                        left > 2 ? digits[bits & 63] : '='};

        status = buffer_append(out, four, 4, err);
    }
    return status;
}

enum chex_status
show_kitty(const struct buffer *png, uint32_t columns, uint32_t rows, struct buffer *out, struct chex_error *err)
{
    struct buffer text = {0};
    enum chex_status status = base64(png, &text, err);
    size_t at, size;

    for (at = 0; at < text.size && status == CHEX_OK; at += size) {
        size = text.size - at < PIECE ? text.size - at : PIECE;
        /* q=2: no answer, which would come in on stdin. */
        if (at == 0)
            status = buffer_printf(out, err, "\033_Ga=T,f=100,q=2,c=%u,r=%u,m=%d;", columns, rows,
                                   at + size < text.size);
        else
            status = buffer_printf(out, err, "\033_Gm=%d;", at + size < text.size);
        if (status == CHEX_OK)
            status = buffer_append(out, text.data + at, size, err);
        if (status == CHEX_OK)
            status = buffer_printf(out, err, "\033\\");
    }
    buffer_release(&text);
    return status == CHEX_OK ? buffer_printf(out, err, "\n") : status;
}

enum chex_status
show_iterm(const struct buffer *png, uint32_t columns, uint32_t rows, struct buffer *out, struct chex_error *err)
{
    enum chex_status status = buffer_printf(
        out, err, "\033]1337;File=inline=1;size=%zu;width=%u;height=%u;preserveAspectRatio=1:", png->size, columns,
        rows);

    if (status == CHEX_OK)
        status = base64(png, out, err);
    return status == CHEX_OK ? buffer_printf(out, err, "\a\n") : status;
}

/* ---- sixel ------------------------------------------------------------------------------------------------------- */

/* The six dots of column x in a band of rows that have this gray, as sixel's character. */
static char
sixel_of(const uint8_t *band, uint32_t width, uint32_t rows, uint32_t x, unsigned gray)
{
    unsigned bits = 0, y;

    for (y = 0; y < rows; y++)
        bits |= (unsigned)(band[(size_t)y * width + x] / (256 / GRAYS) == gray) << y;
    return (char)('?' + bits);
}

static enum chex_status
sixel_pass(const uint8_t *band, uint32_t width, uint32_t rows, unsigned gray, struct buffer *out,
           struct chex_error *err)
{
    enum chex_status status = buffer_printf(out, err, "#%u", gray);
    uint32_t x, run;

    for (x = 0; x < width && status == CHEX_OK; x += run) {
        char c = sixel_of(band, width, rows, x, gray);

        for (run = 1; x + run < width && sixel_of(band, width, rows, x + run, gray) == c; run++)
            ;
        if (c == '?' && x + run == width)
            break; /* nothing more of this gray */
        status = run > 3 ? buffer_printf(out, err, "!%u%c", run, c)
                         : buffer_printf(out, err, "%.*s", (int)run, (char[]){c, c, c, '\0'});
    }
    return status == CHEX_OK ? buffer_printf(out, err, "$") : status;
}

enum chex_status
show_sixel(const uint8_t *gray, uint32_t width, uint32_t height, struct buffer *out, struct chex_error *err)
{
    enum chex_status status = buffer_printf(out, err, "\033P0;1q\"1;1;%u;%u", width, height);
    uint32_t y, i;

    for (i = 0; i < GRAYS && status == CHEX_OK; i++)
        status = buffer_printf(out, err, "#%u;2;%u;%u;%u", i, i * 100 / (GRAYS - 1), i * 100 / (GRAYS - 1),
                               i * 100 / (GRAYS - 1));
    for (y = 0; y < height && status == CHEX_OK; y += 6) {
        const uint8_t *band = gray + (size_t)y * width;
        uint32_t rows = height - y < 6 ? height - y : 6;
        bool used[GRAYS] = {false};

        for (i = 0; i < rows * width; i++)
            used[band[i] / (256 / GRAYS)] = true;
        for (i = 0; i < GRAYS && status == CHEX_OK; i++)
            if (used[i])
                status = sixel_pass(band, width, rows, i, out, err);
        if (status == CHEX_OK)
            status = buffer_printf(out, err, "-");
    }
    return status == CHEX_OK ? buffer_printf(out, err, "\033\\\n") : status;
}

/* ---- characters -------------------------------------------------------------------------------------------------- */

/* Of the 256 colours: black, the ramp 232 to 255 of 8, 18 .. 238, white. */
static unsigned
color_256(uint8_t gray)
{
    if (gray < 4)
        return 16;
    if (gray > 246)
        return 231;
    return 232 + (unsigned)(gray < 8 ? 0 : (gray - 3) / 10 > 23 ? 23 : (gray - 3) / 10);
}

static enum chex_status
add_color(struct buffer *out, unsigned what, uint8_t gray, bool truecolor, struct chex_error *err)
{
    if (truecolor)
        return buffer_printf(out, err, "\033[%u;2;%u;%u;%um", what, gray, gray, gray);
    return buffer_printf(out, err, "\033[%u;5;%um", what, color_256(gray));
}

enum chex_status
show_blocks(const uint8_t *gray, uint32_t width, uint32_t height, bool truecolor, struct buffer *out,
            struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    uint32_t x, y;

    for (y = 0; y < height && status == CHEX_OK; y += 2) {
        int upper = -1, lower = -1;

        for (x = 0; x < width && status == CHEX_OK; x++) {
            const uint8_t *p = gray + (size_t)y * width + x;
            uint8_t below = y + 1 < height ? p[width] : 0;

            if (*p != upper)
                status = add_color(out, 38, *p, truecolor, err);
            if (status == CHEX_OK && below != lower)
                status = add_color(out, 48, below, truecolor, err);
            upper = *p;
            lower = below;
            if (status == CHEX_OK)
                status = buffer_printf(out, err, "\xe2\x96\x80"); /* U+2580, upper half block */
        }
        if (status == CHEX_OK)
            status = buffer_printf(out, err, "\033[0m\n");
    }
    return status;
}

enum chex_status
show_ascii(const uint8_t *gray, uint32_t width, uint32_t height, struct buffer *out, struct chex_error *err)
{
    static const char ramp[] = " .:-=+*#%@"; /* more ink is brighter: for light letters on black */
    enum chex_status status = CHEX_OK;
    uint32_t x, y;

    for (y = 0; y < height && status == CHEX_OK; y++) {
        for (x = 0; x < width && status == CHEX_OK; x++)
            status = buffer_printf(out, err, "%c", ramp[gray[(size_t)y * width + x] * 10u / 256]);
        if (status == CHEX_OK)
            status = buffer_printf(out, err, "\n");
    }
    return status;
}
