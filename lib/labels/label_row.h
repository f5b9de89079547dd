/*
 * label_row.h - what the columns of a label file mean, and one row of them
 *
 * Private to label_file.c, which knows the order of rows, duplicates and counts; a function here knows one row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_LABEL_ROW_H
#define CHEX_LIB_LABEL_ROW_H

#include "io/csv.h"
#include "labels/label_file.h"
#include "labels/patient_ids.h"

struct label_columns {
    int image, findings, patient; /* must be there */
    int age, sex, view;           /* -1 = not there */
    size_t fields_min;            /* a row's fields: the header's tokens, */
    size_t fields_max;            /* with and without the empty ones at the header's end */
};

/* Find the columns.  CHEX_ERR_USAGE: one is missing, or the file is a list of boxes. */
enum chex_status label_columns_find(const struct table_row *header, struct label_columns *out, struct chex_error *err);

/*
 * The image's name, or why it cannot be used: empty, overlong, a slash or backslash, a control character, "." or "..".
 * Looks at the byte behind the name too.  A name is compared with the names of a folder and is never opened; but it
 * also goes into messages and shards.
 */
const char *label_name_fault(const char *name, size_t length);

/* The folded patient id of a row whose name is good.  CHEX_ERR_USAGE: see labels_read(). */
enum chex_status label_patient(const struct table_row *row, const struct label_columns *columns,
                               char out[PATIENT_MAX + 1], struct chex_error *err);

/*
 * Years of "58", "058Y", "003M", "001D", "02W" (a year of 365.25 days); NaN = unknown.
 * *impossible   there is a number, but it is negative or above 120 years
 */
float label_age(const char *text, bool *impossible);

char label_sex(const char *text); /* 'M', 'F', 'U' */
void label_view(const char *text, size_t length, char out[8]);

#endif
