/*
 * evaluate.c - implements evaluate.h: the views, scoring of this rank's part, exchange with the other ranks
 *
 * The plan scores a micro-batch while this thread reads the next one and uses the logits of the previous one:
 * SCORES_IN_FLIGHT micro-batches are in flight, and start_batch() runs ahead of finish_batch().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/evaluate_private.h"

#include "base/clock.h"
#include "math/loss.h"
#include "ranks/collective.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Forward passes between two meetings, which propagate a fault of one rank to all. */
#define PASSES_A_MEETING 8

#define EXPECT 256 /* images of readahead */

/* ---- views ----------------------------------------------------------------------------------------------------- */

const char *const tta_names[] = {[TTA_NONE] = "none", [TTA_FLIP] = "flip", [TTA_TENCROP] = "tencrop", NULL};

/* Returns half of the margin, rounded half to even like Python's round(). */
static unsigned
middle(unsigned room)
{
    return room % 4 == 3 ? room / 2 + 1 : room / 2;
}

unsigned
evaluate_views(enum tta tta, unsigned side, unsigned source, struct crop view[EVALUATE_VIEWS])
{
    unsigned room = source - side, centre = middle(room), k;
    const unsigned left[5] = {0, room, 0, room, centre}, top[5] = {0, 0, room, room, centre};

    if (tta != TTA_TENCROP) {
        view[0] = view[1] = (struct crop){.x = (uint16_t)centre, .y = (uint16_t)centre};
        view[1].flip = true;
        return tta == TTA_FLIP ? 2 : 1;
    }
    for (k = 0; k < 5; k++) {
        view[k] = (struct crop){.x = (uint16_t)left[k], .y = (uint16_t)top[k]};
        /* A crop at `left` of the mirrored image is at the same distance from the right edge of this image. */
        view[5 + k] = (struct crop){.x = (uint16_t)(room - left[k]), .y = (uint16_t)top[k], .flip = true};
    }
    return 10;
}

void
evaluate_join_views(unsigned views, size_t count, const float *logits, float *logit, float *probability)
{
    size_t i;
    unsigned v;

    for (i = 0; i < count; i++) {
        double yes = 0, no = 0; /* sums of p and of 1 - p */

        for (v = 0; v < views; v++) {
            yes += sigmoid((double)logits[v * count + i]);
            no += sigmoid(-(double)logits[v * count + i]);
        }
        probability[i] = (float)(yes / views);
        logit[i] = views > 1 ? (float)(log(yes) - log(no)) : logits[i];
    }
}

/* ---- the part of one rank ---------------------------------------------------------------------------------------- */

/* A micro-batch that the plan scores. */
struct flight {
    struct loaded *loaded;
    float *logits; /* [views][batch][outputs] */
};

struct share_of_scores {
    const struct evaluate_options *o;
    unsigned outputs, views;
    struct crop view[EVALUATE_VIEWS];
    uint64_t first, ranks; /* micro-batch i of this rank is number first + i * ranks of the split */
    uint64_t rounds;       /* micro-batches per rank; a rank with fewer has none in the last round */
    uint64_t batches;      /* of this rank */
    uint64_t started, finished;
    struct flight flight[SCORES_IN_FLIGHT]; /* in turn */
    struct loader *loader;
    uint32_t *order;            /* 0, 1, ... */
    struct crop *crop;          /* [views][batch] */
    float *logit, *probability; /* [batch][outputs] */
    struct buffer entries;
};

static void
share_release(struct share_of_scores *s)
{
    unsigned i;

    loader_free(s->loader);
    for (i = 0; i < SCORES_IN_FLIGHT; i++)
        free(s->flight[i].logits);
    free(s->order);
    free(s->crop);
    free(s->logit);
    free(s->probability);
    buffer_release(&s->entries);
}

static enum chex_status
share_allocate(struct share_of_scores *s, struct chex_error *err)
{
    size_t values = (size_t)s->o->batch * s->outputs;
    bool logits = true;
    unsigned i;

    for (i = 0; i < SCORES_IN_FLIGHT; i++) {
        s->flight[i].logits = malloc(s->views * values * sizeof(float));
        logits &= s->flight[i].logits != NULL;
    }
    s->order = malloc(s->o->samples->count * sizeof(*s->order));
    s->crop = malloc((size_t)s->views * s->o->batch * sizeof(*s->crop));
    s->logit = malloc(values * sizeof(*s->logit));
    s->probability = malloc(values * sizeof(*s->probability));
    return logits && s->order && s->crop && s->logit && s->probability ? CHEX_OK : error_memory(err);
}

static enum chex_status
share_start(struct share_of_scores *s, struct chex_error *err)
{
    const struct evaluate_options *o = s->o;
    enum chex_status status = share_allocate(s, err);
    struct loader_options loader = {
        .ds = o->ds,
        .samples = o->samples,
        .order = s->order,
        .side = o->side,
        .batch = o->batch,
        .start = s->first * o->batch,
        .stride = s->ranks * o->batch,
        .count = s->batches,
        .each = 1,
        .threads = o->threads,
        .ahead = o->ahead,
        .reader = o->reader,
        .expect = EXPECT,
        .check_crc = o->check_crc,
        .skip_bad = o->skip_bad,
    };
    size_t i;

    if (status != CHEX_OK)
        return status;
    for (i = 0; i < o->samples->count; i++)
        s->order[i] = (uint32_t)i;
    for (i = 0; i < (size_t)s->views * o->batch; i++)
        s->crop[i] = s->view[i / o->batch];
    return loader_start(&loader, &s->loader, err);
}

/* Leave out positions after the last sample, and positions whose damaged record the loader replaced. */
static enum chex_status
keep_scores(struct share_of_scores *s, const struct loaded *loaded, uint64_t position, struct chex_error *err)
{
    static const struct loss_options plain = {.kind = LOSS_BCE};
    const struct evaluate_options *o = s->o;
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; status == CHEX_OK && i < o->batch && position + i < o->samples->count; i++) {
        const float *logit = s->logit + i * s->outputs;
        const uint8_t *label = loaded->batch.label + i * s->outputs;

        if (loaded->sample[i] == position + i)
            status = entry_append(
                &s->entries, (uint32_t)(position + i), &loaded->text[i],
                loss_sum(o->loss ? o->loss : &plain, 1, s->outputs, logit, label, NULL, NULL, 1, NULL), logit,
                s->probability + i * s->outputs, label, s->outputs, err);
    }
    return status;
}

static struct flight *
flight_of(struct share_of_scores *s, uint64_t number)
{
    return &s->flight[number % SCORES_IN_FLIGHT];
}

static enum chex_status
start_batch(struct share_of_scores *s, struct chex_error *err)
{
    const struct evaluate_options *o = s->o;
    struct flight *f = flight_of(s, s->started);
    enum chex_status status = loader_next(s->loader, &f->loaded, err);
    struct batch batch = {.scale = 1};

    if (status != CHEX_OK || !f->loaded)
        return status;
    batch.pixels = f->loaded->batch.pixels;
    batch.index = f->loaded->batch.index;
    batch.store = f->loaded->batch.store;
    batch.weight = f->loaded->batch.weight;
    status = o->backend->score_start(o->plan, &batch, s->views, s->crop, o->weights, f->logits, NULL, err);
    if (status == CHEX_OK)
        s->started++;
    else
        loader_return(s->loader, f->loaded);
    return status;
}

static enum chex_status
finish_batch(struct share_of_scores *s, struct chex_error *err)
{
    const struct evaluate_options *o = s->o;
    uint64_t number = s->finished++;
    struct flight *f = flight_of(s, number);
    enum chex_status status = o->backend->score_finish(o->plan, err);

    if (status == CHEX_OK && o->collective)
        status = collective_poll(o->collective, err);
    if (status == CHEX_OK) {
        evaluate_join_views(s->views, (size_t)s->o->batch * s->outputs, f->logits, s->logit, s->probability);
        status = keep_scores(s, f->loaded, (s->first + number * s->ranks) * o->batch, err);
    }
    loader_return(s->loader, f->loaded);
    if (status == CHEX_OK && o->progress)
        o->progress(o->context, number + 1, s->batches);
    return status;
}

/* Finishes micro-batches until only `left` are in flight. */
static enum chex_status
finish_until(struct share_of_scores *s, uint64_t left, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && s->started - s->finished > left)
        status = finish_batch(s, err);
    return status;
}

/* After an error or a stop: waits for the micro-batches in flight, so that the plan can be used again. */
static void
abandon(struct share_of_scores *s)
{
    for (; s->finished < s->started; s->finished++) {
        struct chex_error ignored;

        (void)s->o->backend->score_finish(s->o->plan, &ignored);
        loader_return(s->loader, flight_of(s, s->finished)->loaded);
    }
}

static enum chex_status
score_batch(struct share_of_scores *s, uint64_t number, struct chex_error *err)
{
    const struct evaluate_options *o = s->o;
    enum chex_status status = CHEX_OK;

    if ((o->stop && atomic_load(o->stop)) || (o->until > 0 && clock_now() >= o->until))
        return error_set(err, CHEX_ERR_STOPPED, "stopped during an evaluation");
    if (number < s->batches)
        status = start_batch(s, err);
    if (status == CHEX_OK)
        status = finish_until(s, number + 1 < s->rounds ? SCORES_IN_FLIGHT - 1 : 0, err);
    return status;
}

/* ---- all ranks ------------------------------------------------------------------------------------------------- */

/* Meet the other ranks; a rank with a fault or a stop request calls it early, so all ranks reach the same meetings. */
static enum chex_status
meet(const struct evaluate_options *o, enum chex_status status, struct chex_error *err)
{
    return o->collective ? collective_agree(o->collective, status, NULL, err) : status;
}

static enum chex_status
score_share(struct share_of_scores *s, struct chex_error *err)
{
    unsigned each = s->views < PASSES_A_MEETING ? PASSES_A_MEETING / s->views : 1;
    enum chex_status status = share_start(s, err);
    uint64_t number = 0, end;

    do {
        end = s->rounds - number > each ? number + each : s->rounds;
        for (; status == CHEX_OK && number < end; number++)
            status = score_batch(s, number, err);
        status = meet(s->o, status, err);
    } while (status == CHEX_OK && number < s->rounds);
    abandon(s);
    return status;
}

static enum chex_status
gather(const struct evaluate_options *o, const struct buffer *own, struct buffer *all, struct chex_error *err)
{
    enum chex_status status;

    if (!o->collective)
        return buffer_append(all, own->data, own->size, err);
    status = collective_allgather(o->collective, own->data, own->size, all, NULL, err);
    return meet(o, status, err);
}

/* Broadcast the result of rank 0, so all ranks agree even if their math libraries differ. */
static enum chex_status
broadcast_result(const struct evaluate_options *o, struct evaluation *out, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    if (!o->collective)
        return CHEX_OK;
    status = collective_broadcast(o->collective, &out->loss, sizeof(out->loss), err);
    if (status == CHEX_OK)
        status = collective_broadcast(o->collective, &out->metrics, sizeof(out->metrics), err);
    return meet(o, status, err);
}

/* Compute the metrics: each rank computes everything, but only its part of the bootstrap. */
static enum chex_status
compute(const struct evaluate_options *o, struct evaluation *out, struct chex_error *err)
{
    unsigned part = o->collective ? (unsigned)collective_rank(o->collective) : 0;
    unsigned parts = o->collective ? (unsigned)collective_size(o->collective) : 1;
    struct buffer own = {0}, all = {0};
    enum chex_status status = meet(o, evaluation_compute(o, part, parts, out, &own, err), err);

    if (status == CHEX_OK)
        status = gather(o, &own, &all, err);
    if (status == CHEX_OK)
        status = meet(o, metrics_end(&out->metrics, &all, o->threads, err), err);
    if (status == CHEX_OK)
        status = broadcast_result(o, out, err);
    buffer_release(&own);
    buffer_release(&all);
    return status;
}

static enum chex_status
gather_and_compute(const struct evaluate_options *o, const struct buffer *own, struct evaluation *out,
                   struct chex_error *err)
{
    double since = clock_now();
    struct buffer all = {0};
    enum chex_status status = gather(o, own, &all, err);

    out->gather = clock_now() - since;
    since = clock_now();
    if (status == CHEX_OK)
        status = meet(o, evaluation_unpack(o, &all, out, err), err);
    buffer_release(&all);
    if (status == CHEX_OK)
        status = compute(o, out, err);
    out->computing = clock_now() - since;
    return status;
}

enum chex_status
evaluate(const struct evaluate_options *o, struct evaluation *out, struct chex_error *err)
{
    struct share_of_scores s = {
        .o = o,
        .first = o->collective ? (uint64_t)collective_rank(o->collective) : 0,
        .ranks = o->collective ? (uint64_t)collective_size(o->collective) : 1,
    };
    uint64_t batches = order_steps(o->samples->count, o->batch);
    double since = clock_now();
    enum chex_status status;

    *out = (struct evaluation){.split = o->split, .tta = o->tta, .seed = o->seed};
    out->findings = chex_dataset_findings(o->ds, &out->outputs);
    s.outputs = out->outputs;
    metrics_undefined(&out->metrics);
    out->loss = (double)NAN;
    if (o->samples->count == 0)
        return error_set(err, CHEX_ERR_USAGE, "split '%s' has no image", chex_dataset_split(o->ds, o->split)->name);
    s.views = out->views = evaluate_views(o->tta, o->side, chex_dataset_info(o->ds)->width, s.view);
    s.rounds = order_steps(batches, s.ranks);
    s.batches = batches / s.ranks + (s.first < batches % s.ranks);
    status = score_share(&s, err);
    out->wait = s.loader ? loader_wait(s.loader) : 0;
    if (status == CHEX_OK)
        status = gather_and_compute(o, &s.entries, out, err);
    share_release(&s);
    out->metrics.leaky = o->leaky;
    snprintf(out->metrics.short_run, sizeof(out->metrics.short_run), "%s", o->short_run ? o->short_run : "");
    out->seconds = clock_now() - since;
    return status;
}

void
evaluation_release(struct evaluation *e)
{
    free(e->image);
    free(e->logit);
    free(e->probability);
    free(e->label);
    free(e->skipped);
    arena_release(&e->strings);
    *e = (struct evaluation){0};
}
