/*
 * suspects.h - suspect labels: images whose label disagrees most with the runs that did not see their patient
 *
 * The runs of --fold 1/N to N/N each predict the validation images of their own fold (predictions-VAL.csv), which they
 * were not trained on.  A fold may have several runs, such as seeds: then their mean counts.  All folds must have as
 * many, because a mean of more runs is better.  For each finding, the images of a fold are ordered by its output.  The
 * share of the fold's images with a lower output (ties count half) makes the folds comparable, whatever the scale of
 * their outputs.  The lists have the positive images with the smallest share, and the negative images with the largest.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_RUN_SUSPECTS_H
#define CHEX_TOOLS_INSPECT_RUN_SUSPECTS_H

#include "data/fold.h"
#include "eval/predictions_read.h"
#include "inspect/diff/runs.h"

#define SUSPECTS 6 /* of a label, in a list */

struct suspect {
    unsigned run; /* of the command; the first one of its fold */
    size_t row;   /* of its predictions */
    float p;
    double lower; /* share of the images of the fold with a lower output */
    bool found;   /* in the data set, at: */
    unsigned shard;
    uint32_t index;
};

struct suspect_list {
    double auroc;      /* mean over the folds that were ranked; NaN: none had enough patients */
    unsigned folds;    /* that were ranked */
    unsigned count[2]; /* by label */
    struct suspect of[2][SUSPECTS];
};

struct run_suspects {
    char missing[160];     /* why there are none; "": there are */
    unsigned folds;        /* N */
    unsigned have;         /* folds with a run */
    struct predictions *p; /* [runs] of the validation images; the first run of a fold has the mean; owned */
    unsigned runs;
    unsigned fold[SCORED_RUNS];  /* from 1; 0: the run is no fold */
    unsigned first[SCORED_RUNS]; /* the first run of its fold */
    unsigned each;               /* runs of a fold */
    size_t images;
    struct suspect_list finding[METRICS_OUTPUTS];
};

#endif
