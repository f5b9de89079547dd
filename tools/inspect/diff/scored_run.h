/*
 * scored_run.h - reads what `diff --split` compares of a run: its predictions of a split, thresholds and options
 *
 *     predictions-SPLIT.csv   probabilities and labels
 *     metrics-SPLIT.json      the hash of the split's members; the thresholds of val, if the model has any
 *     run.json                the options, for a table of runs; predictions of another program have none
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_DIFF_SCORED_RUN_H
#define CHEX_TOOLS_INSPECT_DIFF_SCORED_RUN_H

#include "eval/compare.h"
#include "eval/predictions_read.h"

#include <jansson.h>

#define SCORED_FILE 4096
#define SCORED_RUNS 100 /* most runs of a comparison */

/* Draws of the bootstrap, exchanges of the swap test, and their seed. */
#define DIFF_DRAWS 1000
#define DIFF_SEED  1

struct scored_run {
    const char *path;
    char label[16];                    /* "A", or "run 3" */
    char file[SCORED_FILE];            /* the path of its predictions */
    char members[80];                  /* hash of the split */
    struct predictions p;              /* of the split */
    double threshold[METRICS_OUTPUTS]; /* Youden's, chosen on val; NaN: none */
    json_t *options; /* scored_runs_read_options(): an object, name and value; NULL: there is no run.json */
};

/* Returns why the numbers of this split are too good, for the user; NULL: no reason is known. */
const char *scored_split_warning(const char *split);

/*
 * Read predictions and thresholds of `count` runs, whose paths and labels are set and whose other members are zero.
 * *failed becomes the run that an error is about.  Release each run with scored_run_release(), also after a failure.
 * CHEX_ERR_INCOMPATIBLE   different splits or findings, with both hashes or names; a file that is not from chex-train
 * CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_USAGE, CHEX_ERR_MEMORY
 */
enum chex_status scored_runs_read(struct scored_run *run, unsigned count, const char *split, unsigned *failed,
                                  struct chex_error *err);
/* Read the options too.  Statuses as above. */
enum chex_status scored_runs_read_options(struct scored_run *run, unsigned count, unsigned *failed,
                                          struct chex_error *err);
/* Write the value of an option, "none" if it is null or missing; returns out. */
#define SCORED_OPTION 256
const char *scored_run_option(const struct scored_run *run, const char *name, char out[SCORED_OPTION]);
void scored_run_release(struct scored_run *run);

/* ---- images that all runs have (match.c) ------------------------------------------------------------------------- */

struct matched {
    unsigned runs, outputs;
    size_t count; /* images */
    uint32_t patients;
    float **score;     /* [runs]: [count][outputs] */
    uint8_t *label;    /* [count][outputs] */
    uint32_t *patient; /* [count] */
    size_t *row;       /* [count]: in the predictions of the first run */
    size_t *only;      /* [runs]: images of it that another run lacks */
    struct arena strings;
};

/*
 * Match the images of all runs by name, in the order of the first run's file: with this order the draws of the
 * bootstrap are those of the run's own intervals.  Images that a run lacks, because they were damaged there, are left
 * out.
 * CHEX_ERR_INCOMPATIBLE   other labels or patients for an image, an image twice, no common image;  CHEX_ERR_MEMORY
 */
enum chex_status matched_make(const struct scored_run *run, unsigned count, struct matched *out,
                              struct chex_error *err);
void matched_release(struct matched *m);

/* Returns the scores of two models for these images, as compare.h takes them. */
struct score_pair matched_pair(const struct matched *m, const float *a, const float *b);
/* Returns the images that are left out, of all runs. */
size_t matched_left_out(const struct matched *m);

#endif
