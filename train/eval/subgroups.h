/*
 * subgroups.h - does a model work equally well for a group of images and for the rest?
 *
 * TPR       share of positives that are called positive at the common threshold, in the group and in the rest
 * FPR       share of negatives that are called positive
 * AUROC     within the group and within the rest; it depends on the mix of cases
 * bias      mean of p - y over the images with a known label: 0 if the probabilities are calibrated there.  It needs as
 *           many positives and negatives as AUROC
 * underdiagnosis   of the images positive for a finding that has a threshold, the share that is called positive for
 *           none of these findings
 * gap       group - rest.  Interval: percentiles over bootstrap replicates of patients (metrics.h); the group and the
 *           rest get the same draws, because a patient may be in both
 * p         two-sided, from the gap and its standard deviation over the replicates, as if it were normal.  The share of
 *           draws on the other side of 0 could not be below 1 / replicates, which no correction for hundreds of cells
 *           leaves significant.  There is no p if a value is 0 or 1, because its draws then show no variance
 * holm      p after Holm's correction for the number of cells that have one
 *
 * A cell needs SUBGROUP_FEWEST images that it counts, in the group and in the rest, of METRICS_FEWEST_PATIENTS
 * patients.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_SUBGROUPS_H
#define CHEX_TRAIN_SUBGROUPS_H

#include "eval/metrics.h"

#define SUBGROUP_FEWEST 20

enum subgroup_metric { SUBGROUP_TPR, SUBGROUP_FPR, SUBGROUP_AUROC, SUBGROUP_BIAS, SUBGROUP_METRICS };
enum subgroup_side { SUBGROUP_IN, SUBGROUP_REST, SUBGROUP_OUT };

struct subgroup_cell {
    double value[2]; /* of the group, of the rest; NaN: undefined, or too few */
    struct measured gap;
    double p, holm; /* NaN: not tested */
};

struct subgroup {
    uint64_t images[2];
    struct subgroup_cell cell[SUBGROUP_METRICS][METRICS_OUTPUTS], underdiagnosis;
};

struct subgroup_input {
    const struct scores *s;
    const float *threshold;   /* [outputs]; NaN: none */
    const float *probability; /* [count][outputs], for SUBGROUP_BIAS; NULL: do not measure it */
    const uint8_t *side;      /* [count] enum subgroup_side; SUBGROUP_OUT: it is unknown, and left out */
    unsigned replicates;
    uint64_t seed;
    unsigned threads;
};

/* Measure one group.  The result does not depend on threads.  CHEX_ERR_USAGE as metrics_compute();  CHEX_ERR_MEMORY */
enum chex_status subgroup_measure(const struct subgroup_input *in, struct subgroup *out, struct chex_error *err);
/*
 * Set holm of all cells of these groups.  Returns the number of tested cells in *tested.  CHEX_ERR_MEMORY
 */
enum chex_status subgroups_correct(struct subgroup *group, size_t groups, unsigned outputs, unsigned *tested,
                                   struct chex_error *err);

#endif
