/*
 * wrap.c - see wrap.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/wrap.h"

#include "common/printable.h"

#include <stdarg.h>
#include <string.h>

#define COLUMNS 79 /* the last column is for the separator after a piece */
#define INDENT  9
#define GO_ON   " \\" /* ends a line of a command that continues */

/* Returns the columns of a UTF-8 text, one per character. */
static unsigned
columns(const char *text)
{
    unsigned count = 0;

    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

void
wrap_put(struct wrap *w, const char *separator, const char *format, ...)
{
    char text[PRINTABLE_TEXT + 128];
    size_t length = strlen(separator);
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (w->column > INDENT && w->column + length + columns(text) + (w->command ? strlen(GO_ON) : 0) > COLUMNS) {
        while (length > 0 && separator[length - 1] == ' ')
            length--;
        fprintf(w->out, "%.*s%s\n%*s%s", (int)length, separator, w->command ? GO_ON : "", INDENT, "", text);
        w->column = INDENT + columns(text);
    } else {
        fprintf(w->out, "%s%s", separator, text);
        w->column += (unsigned)length + columns(text);
    }
}

void
wrap_command(struct wrap *w, const char *words)
{
    wrap_put(w, "", "%s", words);
    w->command = true;
}

void
wrap_words(struct wrap *w, const char *text, char end)
{
    const char ends[] = {end, '\0'};
    size_t length;

    for (; *text; text += length + (text[length] == end)) {
        length = strcspn(text, ends);
        wrap_put(w, " ", "%.*s", (int)length, text);
    }
}

void
wrap_end(struct wrap *w)
{
    fputc('\n', w->out);
    w->column = 0;
    w->command = false;
}

void
wrap_line(FILE *out, const char *heading, const char *format, ...)
{
    char text[PRINTABLE_TEXT + 256], shown[PRINTABLE_TEXT];
    struct wrap w = {.out = out};
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    wrap_put(&w, "", "%-*s", INDENT - 1, heading);
    wrap_words(&w, printable_text(text, shown), ' ');
    wrap_end(&w);
}
