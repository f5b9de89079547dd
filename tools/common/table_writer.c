/*
 * table_writer.c - see table_writer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/table_writer.h"

#include "base/json.h"
#include "base/number_format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INDENT   9  /* columns before rows of text with a title */
#define FIT_MOST 60 /* a longer text does not widen its column */
#define NUMBER   64 /* bytes of a formatted number */

static FILE *
file_of(const struct table_writer *t)
{
    return t->file ? t->file : stdout;
}

/* ---- text ------------------------------------------------------------------------------------------------------ */

static const char *
shown_text(const struct table_column *c, const struct cell *cell, char out[NUMBER])
{
    switch (cell->kind) {
    case CELL_TEXT:
    case CELL_JSON:
        return cell->text;
    case CELL_COUNT:
        return format_count(cell->count, out);
    case CELL_NUMBER:
        if (isnan(cell->number) && c->none)
            return c->none;
        snprintf(out, NUMBER, "%.*g", c->digits, cell->number);
        return out;
    default:
        return c->none ? c->none : "";
    }
}

/* Prints a line of cells or headings without trailing spaces. */
static void
put_line(const struct table_writer *t, const struct cell *cell)
{
    const struct table_column *c;
    bool first = true;
    char out[NUMBER];
    int pad = 0;

    for (c = t->column; c->name || c->heading; c++) {
        int width = c->width == TABLE_FIT ? -t->fit : c->width;
        const char *gap = first ? "" : c->gap ? c->gap : " ", *text;

        if (!c->heading)
            continue;
        first = false;
        text = cell ? shown_text(c, &cell[c - t->column], out) : c->heading;
        if (!text[0] && gap[0] == ' ') {
            pad += (int)strlen(gap) + abs(width);
            continue;
        }
        fprintf(file_of(t), "%*s%s%*s", pad, "", gap, width > 0 ? width : 0, text);
        pad = -width > (int)strlen(text) ? -width - (int)strlen(text) : 0;
    }
}

static void
put_headings(const struct table_writer *t)
{
    const char *bold = t->color ? t->color->bold : "", *off = t->color ? t->color->off : "";

    if (t->title)
        fprintf(file_of(t), "%s%s%s%*s", bold, t->title, off, INDENT - (int)strlen(t->title), "");
    else
        fputs(bold, file_of(t));
    put_line(t, NULL);
    fprintf(file_of(t), "%s\n", t->title ? "" : off);
}

/* ---- CSV ------------------------------------------------------------------------------------------------------- */

/* Prints a field, with quotes if RFC 4180 requires them. */
static void
put_field(FILE *file, const char *text)
{
    if (text[strcspn(text, "\",\r\n")] == '\0') {
        fputs(text, file);
        return;
    }
    putc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', file);
        putc(*text, file);
    }
    putc('"', file);
}

static const char *
csv_text(const struct cell *cell, char out[NUMBER])
{
    out[0] = '\0';
    if (cell->kind == CELL_COUNT)
        snprintf(out, NUMBER, "%llu", (unsigned long long)cell->count);
    else if (cell->kind == CELL_NUMBER && isfinite(cell->number))
        snprintf(out, NUMBER, "%.9g", cell->number);
    return cell->kind == CELL_TEXT || cell->kind == CELL_JSON ? cell->text : out;
}

/* Prints a row, or the column names without cells. */
static void
put_csv(const struct table_writer *t, const struct cell *cell)
{
    const struct table_column *c;
    const char *comma = "";
    char out[NUMBER];

    for (c = t->column; c->name || c->heading; c++) {
        if (!c->name)
            continue;
        fputs(comma, file_of(t));
        put_field(file_of(t), cell ? csv_text(&cell[c - t->column], out) : c->name);
        comma = ",";
    }
    fputs("\r\n", file_of(t));
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

/* Returns a value that the caller owns; NULL: out of memory. */
static json_t *
json_value(const struct cell *cell)
{
    switch (cell->kind) {
    case CELL_TEXT:
        return json_string(cell->text);
    case CELL_COUNT:
        return count_json(cell->count);
    case CELL_NUMBER:
        return real_json(cell->number);
    case CELL_JSON:
        return json_incref(cell->json);
    default:
        return json_null();
    }
}

static void
push_json(struct table_writer *t, const struct cell *cell)
{
    json_t *object = json_object();
    const struct table_column *c;

    for (c = t->column; c->name || c->heading; c++)
        if (c->name && cell[c - t->column].kind != CELL_NONE)
            t->failed |= json_object_set_new(object, c->name, json_value(&cell[c - t->column])) != 0;
    t->failed |= json_array_append_new(t->list, object) != 0;
}

static void
put_json(struct table_writer *t, const struct cell *cell)
{
    bool lines = t->format == TABLE_JSONL;
    size_t flags = JSON_ENCODE_ANY | JSON_COMPACT | (lines ? JSON_REAL_PRECISION(17) : 0);
    const struct table_column *c;
    const char *before = "{";

    if (!lines)
        fprintf(file_of(t), "%s\n", t->rows > 0 ? "," : "");
    for (c = t->column; c->name || c->heading; c++) {
        json_t *value;

        if (!c->name)
            continue;
        value = json_value(&cell[c - t->column]);
        fprintf(file_of(t), "%s\"%s\":%s", before, c->name, lines ? " " : "");
        if (!value || json_dumpf(value, file_of(t), flags) != 0) {
            t->failed = true;
            fputs("null", file_of(t));
        }
        json_decref(value);
        before = lines ? ", " : ",";
    }
    fputs(lines ? "}\n" : "}", file_of(t));
}

/* ---- all ------------------------------------------------------------------------------------------------------- */

void
table_fit(struct table_writer *t, const char *text)
{
    size_t length = strlen(text);

    if (length < FIT_MOST && (int)length > t->fit)
        t->fit = (int)length;
}

void
table_begin(struct table_writer *t)
{
    if (t->format == TABLE_TEXT)
        put_headings(t);
    else if (t->format == TABLE_CSV)
        put_csv(t, NULL);
}

void
table_row(struct table_writer *t, const struct cell *cell)
{
    const struct table_column *c;

    if (t->format == TABLE_TEXT) {
        fprintf(file_of(t), "%*s", t->title ? INDENT : 0, "");
        put_line(t, cell);
        putc('\n', file_of(t));
    } else if (t->format == TABLE_CSV)
        put_csv(t, cell);
    else if (t->list)
        push_json(t, cell);
    else
        put_json(t, cell);
    t->rows++;
    for (c = t->column; c->name || c->heading; c++)
        if (cell[c - t->column].kind == CELL_JSON)
            json_decref(cell[c - t->column].json);
}
