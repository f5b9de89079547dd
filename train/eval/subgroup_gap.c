/*
 * subgroup_gap.c - interval and p of a gap from its replicates; see subgroups.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/subgroups_private.h"

#include <math.h>

/* All draws of a share of 0 or 1 are equal: they do not show its variance. */
static bool
is_extreme(double value)
{
    return value <= 0 || value >= 1;
}

void
subgroup_conclude(struct subgroup_cell *c, bool share, double *draw, size_t count)
{
    double sum = 0, squares = 0, deviation;
    size_t defined, i;

    c->gap.value = c->value[0] - c->value[1];
    if (isnan(c->gap.value))
        return;
    defined = metrics_interval(draw, count, &c->gap.low, &c->gap.high);
    if (defined < 2)
        return;
    for (i = 0; i < defined; i++)
        sum += draw[i];
    for (i = 0; i < defined; i++)
        squares += (draw[i] - sum / (double)defined) * (draw[i] - sum / (double)defined);
    deviation = sqrt(squares / (double)(defined - 1));
    if (deviation > 0 && !(share && (is_extreme(c->value[0]) || is_extreme(c->value[1]))))
        c->p = erfc(fabs(c->gap.value) / deviation / sqrt(2));
}
