/*
 * compare.h - compares the scores of two models for the same images: is the difference of their AUROC chance?
 *
 * interval   percentiles over bootstrap replicates of patients, as in metrics.h.  Both models get the same draws, so
 *            what they have in common cancels out
 * p          of the swap test: if neither model is better, then for each patient the scores of the two can be
 *            exchanged.  These are the ranks of the scores among those of the model, because one model may have higher
 *            scores for all images (Venkatraman and Begg, Biometrika 83, 1996).  `swaps` times this is done for a
 *            random half of the patients; p = (1 + n) / (1 + swaps), where n counts the exchanges with a difference at
 *            least as large, in either direction
 * holm       p after Holm's correction for the number of tested findings (Scandinavian Journal of Statistics 6, 1979)
 *
 * A finding without positives or negatives has no AUROC.  One whose positives come from fewer than
 * METRICS_FEWEST_PATIENTS patients has no interval and is not tested.  If no finding is tested, neither is the mean.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_COMPARE_H
#define CHEX_TRAIN_COMPARE_H

#include "eval/metrics.h"

struct score_pair {
    size_t count;            /* images */
    unsigned outputs;        /* findings, at most METRICS_OUTPUTS */
    const float *score[2];   /* of A and of B: [count][outputs] */
    const uint8_t *label;    /* [count][outputs], 0, 1 or CHEX_LABEL_UNKNOWN */
    const uint32_t *patient; /* [count], 0 .. patients - 1 */
    uint32_t patients;
};

struct compared {
    double auroc[2], low[2], high[2]; /* of A and of B; the interval is that of metrics.h, NaN: none */
    struct measured difference;       /* B - A */
    double p, holm;                   /* NaN: not tested; the mean has no holm */
};

struct comparison {
    unsigned outputs, defined, tested; /* findings: all, with an AUROC, with a p */
    uint64_t positives[METRICS_OUTPUTS], negatives[METRICS_OUTPUTS];
    struct compared finding[METRICS_OUTPUTS], mean; /* mean: over the defined findings */
};

struct compare_options {
    unsigned replicates, swaps;
    uint64_t seed;
    unsigned threads;
};

/* Compare.  The result does not depend on threads.  CHEX_ERR_USAGE as metrics_compute();  CHEX_ERR_MEMORY */
enum chex_status compare_scores(const struct score_pair *s, const struct compare_options *o, struct comparison *out,
                                struct chex_error *err);

/* Correct p values by Holm's method; NaN: not tested, and its holm is NaN too. */
void compare_holm(const double *p, double *holm, unsigned count);

/* ---- flags ------------------------------------------------------------------------------------------------------- */

/* Whether two models call an image positive, each at its own threshold: its probability >= threshold. */
struct flag_agreement {
    uint64_t count[2][2]; /* images: [flag of A][flag of B]; their labels do not matter */
    double kappa;         /* Cohen's; NaN: a threshold is NaN, or both models call all images the same */
};

/*
 * Cohen's kappa is (o - e) / (1 - e): o is the share of images on which both agree, e the one expected if they were
 * independent (Educational and Psychological Measurement 20, 1960).  NaN without an image, or if e is 1.
 */
double compare_kappa(const uint64_t count[2][2]);
/* Count the flags of a finding. */
void compare_flags(const struct score_pair *s, unsigned finding, const double threshold[2], struct flag_agreement *out);

#endif
