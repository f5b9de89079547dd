/*
 * metrics.h - AUROC and what belongs to it, exact: a function of the scores alone, whatever the order, ranks or threads
 *
 * AUROC is the Mann-Whitney statistic with ties counted half, from integer counts: one division, no curve, no bins.
 * Intervals are percentiles over bootstrap replicates that draw patients, not images, with replacement: images of one
 * patient are not independent.  A finding without positives, or without negatives, has no AUROC (NaN) and is left out
 * of the mean.
 *
 * Two tables name the metrics: metric_info and criterion_name.  Documents, metrics.jsonl, TensorBoard, Prometheus,
 * the report and auroc.svg walk them, so a new metric is a line of the table and its computation in metrics.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_METRICS_H
#define CHEX_TRAIN_METRICS_H

#include "base/error.h"
#include "base/json.h"

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

/* One number for each finding, and its mean over the findings that have an AUROC. */
enum metric { METRIC_AUROC, METRIC_AUPRC, METRIC_COUNT };

struct metric_info {
    const char *name;  /* key, tag, column */
    const char *title; /* heading */
    bool each;         /* logs and run.json have it for each finding, too */
};
extern const struct metric_info metric_info[METRIC_COUNT];

/* NaN where undefined; the interval also without replicates, or where fewer than half of them were defined. */
struct measured {
    double value, low, high; /* of the 95 % interval */
};

/* What a threshold maximises. */
enum criterion {
    CRITERION_YOUDEN, /* sensitivity + specificity - 1 */
    CRITERION_F1,     /* 2 precision * recall / (precision + recall) */
    CRITERION_COUNT
};
extern const char *const criterion_name[CRITERION_COUNT];

/* The best threshold: an image is called positive where its score >= threshold. */
struct operating_point {
    double threshold, value; /* value: the maximum; NaN where undefined */
    uint64_t true_positives, false_positives;
};

struct finding_metrics {
    uint64_t positives;
    struct measured metric[METRIC_COUNT];
    struct operating_point point[CRITERION_COUNT];
};

struct metrics {
    uint64_t images;
    uint32_t patients;
    unsigned outputs, defined; /* findings that have an AUROC */
    struct finding_metrics finding[METRICS_OUTPUTS];
    struct measured mean[METRIC_COUNT]; /* over the defined ones */
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

/*
 * The same by several processes, which share the replicates: each makes its part of them, and what the parts found, one
 * behind the other, is what one process finds.
 */
struct bootstrap_options {
    unsigned replicates;
    uint64_t seed;
    unsigned threads;
    unsigned part, parts; /* part < parts */
};

/* All but the intervals; *draws becomes what this part found, nothing where there is nothing to draw. */
enum chex_status metrics_begin(const struct scores *s, const struct bootstrap_options *o, struct metrics *out,
                               struct buffer *draws, struct chex_error *err);
/* The intervals from the draws of all parts.  CHEX_ERR_BUG  these are not all;  CHEX_ERR_MEMORY */
enum chex_status metrics_end(struct metrics *out, const struct buffer *draws, unsigned threads, struct chex_error *err);

/* Metrics of nothing: every number that could be undefined is. */
void metrics_undefined(struct metrics *out);

/* How a JSON document shows metrics (metrics_document.c). */
enum metrics_form {
    METRICS_DOCUMENT, /* "auroc": {"value", "low", "high"}, "youden": {"threshold", "value", ...} */
    METRICS_LINE,     /* "auroc": VALUE, "auroc_95": [LOW, HIGH], "youden": VALUE, "youden_threshold": VALUE */
    METRICS_SUMMARY   /* the same without thresholds */
};
/* Add each metric; null where undefined.  False: out of memory. */
bool metrics_json_add(json_t *object, const struct measured metric[METRIC_COUNT], enum metrics_form form);
/* A list with an object for each finding; NULL: out of memory. */
json_t *metrics_json_findings(const struct metrics *m, enum metrics_form form);
/* The names of the criteria, whose thresholds are chosen on the images that are judged; NULL: out of memory. */
json_t *metrics_json_optimistic(void);

#endif
