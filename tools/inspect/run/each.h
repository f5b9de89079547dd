/*
 * each.h - several runs, each measured as if it were the only one
 *
 * Each run becomes a struct run_report of its own predictions, with its thresholds and groups.
 *
 *     each.c         measures the runs, and collects what differs between them
 *     each_report.c  their part of the page, and of the JSON document
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
    struct run_spread point[METRICS_OUTPUTS][EACH_POINTS];
    unsigned groups;      /* those of the first run; 0: a run has others, or none are known */
    struct each_gap *gap; /* [groups][EACH_GAPS(outputs)]; owned */
    unsigned some, all;   /* gaps that are marked in a run, and in all of them */
};

/* Gaps of a group: SUBGROUP_METRICS of each finding, then underdiagnosis. */
#define EACH_GAPS(outputs)           (SUBGROUP_METRICS * (outputs) + 1)
#define EACH_GAP(metric, k)          ((metric) + SUBGROUP_METRICS * (k))
#define EACH_UNDERDIAGNOSIS(outputs) (SUBGROUP_METRICS * (outputs))

#endif
