/*
 * trainer_step.c - one step of training on this rank, and the pass of the loader that feeds it; see trainer.h
 *
 * Steps are given to the plan one after the other, and a device may be one step behind: what came of a step is asked
 * for when the next one is under way.  So whatever follows from a result (a wish to save or to stop, a fault) comes
 * when all steps under way are over.  That is the same step on all ranks, since all ask at the same place and get the
 * same result.
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
#include <time.h>

#define AHEAD   4   /* micro-batches that are read ahead */
#define THREADS 2   /* that read */
#define EXPECT  256 /* images whose readahead is begun before they are read */
#define NAMES   256 /* bytes for the names of a micro-batch */

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* Micro-batches of this rank in a step of the epoch.  One without an image of weight 1 is neither read nor computed. */
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
    t->stepping.count = 0;
    t->stepping.wishes = 0;
}

/* ---- giving a step to the plan ----------------------------------------------------------------------------------- */

/* The time from `began` on went into this part of a step. */
static void
took(const struct trainer *t, struct step_under_way *s, enum step_part part, double began)
{
    double now = progress_clock();

    s->times.seconds[part] += now - began;
    if (t->is_rank_0 && t->w->part)
        t->w->part(t->w->context, part, began, now);
}

/* Which images these are, for the case that their loss is not finite. */
static enum chex_status
keep_names(struct step_under_way *s, const struct loaded *b, unsigned batch, struct chex_error *err)
{
    char text[NAMES] = "";
    size_t used = 0;
    unsigned i, shown = 0;

    for (i = 0; i < batch && shown < 3 && used < NAMES; i++) {
        if (b->weights[i] == 0)
            continue;
        used += (size_t)snprintf(text + used, NAMES - used, "%s%.*s", shown++ > 0 ? ", " : "",
                                 (int)b->text[i].name_size, b->text[i].name);
    }
    if (used < NAMES && b->images > shown)
        snprintf(text + used, NAMES - used, " and %u more", b->images - shown);
    return buffer_append(&s->names, text, NAMES, err);
}

static const char *
names_of(const struct step_under_way *s, uint32_t batch)
{
    return (size_t)batch * NAMES < s->names.size ? (const char *)s->names.data + (size_t)batch * NAMES : "no image";
}

/* Micro-batches of a step, of all ranks.  Only the last one may be partial. */
static uint64_t
all_batches(const struct trainer *t, const struct step_under_way *s)
{
    return (s->images + t->micro - 1) / t->micro;
}

/* What this rank says with its last micro-batch. */
static struct step_end
end_of_step(const struct trainer *t, const struct step_under_way *s)
{
    uint64_t next = ((uint64_t)collective_rank(t->all) + 1) * t->each; /* micro-batch of the rank behind */
    uint64_t whole = s->images / t->micro, all = all_batches(t, s);
    struct step_end end = {.wishes = t->w->stop && atomic_load(t->w->stop) ? TRAINER_STOP : 0};

    if (t->w->save && atomic_load(t->w->save))
        end.wishes |= TRAINER_SAVE;
    if (t->is_rank_0 && t->o->time_limit > 0 && progress_clock() - t->began >= t->o->time_limit)
        end.wishes |= TRAINER_STOP;
    if (t->is_rank_0 && trainer_save_is_due(t))
        end.wishes |= TRAINER_SAVE;
    end.behind = next < whole ? whole - next : 0;
    end.rest = next < all && whole < all ? (unsigned)(s->images % t->micro) : 0;
    return end;
}

/* A fault of the loader is kept until all ranks know that there is one: they meet then, not now. */
static struct loaded *
load(struct trainer *t, struct step_under_way *s)
{
    struct stepping *all = &t->stepping;
    struct loaded *loaded = NULL;
    double began = progress_clock();

    if (all->fault != CHEX_OK)
        return NULL;
    all->fault = loader_next(t->loader, &loaded, &all->why);
    if (all->fault == CHEX_OK && !loaded)
        all->fault = error_set(&all->why, CHEX_ERR_BUG, "the loader ended before the epoch did");
    took(t, s, PART_WAIT, began);
    return all->fault == CHEX_OK ? loaded : NULL;
}

static enum chex_status
give_batch(struct trainer *t, struct step_under_way *s, struct loaded *loaded, unsigned flags, struct chex_error *err)
{
    const struct step_end end = end_of_step(t, s);
    enum chex_status status = keep_names(s, loaded, t->micro, err);

    loaded->batch.scale = 1 / ((double)s->images * CHEX_FINDINGS);
    if (status == CHEX_OK)
        status = t->backend->accumulate(t->plan, &loaded->batch, flags, flags & STEP_LAST ? &end : NULL, err);
    loader_return(t->loader, loaded);
    return status;
}

/* The micro-batches of this rank.  A rank without one, or with a fault, says just that. */
static enum chex_status
give_batches(struct trainer *t, struct step_under_way *s, uint64_t number, struct chex_error *err)
{
    unsigned batches = filled_batches(t, number), flags = STEP_FIRST, i;
    enum chex_status status = CHEX_OK;

    for (i = 0; status == CHEX_OK && i < batches; i++) {
        struct loaded *loaded = load(t, s);

        if (!loaded)
            break;
        status = give_batch(t, s, loaded, flags | (i + 1 == batches ? STEP_LAST : 0), err);
        flags = 0;
    }
    if (status == CHEX_OK && (i < batches || batches == 0)) {
        const struct step_end end = end_of_step(t, s);

        flags |= STEP_LAST | (t->stepping.fault != CHEX_OK ? STEP_FAULT : 0);
        status = t->backend->accumulate(t->plan, NULL, flags, &end, err);
    }
    return status;
}

static enum chex_status
start_step(struct trainer *t, struct chex_error *err)
{
    struct stepping *all = &t->stepping;
    struct step_under_way *s = &all->step[(all->first + all->count) % STEPS_UNDER_WAY];
    uint64_t number = t->state.batches + all->count, left = t->samples.count - number * t->global;
    enum chex_status status;

    s->images = left < t->global ? left : t->global;
    s->rate = schedule_rate(&t->state.schedule, t->state.step + all->count);
    s->began = progress_clock();
    s->times = (struct step_times){.seconds = {0}};
    s->names.size = 0;
    status = give_batches(t, s, number, err);
    if (status == CHEX_OK)
        status = t->backend->update(t->plan, s->rate, t->o->clip, &s->ticket, err);
    if (status == CHEX_OK)
        all->count++;
    /* All ranks know when a checkpoint of this kind is due. */
    if (t->checkpoint_steps > 0 && (t->state.step + all->count) % t->checkpoint_steps == 0)
        all->wishes |= TRAINER_SAVE;
    return status;
}

/* ---- what came of it --------------------------------------------------------------------------------------------- */

/* Of the oldest step under way.  A rank that waits tells its peers that it lives. */
static enum chex_status
wait_for_result(struct trainer *t, struct step_under_way **step, struct step_result *r, struct chex_error *err)
{
    static const struct timespec pause = {.tv_nsec = 50000};
    struct stepping *all = &t->stepping;
    struct step_under_way *s = &all->step[all->first];
    double began = progress_clock();
    bool done = false;
    enum chex_status status;

    *step = s;
    all->first = (all->first + 1) % STEPS_UNDER_WAY;
    all->count--;
    while ((status = t->backend->result(t->plan, s->ticket, &done, r, err)) == CHEX_OK && !done) {
        status = collective_poll(t->all, err);
        if (status != CHEX_OK)
            break;
        nanosleep(&pause, NULL);
        if (t->w->on_wait)
            t->w->on_wait(t->w->context);
    }
    took(t, s, PART_MEET, began);
    return status;
}

/*
 * What a step that diverged says.  Half of a rate that never was one diverges as well: far above the default it is
 * that.
 */
static enum chex_status
diverged(const struct trainer *t, struct chex_error *err)
{
    double base = t->o->schedule.base, next = base > 10 * TRAINER_RATE ? TRAINER_RATE : base / 2;
    char rate[SETTINGS_NUMBER], lower[SETTINGS_NUMBER];

    error_context(err, CHEX_ERR_DIVERGED, "diverged at step %s (epoch %u)", COUNT_TEXT(t->state.step + 1),
                  t->state.epoch + 1);
    snprintf(err->text + strlen(err->text), sizeof(err->text) - strlen(err->text),
             "; learning rate %s; last good checkpoint %s; try --lr %s",
             settings_format(schedule_rate(&t->state.schedule, t->state.step), rate),
             t->result.last[0] ? t->result.last : "none", settings_format(next, lower));
    return err->status = CHEX_ERR_DIVERGED;
}

/* The plan is halted, on all ranks: they meet, and one that knows why says so to all. */
static enum chex_status
explain(struct trainer *t, const struct step_under_way *s, const struct step_result *r, struct chex_error *err)
{
    enum chex_status status = t->stepping.fault;

    if (status != CHEX_OK && err)
        *err = t->stepping.why;
    else if (r->faults == 0 && r->bad != STEP_NONE)
        status = error_set(err, CHEX_ERR_DIVERGED, "the loss is not finite with %s", names_of(s, r->bad));
    status = collective_agree(t->all, status, NULL, err);
    if (status == CHEX_OK && r->faults > 0)
        status = error_set(err, CHEX_ERR_BUG, "a rank had a fault and does not say which");
    if (status == CHEX_OK)
        status = error_set(err, CHEX_ERR_DIVERGED, "the gradient is not finite after %s",
                           names_of(s, s->names.size > 0 ? (uint32_t)(s->names.size / NAMES - 1) : 0));
    return status == CHEX_ERR_DIVERGED ? diverged(t, err) : status;
}

/* Steps behind this one have changed nothing.  The plan is that of the last good step. */
static enum chex_status
halt(struct trainer *t, const struct step_under_way *s, const struct step_result *r, struct chex_error *err)
{
    struct step_under_way *other;
    struct step_result ignored;
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && t->stepping.count > 0)
        status = wait_for_result(t, &other, &ignored, err);
    if (status == CHEX_OK)
        status = t->backend->resume(t->plan, err);
    if (status == CHEX_OK)
        status = trainer_finish_save(t, err); /* its name may be part of what is said */
    if (status == CHEX_OK)
        status = explain(t, s, r, err);
    t->stepping.fault = CHEX_OK;
    return status;
}

static void
count_step(struct trainer *t, const struct step_under_way *s, const struct trainer_step *seen)
{
    size_t i;

    t->state.step++;
    t->state.batches++;
    t->state.micro_batches += all_batches(t, s);
    if (isfinite(seen->loss)) { /* else it was skipped, and the loss scale has fallen */
        t->state.loss_sum += seen->loss * (double)s->images;
        t->state.loss_images += s->images;
    }
    t->result.steps++;
    t->result.images += s->images;
    t->epoch.images += s->images;
    for (i = 0; i < PART_COUNT; i++) {
        t->result.times.seconds[i] += seen->times.seconds[i];
        t->epoch.times.seconds[i] += seen->times.seconds[i];
    }
}

static enum chex_status
finish_step(struct trainer *t, struct chex_error *err)
{
    struct stepping *all = &t->stepping;
    struct step_under_way *s;
    struct step_result r;
    struct trainer_step seen;
    enum chex_status status = wait_for_result(t, &s, &r, err);
    double now = progress_clock();
    size_t i;

    if (status != CHEX_OK || r.halted)
        return status == CHEX_OK ? halt(t, s, &r, err) : status;
    seen = (struct trainer_step){.loss = r.loss, .norm = r.norm, .rate = s->rate, .images = s->images};
    seen.seconds = now - (s->began > all->ended ? s->began : all->ended); /* the time before is that of another step */
    for (i = 0; i < PART_COUNT; i++)
        seen.times.seconds[i] = s->times.seconds[i] + r.times.seconds[i];
    all->ended = now;
    all->wishes |= r.wishes;
    t->state.plan = r.state;
    count_step(t, s, &seen);
    if (t->is_rank_0 && t->w->stepped)
        t->w->stepped(t->w->context, t, &seen);
    return CHEX_OK;
}

static bool
may_start(const struct trainer *t)
{
    const struct stepping *all = &t->stepping;

    return all->wishes == 0 && all->count <= t->device->info.ahead && t->state.batches + all->count < t->steps;
}

enum chex_status
trainer_make_step(struct trainer *t, uint64_t *wishes, struct chex_error *err)
{
    struct stepping *all = &t->stepping;
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && may_start(t))
        status = start_step(t, err);
    if (status == CHEX_OK)
        status = finish_step(t, err);
    *wishes = all->count == 0 ? all->wishes : 0;
    if (all->count == 0)
        all->wishes = 0;
    return status;
}
