/*
 * compare.c - implements compare.h
 *
 * Of one finding, the ranks of the scores of both models are sorted together, once.  A swap is then one pass over them
 * that adds each rank to the model that has it after the swap.  Differences of AUROC are compared as integers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/compare.h"

#include "base/threads.h"
#include "chex.h"
#include "math/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- bootstrap --------------------------------------------------------------------------------------------------- */

/*
 * Compute AUROC and intervals with the draws of one seed.  m: of A, of B, and of the difference, which has the
 * replicates of B minus those of A.
 */
static enum chex_status
bootstrap(const struct score_pair *s, const struct compare_options *o, struct metrics m[3], struct chex_error *err)
{
    const struct bootstrap_options options = {
        .replicates = o->replicates, .seed = o->seed, .threads = o->threads, .parts = 1};
    struct buffer draws[2] = {{0}, {0}};
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; i < 2 && status == CHEX_OK; i++) {
        struct scores one = {s->count, s->outputs, s->score[i], s->label, s->patient, s->patients};

        status = metrics_begin(&one, &options, &m[i], &draws[i], err);
    }
    for (i = 0; i < 2 && status == CHEX_OK; i++)
        status = metrics_end(&m[i], &draws[i], o->threads, err);
    if (status == CHEX_OK) {
        double *a = (double *)(void *)draws[0].data, *b = (double *)(void *)draws[1].data;

        for (i = 0; i < draws[1].size / sizeof(*b); i++)
            b[i] -= a[i];
        m[2] = m[1];
        status = metrics_end(&m[2], &draws[1], o->threads, err);
    }
    buffer_release(&draws[0]);
    buffer_release(&draws[1]);
    return status;
}

static void
take_metrics(const struct score_pair *s, const struct metrics m[3], struct comparison *out)
{
    unsigned k;

    out->outputs = s->outputs;
    out->defined = m[0].defined;
    for (k = 0; k <= s->outputs; k++) {
        const struct measured *x[3];
        struct compared *c = k < s->outputs ? &out->finding[k] : &out->mean;
        int i;

        for (i = 0; i < 3; i++)
            x[i] = k < s->outputs ? &m[i].finding[k].metric[METRIC_AUROC] : &m[i].mean[METRIC_AUROC];
        *c = (struct compared){.auroc = {x[0]->value, x[1]->value},
                               .low = {x[0]->low, x[1]->low},
                               .high = {x[0]->high, x[1]->high},
                               .difference = *x[2],
                               .p = (double)NAN,
                               .holm = (double)NAN};
        c->difference.value = c->auroc[1] - c->auroc[0];
        if (k == s->outputs)
            break;
        out->positives[k] = m[0].finding[k].positives;
        out->negatives[k] = m[0].finding[k].negatives;
    }
}

/* ---- swap test --------------------------------------------------------------------------------------------------- */

/* A score of the sorted list. */
struct paired_score {
    float score;
    uint32_t image;
    uint8_t model, label;
    bool last; /* of its score */
};

struct swap_job {
    const struct score_pair *s;
    const struct compare_options *o;
    struct paired_score *item;
    size_t items;
    int64_t *lost; /* [1 + swaps]: twice the pairs that A loses beyond those of B; element 0: without a swap */
};

static int
by_score(const void *a, const void *b)
{
    const struct paired_score *x = a, *y = b;

    return (x->score < y->score) - (x->score > y->score);
}

/* Replace sorted scores, the highest first, by twice their ranks; equal scores get the mean of their ranks. */
static void
rank_scores(struct paired_score *item, size_t count)
{
    size_t first, end, i;

    for (first = 0; first < count; first = end) {
        float score = item[first].score;

        for (end = first; end < count && item[end].score == score; end++)
            ;
        for (i = first; i < end; i++)
            item[i].score = (float)(2 * count - first - end + 1);
    }
}

static void
sort_finding(struct swap_job *job, unsigned finding)
{
    const struct score_pair *s = job->s;
    size_t i;
    uint8_t m;

    job->items = 0;
    for (m = 0; m < 2; m++) {
        struct paired_score *item = &job->item[job->items];
        size_t count = 0;

        for (i = 0; i < s->count; i++)
            if (s->label[i * s->outputs + finding] != CHEX_LABEL_UNKNOWN)
                item[count++] = (struct paired_score){.score = s->score[m][i * s->outputs + finding],
                                                      .image = (uint32_t)i,
                                                      .model = m,
                                                      .label = s->label[i * s->outputs + finding]};
        qsort(item, count, sizeof(*item), by_score);
        rank_scores(item, count);
        job->items += count;
    }
    qsort(job->item, job->items, sizeof(*job->item), by_score);
    for (i = 0; i < job->items; i++)
        job->item[i].last = i + 1 == job->items || job->item[i + 1].score != job->item[i].score;
}

static void *
flags_new(void *context)
{
    const struct swap_job *job = context;

    return malloc(job->s->patients ? job->s->patients : 1);
}

/* Count twice the pairs in which a negative is above the positive, and ties once, for both models after a swap. */
static enum chex_status
swap_once(void *context, void *worker, size_t number, struct chex_error *err)
{
    struct swap_job *job = context;
    const struct score_pair *s = job->s;
    struct random_stream stream = {job->o->seed, RANDOM_SWAP, (uint32_t)number, 0};
    int64_t above[2] = {0, 0}, tied[2][2] = {{0, 0}, {0, 0}}, lost[2] = {0, 0};
    uint8_t *swapped = worker;
    uint32_t i;
    size_t k;
    int m;

    (void)err;
    for (i = 0; i < s->patients; i++)
        swapped[i] = number > 0 && random_bits(&stream, i) >> 63;
    for (k = 0; k < job->items; k++) {
        const struct paired_score *item = &job->item[k];

        tied[item->model ^ swapped[s->patient[item->image]]][item->label]++;
        if (!item->last)
            continue;
        for (m = 0; m < 2; m++) {
            lost[m] += tied[m][1] * (2 * above[m] + tied[m][0]);
            above[m] += tied[m][0];
            tied[m][0] = tied[m][1] = 0;
        }
    }
    job->lost[number] = lost[0] - lost[1];
    return CHEX_OK;
}

/* Add the differences of a finding to those of the mean; returns its p. */
static double
count_swaps(const struct swap_job *job, double pairs, double *mean)
{
    unsigned swaps = job->o->swaps, i, as_large = 0;
    int64_t observed = llabs(job->lost[0]);

    for (i = 0; i <= swaps; i++) {
        mean[i] += (double)job->lost[i] / (2 * pairs);
        as_large += i > 0 && llabs(job->lost[i]) >= observed;
    }
    return (1 + (double)as_large) / (1 + (double)swaps);
}

static enum chex_status
test_findings(struct swap_job *job, const struct metrics *m, double *mean, struct comparison *out,
              struct chex_error *err)
{
    struct parallel parallel = {
        .count = (size_t)job->o->swaps + 1,
        .threads = job->o->threads,
        .work = swap_once,
        .worker_new = flags_new,
        .worker_free = free,
        .context = job,
    };
    enum chex_status status = CHEX_OK;
    unsigned k;

    for (k = 0; k < out->outputs && status == CHEX_OK; k++) {
        double p;

        if (isnan(out->finding[k].auroc[0]))
            continue;
        sort_finding(job, k);
        status = parallel_for(&parallel, err);
        if (status != CHEX_OK)
            break;
        p = count_swaps(job, (double)out->positives[k] * (double)out->negatives[k], mean);
        if (m->finding[k].positive_patients < METRICS_FEWEST_PATIENTS)
            continue;
        out->finding[k].p = p;
        out->tested++;
    }
    return status;
}

static void
test_mean(const double *mean, unsigned swaps, struct comparison *out)
{
    unsigned i, as_large = 0;

    if (out->tested == 0) {
        out->mean.difference.low = out->mean.difference.high = (double)NAN;
        out->mean.low[0] = out->mean.low[1] = out->mean.high[0] = out->mean.high[1] = (double)NAN;
        return;
    }
    for (i = 1; i <= swaps; i++)
        as_large += fabs(mean[i]) >= fabs(mean[0]);
    out->mean.p = (1 + (double)as_large) / (1 + (double)swaps);
}

/* Returns the index of the smallest p of those not yet corrected, or count. */
static unsigned
smallest_p(const double *p, const double *holm, unsigned count)
{
    unsigned smallest = count, k;

    for (k = 0; k < count; k++)
        if (!isnan(p[k]) && isnan(holm[k]) && (smallest == count || p[k] < p[smallest]))
            smallest = k;
    return smallest;
}

/* The smallest p times the number of tests, the next one times one less, and so on; never below an earlier one. */
void
compare_holm(const double *p, double *holm, unsigned count)
{
    unsigned left = 0, k;
    double least = 0;

    for (k = 0; k < count; k++) {
        holm[k] = (double)NAN;
        if (!isnan(p[k]))
            left++;
    }
    while ((k = smallest_p(p, holm, count)) < count)
        holm[k] = least = fmax(least, fmin(1, p[k] * left--));
}

static void
correct(struct comparison *c)
{
    double p[METRICS_OUTPUTS], holm[METRICS_OUTPUTS];
    unsigned k;

    for (k = 0; k < c->outputs; k++)
        p[k] = c->finding[k].p;
    compare_holm(p, holm, c->outputs);
    for (k = 0; k < c->outputs; k++)
        c->finding[k].holm = holm[k];
}

enum chex_status
compare_scores(const struct score_pair *s, const struct compare_options *o, struct comparison *out,
               struct chex_error *err)
{
    struct metrics *m = calloc(3, sizeof(*m));
    struct swap_job job = {.s = s, .o = o};
    double *mean = calloc((size_t)o->swaps + 1, sizeof(*mean));
    enum chex_status status;

    *out = (struct comparison){.outputs = s->outputs};
    job.item = malloc((s->count ? s->count : 1) * 2 * sizeof(*job.item));
    job.lost = calloc((size_t)o->swaps + 1, sizeof(*job.lost));
    status = m && mean && job.item && job.lost ? bootstrap(s, o, m, err) : error_memory(err);
    if (status == CHEX_OK) {
        take_metrics(s, m, out);
        status = test_findings(&job, m, mean, out, err);
    }
    if (status == CHEX_OK) {
        test_mean(mean, o->swaps, out);
        correct(out);
    }
    free(m);
    free(mean);
    free(job.item);
    free(job.lost);
    return status;
}

/* ---- flags ------------------------------------------------------------------------------------------------------- */

double
compare_kappa(const uint64_t count[2][2])
{
    double n = (double)(count[0][0] + count[0][1] + count[1][0] + count[1][1]), agreed, expected, share[2];

    share[0] = (double)(count[1][0] + count[1][1]) / n;
    share[1] = (double)(count[0][1] + count[1][1]) / n;
    agreed = (double)(count[0][0] + count[1][1]) / n;
    expected = share[0] * share[1] + (1 - share[0]) * (1 - share[1]);
    return n > 0 && expected < 1 ? (agreed - expected) / (1 - expected) : (double)NAN;
}

void
compare_flags(const struct score_pair *s, unsigned finding, const double threshold[2], struct flag_agreement *out)
{
    size_t i;

    *out = (struct flag_agreement){.kappa = (double)NAN};
    if (isnan(threshold[0]) || isnan(threshold[1]))
        return;
    for (i = 0; i < s->count; i++) {
        size_t at = i * s->outputs + finding;

        out->count[s->score[0][at] >= (float)threshold[0]][s->score[1][at] >= (float)threshold[1]]++;
    }
    out->kappa = compare_kappa(out->count);
}
