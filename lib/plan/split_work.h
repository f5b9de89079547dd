/*
 * split_work.h - state and functions shared by the rules of split_assign()
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_SPLIT_WORK_H
#define CHEX_LIB_SPLIT_WORK_H

#include "plan/split.h"

/*
 * An unfinished split_set: out->name[] is in any order, out->of_entry[] refers to it, and out->count may include splits
 * without an image.  An entry may be put into several splits; split_assign() detects that at the end.
 */
struct split_work {
    const struct split_rule *rule;
    const struct labels *labels;
    const bool *skip;
    struct split_set *out;
    uint16_t *patient_in; /* [patient_count] bit mask of the splits of the patient's images */
    bool twice;           /* an entry was put into two splits: */
    size_t twice_entry;   /* the first such entry, and its splits */
    int twice_split[2];
};

/* Returns the index of the split with this name.  A new name is added; -1 if there are SPLIT_MAX names already. */
int split_work_name(struct split_work *w, const char *name);

/* Put an entry into a split; skipped entries stay outside. */
void split_work_put(struct split_work *w, size_t entry, int split);

/* Assign each entry by the file rule->path. */
enum chex_status split_file_assign(struct split_work *w, struct chex_error *err);

#endif
