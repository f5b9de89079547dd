/*
 * table_writer.h - writes a table to standard output or a file as text, CSV (RFC 4180), JSON lines or JSON
 *
 *     static const struct table_column columns[] = {{"name", "name", TABLE_FIT}, {"count", "values", 11}, {0}};
 *     struct table_writer t = {.format = TABLE_CSV, .column = columns};
 *
 *     table_begin(&t);                                                        "name,count\r\n"
 *     table_row(&t, (struct cell[]){cell_text("bias"), cell_count(64)});      "bias,64\r\n"
 *
 * A row has a cell for each column.  A cell without a value is empty in CSV and null in JSON lines; a JSON list omits
 * it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_TABLE_WRITER_H
#define CHEX_TOOLS_TABLE_WRITER_H

#include "chex.h"
#include "common/color.h"

#include <jansson.h>
#include <stdio.h>

enum table_format { TABLE_TEXT, TABLE_CSV, TABLE_JSON, TABLE_JSONL }; /* the values of --format */

#define TABLE_FIT (-1) /* width of the column: the longest text passed to table_fit() */

struct table_column {
    const char *name;    /* in CSV and JSON; NULL: only text has the column */
    const char *heading; /* in text; NULL: text lacks the column */
    int width;           /* in text; below 0: flush left */
    int digits;          /* significant digits of numbers in text (%g) */
    const char *none;    /* text for a NaN; NULL: "nan" */
    const char *gap;     /* separator before the column in text; NULL: a space */
};

struct table_writer {
    enum table_format format;
    const struct table_column *column; /* an entry without name and heading ends it */
    FILE *file;                        /* NULL: standard output */
    json_t *list;                      /* TABLE_JSON appends rows to it; NULL: prints them with commas */
    const struct color *color;         /* colours of the text headings; NULL: none */
    const char *title;                 /* printed before the headings, rows are indented; or NULL */
    int fit;                           /* width of TABLE_FIT; the caller may set a minimum */
    uint64_t rows;
    bool failed; /* out of memory */
};

struct cell {
    enum { CELL_NONE, CELL_TEXT, CELL_COUNT, CELL_NUMBER, CELL_JSON } kind;
    const char *text;
    uint64_t count;
    double number;
    json_t *json;
};

/* A row may omit its last cells; they are then CELL_NONE. */
#define cell_none()    ((struct cell){.kind = CELL_NONE})
#define cell_text(t)   ((struct cell){.kind = CELL_TEXT, .text = (t)})
#define cell_count(n)  ((struct cell){.kind = CELL_COUNT, .count = (n)})
#define cell_number(x) ((struct cell){.kind = CELL_NUMBER, .number = (x)}) /* a number that is not finite is no value */
/* Makes a cell of a JSON value, which table_row() then owns, and its text. */
#define cell_json(j, t) ((struct cell){.kind = CELL_JSON, .json = (j), .text = (t)})

/* Widen the column TABLE_FIT for this text, unless the text is very long.  Call it before table_begin(). */
void table_fit(struct table_writer *t, const char *text);
void table_begin(struct table_writer *t);
void table_row(struct table_writer *t, const struct cell *cell);

#endif
