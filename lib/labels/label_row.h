/*
 * label_row.h - finds the columns of a label file, and parses the fields of a row
 *
 * Private to label_file.c, which handles the order of rows, duplicates and counts.  The functions here know only one
 * row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_LABEL_ROW_H
#define CHEX_LIB_LABEL_ROW_H

#include "io/csv.h"
#include "labels/label_file.h"
#include "labels/label_kinds.h"
#include "labels/patient_ids.h"

struct label_columns {
    const struct label_kind *kind;
    int image, patient;            /* required columns */
    int list;                      /* required, unless the kind has a column per finding */
    int age, sex, view, view_else; /* -1: missing */
    int born, studied;
    int finding[FINDINGS_MAX]; /* LABEL_COLUMNS: the column of each finding */
    size_t fields_min;         /* range of a row's number of fields: the header's tokens without ... */
    size_t fields_max;         /* ... and with the empty tokens at the header's end */
};

/*
 * Find the columns of a kind.
 * findings  the findings to read: LABEL_COLUMNS needs a column for each
 * CHEX_ERR_USAGE  a required column is missing; a column occurs twice; two findings have one column; the file is a list
 *                 of boxes
 */
enum chex_status label_columns_find(const struct table_row *header, const struct label_kind *kind,
                                    const struct findings *findings, struct label_columns *out, struct chex_error *err);

/*
 * Write the image's name to out: the last components of the field of the row, with the suffix of the kind, cut at the
 * size of out.  Returns the length of the whole name.
 */
size_t label_image(const struct table_row *row, const struct label_columns *columns, char out[LABELS_MAX_NAME + 2]);

/*
 * Parse a row of LABEL_COLUMNS into label[findings->count].
 * CHEX_ERR_USAGE  a cell has another value than those of label_kinds.h; the text names its column
 */
enum chex_status label_cells(const struct table_row *row, const struct label_columns *columns,
                             const struct findings *findings, uint8_t *label, struct chex_error *err);

/*
 * Parse the list of a row of LABEL_PYTHON_LIST, "['mass', 'nodule']", into label[findings->count].
 * *empty  set if the list has no name
 * CHEX_ERR_USAGE  the text is not such a list
 */
enum chex_status label_python_list(const struct table_row *row, const struct label_columns *columns,
                                   const struct findings *findings, uint8_t *label, bool *empty,
                                   struct chex_error *err);

/*
 * Check an image's name.  Returns NULL, or why the name is unusable: empty, overlong, a backslash, a control character,
 * "." or "..", or a slash.  With `folders`, slashes are allowed, but no component may be empty, "." or "..".  May read
 * the byte after the name.  Names are never opened, only compared with the names in a folder; but they are also written
 * to messages and shards.
 */
const char *label_name_fault(const char *name, size_t length, bool folders);

/* Write the normalised patient id of a row with a valid name to out.  CHEX_ERR_USAGE: see labels_read(). */
enum chex_status label_patient(const struct table_row *row, const struct label_columns *columns, const char *name,
                               char out[PATIENT_MAX + 1], struct chex_error *err);

/*
 * Returns the age in years of "58", "058Y", "003M", "001D", "02W" (a year has 365.25 days); NaN if unknown.
 * *impossible   set if the number is negative or above 120 years
 */
float label_age(const char *text, bool *impossible);

/* Returns the column with the view of this row, or -1. */
int label_view_column(const struct table_row *row, const struct label_columns *columns);

/* As label_age(): the age of a row, from its column or from the years of birth and study.  NaN without such columns. */
float label_row_age(const struct table_row *row, const struct label_columns *columns, bool *impossible);

char label_sex(const char *text); /* 'M', 'F', 'U' */
void label_view(const char *text, size_t length, char out[8]);

#endif
