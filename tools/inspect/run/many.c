/*
 * many.c - measures several runs on the same images for the report of a run; see run.h
 *
 * inspect/diff compares the mean AUROC of each run, and of the ensemble, with that of the first run.  Here each run has
 * more measures: their mean, SD and range over the runs, next to the ensemble.  No run is chosen by them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/diff/runs.h"
#include "inspect/run/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Values of all runs, then of the ensemble. */
struct values {
    double measure[SCORED_RUNS + 1][RUN_MEASURES]; /* means over the findings with enough patients */
    double finding[SCORED_RUNS + 1][METRICS_OUTPUTS][RUN_MEASURES];
};

/* Measure Brier, skill and ECE of a finding; p: room for an image each */
static enum chex_status
measure_calibration(const struct matched *images, const float *score, unsigned k, double *p, double *measure,
                    struct chex_error *err)
{
    struct calibration c;
    enum chex_status status;
    size_t i;

    for (i = 0; i < images->count; i++)
        p[i] = (double)score[i * images->outputs + k];
    status = calibration_measure(p, images->label + k, images->count, images->outputs, &c, err);
    if (status != CHEX_OK)
        return status;
    measure[RUN_BRIER] = c.brier;
    measure[RUN_SKILL] = c.skill;
    measure[RUN_ECE] = c.ece;
    return CHEX_OK;
}

/* Measure the scores of a run, or of the ensemble; *m becomes its metrics. */
static enum chex_status
measure_scores(const struct run_report *r, const float *score, unsigned replicates, double *p, struct metrics *m,
               double mean[RUN_MEASURES], double (*finding)[RUN_MEASURES], struct chex_error *err)
{
    const struct matched *images = &r->many->diff->images;
    const struct scores s = {.count = images->count,
                             .outputs = images->outputs,
                             .score = score,
                             .label = images->label,
                             .patient = images->patient,
                             .patients = images->patients};
    enum chex_status status = metrics_compute(&s, replicates, RUN_SEED, r->in->common->threads, m, err);
    unsigned k, n = 0, i;

    for (i = 0; i < RUN_MEASURES; i++)
        mean[i] = 0;
    for (k = 0; k < images->outputs && status == CHEX_OK; k++) {
        const struct finding_metrics *f = &m->finding[k];

        for (i = 0; i < RUN_MEASURES; i++)
            finding[k][i] = (double)NAN;
        r->many->enough[k] = f->positive_patients >= METRICS_FEWEST_PATIENTS && f->negatives >= METRICS_FEWEST_PATIENTS;
        if (!r->many->enough[k])
            continue;
        n++;
        finding[k][RUN_AUROC] = f->metric[METRIC_AUROC].value;
        finding[k][RUN_AUPRC] = f->metric[METRIC_AUPRC].value;
        status = measure_calibration(images, score, k, p, finding[k], err);
        for (i = 0; i < RUN_MEASURES; i++)
            mean[i] += finding[k][i];
    }
    for (i = 0; i < RUN_MEASURES; i++)
        mean[i] = n > 0 ? mean[i] / n : (double)NAN;
    r->many->findings = n;
    return status;
}

struct run_spread
run_spread_of(const double *value, size_t stride, unsigned runs)
{
    struct run_spread s = {.least = INFINITY, .most = -INFINITY, .ensemble = value[runs * stride]};
    double sum = 0, squares = 0;
    unsigned i;

    for (i = 0; i < runs; i++) {
        sum += value[i * stride];
        s.least = fmin(s.least, value[i * stride]);
        s.most = fmax(s.most, value[i * stride]);
    }
    s.mean = sum / runs;
    for (i = 0; i < runs; i++)
        squares += (value[i * stride] - s.mean) * (value[i * stride] - s.mean);
    s.deviation = sqrt(squares / (runs - 1));
    if (isnan(s.mean))
        s.least = s.most = (double)NAN;
    return s;
}

static void
find_twin(struct run_many *m)
{
    const struct matched *images = &m->diff->images;
    const size_t bytes = images->count * images->outputs * sizeof(**images->score);
    unsigned i, k;

    for (i = 1; i < m->diff->count && m->twin == 0; i++)
        for (k = 0; k < i && m->twin == 0; k++)
            if (memcmp(images->score[i], images->score[k], bytes) == 0) {
                m->twin = i;
                m->twin_of = k;
            }
}

static enum chex_status
measure_runs(struct run_report *r, struct values *v, struct metrics *m, double *p, struct chex_error *err)
{
    const struct runs_diff *d = r->many->diff;
    enum chex_status status = CHEX_OK;
    unsigned i, k;

    for (i = 0; i < d->count && status == CHEX_OK; i++)
        status = measure_scores(r, d->images.score[i], 0, p, m, v->measure[i], v->finding[i], err);
    if (status == CHEX_OK)
        status = measure_scores(r, d->ensemble, RUN_DRAWS, p, r->many->ensemble, v->measure[i], v->finding[i], err);
    for (k = 0; k < RUN_MEASURES; k++)
        r->many->measure[k] = run_spread_of(&v->measure[0][k], RUN_MEASURES, d->count);
    for (i = 0; i < r->p.outputs; i++)
        for (k = 0; k < RUN_MEASURES; k++)
            r->many->finding[i][k] = run_spread_of(&v->finding[0][i][k], (size_t)METRICS_OUTPUTS * RUN_MEASURES,
                                                   d->count);
    find_twin(r->many);
    r->many->only_seeds = d->groups == 1 && d->seeds[0].count == d->count;
    return status;
}

enum chex_status
run_report_many(struct run_report *r, const char *const *path, unsigned count, unsigned *failed, struct chex_error *err)
{
    struct values *v = calloc(1, sizeof(*v));
    struct metrics *m = malloc(sizeof(*m));
    double *p = NULL;
    enum chex_status status;

    *failed = 0;
    r->many = calloc(1, sizeof(*r->many));
    if (r->many)
        r->many->ensemble = calloc(1, sizeof(*r->many->ensemble));
    status = v && m && r->many && r->many->ensemble ? CHEX_OK : error_memory(err);
    if (status == CHEX_OK)
        status = runs_diff_make(r->in, path, count, r->split, &r->many->diff, failed, err);
    if (status == CHEX_OK) {
        p = malloc(r->many->diff->images.count * sizeof(*p));
        status = p ? measure_runs(r, v, m, p, err) : error_memory(err);
    }
    free(v);
    free(m);
    free(p);
    return status;
}

void
run_many_free(struct run_many *m)
{
    if (!m)
        return;
    runs_diff_free(m->diff);
    free(m->ensemble);
    free(m);
}
