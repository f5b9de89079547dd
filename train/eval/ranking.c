/*
 * ranking.c - see ranking.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/ranking.h"

#include "base/threads.h"
#include "math/loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIGIT_BITS 11
#define DIGIT      ((1u << DIGIT_BITS) - 1)

struct sort_job {
    const struct scores *s;
    struct ranking *ranking; /* [outputs] */
};

struct item {
    uint32_t key; /* decreases with rising score; equal for equal scores */
    uint32_t image;
};

static uint32_t
key_of(float score)
{
    const float value = score + 0.0F; /* -0 is 0 */
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits >> 31 ? bits : ~bits & INT32_MAX;
}

/*
 * Radix sort by the key, stable, in three passes; a comparison sort takes ten times as long.  Returns the sorted array,
 * which is in `room`.
 */
static struct item *
sort_items(struct item *item, struct item *room, size_t count)
{
    unsigned shift;

    for (shift = 0; shift < 32; shift += DIGIT_BITS) {
        size_t start[1 << DIGIT_BITS] = {0}, sum = 0, i;
        struct item *from = item;

        for (i = 0; i < count; i++)
            start[from[i].key >> shift & DIGIT]++;
        for (i = 0; i <= DIGIT; i++) {
            size_t these = start[i];

            start[i] = sum;
            sum += these;
        }
        for (i = 0; i < count; i++)
            room[start[from[i].key >> shift & DIGIT]++] = from[i];
        item = room;
        room = from;
    }
    return item;
}

/* Add the images of one score, item[begin .. end - 1], to the ranking after the first `at` images: negatives first. */
static void
add_tied(const struct scores *s, unsigned finding, const struct item *item, size_t begin, size_t end, size_t *before,
         struct ranking *r)
{
    struct curve_step step = {.score = s->score[(size_t)item[begin].image * s->outputs + finding]};
    size_t at = begin, i;
    int wanted;

    for (wanted = 0; wanted < 2; wanted++) {
        for (i = begin; i < end; i++) {
            size_t image = item[i].image;

            if ((s->label[image * s->outputs + finding] != 0) == wanted)
                r->patient[at++] = s->patient[image];
        }
        if (wanted == 0)
            step.negatives = (uint32_t)(at - begin);
    }
    step.positives = (uint32_t)(end - begin) - step.negatives;
    if (step.positives == 0) {
        *before += step.negatives;
        return;
    }
    step.before = (uint32_t)*before;
    *before = 0;
    r->step[r->steps++] = step;
}

static void *
items_new(void *context)
{
    const struct sort_job *job = context;

    return malloc(2 * job->s->count * sizeof(struct item));
}

static enum chex_status
rank_finding(void *context, void *worker, size_t finding, struct chex_error *err)
{
    const struct sort_job *job = context;
    const struct scores *s = job->s;
    struct ranking *r = &job->ranking[finding];
    struct item *item = worker;
    size_t positives = 0, before = 0, count = 0, i, end;

    for (i = 0; i < s->count; i++) {
        float score = s->score[i * s->outputs + finding];
        uint8_t label = s->label[i * s->outputs + finding];

        if (isnan(score))
            return error_set(err, CHEX_ERR_USAGE, "the score of image %zu for finding %zu is not a number", i, finding);
        if (label == CHEX_LABEL_UNKNOWN)
            continue;
        item[count++] = (struct item){key_of(score), (uint32_t)i};
        positives += label != 0;
    }
    r->count = count;
    r->patient = malloc((count ? count : 1) * sizeof(*r->patient));
    r->step = malloc((positives ? positives : 1) * sizeof(*r->step));
    if (!r->patient || !r->step)
        return error_memory(err);
    item = sort_items(item, item + s->count, count);
    for (i = 0; i < count; i = end) {
        for (end = i + 1; end < count && item[end].key == item[i].key; end++)
            ;
        add_tied(s, (unsigned)finding, item, i, end, &before, r);
    }
    return CHEX_OK;
}

enum chex_status
rankings_new(const struct scores *s, unsigned threads, struct ranking **out, struct chex_error *err)
{
    struct sort_job job = {.s = s, .ranking = calloc(s->outputs ? s->outputs : 1, sizeof(*job.ranking))};
    struct parallel parallel = {
        .count = s->outputs,
        .threads = threads,
        .work = rank_finding,
        .worker_new = items_new,
        .worker_free = free,
        .context = &job,
    };

    *out = job.ranking;
    return job.ranking ? parallel_for(&parallel, err) : error_memory(err);
}

void
rankings_free(struct ranking *ranking, unsigned outputs)
{
    unsigned k;

    for (k = 0; ranking && k < outputs; k++) {
        free(ranking[k].patient);
        free(ranking[k].step);
    }
    free(ranking);
}
