/*
 * html.c - see html.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "draw/html.h"

#include "base/ascii.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void
append(struct html *h, const void *data, size_t size)
{
    if (!h->failed && buffer_append(&h->b, data, size, NULL) != CHEX_OK)
        h->failed = true;
}

void
html_raw(struct html *h, const char *markup)
{
    append(h, markup, strlen(markup));
}

void
html_format(struct html *h, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (!h->failed && buffer_vprintf(&h->b, NULL, format, args) != CHEX_OK)
        h->failed = true;
    va_end(args);
}

static void
put_escaped(struct html *h, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            html_raw(h, "&amp;");
            break;
        case '<':
            html_raw(h, "&lt;");
            break;
        case '>':
            html_raw(h, "&gt;");
            break;
        case '"':
            html_raw(h, "&quot;");
            break;
        case '\'':
            html_raw(h, "&#39;");
            break;
        default:
            append(h, text, 1);
        }
    }
}

void
html_bytes(struct html *h, struct chex_bytes text)
{
    char piece[4 * 256 + 1];
    size_t at, size;

    for (at = 0; at < text.size; at += size) {
        size = text.size - at < 256 ? text.size - at : 256;
        put_escaped(h, ascii_escape(text.data + at, size, piece, sizeof(piece)));
    }
}

void
html_text(struct html *h, const char *text)
{
    html_bytes(h, (struct chex_bytes){text, strlen(text)});
}

void
html_words(struct html *h, const char *text)
{
    while (*text) {
        size_t blank = strspn(text, " \n"), length = strcspn(text + blank, " \n");
        struct chex_bytes word = {text + blank, length};
        bool whole = length <= HTML_WORD && strcspn(word.data, "-,:/") < length;

        append(h, text, blank);
        html_raw(h, whole ? "<span class=\"w\">" : "");
        html_bytes(h, word);
        html_raw(h, whole ? "</span>" : "");
        text += blank + length;
    }
}

void
html_command(struct html *h, const char *command)
{
    html_raw(h, "<code>");
    html_words(h, command);
    html_raw(h, "</code>");
}

/* RFC 4648, section 4. */
static void
put_base64(struct html *h, const uint8_t *data, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t i;

    for (i = 0; i < size; i += 3) {
        uint32_t bits = (uint32_t)data[i] << 16;
        size_t left = size - i;
        char four[4];

        bits |= left > 1 ? (uint32_t)data[i + 1] << 8 : 0;
        bits |= left > 2 ? data[i + 2] : 0;
        four[0] = digits[bits >> 18];
        four[1] = digits[bits >> 12 & 63];
        four[2] = left > 1 ? digits[bits >> 6 & 63] : '=';
        four[3] = left > 2 ? digits[bits & 63] : '=';
        append(h, four, sizeof(four));
    }
}

void
html_picture(struct html *h, enum html_picture kind, const struct buffer *file, unsigned width, unsigned height,
             const char *alt)
{
    html_format(h, "<img width=\"%u\" height=\"%u\" alt=\"%s\" src=\"data:image/%s;base64,", width, height, alt,
                kind == HTML_JPEG ? "jpeg" : "png");
    put_base64(h, file->data, file->size);
    html_raw(h, "\">");
}

void
html_fold_begin(struct html *h, const char *id, const char *title, bool open)
{
    html_format(h, "<div class=\"fold\"><input type=\"checkbox\" id=\"%s\"%s><label for=\"%s\">", id,
                open ? " checked" : "", id);
    html_text(h, title);
    html_raw(h, "</label><div class=\"folded\">\n");
}

void
html_fold_end(struct html *h)
{
    html_raw(h, "</div></div>\n");
}

void
html_append(struct html *h, const struct html *other)
{
    h->failed = h->failed || other->failed;
    append(h, other->b.data, other->b.size);
}

void
html_release(struct html *h)
{
    buffer_release(&h->b);
}
