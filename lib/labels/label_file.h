/*
 * label_file.h - the label file of the data set: one entry for each image
 *
 * Reads Data_Entry_2017.csv, Data_Entry_2017_v2020.csv and the Kaggle sample_labels.csv, plain or .gz, and any CSV
 * with the columns `Image Index`, `Finding Labels` and `Patient ID`; `Patient Age`, `Patient Gender` (or Sex) and
 * `View Position` are used where present.  Columns are found by name, never by position: the header of the original
 * has commas without quotes in `OriginalImage[Width,Height]`, and one at its end, so it may have more tokens than the
 * rows have fields; every row must have as many fields as the first one, and that one as many as the header has tokens,
 * with or without the empty ones at the header's end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_LABELS_H
#define CHEX_LIB_LABELS_H

#include "base/memory.h"
#include "base/sha256.h"
#include "labels/notes.h"

#include <stdatomic.h>

#define LABELS_MAX_NAME 255 /* bytes of an image's file name, of a patient id: 63 */

struct entry {
    const char *name;    /* of the image file: no slash, backslash, control character, not "." or ".." */
    const char *patient; /* an id of digits alone is filled with zeros to 8: "1" and "00000001" are one patient */
    uint32_t patient_no; /* 0 .. patient_count - 1, in order of first appearance */
    uint32_t line;       /* in the CSV */
    float age;           /* years; NaN = unknown: empty, not a number, negative or above 120 */
    uint16_t findings;   /* bit mask, see findings.h */
    char sex;            /* 'M', 'F', 'U' */
    char view[8];        /* upper case, [A-Z0-9]; "U" where unknown */
    bool impossible_age; /* age is NaN because the number was negative or above 120 */
};

/* chex-synth writes a file with this name next to its label file and its folder of images. */
#define LABELS_SYNTHETIC "SYNTHETIC.txt"

struct labels {
    struct entry *entry; /* sorted by name (strcmp); names are unique */
    size_t count;
    size_t patient_count;
    const char **patient;    /* ids by patient_no */
    char sha256[DIGEST_HEX]; /* of the file's text, decompressed */

    /* facts for the summary */
    size_t row_count;            /* data rows read, with those that became no entry */
    size_t empty_labels;         /* taken as No Finding: labels_options */
    size_t duplicate_rows;       /* identical repetitions that were dropped (a warning) */
    size_t unknown_ages;         /* impossible ones among them: */
    size_t impossible_ages;      /* numbers, but negative or above 120 years */
    float age_min, age_max;      /* of the known ones; NaN without any */
    struct label_reject *reject; /* rows whose name or findings cannot be used, in order of the file */
    size_t reject_count;

    bool no_age, no_sex, no_view; /* there is no such column: unknown for all */
    struct notes notes;           /* values that were read in another way than they stand there */

    struct arena strings; /* owns every string above */
};

/* A row that is no entry: reported, and the next row is read (exit code 1). */
struct label_reject {
    uint32_t line;
    enum chex_status status; /* CHEX_ERR_DAMAGED: unsafe file name; CHEX_ERR_EMPTY: empty label */
    const char *name;        /* with bytes outside printable ASCII as \xNN */
    const char *reason;
};

struct labels_options {
    bool empty_is_no_finding; /* an empty label is No Finding, not a reject */
    const atomic_bool *stop;  /* set: CHEX_ERR_STOPPED; may be NULL */
};

/*
 * Read the label file.  Zero-initialise *out; labels_release() frees it, also after a failure.
 *
 * Ages: "58", "058Y", "003M", "001D", "02W".  Sex: first letter.
 *
 * CHEX_ERR_MISSING  no such file, or a file of another kind (content.h)
 * CHEX_ERR_USAGE    with "PATH:LINE: ...": a column is missing (the text lists those found, and the nearest name), a
 *                   row of another number of fields, an unknown finding (with the count of such rows, the first line
 *                   and a suggestion), No Finding with a finding, an empty or overlong patient id, an id that is not
 *                   the prefix of an image name of NIH's form (NNNNNNNN_NNN.*), the same image with other values
 *                   (both lines), no rows; a list of boxes (BBox_List_2017.csv) is recognised and named as such
 * CHEX_ERR_READ, CHEX_ERR_MEMORY, CHEX_ERR_STOPPED
 */
enum chex_status labels_read(const char *path, const struct labels_options *options, struct labels *out,
                             struct chex_error *err);
void labels_release(struct labels *labels);

/* The entry of an image, or NULL.  Binary search. */
const struct entry *labels_find(const struct labels *labels, const char *name);

#endif
