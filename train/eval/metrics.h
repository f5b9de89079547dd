/*
 * metrics.h - AUROC and what belongs to it, exact: a function of the scores alone, whatever the order, ranks or threads
 *
 * AUROC is the Mann-Whitney statistic with ties counted half, from integer counts: one division, no curve, no bins.
 * Intervals are percentiles over bootstrap replicates that draw patients, not images, with replacement: images of one
 * patient are not independent.  A finding without positives, or without negatives, has no AUROC (NaN) and is left out
 * of the mean.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_METRICS_H
#define CHEX_TRAIN_METRICS_H

#include "base/error.h"

/* Scores of the images of one split; higher means more likely.  NaN scores are the caller's fault: CHEX_ERR_USAGE. */
struct scores {
    size_t count;            /* images */
    unsigned outputs;        /* findings, at most METRICS_OUTPUTS */
    const float *score;      /* [count][outputs] */
    const uint8_t *label;    /* [count][outputs], 0 or 1 */
    const uint32_t *patient; /* [count], 0 .. patients - 1 */
    uint32_t patients;
};

#define METRICS_OUTPUTS 64

struct interval {
    double low, high; /* 95 %; NaN without replicates, or where fewer than half of them were defined */
};

/* A threshold that maximises something: an image is called positive where its score >= threshold. */
struct operating_point {
    double threshold, value; /* value: the maximum; NaN where undefined */
    uint64_t true_positives, false_positives;
};

struct finding_metrics {
    uint64_t positives;
    double auroc, auprc; /* NaN where undefined */
    struct interval auroc_95, auprc_95;
    struct operating_point youden; /* of sensitivity + specificity - 1 */
    struct operating_point f1;     /* of 2 precision * recall / (precision + recall) */
};

struct metrics {
    uint64_t images;
    uint32_t patients;
    unsigned outputs, defined; /* findings that have an AUROC */
    struct finding_metrics finding[METRICS_OUTPUTS];
    double mean_auroc, mean_auprc; /* over the defined ones; NaN where there is none */
    struct interval mean_auroc_95, mean_auprc_95;
    unsigned replicates;
};

/*
 * replicates  of the bootstrap, 0 for none; seed names their draws
 * threads     at least 1; the result does not depend on it
 * CHEX_ERR_USAGE  no image, a score that is no number, a patient out of range, or one with so many images that a draw
 *                 could have 2^31;  CHEX_ERR_MEMORY
 */
enum chex_status metrics_compute(const struct scores *s, unsigned replicates, uint64_t seed, unsigned threads,
                                 struct metrics *out, struct chex_error *err);

/* Metrics of nothing: every number that could be undefined is. */
void metrics_undefined(struct metrics *out);

#endif
