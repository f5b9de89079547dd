/*
 * plain.c - see plain.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "plain.h"

#include <stdbool.h>

/* A C0 or C1 control character begins here; the latter are two bytes of UTF-8, or one that is no UTF-8 at all. */
static bool
is_control(const unsigned char *p, bool inside)
{
    return *p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) ||
           (!inside && *p >= 0x80 && *p < 0xa0);
}

void
plain_vline(FILE *out, const char *format, va_list args)
{
    char text[16384];    /* more than any message; the rest of a longer one is left out */
    unsigned inside = 0; /* so many bytes of a character are still to come */

    vsnprintf(text, sizeof(text), format, args);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        bool within = inside > 0 && (*p & 0xc0) == 0x80;

        inside = within ? inside - 1 : *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : *p >= 0xc3 ? 1 : 0;
        if (is_control(p, within))
            fprintf(out, "\\x%02x", *p);
        else
            putc(*p, out);
    }
    putc('\n', out);
}

void
plain_line(FILE *out, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    plain_vline(out, format, args);
    va_end(args);
}
