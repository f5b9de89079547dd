/*
 * split_work.c - see split_work.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "plan/split_work.h"

#include <stdio.h>
#include <string.h>

int
split_work_name(struct split_work *w, const char *name)
{
    struct split_set *set = w->out;

    for (unsigned i = 0; i < set->count; i++)
        if (strcmp(set->name[i], name) == 0)
            return (int)i;
    if (set->count == SPLIT_MAX)
        return -1;
    snprintf(set->name[set->count], SPLIT_NAME_MAX, "%s", name);
    return (int)set->count++;
}

void
split_work_put(struct split_work *w, size_t entry, int split)
{
    uint8_t before = w->out->of_entry[entry];

    if (w->skip && w->skip[entry])
        return;
    if (before != SPLIT_OUTSIDE && before != split && !w->twice) {
        w->twice = true;
        w->twice_entry = entry;
        w->twice_split[0] = before;
        w->twice_split[1] = split;
    }
    w->out->of_entry[entry] = (uint8_t)split;
    w->patient_in[w->labels->entry[entry].patient_no] |= (uint16_t)(1u << split);
}
