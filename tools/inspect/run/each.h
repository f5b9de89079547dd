/*
 * each.h - several runs, each measured as if it were the only one, and their ensemble
 *
 * Each run becomes a struct run_report of its own predictions, with its thresholds and groups.  The ensemble is the
 * mean of the probabilities of all runs, on the images that all of them have.  The thresholds of a run do not hold for
 * a mean.  So those of the ensemble are chosen again, from the mean of the runs' predictions of val, as chex-predict
 * does.
 *
 *     each.c            measures the runs, and collects what differs between them
 *     each_ensemble.c   measures the ensemble
 *     each_report.c     their part of the page, and of the JSON document
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_RUN_EACH_H
#define CHEX_TOOLS_INSPECT_RUN_EACH_H

#include "inspect/diff/scored_run.h"
#include "inspect/run/run.h"

#define EACH_SHOWN 10 /* runs with details on the page; all runs count for the means */

/* At the threshold of each model (Youden). */
enum each_point { EACH_SENSITIVITY, EACH_SPECIFICITY, EACH_POINTS };

/* The gap between a group and the rest. */
struct each_gap {
    struct run_spread gap; /* mean NaN: a run has too few */
    unsigned marked;       /* runs whose gap is below 0.05 after Holm's correction */
};

struct run_each {
    struct run_report *of[EACH_SHOWN]; /* of[0]: the report itself; the others are owned */
    unsigned shown;                    /* runs in of */
    struct run_report *ensemble;
    struct run_spread point[METRICS_OUTPUTS][EACH_POINTS];
    unsigned groups;      /* those of the first run; 0: a run has others, or none are known */
    struct each_gap *gap; /* [groups][EACH_GAPS(outputs)]; owned */
    unsigned some, all;   /* gaps that are marked in a run, and in all of them */
    unsigned used;        /* runs that used these images in their training */
};

/* Gaps of a group: SUBGROUP_METRICS of each finding, then underdiagnosis. */
#define EACH_GAPS(outputs)           (SUBGROUP_METRICS * (outputs) + 1)
#define EACH_GAP(metric, k)          ((metric) + SUBGROUP_METRICS * (k))
#define EACH_UNDERDIAGNOSIS(outputs) (SUBGROUP_METRICS * (outputs))

/* The mean of the runs' predictions of val, for the thresholds of the ensemble. */
struct each_validation {
    char why[RUN_UNFITTED];   /* why there are no thresholds; "": there are, so far */
    struct run_report *first; /* predictions of val of the first run; owned */
    double *sum;              /* [images][outputs]; owned */
    unsigned runs;
};

/* Add the predictions of val of a run, numbered from 1.  CHEX_ERR_MEMORY; any other fault is noted in v->why */
enum chex_status each_validation_add(struct each_validation *v, const struct run_report *o, unsigned number,
                                     struct chex_error *err);
void each_validation_release(struct each_validation *v);
/*
 * Make and measure the ensemble.  floor: whether all runs were trained on the same images.  Statuses of the functions
 * that measure a run.
 */
enum chex_status each_ensemble_make(const struct run_report *r, struct each_validation *v, bool floor,
                                    struct run_report **out, struct chex_error *err);

#endif
