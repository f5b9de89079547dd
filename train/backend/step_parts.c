/*
 * step_parts.c - see step_parts.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/step_parts.h"

const char *const step_part_name[PART_COUNT] = {"data_wait", "copy", "forward",    "backward", "reduce",
                                                "optimizer", "meet", "evaluation", "save",     "peers"};

void
step_times_add(struct step_times *sum, const struct step_times *t)
{
    unsigned i;

    for (i = 0; i < PART_COUNT; i++) {
        sum->seconds[i] += t->seconds[i];
        sum->cpu[i] += t->cpu[i];
    }
}
