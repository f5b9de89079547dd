/*
 * csv_included.h - the part of libcsv's interface that csv.c uses, for machines without libcsv
 *
 * It accepts and refuses the same bytes, and gives the same fields, as libcsv 3.0 with CSV_STRICT: RFC 4180, where CR,
 * LF and CRLF end a row, and blanks around a field do not belong to it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CSV_INCLUDED_H
#define CHEX_LIB_CSV_INCLUDED_H

#include <stdbool.h>
#include <stddef.h>

enum included_state { BEFORE_ROW, BEFORE_FIELD, IN_PLAIN, IN_QUOTES, AFTER_QUOTE };

struct included_csv {
    enum included_state state;
    bool bad;          /* a quote in the wrong place; otherwise an error means that memory ran out */
    char *text;        /* of the field; owned */
    size_t size, room; /* bytes of text, and those allocated */
    size_t blanks;     /* at the end of text: they belong to the field only if more of it follows */
};

typedef void included_field_fn(void *field, size_t size, void *context);
typedef void included_row_fn(int terminator, void *context);

void included_init(struct included_csv *p);
void included_free(struct included_csv *p);

/*
 * Parse `size` bytes.  on_field is called for each field that ends in them (its text is valid during the call), on_row
 * after the last field of a row.  Returns size; less if a quote is in the wrong place (p->bad) or memory ran out.
 */
size_t included_parse(struct included_csv *p, const void *data, size_t size, included_field_fn *on_field,
                      included_row_fn *on_row, void *context);

/* libcsv's names */
#ifndef HAVE_LIBCSV
#define csv_parser          included_csv
#define csv_init(p, strict) included_init(p)
#define csv_free            included_free
#define csv_parse           included_parse
#define csv_error(p)        ((p)->bad)
#define CSV_EPARSE          1
#endif

#endif
