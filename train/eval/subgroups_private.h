/*
 * subgroups_private.h - what subgroups.c and subgroup_bias.c share: conclusions from the replicates of a gap
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_SUBGROUPS_PRIVATE_H
#define CHEX_TRAIN_SUBGROUPS_PRIVATE_H

#include "eval/subgroups.h"

/*
 * Set gap, interval and p of a cell whose values are set (subgroup_gap.c).  draw [count] is the gap in each replicate,
 * NaN where it is undefined; it is sorted.  share: the values are shares, so there is no p if one is 0 or 1
 */
void subgroup_conclude(struct subgroup_cell *c, bool share, double *draw, size_t count);

/* Measure SUBGROUP_BIAS of all findings (subgroup_bias.c).  draw: room for in->replicates.  CHEX_ERR_MEMORY */
enum chex_status subgroup_measure_bias(const struct subgroup_input *in, struct subgroup *out, double *draw,
                                       struct chex_error *err);

#endif
