/*
 * metrics.c - see metrics.h
 *
 * Each finding is sorted once, by falling score.  A bootstrap replicate is then one pass with a multiplicity for each
 * image (how often its patient was drawn), so that a thousand of them cost a thousand passes and no sorting.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "metrics.h"

#include "pipeline.h"
#include "random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One finding, sorted. */
struct ranking {
    uint32_t *image; /* by falling score */
    uint8_t *tied;   /* same score as the next one */
};

struct job {
    const struct scores *s;
    uint64_t seed;
    unsigned replicates;
    struct ranking *ranking; /* [outputs] */
    double *auroc, *auprc;   /* [outputs + 1][replicates]; the last row: their means */
};

/* ---- one pass -------------------------------------------------------------------------------------------------- */

struct pass {
    uint64_t positives, negatives;
    double auroc, auprc;
};

/*
 * times[patient] is how often it counts; NULL: once.  AUROC from integers: twice the number of pairs in which the positive
 * stands above the negative, ties counted once.  AUPRC is the average precision, sum of precision times the step in
 * recall, with tied scores as one step (as sklearn.metrics.average_precision_score).
 */
static struct pass
walk(const struct scores *s, const struct ranking *r, unsigned finding, const uint32_t *times)
{
    unsigned __int128 twice = 0;
    uint64_t above_p = 0, above_n = 0, p = 0, n = 0; /* of earlier steps; of this step */
    double precision = 0;
    size_t i;

    for (i = 0; i < s->count; i++) {
        uint32_t image = r->image[i];
        uint64_t m = times ? times[s->patient[image]] : 1;

        if (s->label[(size_t)image * s->outputs + finding])
            p += m;
        else
            n += m;
        if (r->tied[i])
            continue;
        /* Negatives of this step are below all positives above, and level with those of this step. */
        twice += (unsigned __int128)n * (2 * above_p + p);
        above_p += p;
        above_n += n;
        if (p > 0)
            precision += (double)p * ((double)above_p / (double)(above_p + above_n));
        p = n = 0;
    }
    return (struct pass){
        .positives = above_p,
        .negatives = above_n,
        .auroc = above_p > 0 && above_n > 0 ? (double)twice / (2 * (double)above_p * (double)above_n) : (double)NAN,
        .auprc = above_p > 0 && above_n > 0 ? precision / (double)above_p : (double)NAN,
    };
}

/* ---- sorting --------------------------------------------------------------------------------------------------- */

struct item {
    float score;
    uint32_t image;
};

static int
compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->image < y->image ? -1 : x->image > y->image;
}

static enum chex_status
rank_finding(const struct scores *s, unsigned finding, struct ranking *r, struct item *item, struct chex_error *err)
{
    size_t i;

    r->image = malloc(s->count * sizeof(*r->image));
    r->tied = malloc(s->count);
    if (!r->image || !r->tied)
        return chex_fail_memory(err);
    for (i = 0; i < s->count; i++) {
        float score = s->score[i * s->outputs + finding];

        if (isnan(score))
            return chex_fail(err, CHEX_ERR_USAGE, "the score of image %zu for finding %u is not a number", i, finding);
        item[i] = (struct item){score, (uint32_t)i};
    }
    qsort(item, s->count, sizeof(*item), compare_items);
    for (i = 0; i < s->count; i++) {
        r->image[i] = item[i].image;
        r->tied[i] = i + 1 < s->count && item[i].score == item[i + 1].score;
    }
    return CHEX_OK;
}

/* ---- thresholds ------------------------------------------------------------------------------------------------ */

/* Of equally good thresholds the highest: fewer alarms. */
static void
consider(struct operating_point *best, double value, double threshold, uint64_t true_positives,
         uint64_t false_positives)
{
    if (value > best->value)
        *best = (struct operating_point){threshold, value, true_positives, false_positives};
}

static void
find_thresholds(const struct scores *s, const struct ranking *r, unsigned finding, uint64_t negatives,
                struct finding_metrics *out)
{
    uint64_t above_p = 0, above_n = 0;
    size_t i;

    out->youden.value = out->f1.value = -1;
    for (i = 0; i < s->count; i++) {
        size_t at = (size_t)r->image[i] * s->outputs + finding;

        if (s->label[at])
            above_p++;
        else
            above_n++;
        if (r->tied[i])
            continue;
        consider(&out->youden, (double)above_p / (double)out->positives - (double)above_n / (double)negatives,
                 (double)s->score[at], above_p, above_n);
        consider(&out->f1, 2 * (double)above_p / (double)(above_p + above_n + out->positives), (double)s->score[at],
                 above_p, above_n);
    }
}

static void
undefined_thresholds(struct finding_metrics *out)
{
    out->youden = out->f1 = (struct operating_point){.threshold = (double)NAN, .value = (double)NAN};
}

/* ---- bootstrap ------------------------------------------------------------------------------------------------- */

static void *
times_new(void *context)
{
    const struct job *job = context;

    return malloc(job->s->patients * sizeof(uint32_t));
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

static enum chex_status
replicate(void *context, void *worker, size_t item, struct chex_error *err)
{
    struct job *job = context;
    const struct scores *s = job->s;
    struct random_stream stream = {job->seed, RANDOM_BOOTSTRAP, (uint32_t)item, 0};
    uint32_t *times = worker, i;
    unsigned k;

    (void)err;
    memset(times, 0, s->patients * sizeof(*times));
    for (i = 0; i < s->patients; i++)
        times[random_below(&stream, i, s->patients)]++;
    for (k = 0; k < s->outputs; k++) {
        struct pass pass = walk(s, &job->ranking[k], k, times);

        job->auroc[k * job->replicates + item] = pass.auroc;
        job->auprc[k * job->replicates + item] = pass.auprc;
    }
    job->auroc[s->outputs * job->replicates + item] = mean_of_row(job->auroc + item, job->replicates, s->outputs);
    job->auprc[s->outputs * job->replicates + item] = mean_of_row(job->auprc + item, job->replicates, s->outputs);
    return CHEX_OK;
}

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The value below which a share q of the sorted ones lies, interpolated (numpy.percentile's default). */
static double
quantile(const double *sorted, size_t count, double q)
{
    double at = q * (double)(count - 1);
    size_t below = (size_t)at;

    return below + 1 < count ? sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below])
                             : sorted[count - 1];
}

/* Sorts the values in place. */
static struct interval
interval_of(double *values, unsigned count)
{
    size_t defined = 0, i;

    for (i = 0; i < count; i++)
        if (!isnan(values[i]))
            values[defined++] = values[i];
    if (defined == 0 || defined * 2 < count)
        return (struct interval){(double)NAN, (double)NAN};
    qsort(values, defined, sizeof(*values), compare_doubles);
    return (struct interval){quantile(values, defined, 0.025), quantile(values, defined, 0.975)};
}

static enum chex_status
bootstrap(struct job *job, unsigned threads, struct metrics *out, struct chex_error *err)
{
    struct pipeline pipeline = {
        .count = job->replicates,
        .threads = threads,
        .work = replicate,
        .worker_new = times_new,
        .worker_free = free,
        .context = job,
    };
    size_t rows = job->s->outputs + 1, n = job->replicates;
    enum chex_status status;
    unsigned k;

    job->auroc = calloc(rows * n, sizeof(double));
    job->auprc = calloc(rows * n, sizeof(double));
    if (!job->auroc || !job->auprc)
        return chex_fail_memory(err);
    status = pipeline_run(&pipeline, err);
    if (status != CHEX_OK)
        return status;
    for (k = 0; k < job->s->outputs; k++) {
        out->finding[k].auroc_95 = interval_of(job->auroc + k * n, job->replicates);
        out->finding[k].auprc_95 = interval_of(job->auprc + k * n, job->replicates);
    }
    out->mean_auroc_95 = interval_of(job->auroc + k * n, job->replicates);
    out->mean_auprc_95 = interval_of(job->auprc + k * n, job->replicates);
    return CHEX_OK;
}

/* ---- all of it ------------------------------------------------------------------------------------------------- */

static void
measure(const struct job *job, struct metrics *out)
{
    const struct scores *s = job->s;
    double auroc = 0, auprc = 0;
    unsigned k;

    for (k = 0; k < s->outputs; k++) {
        struct finding_metrics *f = &out->finding[k];
        struct pass pass = walk(s, &job->ranking[k], k, NULL);

        *f = (struct finding_metrics){.positives = pass.positives, .auroc = pass.auroc, .auprc = pass.auprc};
        f->auroc_95 = f->auprc_95 = (struct interval){(double)NAN, (double)NAN};
        if (isnan(pass.auroc)) {
            undefined_thresholds(f);
            continue;
        }
        find_thresholds(s, &job->ranking[k], k, pass.negatives, f);
        auroc += pass.auroc;
        auprc += pass.auprc;
        out->defined++;
    }
    out->mean_auroc = out->defined > 0 ? auroc / out->defined : (double)NAN;
    out->mean_auprc = out->defined > 0 ? auprc / out->defined : (double)NAN;
}

enum chex_status
metrics_compute(const struct scores *s, unsigned replicates, uint64_t seed, unsigned threads, struct metrics *out,
                struct chex_error *err)
{
    struct job job = {.s = s, .seed = seed, .replicates = replicates};
    struct item *item = calloc(s->count ? s->count : 1, sizeof(*item));
    enum chex_status status = CHEX_OK;
    unsigned k;

    *out = (struct metrics){
        .images = s->count, .patients = s->patients, .outputs = s->outputs, .replicates = replicates};
    out->mean_auroc_95 = out->mean_auprc_95 = (struct interval){(double)NAN, (double)NAN};
    if (s->outputs > METRICS_OUTPUTS || s->count == 0 || s->count > UINT32_MAX) {
        free(item);
        return chex_fail(err, CHEX_ERR_USAGE, "metrics of %zu images with %u findings", s->count, s->outputs);
    }
    job.ranking = calloc(s->outputs, sizeof(*job.ranking));
    if (!item || !job.ranking)
        status = chex_fail_memory(err);
    for (k = 0; status == CHEX_OK && k < s->outputs; k++)
        status = rank_finding(s, k, &job.ranking[k], item, err);
    free(item);
    if (status == CHEX_OK)
        measure(&job, out);
    if (status == CHEX_OK && replicates > 0 && out->defined > 0)
        status = bootstrap(&job, threads, out, err);
    for (k = 0; job.ranking && k < s->outputs; k++) {
        free(job.ranking[k].image);
        free(job.ranking[k].tied);
    }
    free(job.ranking);
    free(job.auroc);
    free(job.auprc);
    return status;
}
