/*
 * where.h - parses --where and matches records against it
 *
 * A text is a comma-separated list of terms; it holds if one of its terms holds.  A record matches if all texts hold.
 *     FINDING, FINDING=0|1, No_Finding    spelled as in label files
 *     view=PA  sex=F  age=40-59  patient=00000013  name=00000013_004.png  split=train
 *
 * The texts are parsed before the list of findings is known.  where_resolve() then looks up the findings, once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_WHERE_H
#define CHEX_LIB_WHERE_H

#include "dataset/findings.h"
#include "dataset/record.h"

#define WHERE_MAX_TERMS 64
#define WHERE_MAX_TEXTS 16
#define WHERE_TEXT      256   /* of where_format() */
#define WHERE_AND       " & " /* between the texts there */

enum where_kind { WHERE_FINDING, WHERE_VIEW, WHERE_SEX, WHERE_AGE, WHERE_PATIENT, WHERE_NAME, WHERE_SPLIT };

struct where_term {
    enum where_kind kind;
    unsigned clause;          /* index of its text */
    bool wanted;              /* WHERE_FINDING: false for =0 */
    int finding;              /* WHERE_FINDING, set by where_resolve(): its index in the list; -1: No Finding */
    struct chex_bytes text;   /* the value, or the name of a finding; points into the caller's text */
    struct chex_bytes source; /* the whole term; points into the caller's text */
    unsigned age_min, age_max;
};

struct where {
    struct where_term term[WHERE_MAX_TERMS];
    unsigned count;
    unsigned text_count;
    unsigned finding_count; /* set by where_resolve() */
};

/* Add the terms of a text, which must outlive *w.  CHEX_ERR_USAGE: the message lists the valid terms. */
enum chex_status where_add(struct where *w, const char *text, struct chex_error *err);
/*
 * Look up the findings of the terms in this list, which decides what where_holds() compares.  CHEX_ERR_USAGE: the list
 * lacks one; the message lists the findings.
 */
enum chex_status where_resolve(struct where *w, const struct findings *findings, struct chex_error *err);
/* CHEX_ERR_USAGE: a term split=NAME has none of these names; the message lists them. */
enum chex_status where_check_splits(const struct where *w, const char *const *name, unsigned count,
                                    struct chex_error *err);
/* Returns whether a record of this split matches.  w was resolved with the findings of the record. */
bool where_holds(const struct where *w, const struct record_values *values, const char *split);
/*
 * Write the texts in one line, "Hernia,Mass & sex=F", with the names of the list that resolved w.  `text` holds the
 * line of an earlier selection, or is ""; the texts that it lacks are added.  The order of texts and of terms has no
 * meaning, so both are sorted, without repeats: the same terms give the same line, and the same data set id.
 * CHEX_ERR_USAGE  the line is too long, or a value has an '&' or is not printable ASCII
 */
enum chex_status where_format(const struct where *w, const struct findings *findings, char text[WHERE_TEXT],
                              struct chex_error *err);
/* Returns whether a term has this kind. */
bool where_has(const struct where *w, enum where_kind kind);

#endif
