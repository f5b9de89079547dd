/*
 * metrics.h - exact AUROC and related metrics, a function of the scores only (not of order, ranks or threads)
 *
 * AUROC is the Mann-Whitney statistic with ties counted half, computed from integer counts: one division, no curve, no
 * bins.  Intervals are percentiles over bootstrap replicates.  A replicate draws patients with replacement, not images,
 * because images of one patient are not independent.  A finding without positives or without negatives has no AUROC
 * (NaN) and is left out of the mean.  A finding is measured over the images whose label for it is known.
 *
 * Two tables name the metrics: metric_info and criterion_name.  Documents, metrics.jsonl, TensorBoard, the report and
 * auroc.svg iterate over them.  So a new metric needs a line of the table and its computation in metrics.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_METRICS_H
#define CHEX_TRAIN_METRICS_H

#include "base/error.h"
#include "base/json.h"

/* Scores of the images of a split; higher means more likely.  The caller must not pass NaN: CHEX_ERR_USAGE. */
struct scores {
    size_t count;            /* images */
    unsigned outputs;        /* findings, at most METRICS_OUTPUTS */
    const float *score;      /* [count][outputs] */
    const uint8_t *label;    /* [count][outputs], 0, 1 or CHEX_LABEL_UNKNOWN */
    const uint32_t *patient; /* [count], 0 .. patients - 1 */
    uint32_t patients;
};

#define METRICS_OUTPUTS CHEX_FINDINGS_MAX

/* For the options that make a run a short one: fewer steps or images than a whole run.  No number hides them. */
#define METRICS_SHORT_RUN 64

/* A metric has one number per finding, and the mean over the findings that have an AUROC. */
enum metric { METRIC_AUROC, METRIC_AUPRC, METRIC_COUNT };

struct metric_info {
    const char *name;  /* key, tag, column */
    const char *title; /* heading */
    bool each;         /* logs and run.json have it per finding, too */
};
extern const struct metric_info metric_info[METRIC_COUNT];

/*
 * A finding whose known positives come from fewer patients than this has no interval: draws of so few patients show
 * less than the real uncertainty (one positive with the highest score would give [1, 1]).
 */
#define METRICS_FEWEST_PATIENTS 5

/*
 * NaN if undefined; the interval is also NaN without replicates, if fewer than half of them were defined, or with fewer
 * than METRICS_FEWEST_PATIENTS.
 */
struct measured {
    double value, low, high; /* bounds of the 95 % interval */
};

/* The quantity that a threshold maximises. */
enum criterion {
    CRITERION_YOUDEN, /* sensitivity + specificity - 1 */
    CRITERION_F1,     /* 2 precision * recall / (precision + recall) */
    CRITERION_COUNT
};
extern const char *const criterion_name[CRITERION_COUNT];

/*
 * Returns the threshold that is this score: the number that predictions-SPLIT.csv has for it, so that `>=` on that file
 * gives the same counts.
 */
double metrics_threshold(float score);

/* The best threshold: an image is predicted positive if its score >= threshold. */
struct operating_point {
    double threshold, value; /* value: the maximum; NaN if undefined */
    uint64_t true_positives, false_positives;
};

struct finding_metrics {
    uint64_t positives, negatives; /* images; the labels of all others are unknown */
    uint32_t positive_patients;    /* patients with a positive image */
    struct measured metric[METRIC_COUNT];
    struct operating_point point[CRITERION_COUNT];
};

struct metrics {
    uint64_t images;
    uint32_t patients;
    unsigned outputs, defined; /* defined: findings that have an AUROC */
    struct finding_metrics finding[METRICS_OUTPUTS];
    struct measured mean[METRIC_COUNT]; /* over the defined findings */
    unsigned replicates;
    bool leaky;                        /* set by evaluate(): of a leaky data set or model */
    char short_run[METRICS_SHORT_RUN]; /* set by evaluate(): "--max-steps 100", of a short run; "": of a whole one */
};

/*
 * Compute all metrics.  replicates of the bootstrap, 0 for none; seed selects their draws
 * threads     at least 1; the result does not depend on it
 * CHEX_ERR_USAGE no image, a NaN score, a patient out of range, or a patient with so many images that a draw could have
 * 2^31 of them; CHEX_ERR_MEMORY
 */
enum chex_status metrics_compute(const struct scores *s, unsigned replicates, uint64_t seed, unsigned threads,
                                 struct metrics *out, struct chex_error *err);

/*
 * Divide the replicates among several processes: each computes its part.  The concatenated draws of all parts equal
 * those of one process.
 */
struct bootstrap_options {
    unsigned replicates;
    uint64_t seed;
    unsigned threads;
    unsigned part, parts; /* part < parts */
};

/*
 * Compute everything except the intervals; *draws becomes the result of this part, empty if there is nothing to draw.
 */
enum chex_status metrics_begin(const struct scores *s, const struct bootstrap_options *o, struct metrics *out,
                               struct buffer *draws, struct chex_error *err);
/* Compute the intervals from the draws of all parts.  CHEX_ERR_BUG  draws are missing;  CHEX_ERR_MEMORY */
enum chex_status metrics_end(struct metrics *out, const struct buffer *draws, unsigned threads, struct chex_error *err);

/*
 * Set the 2.5th and 97.5th percentiles of draws, interpolated as numpy.percentile does by default.  NaN draws are left
 * out; the others are moved to the front of `values` and sorted.  Returns their number; if fewer than half are left, 0,
 * and nothing is set.
 */
size_t metrics_interval(double *values, size_t count, double *low, double *high);

/* Returns a metric of a finding in one replicate, from the draws of all parts; NaN if it is undefined there. */
double metrics_draw(const struct metrics *m, const struct buffer *draws, enum metric metric, unsigned finding,
                    unsigned replicate);
/* Count how often each of the patients is drawn in a replicate: times [patients]. */
void metrics_times(uint64_t seed, unsigned replicate, uint32_t patients, uint32_t *times);

/* Set the metrics of an empty set: every number that can be undefined is NaN. */
void metrics_undefined(struct metrics *out);

/* The form of metrics in a JSON document (metrics_document.c). */
enum metrics_form {
    METRICS_DOCUMENT, /* "auroc": {"value", "low", "high"}, "youden": {"threshold", "value", ...} */
    METRICS_LINE,     /* "auroc": VALUE, "auroc_95": [LOW, HIGH], "youden": VALUE, "youden_threshold": VALUE */
    METRICS_SUMMARY   /* as METRICS_LINE, without thresholds */
};
/*
 * Add each metric, null if undefined, "leaky" if it is true and "short_run" unless it is ""; returns false if memory
 * runs out.  metric: one of m, the marks are those of m.
 */
bool metrics_json_add(json_t *object, const struct measured metric[METRIC_COUNT], const struct metrics *m,
                      enum metrics_form form);
/* Add only the marks. */
bool metrics_json_mark(json_t *object, bool leaky, const char *short_run);
/* Returns a list with an object per finding, with its name, or NULL if memory runs out. */
json_t *metrics_json_findings(const struct metrics *m, const char *const *name, enum metrics_form form);
/* Returns the names of the criteria whose thresholds are chosen on the evaluated images; NULL if memory runs out. */
json_t *metrics_json_optimistic(void);

#endif
