/*
 * runs.h - a table of many runs on one split, for `diff --split NAME RUN RUN RUN...`
 *
 * Each run, and the ensemble (the mean of the probabilities of all runs), is compared with the first run.  All get the
 * same draws of patients.
 *
 *     runs.c          compares, and finds the options that differ
 *     runs_report.c   prints
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_DIFF_RUNS_H
#define CHEX_TOOLS_INSPECT_DIFF_RUNS_H

#include "inspect/diff/scored_run.h"
#include "inspect/inspect.h"

#define RUNS_OPTIONS 64 /* most options that are shown */

struct runs_row {
    double auroc, low, high;    /* of the mean */
    struct measured difference; /* to the first run; NaN in its row */
    double p, holm;             /* Holm: for the number of rows with a p */
    unsigned worst;             /* the finding with the lowest AUROC; with none: outputs */
    double worst_auroc;
};

/* Runs that differ only in their seed. */
struct seed_group {
    unsigned run[SCORED_RUNS], count;
    double mean, deviation, least, most; /* of their mean AUROC; the deviation is that of a sample */
};

struct runs_diff {
    struct inspect *in;
    const char *split;
    unsigned count;
    struct scored_run run[SCORED_RUNS];
    struct matched images;
    float *ensemble;                      /* [images][outputs] mean of the probabilities of all runs; owned */
    unsigned defined;                     /* findings with an AUROC */
    struct runs_row row[SCORED_RUNS + 1]; /* the last one, row[count], is the ensemble */
    const char *option[RUNS_OPTIONS];     /* names that differ, sorted; they live in the options of the runs */
    unsigned options;
    struct seed_group seeds[SCORED_RUNS / 2];
    unsigned groups;
};

/*
 * Read and compare predictions-SPLIT.csv of `count` runs.  *failed becomes the run that an error is about.  Free *out
 * with runs_diff_free(), also after a failure.  Statuses of scored_runs_read(), matched_make() and compare_scores()
 */
enum chex_status runs_diff_make(struct inspect *in, const char *const *path, unsigned count, const char *split,
                                struct runs_diff **out, unsigned *failed, struct chex_error *err);
void runs_diff_free(struct runs_diff *d); /* NULL is allowed */
/* Format the options of a run that differ, "NAME=VALUE", separated by blanks (runs_report.c). */
#define RUNS_OPTIONS_TEXT 4096
void runs_diff_options(const struct runs_diff *d, unsigned run, char out[RUNS_OPTIONS_TEXT]);

/* Make this comparison, and print the table.  Returns the exit code. */
int inspect_runs_diff(struct inspect *in, const char *const *path, unsigned count, const char *split);

/* Formats a struct runs_diff (runs_report.c). */
extern const struct inspect_result runs_result;

#endif
