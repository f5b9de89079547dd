/*
 * findings.h - the list of findings of a data set: names, other spellings, and texts such as "Atelectasis|Effusion"
 *
 * A list has 1 to FINDINGS_MAX names.  Finding i of a list is label i of a record.  A row of labels is uint8
 * [list->count]: 0, 1, or CHEX_LABEL_UNKNOWN.  The comparison of names ignores case, blanks, '_' and '-', as that of
 * columns does (io/csv.h), so two names of a list never mean the same column.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_FINDINGS_H
#define CHEX_LIB_FINDINGS_H

#include "base/error.h"

#define FINDINGS_MAX     CHEX_FINDINGS_MAX
#define FINDING_NAME_MAX 64 /* bytes */

struct findings {
    const char *const *name; /* [count], and a NULL at the end */
    unsigned count;
};

/* The 14 findings of ChestX-ray14, in the order of CheXNet (table 2): the default of chex-convert. */
#define FINDINGS_NIH14                                                                                        \
    "Atelectasis", "Cardiomegaly", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia", "Pneumothorax", \
        "Consolidation", "Edema", "Emphysema", "Fibrosis", "Pleural_Thickening", "Hernia"
extern const struct findings findings_nih14;
/* The names of all built-in lists, for messages. */
#define FINDINGS_BUILT_IN "nih14, nih15, cxr-lt, cxr-lt-2024, chexpert or padchest-top"
/* The findings of other label files: see findings_lists.c for the sources. */
extern const struct findings findings_cxr_lt, findings_chexpert, findings_padchest;

/*
 * Make a list of these names.  Free it with findings_release().
 * CHEX_ERR_USAGE  no name, or more than FINDINGS_MAX; a name that is empty, too long, has a blank at an end, has only
 *                 '_' and '-', or has a byte that is not printable ASCII or is one of | , " < > &; two equal names
 * CHEX_ERR_MEMORY
 */
enum chex_status findings_make(const struct chex_bytes *name, size_t count, struct findings *out,
                               struct chex_error *err);
void findings_release(struct findings *list);

/*
 * Make the list of the argument of --findings: the name of a built-in list, "NAME,NAME...", a file with one name in
 * each line, or one name of a built-in list.  Free it with findings_release().
 * CHEX_ERR_USAGE (also as findings_make()), CHEX_ERR_READ, CHEX_ERR_LIMIT, CHEX_ERR_MEMORY
 */
enum chex_status findings_choose(const char *text, struct findings *out, struct chex_error *err);

/*
 * Write a short name: that of a built-in list, "Mass|Nodule", or if that is too long "Mass... (30, 1a2b3c4d)": the
 * number of names and a checksum over all of them.  Returns out.
 */
#define FINDINGS_TEXT 64
char *findings_describe(const struct findings *list, char out[FINDINGS_TEXT]);

/* Returns whether both lists have the same names in the same order; spelling counts. */
bool findings_equal(const struct findings *a, const struct findings *b);

/* Returns the index of the finding with this name, or -1.  "Infiltrate" means Infiltration. */
int finding_index(const struct findings *list, const char *name, size_t length);

/* Returns whether the name is "No Finding" in any of these spellings. */
bool finding_is_none(const char *name, size_t length);

/* Returns the name most similar to a misspelt one (edit distance at most 3), possibly "No Finding", or NULL. */
const char *finding_suggest(const struct findings *list, const char *name, size_t length);

/* Faults of a text of findings. */
enum findings_fault {
    FINDINGS_GOOD,
    FINDINGS_EMPTY,        /* only blanks */
    FINDINGS_EMPTY_PART,   /* "Mass|" */
    FINDINGS_UNKNOWN,      /* a name is not a finding's; the labels of the other names are set */
    FINDINGS_CONTRADICTION /* No Finding and a finding */
};

/* Called for each unknown name, which is a part of the text and not terminated. */
typedef void findings_unknown_fn(const char *name, size_t length, void *context);

/* How to parse a text of findings. */
struct findings_form {
    const struct findings *list;  /* the findings of the data set */
    const struct findings *known; /* names that a text may have although the list lacks them */
    char separator;               /* between two names */
};

/*
 * Parse "Atelectasis|Effusion" or "No Finding" into label[list->count], 0 or 1.  The number of names that are known but
 * not in the list is added to *ignored.  If the list has "No Finding", its label is 1 for a text of No Finding.  The
 * caller writes the error text of a fault.
 */
enum findings_fault findings_scan(const struct findings_form *form, const char *text, size_t length,
                                  findings_unknown_fn *unknown, void *context, uint8_t *label, size_t *ignored);

/*
 * For a text that findings_scan() accepted: returns whether every name is spelled as in the list, ignoring blanks
 * around the names.
 */
bool findings_are_exact(const struct findings_form *form, const char *text, size_t length);

/* Returns whether all labels are known to be 0: No Finding. */
bool labels_are_none(const uint8_t *label, unsigned count);

#endif
