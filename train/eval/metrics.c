/*
 * metrics.c - implements metrics.h
 *
 * Each finding is sorted once (ranking.h).  A bootstrap replicate is then one pass over its images with a multiplicity
 * per image (how often its patient was drawn).  So a thousand replicates need a thousand passes but no sorting.  Each
 * pass computes LANES replicates together, so for negatives (most of the images) it consists only of vector additions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/metrics.h"

#include "base/threads.h"
#include "eval/ranking.h"
#include "math/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES 8 /* replicates per pass */

const struct metric_info metric_info[METRIC_COUNT] = {
    [METRIC_AUROC] = {"auroc", "AUROC", .each = true},
    [METRIC_AUPRC] = {"auprc", "AUPRC", .each = false},
};

const char *const criterion_name[CRITERION_COUNT] = {[CRITERION_YOUDEN] = "youden", [CRITERION_F1] = "f1"};

struct draw_job {
    const struct scores *s;
    const struct bootstrap_options *o;
    struct ranking *ranking; /* [outputs] */
    size_t first;            /* first pass of this part */
    double *values;          /* [passes of this part][METRIC_COUNT][outputs + 1][LANES]; the last row has the means */
};

/* ---- one pass -------------------------------------------------------------------------------------------------- */

/* A number for each replicate of a pass. */
struct lanes {
    uint32_t x[LANES];
};

struct pass {
    double value[METRIC_COUNT][LANES];
};

static void
add_images(struct lanes *restrict sum, const struct lanes *restrict times, const uint32_t *restrict patient,
           size_t count)
{
    struct lanes local = *sum; /* in registers */
    size_t i;
    int l;

    for (i = 0; i < count; i++) {
        const struct lanes *m = &times[patient[i]];

        for (l = 0; l < LANES; l++)
            local.x[l] += m->x[l];
    }
    *sum = local;
}

/*
 * times[patient] is the multiplicity of a patient.  AUROC is computed from integers: twice the number of pairs of a
 * positive and a negative, minus twice the pairs with the negative ranked higher, minus the ties.  AUPRC is the average
 * precision: the sum of precision times the step in recall, with tied scores as one step (as
 * sklearn.metrics.average_precision_score).  All counts are below 2^31, see within_limits().
 */
static void
walk(const struct ranking *r, const struct lanes *times, struct pass *out)
{
    struct lanes above_p = {{0}}, above_n = {{0}};
    uint64_t lost[LANES] = {0};
    double precision[LANES] = {0};
    size_t at = 0, i;
    int l;

    for (i = 0; i < r->steps; i++) {
        const struct curve_step *step = &r->step[i];
        struct lanes p = {{0}}, n = {{0}};

        add_images(&above_n, times, r->patient + at, step->before);
        at += step->before;
        add_images(&n, times, r->patient + at, step->negatives);
        at += step->negatives;
        add_images(&p, times, r->patient + at, step->positives);
        at += step->positives;
        for (l = 0; l < LANES; l++) {
            uint32_t all;

            lost[l] += (uint64_t)p.x[l] * (2 * above_n.x[l] + n.x[l]);
            above_n.x[l] += n.x[l];
            above_p.x[l] += p.x[l];
            all = above_p.x[l] + above_n.x[l];
            precision[l] += (double)(int32_t)p.x[l] *
                            ((double)(int32_t)above_p.x[l] / (all ? (double)(int32_t)all : 1));
        }
    }
    add_images(&above_n, times, r->patient + at, r->count - at);
    for (l = 0; l < LANES; l++) {
        double p = (double)above_p.x[l], n = (double)above_n.x[l];
        uint64_t twice = 2 * (uint64_t)above_p.x[l] * above_n.x[l] - lost[l];

        out->value[METRIC_AUROC][l] = p > 0 && n > 0 ? (double)twice / (2 * p * n) : (double)NAN;
        out->value[METRIC_AUPRC][l] = p > 0 && n > 0 ? precision[l] / p : (double)NAN;
    }
}

/* ---- thresholds ------------------------------------------------------------------------------------------------ */

double
metrics_threshold(float score)
{
    char text[32];

    snprintf(text, sizeof(text), "%.9g", (double)score);
    return strtod(text, NULL);
}

/* A threshold below a step with only negatives is never better, for both criteria. */
static void
find_thresholds(const struct ranking *r, struct finding_metrics *out)
{
    uint64_t above_p = 0, above_n = 0;
    size_t i, k;

    for (k = 0; k < CRITERION_COUNT; k++)
        out->point[k].value = -1;
    for (i = 0; i < r->steps; i++) {
        double value[CRITERION_COUNT];

        above_p += r->step[i].positives;
        above_n += r->step[i].before + r->step[i].negatives;
        value[CRITERION_YOUDEN] = (double)above_p / (double)out->positives - (double)above_n / (double)out->negatives;
        value[CRITERION_F1] = 2 * (double)above_p / (double)(above_p + above_n + out->positives);
        /* Of equally good thresholds the highest wins: fewer false alarms. */
        for (k = 0; k < CRITERION_COUNT; k++)
            if (value[k] > out->point[k].value)
                out->point[k] = (struct operating_point){(double)r->step[i].score, value[k], above_p, above_n};
    }
    for (k = 0; k < CRITERION_COUNT; k++)
        out->point[k].threshold = metrics_threshold((float)out->point[k].threshold);
}

static const struct measured no_value = {(double)NAN, (double)NAN, (double)NAN};
static const struct operating_point no_point = {.threshold = (double)NAN, .value = (double)NAN};

void
metrics_undefined(struct metrics *out)
{
    unsigned k, i;

    *out = (struct metrics){.images = 0};
    for (i = 0; i < METRIC_COUNT; i++) {
        out->mean[i] = no_value;
        for (k = 0; k < METRICS_OUTPUTS; k++)
            out->finding[k].metric[i] = no_value;
    }
    for (k = 0; k < METRICS_OUTPUTS; k++)
        for (i = 0; i < CRITERION_COUNT; i++)
            out->finding[k].point[i] = no_point;
}

/* ---- bootstrap ------------------------------------------------------------------------------------------------- */

static void *
times_new(void *context)
{
    const struct draw_job *job = context;

    return malloc(job->s->patients * sizeof(struct lanes));
}

/* Returns the numbers of a pass. */
static size_t
pass_size(unsigned outputs)
{
    return (size_t)METRIC_COUNT * (outputs + 1) * LANES;
}

static size_t
passes_of(unsigned replicates)
{
    return ((size_t)replicates + LANES - 1) / LANES;
}

static double
mean_of_row(const double *values, size_t stride, unsigned count)
{
    double sum = 0;
    unsigned i, defined = 0;

    for (i = 0; i < count; i++) {
        if (!isnan(values[i * stride])) {
            sum += values[i * stride];
            defined++;
        }
    }
    return defined > 0 ? sum / defined : (double)NAN;
}

/* Count how often each patient is drawn in the replicates of a pass. */
static void
draw(const struct draw_job *job, size_t pass, struct lanes *times)
{
    uint32_t patients = job->s->patients, i;
    unsigned l;

    memset(times, 0, patients * sizeof(*times));
    for (l = 0; l < LANES; l++) {
        struct random_stream stream = {job->o->seed, RANDOM_BOOTSTRAP, (uint32_t)(pass * LANES + l), 0};

        for (i = 0; i < patients; i++)
            times[random_below(&stream, i, patients)].x[l]++;
    }
}

static enum chex_status
replicate(void *context, void *worker, size_t item, struct chex_error *err)
{
    struct draw_job *job = context;
    const struct scores *s = job->s;
    double *values = job->values + item * pass_size(s->outputs);
    struct lanes *times = worker;
    struct pass pass;
    unsigned k, l, i;

    (void)err;
    draw(job, job->first + item, times);
    for (k = 0; k < s->outputs; k++) {
        walk(&job->ranking[k], times, &pass);
        for (i = 0; i < METRIC_COUNT; i++)
            memcpy(values + (i * (s->outputs + 1) + k) * LANES, pass.value[i], sizeof(pass.value[i]));
    }
    for (i = 0; i < METRIC_COUNT; i++, values += (s->outputs + 1) * LANES)
        for (l = 0; l < LANES; l++)
            values[s->outputs * LANES + l] = mean_of_row(values + l, LANES, s->outputs);
    return CHEX_OK;
}

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Returns the quantile q of sorted values, interpolated as numpy.percentile does by default. */
static double
quantile(const double *sorted, size_t count, double q)
{
    double at = q * (double)(count - 1);
    size_t below = (size_t)at;

    return below + 1 < count ? sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below])
                             : sorted[count - 1];
}

size_t
metrics_interval(double *values, size_t count, double *low, double *high)
{
    size_t defined = 0, i;

    for (i = 0; i < count; i++)
        if (!isnan(values[i]))
            values[defined++] = values[i];
    if (defined == 0 || defined * 2 < count)
        return 0;
    qsort(values, defined, sizeof(*values), compare_doubles);
    *low = quantile(values, defined, 0.025);
    *high = quantile(values, defined, 0.975);
    return defined;
}

static enum chex_status
draw_part(struct draw_job *job, struct buffer *draws, struct chex_error *err)
{
    const struct bootstrap_options *o = job->o;
    size_t passes = passes_of(o->replicates), end = passes * (o->part + 1) / o->parts;
    struct parallel parallel = {
        .threads = o->threads,
        .work = replicate,
        .worker_new = times_new,
        .worker_free = free,
        .context = job,
    };
    enum chex_status status;

    job->first = passes * o->part / o->parts;
    parallel.count = end - job->first;
    status = buffer_reserve(draws, parallel.count * pass_size(job->s->outputs) * sizeof(double), err);
    if (status != CHEX_OK || parallel.count == 0)
        return status;
    job->values = (double *)(void *)draws->data;
    draws->size = parallel.count * pass_size(job->s->outputs) * sizeof(double);
    return parallel_for(&parallel, err);
}

struct interval_job {
    struct metrics *out;
    const double *values; /* of all passes */
};

static void *
values_new(void *context)
{
    const struct interval_job *job = context;

    return malloc(job->out->replicates * sizeof(double));
}

/* Compute the interval of one metric, for a finding or for the mean. */
static enum chex_status
find_interval(void *context, void *worker, size_t k, struct chex_error *err)
{
    const struct interval_job *job = context;
    struct metrics *out = job->out;
    size_t row = pass_size(out->outputs), metric = k / (out->outputs + 1), finding = k % (out->outputs + 1), r;
    double *one = worker;
    struct measured *m;

    (void)err;
    if (finding < out->outputs && out->finding[finding].positive_patients < METRICS_FEWEST_PATIENTS)
        return CHEX_OK;
    for (r = 0; r < out->replicates; r++)
        one[r] = job->values[r / LANES * row + k * LANES + r % LANES];
    m = finding < out->outputs ? &out->finding[finding].metric[metric] : &out->mean[metric];
    metrics_interval(one, out->replicates, &m->low, &m->high);
    return CHEX_OK;
}

enum chex_status
metrics_end(struct metrics *out, const struct buffer *draws, unsigned threads, struct chex_error *err)
{
    struct interval_job job = {.out = out, .values = (const double *)(const void *)draws->data};
    struct parallel parallel = {
        .count = (size_t)METRIC_COUNT * (out->outputs + 1),
        .threads = threads,
        .work = find_interval,
        .worker_new = values_new,
        .worker_free = free,
        .context = &job,
    };

    if (draws->size == 0)
        return CHEX_OK;
    if (draws->size != passes_of(out->replicates) * pass_size(out->outputs) * sizeof(*job.values))
        return error_set(err, CHEX_ERR_BUG, "the parts of the bootstrap do not fit together");
    return parallel_for(&parallel, err);
}

double
metrics_draw(const struct metrics *m, const struct buffer *draws, enum metric metric, unsigned finding,
             unsigned replicate)
{
    const double *values = (const double *)(const void *)draws->data;
    size_t row = (size_t)metric * (m->outputs + 1) + finding;

    return draws->size == 0 ? (double)NAN
                            : values[replicate / LANES * pass_size(m->outputs) + row * LANES + replicate % LANES];
}

void
metrics_times(uint64_t seed, unsigned replicate, uint32_t patients, uint32_t *times)
{
    struct random_stream stream = {seed, RANDOM_BOOTSTRAP, replicate, 0};
    uint32_t i;

    memset(times, 0, patients * sizeof(*times));
    for (i = 0; i < patients; i++)
        times[random_below(&stream, i, patients)]++;
}

/* ---- public functions ------------------------------------------------------------------------------------------ */

/* Check that no count reaches 2^31, even if every draw selects the patient with the most images. */
static bool
within_limits(const struct scores *s, uint32_t *images)
{
    uint32_t most = 0;
    size_t i;

    if (s->outputs > METRICS_OUTPUTS || s->count == 0 || s->count > INT32_MAX)
        return false;
    memset(images, 0, s->patients * sizeof(*images));
    for (i = 0; i < s->count; i++) {
        if (s->patient[i] >= s->patients)
            return false;
        if (++images[s->patient[i]] > most)
            most = images[s->patient[i]];
    }
    return (uint64_t)most * s->patients <= INT32_MAX;
}

/* Count the patients with a positive image of each finding; `last` has an element for each patient. */
static void
count_patients(const struct scores *s, uint32_t *last, struct metrics *out)
{
    unsigned k;
    size_t i;

    memset(last, 0, s->patients * sizeof(*last));
    for (k = 0; k < s->outputs; k++)
        for (i = 0; i < s->count; i++)
            if (s->label[i * s->outputs + k] == 1 && last[s->patient[i]] != k + 1) {
                last[s->patient[i]] = k + 1;
                out->finding[k].positive_patients++;
            }
}

static void
measure(const struct draw_job *job, struct lanes *times, struct metrics *out)
{
    const struct scores *s = job->s;
    double sum[METRIC_COUNT] = {0};
    struct pass pass;
    uint32_t i;
    unsigned k, m;
    size_t n;
    int l;

    for (i = 0; i < s->patients; i++)
        for (l = 0; l < LANES; l++)
            times[i].x[l] = 1;
    for (k = 0; k < s->outputs; k++) {
        struct finding_metrics *f = &out->finding[k];

        walk(&job->ranking[k], times, &pass);
        for (n = 0; n < job->ranking[k].steps; n++)
            f->positives += job->ranking[k].step[n].positives;
        f->negatives = job->ranking[k].count - f->positives;
        for (m = 0; m < METRIC_COUNT; m++)
            f->metric[m].value = pass.value[m][0];
        if (isnan(f->metric[METRIC_AUROC].value))
            continue;
        find_thresholds(&job->ranking[k], f);
        for (m = 0; m < METRIC_COUNT; m++)
            sum[m] += f->metric[m].value;
        out->defined++;
    }
    for (m = 0; out->defined > 0 && m < METRIC_COUNT; m++)
        out->mean[m].value = sum[m] / out->defined;
}

static enum chex_status
rank_and_measure(struct draw_job *job, struct metrics *out, struct chex_error *err)
{
    const struct scores *s = job->s;
    struct lanes *times = calloc(s->patients ? s->patients : 1, sizeof(*times));
    enum chex_status status;

    if (!times)
        status = error_memory(err);
    else if (!within_limits(s, times[0].x))
        status = error_set(err, CHEX_ERR_USAGE, "metrics of %zu images of %u patients with %u findings", s->count,
                           s->patients, s->outputs);
    else
        status = rankings_new(s, job->o->threads, &job->ranking, err);
    if (status == CHEX_OK) {
        count_patients(s, times[0].x, out);
        measure(job, times, out);
    }
    free(times);
    return status;
}

enum chex_status
metrics_begin(const struct scores *s, const struct bootstrap_options *o, struct metrics *out, struct buffer *draws,
              struct chex_error *err)
{
    struct draw_job job = {.s = s, .o = o};
    enum chex_status status;

    metrics_undefined(out);
    out->images = s->count;
    out->patients = s->patients;
    out->outputs = s->outputs;
    out->replicates = o->replicates;
    draws->size = 0;
    status = rank_and_measure(&job, out, err);
    if (status == CHEX_OK && out->defined > 0)
        status = draw_part(&job, draws, err);
    rankings_free(job.ranking, s->outputs);
    return status;
}

enum chex_status
metrics_compute(const struct scores *s, unsigned replicates, uint64_t seed, unsigned threads, struct metrics *out,
                struct chex_error *err)
{
    const struct bootstrap_options all = {.replicates = replicates, .seed = seed, .threads = threads, .parts = 1};
    struct buffer draws = {0};
    enum chex_status status = metrics_begin(s, &all, out, &draws, err);

    if (status == CHEX_OK)
        status = metrics_end(out, &draws, threads, err);
    buffer_release(&draws);
    return status;
}
