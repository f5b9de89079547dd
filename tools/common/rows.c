/*
 * rows.c - see rows.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Quoted where RFC 4180 asks for it. */
static void
put_field(const char *text)
{
    if (text[strcspn(text, "\",\r\n")] == '\0') {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

void
rows_begin(struct rows *r, enum rows_format format, const char *const *columns)
{
    unsigned i;

    *r = (struct rows){.format = format, .column = columns};
    if (format != ROWS_CSV)
        return;
    for (i = 0; columns[i]; i++) {
        fputs(i ? "," : "", stdout);
        put_field(columns[i]);
    }
    fputs("\r\n", stdout);
}

void
rows_value(struct rows *r, json_t *value, const char *text)
{
    if (r->format == ROWS_CSV) {
        fputs(r->cell ? "," : "", stdout);
        put_field(text);
    } else {
        printf("%s\"%s\": ", r->cell ? ", " : "{", r->column[r->cell]);
        if (!value || json_dumpf(value, stdout, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17)) != 0) {
            r->failed = true;
            fputs("null", stdout);
        }
    }
    json_decref(value);
    r->cell++;
}

void
rows_text(struct rows *r, const char *text)
{
    rows_value(r, r->format == ROWS_CSV ? NULL : json_string(text), text);
}

void
rows_count(struct rows *r, uint64_t n)
{
    char text[32];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
    rows_value(r, r->format == ROWS_CSV ? NULL : json_integer((json_int_t)n), text);
}

void
rows_number(struct rows *r, double value)
{
    char text[40];

    if (isnan(value)) {
        rows_none(r);
        return;
    }
    snprintf(text, sizeof(text), "%.9g", value);
    rows_value(r, r->format == ROWS_CSV ? NULL : json_real(value), text);
}

void
rows_none(struct rows *r)
{
    rows_value(r, r->format == ROWS_CSV ? NULL : json_null(), "");
}

void
rows_next(struct rows *r)
{
    fputs(r->format == ROWS_CSV ? "\r\n" : "}\n", stdout);
    r->cell = 0;
}
