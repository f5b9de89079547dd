/*
 * suspects.c - reads the predictions of fold runs and ranks their images; see suspects.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/suspects.h"

#include "inspect/run/run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the folds --------------------------------------------------------------------------------------------------- */

/* Note the fold of a run, and the first run of this fold. */
static void
add_fold(struct run_suspects *s, unsigned run, const struct fold_choice *choice, unsigned *runs)
{
    unsigned k;

    s->folds = choice->count;
    s->fold[run] = choice->index + 1;
    for (k = 0; k < run && s->fold[k] != s->fold[run]; k++)
        ;
    s->first[run] = k;
    s->have += k == run;
    runs[k]++;
}

/* Find out which runs are folds of one N.  Returns false, with why in s->missing. */
static bool
find_folds(const struct runs_diff *d, struct run_suspects *s)
{
    unsigned runs[SCORED_RUNS] = {0}; /* of the fold whose first run this is */
    struct fold_choice choice;
    struct chex_error ignored;
    char text[SCORED_OPTION];
    unsigned i, first = d->count;

    for (i = 0; i < d->count; i++) {
        if (fold_parse(scored_run_option(&d->run[i], "fold", text), &choice, &ignored) != CHEX_OK)
            continue;
        if (s->folds != 0 && s->folds != choice.count) {
            snprintf(s->missing, sizeof(s->missing), "the runs are of %u and of %u folds", s->folds, choice.count);
            return false;
        }
        add_fold(s, i, &choice, runs);
    }
    for (i = 0; i < d->count; i++) {
        if (runs[i] == 0)
            continue;
        first = first == d->count ? i : first;
        if (runs[i] != runs[first]) {
            snprintf(s->missing, sizeof(s->missing),
                     "fold %u/%u has %u run%s, and fold %u/%u has %u: give as many runs of each fold", s->fold[first],
                     s->folds, runs[first], RUN_PLURAL(runs[first]), s->fold[i], s->folds, runs[i]);
            return false;
        }
    }
    s->each = first < d->count ? runs[first] : 0;
    if (s->have < 2)
        snprintf(s->missing, sizeof(s->missing), "the runs are of fewer than two folds (chex-train --fold)");
    return s->have >= 2;
}

/* An image of another fold was seen by this run: its prediction says nothing about its label. */
static enum chex_status
check_patients(const struct run_suspects *s, unsigned run, const char *file, struct chex_error *err)
{
    const struct predictions *p = &s->p[run];
    struct digest *d = digest_new();
    enum chex_status status = d ? CHEX_OK : error_memory(err);
    char name[INSPECT_TEXT];
    size_t i;

    for (i = 0; i < p->count && status == CHEX_OK; i++)
        if (fold_of_patient(d, inspect_bytes(p->patient[i]), s->folds) + 1 != s->fold[run])
            status = error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' has a patient of another fold than %u/%u: '%.80s'",
                               file, s->fold[run], s->folds, inspect_text(inspect_bytes(p->patient[i]), name));
    digest_free(d);
    return status;
}

static enum chex_status
check_findings(const struct run_report *r, const struct predictions *p, const char *file, struct chex_error *err)
{
    unsigned k;

    for (k = 0; k < p->outputs && k < r->p.outputs && strcmp(p->finding[k], r->p.finding[k]) == 0; k++)
        ;
    return k == p->outputs && k == r->p.outputs
               ? CHEX_OK
               : error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' has other findings", file);
}

/* Read the predictions of a fold; a fold without them is missing, which is no error. */
static enum chex_status
read_fold(const struct run_report *r, struct run_suspects *s, unsigned run, struct chex_error *err)
{
    char file[SCORED_FILE];
    enum chex_status status;

    snprintf(file, sizeof(file), "%.3000s/predictions-%.64s.csv", r->many->diff->run[run].path, r->validation);
    status = predictions_read(file, &s->p[run], err);
    if (status == CHEX_ERR_MISSING && err->cause == ENOENT) {
        snprintf(s->missing, sizeof(s->missing), "run %u has no predictions-%.64s.csv", run + 1, r->validation);
        return CHEX_OK;
    }
    if (status == CHEX_OK)
        status = check_findings(r, &s->p[run], file, err);
    if (status == CHEX_OK)
        status = check_patients(s, run, file, err);
    return status;
}

/* Give the first run of a fold the mean of all its runs. */
static void
average_fold(struct run_suspects *s, unsigned first)
{
    struct predictions *p = &s->p[first];
    unsigned run;
    size_t i;

    for (run = first + 1; run < s->runs; run++)
        if (s->fold[run] == s->fold[first] && !predictions_same_images(p, &s->p[run])) {
            snprintf(s->missing, sizeof(s->missing), "runs %u and %u are of one fold, but of other images or labels",
                     first + 1, run + 1);
            return;
        }
    for (i = 0; i < p->count * p->outputs && s->each > 1; i++) {
        double sum = 0;

        for (run = first; run < s->runs; run++)
            sum += s->fold[run] == s->fold[first] ? (double)s->p[run].probability[i] : 0;
        p->probability[i] = (float)(sum / s->each);
    }
    s->images += p->count;
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

struct ranked {
    float p;
    size_t row;
    uint8_t label;
};

static int
by_output(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    return x->p < y->p ? -1 : x->p > y->p ? 1 : x->row < y->row ? -1 : x->row > y->row;
}

static const char *
name_of(const struct run_suspects *s, const struct suspect *x)
{
    return s->p[x->run].image[x->row];
}

/* Returns whether x disagrees more with its label than y; equal ones are in the order of their names. */
static bool
is_before(const struct run_suspects *s, unsigned label, const struct suspect *x, const struct suspect *y)
{
    if (x->lower < y->lower || x->lower > y->lower)
        return (x->lower < y->lower) == (label == 1);
    return strcmp(name_of(s, x), name_of(s, y)) < 0;
}

/* Insert x, and drop the last one if the list is full. */
static void
insert(const struct run_suspects *s, struct suspect_list *list, unsigned label, const struct suspect *x)
{
    struct suspect *of = list->of[label];
    unsigned at = list->count[label];

    if (at == SUSPECTS && !is_before(s, label, x, &of[SUSPECTS - 1]))
        return;
    at = at == SUSPECTS ? SUSPECTS - 1 : at;
    for (; at > 0 && is_before(s, label, x, &of[at - 1]); at--)
        of[at] = of[at - 1];
    of[at] = *x;
    list->count[label] += list->count[label] < SUSPECTS;
}

/* Rank the images of a fold by the output for finding k; image: room for all of them */
static void
rank_fold(struct run_suspects *s, unsigned run, unsigned k, struct ranked *image)
{
    const struct predictions *p = &s->p[run];
    size_t count = 0, first, end, i;

    for (i = 0; i < p->count; i++)
        if (p->label[i * p->outputs + k] < 2)
            image[count++] = (struct ranked){p->probability[i * p->outputs + k], i, p->label[i * p->outputs + k]};
    qsort(image, count, sizeof(*image), by_output);
    for (first = 0; first < count; first = end) {
        for (end = first + 1; end < count && image[end].p <= image[first].p; end++)
            ;
        for (i = first; i < end; i++) {
            const struct suspect x = {.run = run,
                                      .row = image[i].row,
                                      .p = image[i].p,
                                      .lower = (double)(first + end - 1) / (2 * (double)count)};

            if (image[i].label == 1 ? x.lower < 0.5 : x.lower > 0.5)
                insert(s, &s->finding[k], image[i].label, &x);
        }
    }
}

/* Rank a fold for each finding with enough patients and an AUROC above 0.5: other outputs say nothing about labels. */
static enum chex_status
rank_findings(struct run_report *r, struct run_suspects *s, unsigned run, struct metrics *m, struct chex_error *err)
{
    const struct predictions *p = &s->p[run];
    uint32_t *patient = malloc(p->count * sizeof(*patient));
    struct ranked *image = malloc(p->count * sizeof(*image));
    struct scores scores = {
        .count = p->count, .outputs = p->outputs, .score = p->probability, .label = p->label, .patient = patient};
    enum chex_status status = patient && image ? CHEX_OK : error_memory(err);
    unsigned k;

    if (status == CHEX_OK)
        status = run_number_patients(p, &r->strings, patient, &scores.patients, err);
    if (status == CHEX_OK)
        status = metrics_compute(&scores, 0, RUN_SEED, r->in->common->threads, m, err);
    for (k = 0; k < p->outputs && status == CHEX_OK; k++) {
        const struct finding_metrics *f = &m->finding[k];

        if (f->positive_patients < METRICS_FEWEST_PATIENTS || f->negatives < SUBGROUP_FEWEST ||
            !(f->metric[METRIC_AUROC].value > 0.5))
            continue;
        s->finding[k].auroc += f->metric[METRIC_AUROC].value;
        s->finding[k].folds++;
        rank_fold(s, run, k, image);
    }
    free(patient);
    free(image);
    return status;
}

enum chex_status
run_report_suspects(struct run_report *r, struct chex_error *err)
{
    struct run_suspects *s;
    struct metrics *m;
    enum chex_status status;
    unsigned i, k;

    if (!r->many)
        return CHEX_OK;
    r->suspects = s = calloc(1, sizeof(*s));
    if (!s)
        return error_memory(err);
    s->runs = r->many->diff->count;
    s->p = calloc(s->runs, sizeof(*s->p));
    m = malloc(sizeof(*m));
    status = s->p && m ? CHEX_OK : error_memory(err);
    if (status == CHEX_OK && !r->validation[0])
        snprintf(s->missing, sizeof(s->missing), "the first run names no validation split");
    else if (status == CHEX_OK)
        find_folds(r->many->diff, s);
    for (i = 0; i < s->runs && status == CHEX_OK && !s->missing[0]; i++)
        if (s->fold[i] > 0)
            status = read_fold(r, s, i, err);
    for (i = 0; i < s->runs && status == CHEX_OK && !s->missing[0]; i++)
        if (s->fold[i] > 0 && s->first[i] == i)
            average_fold(s, i);
    for (i = 0; i < s->runs && status == CHEX_OK && !s->missing[0]; i++)
        if (s->fold[i] > 0 && s->first[i] == i)
            status = rank_findings(r, s, i, m, err);
    for (k = 0; k < METRICS_OUTPUTS; k++)
        s->finding[k].auroc = s->finding[k].folds > 0 ? s->finding[k].auroc / s->finding[k].folds : (double)NAN;
    free(m);
    return status;
}

void
run_suspects_free(struct run_suspects *s)
{
    unsigned i;

    for (i = 0; s && s->p && i < s->runs; i++)
        predictions_release(&s->p[i]);
    if (s)
        free(s->p);
    free(s);
}
