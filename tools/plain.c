/*
 * plain.c - see plain.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "plain.h"

#include <string.h>

bool
plain_is_control(const char *p, unsigned *inside)
{
    unsigned char c = (unsigned char)p[0], next = c ? (unsigned char)p[1] : 0;
    bool within = *inside > 0 && (c & 0xc0) == 0x80;

    *inside = within ? *inside - 1 : c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc3 ? 1 : 0;
    return c < 0x20 || c == 0x7f || (c == 0xc2 && next >= 0x80 && next < 0xa0) || (!within && c >= 0x80 && c < 0xa0);
}

/* As far as it fits into size bytes; terminated.  How many bytes that are. */
static size_t
escape(const char *text, char *out, size_t size)
{
    size_t used = 0;
    unsigned inside = 0;

    for (; *text && used + 5 <= size; text++) {
        if (plain_is_control(text, &inside))
            used += (size_t)sprintf(out + used, "\\x%02x", (unsigned char)*text);
        else
            out[used++] = *text;
    }
    out[used] = '\0';
    return used;
}

char *
plain_text(const char *text, char out[PLAIN_TEXT])
{
    escape(text, out, PLAIN_TEXT);
    return out;
}

void
plain_vline_in(FILE *out, const char *color, const char *off, const char *format, va_list args)
{
    char text[12288], line[16384]; /* more than any message; the rest of a longer one is left out */
    size_t used = 0, room = sizeof(line) - 1;

    vsnprintf(text, sizeof(text), format, args);
    if (*color) {
        room -= strlen(off);
        used = (size_t)snprintf(line, room, "%s", color);
    }
    used += escape(text, line + used, room - used);
    if (*color)
        used += (size_t)sprintf(line + used, "%s", off);
    line[used++] = '\n';
    /* At once: stderr has no buffer, and other processes of a job write to the same terminal. */
    fwrite(line, 1, used, out);
}

void
plain_vline(FILE *out, const char *format, va_list args)
{
    plain_vline_in(out, "", "", format, args);
}

void
plain_line(FILE *out, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    plain_vline(out, format, args);
    va_end(args);
}
