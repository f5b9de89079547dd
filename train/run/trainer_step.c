/*
 * trainer_step.c - a training step on this rank, and the loader pass that feeds it; see trainer.h
 *
 * The plan receives steps in sequence, and a device may be one step late: the trainer asks for the result of a step
 * when the next one is in flight.  So the effect of a result (a request to save or stop, a fault) comes after all steps
 * in flight are complete.  That is the same step on all ranks, because all ask at the same point and get the same
 * result.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "backend/ranges.h"
#include "base/clock.h"
#include "base/number_format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD   4   /* micro-batches of read-ahead */
#define THREADS 2   /* reader threads */
#define EXPECT  256 /* images of readahead */
#define NAMES   256 /* bytes for the names of a micro-batch */

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

unsigned
trainer_filled_batches(const struct trainer_job *job, const struct trainer_task *task, uint64_t step)
{
    uint64_t first = step * task->global + (uint64_t)collective_rank(job->all) * task->each * task->micro;
    uint64_t left = first < task->samples.count ? task->samples.count - first : 0,
             batches = (left + task->micro - 1) / task->micro;

    return batches < task->each ? (unsigned)batches : task->each;
}

/* Returns the micro-batches in the rest of the epoch; only its last step may have fewer than the others. */
static uint64_t
batches_left(const struct trainer_job *job, const struct trainer_task *task, const struct checkpoint_state *state)
{
    uint64_t steps = task->steps - state->batches;

    return steps > 0 ? (steps - 1) * task->each + trainer_filled_batches(job, task, task->steps - 1) : 0;
}

enum chex_status
trainer_open_epoch(struct trainer *t, struct chex_error *err)
{
    struct loader_options o = {
        .ds = t->task.ds,
        .samples = &t->task.samples,
        .seed = t->job.o->seed,
        .epoch = t->state.epoch,
        .augment = t->job.o->augment,
        .rotate = t->job.o->rotate,
        .brightness = t->job.o->brightness,
        .mixup = t->job.o->mixup,
        .side = t->task.side,
        .batch = t->task.micro,
        .start = t->state.batches * t->task.global +
                 (uint64_t)collective_rank(t->job.all) * t->task.each * t->task.micro,
        .stride = t->task.global,
        .count = batches_left(&t->job, &t->task, &t->state),
        .each = t->task.each,
        .threads = THREADS,
        .ahead = AHEAD,
        .skip_bad = t->job.o->skip_bad,
        .reader = t->images.reader,
        .expect = EXPECT,
    };
    enum chex_status status = trainer_take_order(t, err);

    o.order = t->pass.order.sample;
    return status == CHEX_OK ? loader_start(&o, &t->pass.loader, err) : status;
}

void
trainer_close_epoch(struct trainer_pass *pass, struct stepping *stepping)
{
    loader_free(pass->loader);
    pass->loader = NULL;
    stepping->count = 0;
    stepping->requests = 0;
}

/* ---- giving a step to the plan ----------------------------------------------------------------------------------- */

/* The clocks at the start of a part. */
struct part_start {
    double wall, cpu;
};

static struct part_start
start_part(void)
{
    return (struct part_start){.wall = clock_now(), .cpu = clock_process()};
}

/* Add the time since the start to this part of a step. */
static void
took(const struct trainer_job *job, struct step_under_way *s, enum step_part part, const struct part_start *start)
{
    double now = clock_now();

    s->times.seconds[part] += now - start->wall;
    s->times.cpu[part] += clock_process() - start->cpu;
    trainer_times_part(job->times, part, start->wall, now);
}

/* Keep the names of the images, for the error if their loss is not finite. */
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

/* Returns the micro-batches of a step of all ranks; only the last one may be partial. */
static uint64_t
all_batches(const struct trainer_task *task, const struct step_under_way *s)
{
    return (s->images + task->micro - 1) / task->micro;
}

/* Returns the message of this rank with its last micro-batch. */
static struct step_end
end_of_step(const struct trainer_job *job, const struct trainer_task *task, const struct saving *saving,
            const struct step_under_way *s)
{
    uint64_t next = ((uint64_t)collective_rank(job->all) + 1) * task->each; /* first micro-batch of the next rank */
    uint64_t whole = s->images / task->micro, all = all_batches(task, s);
    struct step_end end = {.requests = job->w->stop && atomic_load(job->w->stop) ? TRAINER_STOP : 0};

    if (job->w->save && atomic_load(job->w->save))
        end.requests |= TRAINER_SAVE;
    if (job->is_rank_0 && job->o->time_limit > 0 && clock_now() - job->began >= job->o->time_limit)
        end.requests |= TRAINER_STOP;
    if (job->is_rank_0 && trainer_save_is_due(job, saving))
        end.requests |= TRAINER_SAVE;
    end.following = next < whole ? whole - next : 0;
    end.rest = next < all && whole < all ? (unsigned)(s->images % task->micro) : 0;
    end.uneven = all < task->global / task->micro;
    return end;
}

/* Load a micro-batch.  A fault of the loader is kept until all ranks know of it; they meet then, not now. */
static struct loaded *
load(const struct trainer_job *job, const struct trainer_pass *pass, struct stepping *stepping,
     struct step_under_way *s)
{
    struct loaded *loaded = NULL;
    const struct part_start start = start_part();

    if (stepping->fault != CHEX_OK)
        return NULL;
    ranges_push(PART_WAIT);
    stepping->fault = loader_next(pass->loader, &loaded, &stepping->why);
    ranges_pop();
    if (stepping->fault == CHEX_OK && !loaded)
        stepping->fault = error_set(&stepping->why, CHEX_ERR_BUG, "the loader ended before the epoch did");
    took(job, s, PART_WAIT, &start);
    return stepping->fault == CHEX_OK ? loaded : NULL;
}

static enum chex_status
give_batch(const struct trainer *t, struct step_under_way *s, struct loaded *loaded, unsigned flags,
           struct chex_error *err)
{
    const struct step_end end = end_of_step(&t->job, &t->task, &t->saving, s);
    enum chex_status status = keep_names(s, loaded, t->task.micro, err);

    loaded->batch.scale = 1 / ((double)s->images * chex_dataset_info(t->task.ds)->finding_count);
    if (status == CHEX_OK)
        status = t->engine.backend->accumulate(t->engine.plan, &loaded->batch, flags, flags & STEP_LAST ? &end : NULL,
                                               err);
    loader_return(t->pass.loader, loaded);
    return status;
}

/* Give the micro-batches of this rank to the plan; a rank without images, or with a fault, only ends the step. */
static enum chex_status
give_batches(struct trainer *t, struct step_under_way *s, uint64_t number, struct chex_error *err)
{
    unsigned batches = trainer_filled_batches(&t->job, &t->task, number), flags = STEP_FIRST, i;
    enum chex_status status = CHEX_OK;

    for (i = 0; status == CHEX_OK && i < batches; i++) {
        struct loaded *loaded = load(&t->job, &t->pass, &t->stepping, s);

        if (!loaded)
            break;
        status = give_batch(t, s, loaded, flags | (i + 1 == batches ? STEP_LAST : 0), err);
        flags = 0;
    }
    if (status == CHEX_OK && (i < batches || batches == 0)) {
        const struct step_end end = end_of_step(&t->job, &t->task, &t->saving, s);

        flags |= STEP_LAST | (t->stepping.fault != CHEX_OK ? STEP_FAULT : 0);
        status = t->engine.backend->accumulate(t->engine.plan, NULL, flags, &end, err);
    }
    return status;
}

static enum chex_status
start_step(struct trainer *t, struct chex_error *err)
{
    struct stepping *stepping = &t->stepping;
    struct step_under_way *s = &stepping->step[(stepping->first + stepping->count) % STEPS_UNDER_WAY];
    uint64_t number = t->state.batches + stepping->count, left = t->task.samples.count - number * t->task.global;
    enum chex_status status;

    s->images = left < t->task.global ? left : t->task.global;
    s->rate = schedule_rate(&t->state.schedule, t->state.step + stepping->count);
    s->began = clock_now();
    s->times = (struct step_times){.seconds = {0}};
    s->names.size = 0;
    ranges_push_step(t->state.step + stepping->count + 1);
    status = give_batches(t, s, number, err);
    if (status == CHEX_OK)
        status = t->engine.backend->update(t->engine.plan, s->rate, t->job.o->clip, &s->ticket, err);
    ranges_pop();
    if (status == CHEX_OK)
        stepping->count++;
    /* All ranks know when a checkpoint by steps is due. */
    if (stepping->checkpoint_steps > 0 && (t->state.step + stepping->count) % stepping->checkpoint_steps == 0)
        stepping->requests |= TRAINER_SAVE;
    return status;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Wait for the oldest step in flight; sends heartbeats meanwhile. */
static enum chex_status
wait_for_result(const struct trainer_job *job, const struct trainer_engine *engine, struct stepping *stepping,
                struct step_under_way **step, struct step_result *r, struct chex_error *err)
{
    struct step_under_way *s = &stepping->step[stepping->first];
    const struct part_start start = start_part();
    bool done = false;
    enum chex_status status;

    *step = s;
    stepping->first = (stepping->first + 1) % STEPS_UNDER_WAY;
    stepping->count--;
    ranges_push(PART_MEET);
    while ((status = engine->backend->result(engine->plan, s->ticket, &done, r, err)) == CHEX_OK && !done) {
        status = collective_poll(job->all, err);
        if (status != CHEX_OK)
            break;
        backoff(50e-6);
        if (job->w->on_wait)
            job->w->on_wait(job->w->context);
    }
    ranges_pop();
    took(job, s, PART_MEET, &start);
    return status;
}

/*
 * Build the error text of a diverged step.  It advises half the learning rate, or the default rate if the rate is far
 * above the default.
 */
static enum chex_status
diverged(const struct trainer_job *job, const struct checkpoint_state *state, const struct trainer_result *result,
         struct chex_error *err)
{
    double base = job->o->schedule.base, usual = optimizer_default_rate(job->o->optimizer.kind);
    double next = base > 10 * usual ? usual : base / 2;
    char rate[SETTINGS_NUMBER], lower[SETTINGS_NUMBER];

    error_context(err, CHEX_ERR_DIVERGED, "diverged at step %s (epoch %u)", COUNT_TEXT(state->step + 1),
                  state->epoch + 1);
    snprintf(err->text + strlen(err->text), sizeof(err->text) - strlen(err->text),
             "; learning rate %s; last good checkpoint %s; try --lr %s",
             settings_format(schedule_rate(&state->schedule, state->step), rate),
             result->last[0] ? result->last : "none", settings_format(next, lower));
    return err->status = CHEX_ERR_DIVERGED;
}

/* The plan is halted on all ranks: they meet, and a rank that knows the reason sends it to all. */
static enum chex_status
explain(const struct trainer_job *job, const struct checkpoint_state *state, const struct stepping *stepping,
        const struct trainer_result *result, const struct step_under_way *s, const struct step_result *r,
        struct chex_error *err)
{
    enum chex_status status = stepping->fault;

    if (status != CHEX_OK && err)
        *err = stepping->why;
    else if (r->faults == 0 && r->bad != STEP_NONE)
        status = error_set(err, CHEX_ERR_DIVERGED, "the loss is not finite with %s", names_of(s, r->bad));
    status = collective_agree(job->all, status, NULL, err);
    if (status == CHEX_OK && r->faults > 0)
        status = error_set(err, CHEX_ERR_BUG, "a rank had a fault and does not say which");
    if (status == CHEX_OK)
        status = error_set(err, CHEX_ERR_DIVERGED, "the gradient is not finite after %s",
                           names_of(s, s->names.size > 0 ? (uint32_t)(s->names.size / NAMES - 1) : 0));
    return status == CHEX_ERR_DIVERGED ? diverged(job, state, result, err) : status;
}

/* Later steps have changed nothing; the plan has the state of the last good step. */
static enum chex_status
halt(struct trainer *t, const struct step_under_way *s, const struct step_result *r, struct chex_error *err)
{
    struct step_under_way *other;
    struct step_result ignored;
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && t->stepping.count > 0)
        status = wait_for_result(&t->job, &t->engine, &t->stepping, &other, &ignored, err);
    if (status == CHEX_OK)
        status = t->engine.backend->resume(t->engine.plan, err);
    if (status == CHEX_OK)
        /* The text may contain the name of the checkpoint. */
        status = trainer_finish_save(&t->job, &t->saving, &t->epoch, &t->result, err);
    if (status == CHEX_OK)
        status = explain(&t->job, &t->state, &t->stepping, &t->result, s, r, err);
    t->stepping.fault = CHEX_OK;
    return status;
}

static void
count_step(const struct trainer_task *task, struct checkpoint_state *state, struct trainer_epoch *epoch,
           struct trainer_result *result, const struct step_under_way *s, const struct trainer_step *seen, bool known)
{
    state->step++;
    state->batches++;
    state->micro_batches += all_batches(task, s);
    /* A step whose loss is not finite was skipped, and the loss scale was reduced. */
    if (known && isfinite(seen->loss)) {
        state->loss_sum += seen->loss * (double)s->images;
        state->loss_images += s->images;
    }
    result->steps++;
    result->images += s->images;
    epoch->images += s->images;
    step_times_add(&result->times, &seen->times);
    step_times_add(&epoch->times, &seen->times);
}

static enum chex_status
finish_step(struct trainer *t, struct chex_error *err)
{
    struct stepping *stepping = &t->stepping;
    struct step_under_way *s;
    struct step_result r;
    struct trainer_step seen;
    enum chex_status status = wait_for_result(&t->job, &t->engine, stepping, &s, &r, err);
    unsigned filled = trainer_filled_batches(&t->job, &t->task, t->state.batches);
    double now = clock_now();

    if (status != CHEX_OK || r.halted)
        return status == CHEX_OK ? halt(t, s, &r, err) : status;
    seen = (struct trainer_step){.loss = r.loss, .norm = r.norm, .rate = s->rate, .images = s->images};
    /* Earlier time belongs to another step. */
    seen.seconds = now - (s->began > stepping->ended ? s->began : stepping->ended);
    /* While the device works, a wait of its host costs nothing.  Before the first step the device had no work. */
    if (t->engine.device->info.own_clock && t->result.steps > 0 && s->times.seconds[PART_WAIT] > r.idle)
        s->times.seconds[PART_WAIT] = r.idle;
    seen.times = s->times;
    step_times_add(&seen.times, &r.times);
    stepping->ended = now;
    stepping->requests |= r.requests;
    t->state.plan = r.state;
    count_step(&t->task, &t->state, &t->epoch, &t->result, s, &seen, r.known);
    trainer_times_step(&t->job, t->state.step, now, &seen, (double)filled / t->task.each);
    if (t->job.is_rank_0 && t->job.w->stepped)
        t->job.w->stepped(t->job.w->context, t, &seen);
    return CHEX_OK;
}

static bool
may_start(const struct trainer *t)
{
    const struct stepping *stepping = &t->stepping;
    uint64_t most = stepping->last_step;

    return stepping->requests == 0 && stepping->count <= t->engine.device->info.ahead &&
           t->state.batches + stepping->count < t->task.steps && (most == 0 || t->state.step + stepping->count < most);
}

enum chex_status
trainer_make_step(struct trainer *t, uint64_t *requests, struct chex_error *err)
{
    struct stepping *stepping = &t->stepping;
    double waited = collective_waited(t->job.all);
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && may_start(t))
        status = start_step(t, err);
    if (status == CHEX_OK)
        status = finish_step(t, err);
    t->times.covered_wait += collective_waited(t->job.all) - waited;
    *requests = stepping->count == 0 ? stepping->requests : 0;
    if (stepping->count == 0)
        stepping->requests = 0;
    return status;
}
