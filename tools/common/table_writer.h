/*
 * table_writer.h - one table on standard output, as text, CSV (RFC 4180), JSON lines or JSON, from the same calls
 *
 *     static const struct table_column columns[] = {{"name", "name", TABLE_FIT}, {"count", "values", 11}, {0}};
 *     struct table_writer t = {.format = TABLE_CSV, .column = columns};
 *
 *     table_begin(&t);                                                        "name,count\r\n"
 *     table_row(&t, (struct cell[]){cell_text("bias"), cell_count(64)});      "bias,64\r\n"
 *
 * A row has a cell for each column.  One without a value is empty in CSV, null in JSON lines, and not in a list.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_TABLE_WRITER_H
#define CHEX_TOOLS_TABLE_WRITER_H

#include "chex.h"
#include "common/color.h"

#include <jansson.h>

enum table_format { TABLE_TEXT, TABLE_CSV, TABLE_JSON, TABLE_JSONL }; /* as --format has them */

#define TABLE_FIT (-1) /* a width: that of the texts which table_fit() saw */

struct table_column {
    const char *name;    /* in CSV and JSON; NULL: text alone has the column */
    const char *heading; /* in text; NULL: text lacks the column */
    int width;           /* in text; below 0: flush left */
    int digits;          /* of numbers in text, as %g has them */
    const char *none;    /* in text for a number that is NaN; NULL: "nan" */
    const char *gap;     /* before it in text; NULL: a space */
};

struct table_writer {
    enum table_format format;
    const struct table_column *column; /* up to one without name and heading */
    json_t *list;                      /* of TABLE_JSON: rows are appended; NULL: they are printed, with commas */
    const struct color *color;         /* of the heading of text; NULL: none */
    const char *title;                 /* stands before the headings, its lines are indented; or NULL */
    int fit;                           /* the width TABLE_FIT, and its least */
    uint64_t rows;
    bool failed; /* no memory */
};

struct cell {
    enum { CELL_NONE, CELL_TEXT, CELL_COUNT, CELL_NUMBER, CELL_JSON } kind;
    const char *text;
    uint64_t count;
    double number;
    json_t *json;
};

/* The cells that a row ends with and does not name are CELL_NONE, too. */
#define cell_none()    ((struct cell){.kind = CELL_NONE})
#define cell_text(t)   ((struct cell){.kind = CELL_TEXT, .text = (t)})
#define cell_count(n)  ((struct cell){.kind = CELL_COUNT, .count = (n)})
#define cell_number(x) ((struct cell){.kind = CELL_NUMBER, .number = (x)}) /* not finite: no value */
/* A value of JSON, which table_row() takes, and its text. */
#define cell_json(j, t) ((struct cell){.kind = CELL_JSON, .json = (j), .text = (t)})

/* Before table_begin(): the column TABLE_FIT will hold this text, unless it is very long. */
void table_fit(struct table_writer *t, const char *text);
void table_begin(struct table_writer *t);
void table_row(struct table_writer *t, const struct cell *cell);

#endif
