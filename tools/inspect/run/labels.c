/*
 * labels.c - measures a run against other labels of its images, and how far they agree with its own; see run.h
 *
 * The images of the file of --labels become a second struct run_report, with its labels and the thresholds of the
 * model.  So all numbers come from the functions that measure the run itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/label_file.h"
#include "inspect/run/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Take the images that the file has, with its labels; own: [images of the file][outputs], their labels of the run. */
static enum chex_status
take_images(const struct run_report *r, const struct label_file *f, struct run_report **out, uint8_t *own,
            struct chex_error *err)
{
    const size_t outputs = r->p.outputs;
    size_t *row = malloc(f->found * sizeof(*row)), count = 0, i;
    enum chex_status status = row ? CHEX_OK : error_memory(err);

    for (i = 0; i < r->p.count && status == CHEX_OK; i++)
        if (f->has[i])
            row[count++] = i;
    if (status == CHEX_OK)
        status = run_report_subset(r, row, count, out, err);
    for (i = 0; i < count && status == CHEX_OK; i++) {
        memcpy(own + i * outputs, r->p.label + row[i] * outputs, outputs);
        memcpy((*out)->p.label + i * outputs, f->label + row[i] * outputs, outputs);
    }
    free(row);
    return status;
}

/* Count the images with both labels, and set kappa. */
static void
compare_labels(const struct run_report *o, const uint8_t *own, struct run_agreement *agreement)
{
    const size_t outputs = o->p.outputs;
    unsigned k;
    size_t i;

    for (k = 0; k < outputs; k++) {
        struct run_agreement *a = &agreement[k];
        uint64_t n, positives;

        for (i = 0; i < o->p.count; i++)
            if (own[i * outputs + k] < 2 && o->p.label[i * outputs + k] < 2)
                a->count[own[i * outputs + k]][o->p.label[i * outputs + k]]++;
        n = a->count[0][0] + a->count[0][1] + a->count[1][0] + a->count[1][1];
        positives = n - a->count[0][0];
        a->kappa = n < SUBGROUP_FEWEST || positives < RUN_KAPPA_FEWEST ? (double)NAN : compare_kappa(a->count);
    }
}

/* Measure the AUROC against these labels; NaN: too few. */
static enum chex_status
measure_against(const struct run_report *o, const uint8_t *label, struct metrics *m, struct chex_error *err)
{
    struct scores s = run_scores(o);
    enum chex_status status;
    unsigned k;

    s.label = label;
    status = metrics_compute(&s, RUN_DRAWS, RUN_SEED, o->in->common->threads, m, err);
    for (k = 0; k < o->p.outputs && status == CHEX_OK; k++) {
        struct finding_metrics *f = &m->finding[k];

        if (f->positive_patients < METRICS_FEWEST_PATIENTS || f->negatives < METRICS_FEWEST_PATIENTS)
            f->metric[METRIC_AUROC].value = (double)NAN;
    }
    return status;
}

/* Measure the AUROC against both labels, over the images where both are known.  Changes own. */
static enum chex_status
measure_both(const struct run_report *o, uint8_t *own, struct run_labels *out, struct chex_error *err)
{
    const size_t values = o->p.count * o->p.outputs;
    struct metrics *m = malloc(sizeof(*m));
    uint8_t *other = malloc(values);
    enum chex_status status = m && other ? CHEX_OK : error_memory(err);
    unsigned k;
    size_t i;

    for (i = 0; i < values && status == CHEX_OK; i++) {
        other[i] = own[i] > 1 ? CHEX_LABEL_UNKNOWN : o->p.label[i];
        if (o->p.label[i] > 1)
            own[i] = CHEX_LABEL_UNKNOWN;
    }
    if (status == CHEX_OK)
        status = measure_against(o, own, m, err);
    for (k = 0; k < o->p.outputs && status == CHEX_OK; k++)
        out->agreement[k].own = m->finding[k].metric[METRIC_AUROC];
    if (status == CHEX_OK)
        status = measure_against(o, other, m, err);
    for (k = 0; k < o->p.outputs && status == CHEX_OK; k++)
        out->agreement[k].other = m->finding[k].metric[METRIC_AUROC];
    free(other);
    free(m);
    return status;
}

static enum chex_status
measure_labels(struct run_report *r, const struct label_file *f, struct run_labels *out, struct chex_error *err)
{
    uint8_t *own = malloc(f->found * r->p.outputs);
    enum chex_status status = own ? take_images(r, f, &out->report, own, err) : error_memory(err);
    struct run_report *o = out->report;

    if (status == CHEX_OK)
        status = run_report_measure(o, err);
    if (status == CHEX_OK)
        status = run_report_same_floor(o, r->floor, err);
    if (status == CHEX_OK) {
        compare_labels(o, own, out->agreement);
        status = measure_both(o, own, out, err);
    }
    free(own);
    return status;
}

enum chex_status
run_report_labels(struct run_report *r, struct chex_error *err)
{
    struct label_file f = {.found = 0};
    enum chex_status status;

    if (!r->in->options->labels)
        return CHEX_OK;
    r->labels = calloc(1, sizeof(*r->labels));
    if (!r->labels)
        return error_memory(err);
    status = label_file_read(r->in->options->labels, &r->p, &f, err);
    r->labels->others = f.others;
    r->labels->strange = f.strange;
    memcpy(r->labels->stranger, f.stranger, sizeof(f.stranger));
    memcpy(r->labels->known, f.known, sizeof(f.known));
    if (status == CHEX_OK)
        status = measure_labels(r, &f, r->labels, err);
    label_file_release(&f);
    return status;
}
