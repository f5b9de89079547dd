/*
 * subgroups.c - see subgroups.h; SUBGROUP_BIAS is in subgroup_bias.c
 *
 * TPR and FPR are shares of integer counts, so a replicate needs one vector of counts for each patient, times how often
 * the patient is drawn.  AUROC comes from metrics.c: the group and the rest are two outputs for each finding, with
 * unknown labels for the images of the other side.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/subgroups_private.h"

#include "base/threads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FINDINGS_AT_ONCE (METRICS_OUTPUTS / 2)

/* Counts of a side: images of a label, and those called positive.  Label 1 of the last finding is underdiagnosis. */
enum { ALL, CALLED, COUNTS };

struct rates {
    const struct subgroup_input *in;
    struct subgroup *out;
    unsigned findings; /* outputs + 1 */
    size_t size;       /* counts of a patient */
    uint32_t *count;   /* [patients][size] */
    double *gap;       /* [replicates][findings][2], by label */
};

static size_t
count_at(unsigned finding, unsigned side, unsigned label)
{
    return (((size_t)finding * 2 + side) * 2 + label) * COUNTS;
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

/* Add an image to the counts of its patient. */
static void
count_image(const struct rates *r, size_t i)
{
    const struct scores *s = r->in->s;
    uint32_t *count = r->count + s->patient[i] * r->size;
    unsigned side = r->in->side[i], k;
    bool ill = false, called = false;

    if (side == SUBGROUP_OUT)
        return;
    for (k = 0; k < s->outputs; k++) {
        unsigned label = s->label[i * s->outputs + k];
        bool positive = s->score[i * s->outputs + k] >= r->in->threshold[k];

        if (isnan(r->in->threshold[k]))
            continue;
        ill |= label == 1;
        called |= positive;
        if (label > 1)
            continue;
        count[count_at(k, side, label) + ALL]++;
        count[count_at(k, side, label) + CALLED] += positive;
    }
    count[count_at(s->outputs, side, 1) + ALL] += ill;
    count[count_at(s->outputs, side, 1) + CALLED] += ill && !called;
}

static double
share(const uint64_t *sum, unsigned finding, unsigned side, unsigned label)
{
    const uint64_t *count = sum + count_at(finding, side, label);

    return count[ALL] > 0 ? (double)count[CALLED] / (double)count[ALL] : (double)NAN;
}

static struct subgroup_cell *
cell_of(struct subgroup *g, unsigned outputs, unsigned finding, unsigned label)
{
    if (finding == outputs)
        return label == 1 ? &g->underdiagnosis : NULL;
    return &g->cell[label == 1 ? SUBGROUP_TPR : SUBGROUP_FPR][finding];
}

static bool
is_enough(const struct rates *r, const uint64_t *sum, size_t at)
{
    uint32_t patients = 0, i;

    for (i = 0; i < r->in->s->patients; i++)
        patients += r->count[i * r->size + at + ALL] > 0;
    return sum[at + ALL] >= SUBGROUP_FEWEST && patients >= METRICS_FEWEST_PATIENTS;
}

static void
set_values(const struct rates *r, const uint64_t *sum)
{
    unsigned k, label, side;

    for (k = 0; k < r->findings; k++)
        for (label = 0; label < 2; label++) {
            struct subgroup_cell *c = cell_of(r->out, r->findings - 1, k, label);

            for (side = 0; c && side < 2; side++)
                if (is_enough(r, sum, count_at(k, side, label)))
                    c->value[side] = share(sum, k, side, label);
        }
}

/* ---- replicates -------------------------------------------------------------------------------------------------- */

struct rates_worker {
    uint32_t *times; /* [patients] */
    uint64_t *sum;   /* [size] */
};

static void
worker_free(void *worker)
{
    struct rates_worker *w = worker;

    if (!w)
        return;
    free(w->times);
    free(w->sum);
    free(w);
}

static void *
worker_new(void *context)
{
    const struct rates *r = context;
    struct rates_worker *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->times = malloc(r->in->s->patients * sizeof(*w->times));
    w->sum = malloc(r->size * sizeof(*w->sum));
    if (w->times && w->sum)
        return w;
    worker_free(w);
    return NULL;
}

static void
add_up(const struct rates *r, const uint32_t *times, uint64_t *sum)
{
    uint32_t i;
    size_t k;

    memset(sum, 0, r->size * sizeof(*sum));
    for (i = 0; i < r->in->s->patients; i++) {
        const uint32_t *count = r->count + i * r->size;
        uint64_t n = times ? times[i] : 1;

        for (k = 0; n > 0 && k < r->size; k++)
            sum[k] += n * count[k];
    }
}

static enum chex_status
replicate(void *context, void *worker, size_t item, struct chex_error *err)
{
    const struct rates *r = context;
    struct rates_worker *w = worker;
    double *gap = r->gap + item * r->findings * 2;
    unsigned k, label;

    (void)err;
    metrics_times(r->in->seed, (unsigned)item, r->in->s->patients, w->times);
    add_up(r, w->times, w->sum);
    for (k = 0; k < r->findings; k++)
        for (label = 0; label < 2; label++)
            gap[k * 2 + label] = share(w->sum, k, SUBGROUP_IN, label) - share(w->sum, k, SUBGROUP_REST, label);
    return CHEX_OK;
}

static void
conclude_rates(const struct rates *r, double *draw)
{
    unsigned k, label, i;

    for (k = 0; k < r->findings; k++)
        for (label = 0; label < 2; label++) {
            struct subgroup_cell *c = cell_of(r->out, r->findings - 1, k, label);

            if (!c)
                continue;
            for (i = 0; i < r->in->replicates; i++)
                draw[i] = r->gap[((size_t)i * r->findings + k) * 2 + label];
            subgroup_conclude(c, true, draw, r->in->replicates);
        }
}

static enum chex_status
measure_rates(const struct subgroup_input *in, struct subgroup *out, double *draw, struct chex_error *err)
{
    struct rates r = {.in = in, .out = out, .findings = in->s->outputs + 1, .size = count_at(in->s->outputs + 1, 0, 0)};
    struct parallel parallel = {.count = in->replicates,
                                .threads = in->threads,
                                .work = replicate,
                                .worker_new = worker_new,
                                .worker_free = worker_free,
                                .context = &r};
    uint64_t *sum = malloc(r.size * sizeof(*sum));
    enum chex_status status;
    size_t i;

    r.count = calloc(in->s->patients ? in->s->patients : 1, r.size * sizeof(*r.count));
    r.gap = malloc((in->replicates ? in->replicates : 1) * (size_t)r.findings * 2 * sizeof(*r.gap));
    status = sum && r.count && r.gap ? CHEX_OK : error_memory(err);
    if (status == CHEX_OK) {
        for (i = 0; i < in->s->count; i++)
            count_image(&r, i);
        add_up(&r, NULL, sum);
        set_values(&r, sum);
        status = parallel_for(&parallel, err);
    }
    if (status == CHEX_OK)
        conclude_rates(&r, draw);
    free(sum);
    free(r.count);
    free(r.gap);
    return status;
}

/* ---- AUROC ------------------------------------------------------------------------------------------------------- */

/* Outputs 2k and 2k + 1 are finding first + k of the group and of the rest. */
static void
split_sides(const struct subgroup_input *in, unsigned first, unsigned findings, float *score, uint8_t *label)
{
    const struct scores *s = in->s;
    unsigned k, side;
    size_t i;

    for (i = 0; i < s->count; i++)
        for (k = 0; k < findings; k++)
            for (side = 0; side < 2; side++) {
                size_t from = i * s->outputs + first + k, to = (i * findings + k) * 2 + side;

                score[to] = s->score[from];
                label[to] = in->side[i] == side ? s->label[from] : CHEX_LABEL_UNKNOWN;
            }
}

static void
conclude_auroc(const struct subgroup_input *in, const struct metrics *m, const struct buffer *draws, unsigned first,
               unsigned findings, struct subgroup *out, double *draw)
{
    unsigned k, side, i;

    for (k = 0; k < findings; k++) {
        struct subgroup_cell *c = &out->cell[SUBGROUP_AUROC][first + k];

        for (side = 0; side < 2; side++) {
            const struct finding_metrics *f = &m->finding[2 * k + side];

            if (f->positives >= SUBGROUP_FEWEST && f->negatives >= SUBGROUP_FEWEST &&
                f->positive_patients >= METRICS_FEWEST_PATIENTS)
                c->value[side] = f->metric[METRIC_AUROC].value;
        }
        for (i = 0; i < in->replicates; i++)
            draw[i] = metrics_draw(m, draws, METRIC_AUROC, 2 * k, i) -
                      metrics_draw(m, draws, METRIC_AUROC, 2 * k + 1, i);
        subgroup_conclude(c, true, draw, in->replicates);
    }
}

static enum chex_status
measure_auroc(const struct subgroup_input *in, unsigned first, unsigned findings, struct subgroup *out, double *draw,
              struct chex_error *err)
{
    const struct bootstrap_options options = {
        .replicates = in->replicates, .seed = in->seed, .threads = in->threads, .parts = 1};
    size_t values = in->s->count * findings * 2;
    float *score = malloc((values ? values : 1) * sizeof(*score));
    uint8_t *label = malloc(values ? values : 1);
    struct metrics *m = malloc(sizeof(*m));
    struct buffer draws = {0};
    struct scores s = *in->s;
    enum chex_status status = score && label && m ? CHEX_OK : error_memory(err);

    if (status == CHEX_OK) {
        split_sides(in, first, findings, score, label);
        s.outputs = 2 * findings;
        s.score = score;
        s.label = label;
        status = metrics_begin(&s, &options, m, &draws, err);
    }
    if (status == CHEX_OK)
        conclude_auroc(in, m, &draws, first, findings, out, draw);
    buffer_release(&draws);
    free(score);
    free(label);
    free(m);
    return status;
}

/* ---- public functions -------------------------------------------------------------------------------------------- */

enum chex_status
subgroup_measure(const struct subgroup_input *in, struct subgroup *out, struct chex_error *err)
{
    static const double none = (double)NAN;
    const struct subgroup_cell empty = {{none, none}, {none, none, none}, none, none};
    double *draw = malloc((in->replicates ? in->replicates : 1) * sizeof(*draw));
    enum chex_status status = draw ? CHEX_OK : error_memory(err);
    unsigned k, i, at;
    size_t n;

    *out = (struct subgroup){.underdiagnosis = empty};
    for (i = 0; i < SUBGROUP_METRICS; i++)
        for (k = 0; k < METRICS_OUTPUTS; k++)
            out->cell[i][k] = empty;
    for (n = 0; n < in->s->count; n++)
        if (in->side[n] != SUBGROUP_OUT)
            out->images[in->side[n]]++;
    if (status == CHEX_OK)
        status = measure_rates(in, out, draw, err);
    for (at = 0; at < in->s->outputs && status == CHEX_OK; at += FINDINGS_AT_ONCE) {
        unsigned left = in->s->outputs - at;

        status = measure_auroc(in, at, left < FINDINGS_AT_ONCE ? left : FINDINGS_AT_ONCE, out, draw, err);
    }
    if (status == CHEX_OK && in->probability)
        status = subgroup_measure_bias(in, out, draw, err);
    free(draw);
    return status;
}

static int
by_p(const void *a, const void *b)
{
    double x = (*(struct subgroup_cell *const *)a)->p, y = (*(struct subgroup_cell *const *)b)->p;

    return x < y ? -1 : x > y;
}

enum chex_status
subgroups_correct(struct subgroup *group, size_t groups, unsigned outputs, unsigned *tested, struct chex_error *err)
{
    size_t most = groups * (SUBGROUP_METRICS * (size_t)outputs + 1), count = 0, g, i;
    struct subgroup_cell **cell = malloc((most ? most : 1) * sizeof(*cell));
    double least = 0;
    unsigned m, k;

    if (!cell)
        return error_memory(err);
    for (g = 0; g < groups; g++) {
        for (m = 0; m < SUBGROUP_METRICS; m++)
            for (k = 0; k < outputs; k++)
                if (!isnan(group[g].cell[m][k].p))
                    cell[count++] = &group[g].cell[m][k];
        if (!isnan(group[g].underdiagnosis.p))
            cell[count++] = &group[g].underdiagnosis;
    }
    qsort(cell, count, sizeof(*cell), by_p);
    for (i = 0; i < count; i++)
        cell[i]->holm = least = fmax(least, fmin(1, cell[i]->p * (double)(count - i)));
    *tested = (unsigned)count;
    free(cell);
    return CHEX_OK;
}
