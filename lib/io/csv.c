/*
 * csv.c - see csv.h
 *
 * libcsv has no line numbers, and its callbacks cannot stop it.  So it gets one line at a time.  A row is complete when
 * the line that ends it was parsed.  Then it is passed to the caller, outside of libcsv.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/csv.h"

#include "base/ascii.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_LIBCSV
#include <csv.h>
#else
#include "io/csv_included.h"
#endif

struct row_reader {
    struct csv_parser parser;
    bool open;        /* in a row that may continue on the next line */
    bool complete;    /* libcsv has found the end of the row */
    size_t row_bytes; /* bytes of text in the row */
    size_t used;      /* bytes of text[] */
    struct table_row row;
    /* The fields: together not longer than the row, plus a terminator each. */
    char text[TABLE_MAX_LINE + TABLE_MAX_FIELDS];
};

enum chex_status
table_fail(const struct table_row *row, struct chex_error *err, const char *format, ...)
{
    char text[CHEX_ERROR_TEXT];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return error_set(err, CHEX_ERR_USAGE, "%s:%lu: %s", row->path, row->line, text);
}

static void
on_field(void *data, size_t size, void *context)
{
    struct row_reader *r = context;
    struct table_row *row = &r->row;
    const char *field = data;

    if (row->count < TABLE_MAX_FIELDS && size + 1 <= sizeof(r->text) - r->used) {
        ascii_trim(&field, &size);
        if (size > 0)
            memcpy(r->text + r->used, field, size);
        r->text[r->used + size] = '\0';
        row->field[row->count] = r->text + r->used;
        row->length[row->count] = size;
        r->used += size + 1;
    }
    row->count++; /* also beyond the limit: read_line() checks it */
}

static void
on_row(int terminator, void *context)
{
    struct row_reader *r = context;

    (void)terminator;
    r->complete = true;
}

static bool
is_blank_line(const struct text_line *line)
{
    for (size_t i = 0; i < line->size; i++)
        if (!ascii_is_blank(line->data[i]))
            return false;
    return true;
}

static enum chex_status
feed(struct row_reader *r, const char *data, size_t size, struct chex_error *err)
{
    if (csv_parse(&r->parser, data, size, on_field, on_row, r) == size)
        return CHEX_OK;
    if (csv_error(&r->parser) == CSV_EPARSE)
        return table_fail(&r->row, err, "a quote in the wrong place");
    return error_memory(err);
}

/* Add a line to the row, or begin a row with it. */
static enum chex_status
read_line(struct row_reader *r, const struct text_line *line, struct chex_error *err)
{
    enum chex_status status;

    if (!r->open) {
        if (is_blank_line(line))
            return CHEX_OK;
        r->open = true;
        r->complete = false;
        r->used = 0;
        r->row_bytes = 0;
        r->row.count = 0;
        r->row.line = line->number;
    }
    r->row_bytes += line->full;
    /* An unclosed quote would swallow the rest of the file. */
    if (r->row_bytes > TABLE_MAX_LINE + 2)
        return table_fail(&r->row, err, "the row is longer than 65536 bytes (a quote that is not closed?)");
    status = feed(r, line->data, line->full, err);
    if (status == CHEX_OK && line->full == line->size)
        status = feed(r, "\n", 1, err); /* the last line without an ending */
    if (status != CHEX_OK)
        return status;
    if (r->row.count > TABLE_MAX_FIELDS)
        return table_fail(&r->row, err, "more than %d fields", TABLE_MAX_FIELDS);
    return CHEX_OK;
}

static enum chex_status
read_rows(struct row_reader *r, struct line_reader *text, table_row_fn *fn, void *context, struct chex_error *err)
{
    struct text_line line;
    enum chex_status status;

    while ((status = text_next(text, &line, err)) == CHEX_OK && line.data) {
        status = read_line(r, &line, err);
        if (status == CHEX_OK && r->open && r->complete) {
            r->open = false;
            status = fn(&r->row, context, err);
        }
        if (status != CHEX_OK)
            return status;
    }
    if (status == CHEX_OK && r->open)
        return table_fail(&r->row, err, "a quote that is not closed");
    return status;
}

enum chex_status
table_read(const char *path, table_row_fn *fn, void *context, char *sha256, struct chex_error *err)
{
    struct row_reader *r = calloc(1, sizeof(*r));
    struct line_reader *text = NULL;
    enum chex_status status;

    if (!r)
        return error_memory(err);
    csv_init(&r->parser, CSV_STRICT); /* always 0 in version 3.0 */
    r->row.path = path;
    status = text_open(path, sha256 != NULL, &text, err);
    if (status == CHEX_OK)
        status = read_rows(r, text, fn, context, err);
    if (status == CHEX_OK && sha256)
        text_sha256(text, sha256);
    text_close(text);
    csv_free(&r->parser);
    free(r);
    return status;
}

bool
table_same_name(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (ascii_is_separator(*a))
            a++;
        while (ascii_is_separator(*b))
            b++;
        if (ascii_lower(*a) != ascii_lower(*b))
            return false;
        if (*a == '\0')
            return true;
    }
}

int
table_column(const struct table_row *header, const char *const *names)
{
    for (; *names; names++)
        for (size_t i = 0; i < header->count; i++)
            if (table_same_name(header->field[i], *names))
                return (int)i;
    return -1;
}

enum chex_status
table_column_once(const struct table_row *header, const char *const *names, struct chex_error *err)
{
    int column = table_column(header, names);
    char shown[64];

    for (size_t i = (size_t)column + 1; column >= 0 && i < header->count; i++)
        if (table_same_name(header->field[i], header->field[column]))
            return table_fail(header, err, "column \"%s\" occurs twice: fields %d and %zu",
                              ascii_escape(header->field[i], header->length[i], shown, sizeof(shown)), column + 1,
                              i + 1);
    return CHEX_OK;
}

enum chex_status
table_check_separator(const struct table_row *header, struct chex_error *err)
{
    const char *found = header->count > 0 ? strpbrk(header->field[0], ";\t") : NULL;

    if (!found)
        return CHEX_OK;
    return table_fail(header, err, "the columns are separated by %s: save the file with commas",
                      *found == ';' ? "\";\"" : "tabs");
}

enum chex_status
table_append_field(struct buffer *b, const char *field, struct chex_error *err)
{
    enum chex_status status;

    if (field[strcspn(field, "\",\r\n")] == '\0')
        return buffer_append(b, field, strlen(field), err);
    status = buffer_append(b, "\"", 1, err);
    for (; status == CHEX_OK && *field; field++)
        status = *field == '"' ? buffer_append(b, "\"\"", 2, err) : buffer_append(b, field, 1, err);
    return status == CHEX_OK ? buffer_append(b, "\"", 1, err) : status;
}
