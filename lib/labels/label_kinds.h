/*
 * label_kinds.h - the kinds of label files: which columns a kind has, and what their values mean
 *
 * A label file has one row per image.  The header decides the kind.  The findings of a row are either in one column,
 * as a list of names, or in one column per finding.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_LABEL_KINDS_H
#define CHEX_LIB_LABEL_KINDS_H

#include "dataset/findings.h"
#include "io/csv.h"

/* How the findings of a row are written. */
enum label_style {
    LABEL_LIST,        /* "Mass|Nodule" or "No Finding" in one column; a name that neither the list of findings nor
                          label_kind.findings has is an error */
    LABEL_PYTHON_LIST, /* "['mass', 'nodule']" in one column; names that are not in the list of findings are ignored */
    LABEL_COLUMNS      /* a column per finding: 1, 1.0 or YES; 0, 0.0 or NO; -1 or -1.0 for unknown; empty */
};

typedef const char *const *label_names; /* ends with NULL */

/* Names of a column are alternatives.  NULL instead of names means that the kind has no such column. */
struct label_kind {
    const char *name;  /* for --label-kind; "" for a kind of --columns (columns_file.h) */
    const char *title; /* for messages */
    enum label_style style;
    const struct findings *findings; /* the default list; the file can have these even if no row names them */
    label_names finding_column;      /* [findings->count] names of their columns; NULL: those of the findings */
    label_names list;                /* the column of the list of findings */
    char separator;                  /* LABEL_LIST: between two names */
    label_names unsure;              /* LABEL_PYTHON_LIST: with such a name, findings not named are unknown */
    label_names image, patient, age, sex, view;
    label_names view_else;     /* the view if the column `view` is empty */
    label_names born, studied; /* the age is the year of the study minus the year of birth; both or none */
    const char *suffix;        /* of the image's file name, which the column lacks; or "" */
    uint8_t empty;             /* the label of an empty cell: 0 or CHEX_LABEL_UNKNOWN */
    unsigned name_parts;       /* components of an image's name: 1, or more if the name has folders */
    bool patient_is_folder;    /* the first component of the name is the patient */
    bool nih_names;            /* an image named NNNNNNNN_NNN.* must belong to patient NNNNNNNN */
};

extern const struct label_kind label_kind_nih;

/* Returns the kind with this name, or NULL. */
const struct label_kind *label_kind_named(const char *name);

/* The names of all kinds, in alphabetical order, and NULL at the end. */
extern const char *const label_kind_names[];

/*
 * Find the kind of a header.  If no kind fits, *out is label_kind_nih.
 * CHEX_ERR_USAGE  two kinds fit; the text names both
 */
enum chex_status label_kind_find(const struct table_row *header, const struct label_kind **out, struct chex_error *err);

/*
 * Returns the name of the column of a finding.
 * name   of a finding in kind->findings, or any other name of a column
 */
const char *label_kind_column(const struct label_kind *kind, const char *name);

#endif
