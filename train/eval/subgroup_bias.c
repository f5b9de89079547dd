/*
 * subgroup_bias.c - calibration in groups: the mean of p - y over the images of a side; see subgroups.h
 *
 * A replicate needs two numbers of each patient, finding and side: the sum of p - y and the number of images, times how
 * often the patient is drawn.  All sums are in the order of the images, then of the patients, so the result does not
 * depend on threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/subgroups_private.h"

#include "base/threads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a patient, or of all: p - y, and images. */
struct excess {
    double sum, images;
};

struct biases {
    const struct subgroup_input *in;
    size_t size;           /* outputs * 2: finding, side */
    struct excess *excess; /* [patients][size] */
    double *gap;           /* [replicates][outputs] */
};

struct bias_worker {
    uint32_t *times;       /* [patients] */
    struct excess *excess; /* [size] */
};

static void
worker_free(void *worker)
{
    struct bias_worker *w = worker;

    if (!w)
        return;
    free(w->times);
    free(w->excess);
    free(w);
}

static void *
worker_new(void *context)
{
    const struct biases *b = context;
    struct bias_worker *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->times = malloc(b->in->s->patients * sizeof(*w->times));
    w->excess = malloc(b->size * sizeof(*w->excess));
    if (w->times && w->excess)
        return w;
    worker_free(w);
    return NULL;
}

static void
add_image(const struct biases *b, size_t i)
{
    const struct scores *s = b->in->s;
    struct excess *excess = b->excess + s->patient[i] * b->size + b->in->side[i];
    unsigned k;

    if (b->in->side[i] == SUBGROUP_OUT)
        return;
    for (k = 0; k < s->outputs; k++) {
        unsigned label = s->label[i * s->outputs + k];

        if (label > 1)
            continue;
        excess[2 * k].sum += (double)b->in->probability[i * s->outputs + k] - label;
        excess[2 * k].images++;
    }
}

/* times: how often each patient counts; NULL: once */
static void
add_up(const struct biases *b, const uint32_t *times, struct excess *all)
{
    uint32_t i;
    size_t k;

    memset(all, 0, b->size * sizeof(*all));
    for (i = 0; i < b->in->s->patients; i++) {
        const struct excess *one = b->excess + i * b->size;
        double n = times ? times[i] : 1;

        for (k = 0; n > 0 && k < b->size; k++) {
            all[k].sum += n * one[k].sum;
            all[k].images += n * one[k].images;
        }
    }
}

static double
mean(const struct excess *e)
{
    return e->images > 0 ? e->sum / e->images : (double)NAN;
}

static enum chex_status
replicate(void *context, void *worker, size_t item, struct chex_error *err)
{
    const struct biases *b = context;
    struct bias_worker *w = worker;
    unsigned k;

    (void)err;
    metrics_times(b->in->seed, (unsigned)item, b->in->s->patients, w->times);
    add_up(b, w->times, w->excess);
    for (k = 0; k < b->in->s->outputs; k++)
        b->gap[item * b->in->s->outputs + k] = mean(&w->excess[2 * k + SUBGROUP_IN]) -
                                               mean(&w->excess[2 * k + SUBGROUP_REST]);
    return CHEX_OK;
}

/* As for AUROC: SUBGROUP_FEWEST positives and negatives, positives of METRICS_FEWEST_PATIENTS patients. */
static bool
is_enough(const struct subgroup_input *in, unsigned k, unsigned side, bool *seen)
{
    const struct scores *s = in->s;
    uint64_t count[2] = {0, 0};
    uint32_t patients = 0;
    size_t i;

    memset(seen, 0, s->patients * sizeof(*seen));
    for (i = 0; i < s->count; i++) {
        unsigned label = s->label[i * s->outputs + k];

        if (in->side[i] != side || label > 1)
            continue;
        count[label]++;
        if (label == 1 && !seen[s->patient[i]]) {
            seen[s->patient[i]] = true;
            patients++;
        }
    }
    return count[0] >= SUBGROUP_FEWEST && count[1] >= SUBGROUP_FEWEST && patients >= METRICS_FEWEST_PATIENTS;
}

static void
conclude(const struct biases *b, const struct excess *all, bool *seen, double *draw, struct subgroup *out)
{
    const unsigned outputs = b->in->s->outputs;
    unsigned k, side, i;

    for (k = 0; k < outputs; k++) {
        struct subgroup_cell *c = &out->cell[SUBGROUP_BIAS][k];

        for (side = 0; side < 2; side++)
            if (is_enough(b->in, k, side, seen))
                c->value[side] = mean(&all[2 * k + side]);
        for (i = 0; i < b->in->replicates; i++)
            draw[i] = b->gap[(size_t)i * outputs + k];
        subgroup_conclude(c, false, draw, b->in->replicates);
    }
}

enum chex_status
subgroup_measure_bias(const struct subgroup_input *in, struct subgroup *out, double *draw, struct chex_error *err)
{
    struct biases b = {.in = in, .size = (size_t)in->s->outputs * 2};
    struct parallel parallel = {.count = in->replicates,
                                .threads = in->threads,
                                .work = replicate,
                                .worker_new = worker_new,
                                .worker_free = worker_free,
                                .context = &b};
    struct excess *all = malloc(b.size * sizeof(*all));
    bool *seen = malloc(in->s->patients ? in->s->patients : 1);
    enum chex_status status;
    size_t i;

    b.excess = calloc(in->s->patients ? in->s->patients : 1, b.size * sizeof(*b.excess));
    b.gap = malloc((in->replicates ? in->replicates : 1) * (size_t)in->s->outputs * sizeof(*b.gap));
    status = all && seen && b.excess && b.gap ? CHEX_OK : error_memory(err);
    if (status == CHEX_OK) {
        for (i = 0; i < in->s->count; i++)
            add_image(&b, i);
        status = parallel_for(&parallel, err);
    }
    if (status == CHEX_OK) {
        add_up(&b, NULL, all);
        conclude(&b, all, seen, draw, out);
    }
    free(all);
    free(seen);
    free(b.excess);
    free(b.gap);
    return status;
}
