/*
 * measure.c - computes the numbers of the report of a run; see run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double
run_share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : (double)NAN;
}

struct scores
run_scores(const struct run_report *r)
{
    return (struct scores){.count = r->p.count,
                           .outputs = r->p.outputs,
                           .score = r->p.probability,
                           .label = r->p.label,
                           .patient = r->patient,
                           .patients = r->patients};
}

static enum chex_status
measure_auroc(struct run_report *r, struct chex_error *err)
{
    const struct scores s = run_scores(r);
    enum chex_status status;

    r->metrics = malloc(sizeof(*r->metrics));
    status = r->metrics ? metrics_compute(&s, RUN_DRAWS, RUN_SEED, r->in->common->threads, r->metrics, err)
                        : error_memory(err);
    return status == CHEX_ERR_USAGE
               ? error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s': too many images of one patient", r->path)
               : status;
}

static void
count_point(const struct run_report *r, unsigned k, struct run_point *point)
{
    size_t i;

    if (isnan(point->threshold))
        return;
    for (i = 0; i < r->p.count; i++) {
        size_t at = i * r->p.outputs + k;

        if (r->p.probability[at] >= (float)point->threshold) {
            point->true_positives += r->p.label[at] == 1;
            point->false_positives += r->p.label[at] == 0;
        }
    }
}

/*
 * Thresholds from 0 to three times the share of positives, at most to 0.95: beyond that, a rare finding has no benefit.
 */
static void
measure_decision(const struct run_report *r, unsigned k, const double *p, struct run_decision *out)
{
    const struct finding_metrics *m = &r->metrics->finding[k];
    double n = (double)(m->positives + m->negatives), share = (double)m->positives / n;
    double most = fmin(0.95, 3 * share);
    unsigned t;
    size_t i;

    for (t = 0; t < RUN_DECISIONS; t++) {
        double threshold = most * t / (RUN_DECISIONS - 1), cost = threshold / (1 - threshold), hits = 0, alarms = 0;

        for (i = 0; i < r->p.count; i++) {
            hits += r->p.label[i * r->p.outputs + k] == 1 && p[i] >= threshold;
            alarms += r->p.label[i * r->p.outputs + k] == 0 && p[i] >= threshold;
        }
        out->threshold[t] = threshold;
        out->network[t] = hits / n - alarms / n * cost;
        out->all[t] = share - (1 - share) * cost;
    }
}

static void
count_classes(const struct run_report *r, unsigned k, struct run_finding *f)
{
    size_t i;

    for (i = 0; i < r->p.count; i++) {
        unsigned label = r->p.label[i * r->p.outputs + k];
        unsigned class = (unsigned)(r->p.probability[i * r->p.outputs + k] * RUN_CLASSES);

        if (label < 2)
            f->by_class[label][class < RUN_CLASSES ? class : RUN_CLASSES - 1]++;
    }
}

/* p: room for an image each */
static enum chex_status
measure_finding(const struct run_report *r, unsigned k, struct run_finding *f, double *p, struct chex_error *err)
{
    const size_t outputs = r->p.outputs;
    enum chex_status status;
    unsigned rule;
    size_t i;

    for (rule = 0; rule < OPERATING_RULES; rule++)
        count_point(r, k, &f->point[rule]);
    for (i = 0; i < r->p.count; i++)
        p[i] = (double)r->p.probability[i * outputs + k];
    status = calibration_measure(p, r->p.label + k, f->enough ? r->p.count : 0, outputs, &f->raw, err);
    if (status != CHEX_OK)
        return status;
    count_classes(r, k, f);
    f->decision.calibrated = !isnan(f->a);
    for (i = 0; i < r->p.count && f->decision.calibrated; i++)
        p[i] = 1 / (1 + exp(-(f->a * calibration_logit(p[i]) + f->b)));
    if (f->enough)
        measure_decision(r, k, p, &f->decision);
    return calibration_measure(p, r->p.label + k, f->enough && !isnan(f->a) ? r->p.count : 0, outputs, &f->calibrated,
                               err);
}

/* Both means are of the same labels and probabilities: they differ only if one of the files was changed. */
#define SAME 1e-6

static enum chex_status
check_mean(const struct run_report *r, struct chex_error *err)
{
    double mean = r->metrics->mean[METRIC_AUROC].value;

    if (isnan(r->mean) || isnan(mean) || fabs(r->mean - mean) <= SAME)
        return CHEX_OK;
    return error_set(err, CHEX_ERR_INCOMPATIBLE,
                     "'%s/metrics-%s.json' does not belong to predictions-%s.csv: its mean AUROC is %.6f, that of the "
                     "predictions %.6f",
                     r->path, r->split, r->split, r->mean, mean);
}

enum chex_status
run_report_measure(struct run_report *r, struct chex_error *err)
{
    enum chex_status status = measure_auroc(r, err);
    double *p = malloc(r->p.count * sizeof(*p));
    unsigned k;

    if (!p && status == CHEX_OK)
        status = error_memory(err);
    if (status == CHEX_OK)
        status = check_mean(r, err);
    for (k = 0; k < r->p.outputs && status == CHEX_OK; k++) {
        const struct finding_metrics *m = &r->metrics->finding[k];

        r->finding[k].enough = m->positive_patients >= METRICS_FEWEST_PATIENTS &&
                               m->negatives >= METRICS_FEWEST_PATIENTS;
        r->enough += r->finding[k].enough;
        status = measure_finding(r, k, &r->finding[k], p, err);
    }
    free(p);
    return status;
}
