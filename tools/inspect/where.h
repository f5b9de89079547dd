/*
 * where.h - parses --where and matches records against it
 *
 * A text is a comma-separated list of terms; it holds if one of its terms holds.  A record matches if all texts hold.
 *     FINDING, FINDING=0|1, No_Finding    spelled as in label files
 *     view=PA  sex=F  age=40-59  patient=00000013  name=00000013_004.png
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_WHERE_H
#define CHEX_TOOLS_INSPECT_WHERE_H

#include "dataset/record.h"

#define WHERE_MAX_TERMS 64
#define WHERE_MAX_TEXTS 16

enum where_kind { WHERE_FINDING, WHERE_VIEW, WHERE_SEX, WHERE_AGE, WHERE_PATIENT, WHERE_NAME };

struct where_term {
    enum where_kind kind;
    unsigned clause;          /* index of its text */
    bool wanted;              /* WHERE_FINDING: false for =0 */
    struct chex_bytes text;   /* the value, or the name of a finding; points into the caller's text */
    struct chex_bytes source; /* the whole term; points into the caller's text */
    unsigned age_min, age_max;
};

struct where {
    struct where_term term[WHERE_MAX_TERMS];
    unsigned count;
    const char *text[WHERE_MAX_TEXTS]; /* as given; kept by reference */
    unsigned text_count;
};

/* Add the terms of a text, which must outlive *w.  CHEX_ERR_USAGE: the message lists the valid terms. */
enum chex_status where_add(struct where *w, const char *text, struct chex_error *err);
/* Check that the list has each finding that the terms name.  CHEX_ERR_USAGE: the message lists the findings. */
enum chex_status where_check(const struct where *w, const struct findings *findings, struct chex_error *err);
bool where_holds(const struct where *w, const struct findings *findings, const struct record_values *values);

#endif
