/*
 * csv_included.c - see csv_included.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/csv_included.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 128

void
included_init(struct included_csv *p)
{
    memset(p, 0, sizeof(*p));
}

void
included_free(struct included_csv *p)
{
    free(p->text);
    included_init(p);
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool
is_end(char c)
{
    return c == '\r' || c == '\n';
}

static bool
add_char(struct included_csv *p, char c)
{
    if (p->size == p->room) {
        size_t room = p->room > 0 ? 2 * p->room : FIRST_ROOM;
        char *text = room > p->room ? realloc(p->text, room) : NULL;

        if (!text)
            return false;
        p->text = text;
        p->room = room;
    }
    p->text[p->size++] = c;
    return true;
}

struct receiver {
    included_field_fn *on_field;
    included_row_fn *on_row;
    void *context;
};

/* `c`, a comma or the end of a row, ends the field. */
static bool
end_field(struct included_csv *p, char c, const struct receiver *to)
{
    static char none[1];

    to->on_field(p->text ? p->text : none, p->size - p->blanks, to->context);
    p->size = p->blanks = 0;
    p->state = c == ',' ? BEFORE_FIELD : BEFORE_ROW;
    if (p->state == BEFORE_ROW)
        to->on_row((unsigned char)c, to->context);
    return true;
}

static bool
misplaced_quote(struct included_csv *p)
{
    p->bad = true;
    return false;
}

static bool
begin_field(struct included_csv *p, char c, const struct receiver *to)
{
    if (is_blank(c) || (is_end(c) && p->state == BEFORE_ROW))
        return true;
    if (c == ',' || is_end(c))
        return end_field(p, c, to);
    p->state = c == '"' ? IN_QUOTES : IN_PLAIN;
    return c == '"' || add_char(p, c);
}

static bool
in_plain(struct included_csv *p, char c, const struct receiver *to)
{
    if (c == '"')
        return misplaced_quote(p);
    if (c == ',' || is_end(c))
        return end_field(p, c, to);
    p->blanks = is_blank(c) ? p->blanks + 1 : 0;
    return add_char(p, c);
}

/* The quote before `c` ends the field, or is the first of two that stand for one. */
static bool
after_quote(struct included_csv *p, char c, const struct receiver *to)
{
    if (c == ',' || is_end(c)) {
        p->blanks = 0;
        return end_field(p, c, to);
    }
    if (is_blank(c)) {
        p->blanks++;
        return true;
    }
    if (c != '"' || p->blanks > 0)
        return misplaced_quote(p);
    p->state = IN_QUOTES;
    return add_char(p, c);
}

static bool
parse_char(struct included_csv *p, char c, const struct receiver *to)
{
    switch (p->state) {
    case IN_PLAIN:
        return in_plain(p, c, to);
    case IN_QUOTES:
        if (c != '"')
            return add_char(p, c);
        p->state = AFTER_QUOTE;
        return true;
    case AFTER_QUOTE:
        return after_quote(p, c, to);
    default:
        return begin_field(p, c, to);
    }
}

size_t
included_parse(struct included_csv *p, const void *data, size_t size, included_field_fn *on_field,
               included_row_fn *on_row, void *context)
{
    const struct receiver to = {on_field, on_row, context};
    const char *from = data;

    for (size_t i = 0; i < size; i++)
        if (!parse_char(p, from[i], &to))
            return i;
    return size;
}
