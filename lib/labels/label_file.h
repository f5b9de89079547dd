/*
 * label_file.h - reads the label file of the data set: one entry per image
 *
 * label_kinds.h describes the kinds of label files, plain or .gz.  The kind "nih" is Data_Entry_2017.csv,
 * Data_Entry_2017_v2020.csv, the Kaggle sample_labels.csv, and any CSV with the columns `Image Index`, `Finding Labels`
 * and `Patient ID`.  It uses `Patient Age`, `Patient Gender` (or Sex) and `View Position` if present.
 *
 * Columns are found by name, never by position.  The NIH header of 2017 has unquoted commas in
 * `OriginalImage[Width,Height]` and one at its end, so it may have more tokens than a row has fields.  Every row must
 * have as many fields as the first row.  The first row must have as many fields as the header has tokens; empty tokens
 * at the header's end may be missing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_LABELS_H
#define CHEX_LIB_LABELS_H

#include "base/memory.h"
#include "base/sha256.h"
#include "dataset/findings.h"
#include "dataset/record.h"
#include "labels/label_kinds.h"
#include "labels/notes.h"

#include <stdatomic.h>

#define LABELS_MAX_NAME 255 /* bytes of an image's file name; a patient id has at most 63 */

struct entry {
    const char *name;     /* image file name: see label_name_fault(); slashes only if the kind has folders */
    const uint8_t *label; /* [findings.count] 0, 1 or CHEX_LABEL_UNKNOWN */
    const char *patient;  /* an id of digits only is padded with zeros to 8 digits: "1" and "00000001" are equal */
    uint32_t patient_no;  /* 0 .. patient_count - 1, in order of first appearance */
    uint32_t line;        /* line number in the CSV */
    float age;            /* years; NaN = unknown: empty, not a number, negative or above 120 */
    char sex;             /* 'M', 'F', 'U' */
    char view[8];         /* upper case, [A-Z0-9]; "U" if unknown */
    bool impossible_age;  /* age is NaN because the number was negative or above 120 */
};

struct labels {
    const struct label_kind *kind; /* NULL: the rows are records of a data set */
    struct findings findings;      /* of labels_options, or of the kind */
    struct entry *entry;           /* sorted by name (strcmp), unique */
    size_t count;
    size_t patient_count;
    const char **patient;    /* ids by patient_no */
    char sha256[DIGEST_HEX]; /* of the file's decompressed content */

    /* Figures for the summary: */
    size_t row_count;            /* data rows in the file, including rows without an entry */
    size_t empty_labels;         /* rows with an empty label, read as No Finding: labels_options */
    size_t ignored_labels;       /* findings of the kind that the list lacks */
    size_t duplicate_rows;       /* identical duplicates of rows, skipped (a warning) */
    size_t unknown_ages;         /* including impossible ages */
    size_t impossible_ages;      /* negative or above 120 years */
    float age_min, age_max;      /* over known ages; NaN if there are none */
    struct label_reject *reject; /* rows with unusable names or findings, in the order of the file */
    size_t reject_count;

    bool no_age, no_sex, no_view; /* the column is missing: unknown for all */
    struct notes notes;           /* values that were read differently than written */

    struct arena strings; /* owns every string above */
};

/* A row without an entry: it is reported, and reading continues (exit code 1). */
struct label_reject {
    uint32_t line;
    enum chex_status status; /* CHEX_ERR_DAMAGED: unsafe file name; CHEX_ERR_EMPTY: empty label */
    const char *name;        /* bytes outside printable ASCII are escaped as \xNN */
    const char *reason;
};

/* What becomes of an unknown label. */
enum unknown_policy { UNKNOWN_MASK, UNKNOWN_ZERO, UNKNOWN_ONE, UNKNOWN_REJECT };
extern const char *const unknown_names[]; /* "mask", "zero", "one", "reject", NULL */

struct labels_options {
    enum unknown_policy unknown;     /* keep it, store 0, store 1, or reject the row */
    const struct label_kind *kind;   /* NULL: the header decides */
    const struct findings *findings; /* the labels of an entry; must outlive the labels.  NULL: those of the kind */
    bool empty_is_no_finding;        /* an empty label is No Finding, not a reject */
    const atomic_bool *stop;         /* a true value ends reading with CHEX_ERR_STOPPED; may be NULL */
};

/*
 * Read the label file.  Zero *out before the call; free it with labels_release(), also after a failure.
 *
 * Ages: "58", "058Y", "003M", "001D", "02W".  Sex: the first letter.
 *
 * CHEX_ERR_MISSING  the file does not exist or is of another kind (content.h)
 * CHEX_ERR_USAGE    with "PATH:LINE: ...": a missing column (the text lists the columns found and suggests the most
 *                   similar name); a row with another number of fields; an unknown finding (with the number of such
 *                   rows, the first line and a suggestion); No Finding with a finding; an empty or overlong patient id;
 *                   an id that is not the prefix of an image name in NIH's form (NNNNNNNN_NNN.*); one image with
 *                   different values in two rows (both lines); no rows; a list of boxes (BBox_List_2017.csv), which the
 *                   text names; a header of two kinds; a cell of a finding with an unknown value; findings without
 *                   a column; findings of a list of names that no row names, unless the kind is known to have them
 * CHEX_ERR_READ, CHEX_ERR_MEMORY, CHEX_ERR_STOPPED
 */
enum chex_status labels_read(const char *path, const struct labels_options *options, struct labels *out,
                             struct chex_error *err);
void labels_release(struct labels *labels);

/* Set the figures about ages from the entries. */
void labels_count_ages(struct labels *labels);

/* Set *out to the values of an entry's record, except its place and weight. */
void entry_values(const struct entry *entry, struct record_values *out);

/* Returns the components of an image's name: 1, or more if the names have folders. */
unsigned labels_name_parts(const struct labels *labels);

/* Returns the entry of an image, or NULL; a binary search. */
const struct entry *labels_find(const struct labels *labels, const char *name);

#endif
