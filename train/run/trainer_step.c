/*
 * trainer_step.c - one step of training on this rank, and the pass of the loader that feeds it; see trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "base/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKET_NUMBERS (1u << 19) /* 4 MiB of gradients are summed at a time */
#define AHEAD          4          /* micro-batches that are read ahead */
#define THREADS        2          /* that read */
#define EXPECT         256        /* images of which the system is told before they are read */

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* Micro-batches of this rank in a step of the epoch.  Nobody reads or computes one that no image of weight 1 is in. */
static unsigned
filled_batches(const struct trainer *t, uint64_t step)
{
    uint64_t first = step * t->global + (uint64_t)collective_rank(t->all) * t->each * t->micro;
    uint64_t left = first < t->samples.count ? t->samples.count - first : 0, batches = (left + t->micro - 1) / t->micro;

    return batches < t->each ? (unsigned)batches : t->each;
}

/* Of what is left of the epoch: only its last step may have fewer than the others. */
static uint64_t
batches_left(const struct trainer *t)
{
    uint64_t steps = t->steps - t->state.batches;

    return steps > 0 ? (steps - 1) * t->each + filled_batches(t, t->steps - 1) : 0;
}

enum chex_status
trainer_open_epoch(struct trainer *t, struct chex_error *err)
{
    struct loader_options o = {
        .ds = t->ds,
        .samples = &t->samples,
        .order = t->order,
        .seed = t->o->seed,
        .epoch = t->state.epoch,
        .augment = t->o->augment,
        .side = t->side,
        .batch = t->micro,
        .start = t->state.batches * t->global + (uint64_t)collective_rank(t->all) * t->each * t->micro,
        .stride = t->global,
        .count = batches_left(t),
        .each = t->each,
        .threads = THREADS,
        .ahead = AHEAD,
        .skip_bad = t->o->skip_bad,
        .reader = t->reader,
        .expect = EXPECT,
    };
    enum chex_status status;

    status = order_epoch(&t->samples, t->o->seed, t->state.epoch, t->state.window, t->order, err);
    if (status == CHEX_OK)
        status = order_hash(&t->samples, t->order, t->order_hash, err);
    return status == CHEX_OK ? loader_start(&o, &t->loader, err) : status;
}

void
trainer_close_epoch(struct trainer *t)
{
    loader_free(t->loader);
    t->loader = NULL;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

struct step {
    struct trainer *t;
    uint64_t images; /* of weight 1, of all ranks */
    double loss;     /* of this rank's images, divided by those of all */
    bool last;    /* the micro-batch at hand is this rank's last: what is final of it goes into the sums of all ranks */
    size_t left;  /* gradients, from the first, of which no sum was started */
    size_t ready; /* below which none is final yet */
    double at;    /* progress_clock() when the part at hand began */
    struct trainer_step seen;
    char bad[256]; /* images of the first micro-batch whose loss is not finite */
};

/* The time since the last call went into this part. */
static void
took(struct step *s, enum step_part part)
{
    double now = progress_clock();

    s->seen.times.seconds[part] += now - s->at;
    if (s->t->leads && s->t->w->part)
        s->t->w->part(s->t->w->context, part, s->at, now);
    s->at = now;
}

static void
name_images(const struct loaded *b, unsigned batch, char *out, size_t size)
{
    size_t used = 0;
    unsigned i, shown = 0;

    for (i = 0; i < batch && shown < 3 && used < size; i++) {
        if (b->weights[i] == 0)
            continue;
        used += (size_t)snprintf(out + used, size - used, "%s%.*s", shown++ > 0 ? ", " : "", (int)b->text[i].name_size,
                                 b->text[i].name);
    }
    if (used < size && b->images > shown)
        snprintf(out + used, size - used, " and %u more", b->images - shown);
}

/* The next micro-batch goes forward. */
static enum chex_status
forward(struct step *s, struct loaded **loaded, struct chex_error *err)
{
    struct trainer *t = s->t;
    enum chex_status status = loader_next(t->loader, loaded, err);
    double loss = 0;

    took(s, PART_WAIT);
    if (status != CHEX_OK)
        return status;
    if (!*loaded)
        return chex_fail(err, CHEX_ERR_BUG, "the loader ended before the epoch did");
    (*loaded)->batch.scale = 1 / ((double)s->images * CHEX_FINDINGS);
    status = t->backend->forward(t->plan, &(*loaded)->batch, FORWARD_TRAIN, NULL, &loss, err);
    if (!isfinite(loss) && !s->bad[0])
        name_images(*loaded, t->micro, s->bad, sizeof(s->bad));
    s->loss += loss;
    took(s, PART_FORWARD);
    return status;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/*
 * The gradients of each micro-batch are added to t->sum, and then those of all ranks.  As sums of floats they would
 * depend on how many micro-batches each rank has, and what begins as rounding does not stay small: Adam makes a whole
 * step of a gradient that is nothing but rounding.  In doubles they are exact (collective.h), and rounded to floats
 * once, at the end: so any number of ranks makes the same step.  One rank with one micro-batch has nothing to add up,
 * and the same gradients.
 */

/* Start the sums of all buckets that are final.  Their borders depend on nothing but the model. */
static enum chex_status
sum_ready(struct step *s, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && s->left > s->ready) {
        size_t first = (s->left - 1) / BUCKET_NUMBERS * BUCKET_NUMBERS;

        if (first < s->ready)
            break;
        status = collective_sum_start(s->t->all, s->t->sum + first, s->left - first, err);
        s->left = first;
    }
    return status == CHEX_OK ? collective_sum_poll(s->t->all, err) : status;
}

static enum chex_status
on_gradients(void *context, size_t first, size_t count, struct chex_error *err)
{
    struct step *s = context;
    const float *from = s->t->backend->gradients(s->t->plan) + first;
    double *to = s->t->sum + first;
    size_t i;

    for (i = 0; i < count; i++)
        to[i] += (double)from[i];
    s->ready = first;
    return s->last ? sum_ready(s, err) : CHEX_OK;
}

static enum chex_status
backward(struct step *s, struct chex_error *err)
{
    struct trainer *t = s->t;
    enum chex_status status = t->backend->clear_gradients(t->plan, err);

    return status == CHEX_OK ? t->backend->backward(t->plan, t->sum ? on_gradients : NULL, s, err) : status;
}

bool
trainer_adds_up(const struct trainer *t)
{
    return t->plan_options.train && (t->each > 1 || collective_size(t->all) > 1);
}

static void
clear_sum(const struct trainer *t)
{
    if (t->sum)
        memset(t->sum, 0, t->graph->param_floats * sizeof(*t->sum));
}

/* The sums are there: they are the gradients of the step. */
static void
take_sum(const struct trainer *t)
{
    float *gradients = t->backend->gradients(t->plan);
    size_t i;

    for (i = 0; t->sum && i < t->graph->param_floats; i++)
        gradients[i] = (float)t->sum[i];
}

/* Forward and backward of all micro-batches but the last, of which forward alone; *last is the caller's to return. */
static enum chex_status
compute(struct step *s, unsigned batches, struct loaded **last, struct chex_error *err)
{
    struct trainer *t = s->t;
    enum chex_status status = CHEX_OK;
    unsigned i;

    clear_sum(t);
    for (i = 0; status == CHEX_OK && i < batches; i++) {
        status = forward(s, last, err);
        if (status != CHEX_OK || i + 1 == batches)
            break;
        status = backward(s, err);
        loader_return(t->loader, *last);
        *last = NULL;
        took(s, PART_BACKWARD);
        if (status == CHEX_OK)
            status = collective_sum_poll(t->all, err);
    }
    return status;
}

/* Everyone says how it is.  *wishes: those of all. */
static enum chex_status
meet(struct step *s, enum chex_status status, uint64_t *wishes, struct chex_error *err)
{
    struct trainer *t = s->t;
    double now = progress_clock();

    *wishes = t->w->stop && atomic_load(t->w->stop) ? TRAINER_STOP : 0;
    if (t->w->save && atomic_load(t->w->save))
        *wishes |= TRAINER_SAVE;
    if (t->leads && t->o->time_limit > 0 && now - t->began >= t->o->time_limit)
        *wishes |= TRAINER_STOP;
    if (t->leads && trainer_save_is_due(t))
        *wishes |= TRAINER_SAVE;
    if (status == CHEX_OK && !isfinite(s->loss))
        status = chex_fail(err, CHEX_ERR_DIVERGED, "the loss is not finite with %s", s->bad);
    status = collective_agree(t->all, status, wishes, err);
    took(s, PART_MEET);
    return status;
}

/* ---- running statistics of several ranks ------------------------------------------------------------------------- */

/*
 * One process alone would see the micro-batches of all ranks, in their order.  Each makes r = 0.9 r + 0.1 batch of the
 * running statistics, which is linear: rank 0 goes on from what they were, all others begin with zero, and what a rank
 * has at its end fades by 0.9 for each micro-batch of the ranks behind it.  The sum is what the one process would have.
 */
static enum chex_status
start_statistics(struct step *s, struct chex_error *err)
{
    struct trainer *t = s->t;

    if (collective_rank(t->all) == 0)
        return CHEX_OK;
    memset(t->statistics, 0, t->graph->stat_floats * sizeof(*t->statistics));
    return t->backend->write(t->plan, ARENA_STATISTICS, t->statistics, err);
}

/* Micro-batches of a step, of all ranks.  Only the last one may be partial. */
static uint64_t
all_batches(const struct step *s)
{
    return (s->images + s->t->micro - 1) / s->t->micro;
}

static enum chex_status
sum_statistics(struct step *s, struct chex_error *err)
{
    struct trainer *t = s->t;
    uint64_t next = ((uint64_t)collective_rank(t->all) + 1) * t->each; /* micro-batch of the rank behind */
    uint64_t whole = s->images / t->micro;
    double *sum = t->sum + t->graph->param_floats;
    enum chex_status status = t->backend->read(t->plan, ARENA_STATISTICS, t->statistics, err);
    size_t i;

    if (status != CHEX_OK)
        return status;
    if (next < whole)
        arena_fade_statistics(t->graph, t->micro, whole - next, t->statistics);
    if (next < all_batches(s) && whole < all_batches(s))
        arena_fade_statistics(t->graph, (unsigned)(s->images % t->micro), 1, t->statistics);
    for (i = 0; i < t->graph->stat_floats; i++)
        sum[i] = (double)t->statistics[i];
    sum[i] = s->loss;
    return collective_sum_start(t->all, sum, t->graph->stat_floats + 1, err);
}

static enum chex_status
take_statistics(struct step *s, struct chex_error *err)
{
    struct trainer *t = s->t;
    const double *sum = t->sum + t->graph->param_floats;
    size_t i;

    for (i = 0; i < t->graph->stat_floats; i++)
        t->statistics[i] = (float)sum[i];
    s->seen.loss = sum[i];
    return t->backend->write(t->plan, ARENA_STATISTICS, t->statistics, err);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* Backward of the last micro-batch, while sums go on; then all sums. */
static enum chex_status
reduce(struct step *s, struct loaded *last, struct chex_error *err)
{
    struct trainer *t = s->t;
    bool several = collective_size(t->all) > 1;
    enum chex_status status = several ? sum_statistics(s, err) : CHEX_OK;

    s->seen.loss = s->loss;
    s->left = s->ready = t->graph->param_floats;
    s->last = several;
    if (status == CHEX_OK && last)
        status = backward(s, err);
    took(s, PART_BACKWARD);
    s->ready = 0;
    if (status == CHEX_OK && several)
        status = sum_ready(s, err);
    if (status == CHEX_OK)
        status = collective_sum_wait(t->all, err);
    took(s, PART_REDUCE);
    if (status == CHEX_OK && several)
        status = take_statistics(s, err);
    if (status == CHEX_OK)
        take_sum(t);
    took(s, PART_MEET);
    return status;
}

/*
 * What a step that diverged says.  Half of a rate that never was one diverges as well: far above the default it is
 * that.
 */
static enum chex_status
diverged(const struct step *s, struct chex_error *err)
{
    const struct trainer *t = s->t;
    double base = t->o->schedule.base, next = base > 10 * TRAINER_RATE ? TRAINER_RATE : base / 2;
    char rate[SETTINGS_NUMBER], lower[SETTINGS_NUMBER];

    chex_context(err, CHEX_ERR_DIVERGED, "diverged at step %s (epoch %u)", COUNT_TEXT(t->state.step + 1),
                 t->state.epoch + 1);
    snprintf(err->text + strlen(err->text), sizeof(err->text) - strlen(err->text),
             "; learning rate %s; last good checkpoint %s; try --lr %s",
             settings_format(schedule_rate(&t->state.schedule, t->state.step), rate),
             t->result.last[0] ? t->result.last : "none", settings_format(next, lower));
    return err->status = CHEX_ERR_DIVERGED;
}

static enum chex_status
update(struct step *s, const struct loaded *last, struct chex_error *err)
{
    struct trainer *t = s->t;
    const struct optimizer_step step = {.number = t->state.step + 1, .rate = s->seen.rate, .clip = t->o->clip};
    enum chex_status status = t->backend->update(t->plan, &step, &s->seen.norm, err);

    took(s, PART_UPDATE);
    if (status != CHEX_OK || isfinite(s->seen.norm))
        return status;
    if (last)
        name_images(last, t->micro, s->bad, sizeof(s->bad));
    return chex_fail(err, CHEX_ERR_DIVERGED, "the gradient is not finite after %s", s->bad);
}

static void
count_step(struct step *s)
{
    struct trainer *t = s->t;
    size_t i;

    t->state.step++;
    t->state.batches++;
    t->state.micro_batches += all_batches(s);
    t->state.loss_sum += s->seen.loss * (double)s->images;
    t->state.loss_images += s->images;
    t->result.steps++;
    t->result.images += s->images;
    t->epoch.images += s->images;
    for (i = 0; i < PART_COUNT; i++) {
        t->result.times.seconds[i] += s->seen.times.seconds[i];
        t->epoch.times.seconds[i] += s->seen.times.seconds[i];
    }
}

enum chex_status
trainer_make_step(struct trainer *t, uint64_t *wishes, struct chex_error *err)
{
    uint64_t first = t->state.batches * t->global, left = t->samples.count - first;
    struct step s = {.t = t, .images = left < t->global ? left : t->global, .at = progress_clock()};
    double began = s.at;
    unsigned batches = filled_batches(t, t->state.batches);
    struct loaded *last = NULL;
    enum chex_status status;

    s.seen.images = s.images;
    s.seen.rate = schedule_rate(&t->state.schedule, t->state.step);
    status = t->backend->read(t->plan, ARENA_STATISTICS, t->before, err);
    if (status == CHEX_OK)
        status = start_statistics(&s, err);
    if (status == CHEX_OK)
        status = compute(&s, batches, &last, err);
    status = meet(&s, status, wishes, err);
    if (status == CHEX_OK)
        status = reduce(&s, last, err);
    if (status == CHEX_OK)
        status = update(&s, last, err);
    if (last)
        loader_return(t->loader, last);
    if (status == CHEX_ERR_DIVERGED)
        diverged(&s, err);
    if (status != CHEX_OK) {
        /* Back to where the last step ended: forward() has moved the running statistics. */
        struct chex_error ignored;

        (void)t->backend->write(t->plan, ARENA_STATISTICS, t->before, &ignored);
        return status;
    }
    s.seen.seconds = progress_clock() - began;
    count_step(&s);
    if (t->leads && t->w->stepped)
        t->w->stepped(t->w->context, t, &s.seen);
    return CHEX_OK;
}
