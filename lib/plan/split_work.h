/*
 * split_work.h - what the parts of split_assign() share
 *
 * Private to split.c and split_file.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_SPLIT_WORK_H
#define CHEX_LIB_SPLIT_WORK_H

#include "plan/split.h"

/*
 * A split_set in the making: out->name[] in any order, out->of_entry[] refers to it, out->count may hold splits
 * without an image.  An entry can be put into several splits here; that is found when all are known.
 */
struct split_work {
    const struct split_rule *rule;
    const struct labels *labels;
    const bool *skip;
    struct split_set *out;
    uint16_t *patient_in; /* [patient_count]: bit mask of the splits of its images */
};

/* The index of the split of this name, which is added where it is new; -1 where there are SPLIT_MAX already. */
int split_work_name(struct split_work *w, const char *name);

/* Put an entry into a split; one that is skipped stays outside. */
void split_work_put(struct split_work *w, size_t entry, int split);

/* The split of each entry by rule->path. */
enum chex_status split_file_assign(struct split_work *w, struct chex_error *err);

#endif
