/*
 * printable.c - see printable.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/printable.h"

#include <stdarg.h>
#include <string.h>

/* Decodes the UTF-8 character at p (RFC 3629).  Returns its number of bytes, or 0 if it is not UTF-8. */
static unsigned
decode(const unsigned char *p, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800,
                                     0x10000}; /* minimum by number of bytes; smaller codes have a shorter form */
    unsigned bytes = p[0] < 0x80 ? 1 : p[0] < 0xc0 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf8 ? 4 : 0, i;

    *code = bytes < 2 ? p[0] : p[0] & (0x7fu >> bytes);
    for (i = 1; i < bytes; i++) {
        if ((p[i] & 0xc0) != 0x80) /* also catches the terminator */
            return 0;
        *code = *code << 6 | (p[i] & 0x3f);
    }
    if (bytes > 1 && (*code < least[bytes] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000)))
        return 0;
    return bytes;
}

/*
 * Returns whether a character is invisible in Unicode 15: category Cf except the visible signs of Arabic, Kaithi and
 * Egyptian texts, all other characters with Default_Ignorable_Code_Point, and line and paragraph separators.
 */
static bool
is_unseen(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},     {0x61c, 0x61c},
        {0x115f, 0x1160}, {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},
        {0x2060, 0x206f}, {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
        {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };
    size_t i;

    for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (code <= ranges[i].last)
            return code >= ranges[i].first;
    return false;
}

struct printable_character
printable_look(const char *p)
{
    struct printable_character c = {.is_utf8 = true};

    c.bytes = decode((const unsigned char *)p, &c.code);
    if (c.bytes == 0)
        c = (struct printable_character){.bytes = 1, .code = (unsigned char)p[0]};
    /* A terminal without UTF-8 takes a byte that is not UTF-8 for a control character or a letter. */
    c.hidden = c.is_utf8 ? is_unseen(c.code) : c.code < 0xa0;
    return c;
}

/* Writes as much as fits into size bytes, with a terminator.  Returns the number of bytes. */
static size_t
escape(const char *text, char *out, size_t size)
{
    size_t used = 0;

    while (*text && used + 11 <= size) { /* the longest escape and the terminator */
        struct printable_character c = printable_look(text);

        if (!c.hidden) {
            memcpy(out + used, text, c.bytes);
            used += c.bytes;
        } else {
            bool byte = !c.is_utf8 || c.code < 0x80;
            char kind = byte ? 'x' : c.code < 0x10000 ? 'u' : 'U';

            used += (size_t)sprintf(out + used, "\\%c%0*x", kind, byte ? 2 : kind == 'u' ? 4 : 8, (unsigned)c.code);
        }
        text += c.bytes;
    }
    out[used] = '\0';
    return used;
}

char *
printable_text(const char *text, char out[PRINTABLE_TEXT])
{
    escape(text, out, PRINTABLE_TEXT);
    return out;
}

void
printable_put(FILE *out, const char *color, const char *off, const char *text)
{
    char line[PRINTABLE_MESSAGE + 4096];
    size_t room = sizeof(line) - 1 - strlen(off);
    size_t used = (size_t)snprintf(line, room, "%s", color);

    used += escape(text, line + used, room - used);
    used += (size_t)sprintf(line + used, "%s", off);
    line[used++] = '\n';
    /* One call: stderr has no buffer, and other processes of a job write to the same terminal. */
    fwrite(line, 1, used, out);
}

void
printable_line(FILE *out, const char *format, ...)
{
    char text[PRINTABLE_MESSAGE];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    printable_put(out, "", "", text);
}
