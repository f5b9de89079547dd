/*
 * rows.h - a table for other programs: CSV (RFC 4180) or JSON lines on standard output, from the same calls
 *
 *     rows_begin(&rows, ROWS_CSV, columns);        "split,finding,images\r\n" now, or nothing
 *     rows_text(&rows, "train"); rows_text(&rows, "Hernia"); rows_number(&rows, 134);
 *     rows_next(&rows);
 *
 * As many cells as columns, in their order.  In CSV an unknown value is empty, in JSON null.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_ROWS_H
#define CHEX_TOOLS_ROWS_H

#include "chex.h"

#include <jansson.h>

enum rows_format { ROWS_TABLE, ROWS_CSV, ROWS_JSON, ROWS_JSONL }; /* as --format has them; only two are for here */

struct rows {
    enum rows_format format;
    const char *const *column; /* NULL at the end */
    unsigned cell;             /* of this row, that comes next */
    bool failed;               /* no memory */
};

void rows_begin(struct rows *r, enum rows_format format, const char *const *columns);
void rows_text(struct rows *r, const char *text);
void rows_count(struct rows *r, uint64_t n);
void rows_number(struct rows *r, double value); /* NaN: unknown */
void rows_none(struct rows *r);
/* A value of JSON, which is taken, or a text for CSV. */
void rows_value(struct rows *r, json_t *value, const char *text);
void rows_next(struct rows *r);

#endif
