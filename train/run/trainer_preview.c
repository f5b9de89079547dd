/*
 * trainer_preview.c - the dry run: finds the initial weights and estimates the times of a run; see trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "base/clock.h"
#include "eval/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ENOUGH 0.4 /* seconds: an operation is repeated until its total time reaches this */

/* Of the search for the largest micro-batch that fits: its second one, and the plans after which it bisects. */
#define LINE_FROM  64
#define LINE_PLANS 12

/* ---- weights ----------------------------------------------------------------------------------------------------- */

enum chex_status
trainer_probe_start(struct trainer *t, struct trainer_start *out, struct chex_error *err)
{
    return collective_agree(t->job.all, trainer_look(t, out, err), NULL, err);
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

/* A micro-batch of noise: the content of images does not affect the time. */
struct timed_batch {
    struct batch batch;
    uint8_t *pixels, *label;
    struct crop *crop;
    float *logits;
    float *statistics; /* buffer for the arena */
};

static enum chex_status
make_batch(const struct trainer_task *task, const struct trainer_engine *engine, struct timed_batch *b,
           struct chex_error *err)
{
    size_t side = engine->options.source, size = side * side * task->micro, i;
    size_t outputs = chex_dataset_info(task->ds)->finding_count;
    uint32_t draw = 1;

    b->pixels = malloc(size);
    b->label = calloc(task->micro, outputs);
    b->crop = calloc(task->micro, sizeof(*b->crop));
    b->logits = malloc(task->micro * outputs * sizeof(*b->logits));
    if (!b->pixels || !b->label || !b->crop || !b->logits)
        return error_memory(err);
    for (i = 0; i < size; i++) {
        draw = draw * 1664525u + 1013904223u; /* Knuth, Numerical Recipes */
        b->pixels[i] = (uint8_t)(draw >> 24);
    }
    b->batch = (struct batch){.pixels = b->pixels, .crop = b->crop, .label = b->label, .scale = 1e-3};
    return CHEX_OK;
}

static void
free_batch(struct timed_batch *b)
{
    free(b->pixels);
    free(b->label);
    free(b->crop);
    free(b->logits);
}

/* The timed parts of a step, and of an evaluation. */
enum timed { TIMED_BATCH, TIMED_UPDATE, TIMED_EVALUATE, TIMED_COUNT };

static enum chex_status
do_once(const struct trainer_engine *engine, struct plan *plan, const struct timed_batch *b, enum timed what,
        struct chex_error *err)
{
    const struct step_end end = {.requests = 0};
    struct step_result result;
    enum chex_status status;
    uint64_t ticket;
    bool done;

    switch (what) {
    case TIMED_BATCH:
        status = engine->backend->accumulate(plan, &b->batch, STEP_FIRST | STEP_LAST, &end, err);
        /* read() waits for the device. */
        return status == CHEX_OK ? engine->backend->read(plan, ARENA_STATISTICS, b->statistics, err) : status;
    case TIMED_UPDATE:
        status = engine->backend->accumulate(plan, NULL, STEP_FIRST | STEP_LAST, &end, err);
        if (status == CHEX_OK)
            status = engine->backend->update(plan, 0, 0, &ticket, err);
        for (done = false; status == CHEX_OK && !done;)
            status = engine->backend->result(plan, ticket, &done, &result, err);
        return status;
    default:
        return backend_score(engine->backend, plan, &b->batch, 1, b->crop, ARENA_PARAMETERS, b->logits, err);
    }
}

/* Measure the mean time of one operation.  The first run, with cold memory, counts only if it is the only one. */
static enum chex_status
time_one(const struct trainer_job *job, const struct trainer_engine *engine, struct plan *plan,
         const struct timed_batch *b, enum timed what, double *seconds, struct chex_error *err)
{
    double began = clock_now(), since = began;
    unsigned count = 0;
    enum chex_status status;

    do {
        if (count == 1)
            since = clock_now();
        status = do_once(engine, plan, b, what, err);
        count++;
        if (status == CHEX_OK && job->w->stop && atomic_load(job->w->stop))
            status = error_set(err, CHEX_ERR_STOPPED, "stopped while a micro-batch was timed");
    } while (status == CHEX_OK && (clock_now() - began < ENOUGH || count == 2));
    *seconds = (clock_now() - since) / (count > 1 ? count - 1 : 1);
    return status;
}

/* Take the maximum over the ranks: all wait for the slowest. */
static enum chex_status
take_slowest(const struct trainer_job *job, double *seconds, struct chex_error *err)
{
    struct buffer all = {0};
    double one[TIMED_COUNT];
    enum chex_status status = collective_allgather(job->all, seconds, sizeof(one), &all, NULL, err);
    int rank, i;

    for (rank = 0; status == CHEX_OK && rank < collective_size(job->all); rank++) {
        memcpy(one, all.data + (size_t)rank * sizeof(one), sizeof(one));
        for (i = 0; i < TIMED_COUNT; i++)
            seconds[i] = one[i] > seconds[i] ? one[i] : seconds[i];
    }
    buffer_release(&all);
    return status;
}

/* ---- estimates --------------------------------------------------------------------------------------------------- */

/* Returns the seconds for these images of one rank; batch: seconds per full micro-batch. */
static double
image_seconds(const struct trainer_task *task, const struct trainer_engine *engine, uint64_t images, double batch)
{
    if (engine->device->info.fixed_time)
        return (double)order_steps(images, task->micro) * batch;
    return (double)images / task->micro * batch;
}

/* Returns the seconds for `steps` steps, which may include the last of the epoch.  Rank 0 has the most images. */
static double
train_seconds(const struct trainer_task *task, const struct trainer_engine *engine, uint64_t steps,
              const double *seconds)
{
    uint64_t each = (uint64_t)task->each * task->micro, last = task->samples.count - (task->steps - 1) * task->global;

    if (steps == 0)
        return 0;
    return image_seconds(task, engine, (steps - 1) * each + (last < each ? last : each), seconds[TIMED_BATCH]) +
           (double)steps * seconds[TIMED_UPDATE];
}

static double
evaluation_seconds(const struct trainer_job *job, const struct trainer_task *task, const struct trainer_engine *engine,
                   int split, const double *seconds)
{
    uint64_t images = trainer_evaluated_images(task, split);
    uint64_t batches = order_steps(order_steps(images, task->micro), (unsigned)collective_size(job->all));
    struct crop view[EVALUATE_VIEWS];

    if (batches * task->micro < images)
        images = batches * task->micro;
    return image_seconds(task, engine, images, seconds[TIMED_EVALUATE]) *
           evaluate_views(job->o->tta, task->side, engine->options.source, view);
}

/* Returns the number of epochs left that are validated. */
static uint32_t
evaluations_left(const struct trainer_job *job, const struct checkpoint_state *state)
{
    uint32_t every = job->o->evaluate_every, epochs = job->o->epochs;

    if (state->epoch >= epochs)
        return 0;
    if (every == 0)
        return 1;
    return epochs / every - state->epoch / every + (epochs % every != 0);
}

/*
 * Returns the seconds for the rest of the run, with its test; some steps of the current epoch may be done.  A short run
 * ends before its last epoch: it has no test, and its evaluations are not counted.
 */
static double
run_seconds(const struct trainer *t, double evaluation, double test, const double *seconds)
{
    const struct trainer_job *job = &t->job;
    const struct trainer_task *task = &t->task;
    const struct checkpoint_state *state = &t->state;
    double epoch = train_seconds(task, &t->engine, task->steps, seconds);
    uint64_t most = job->o->max_steps;

    if (trainer_is_complete(job, state))
        return test;
    if (most > 0 && most < state->schedule.options.steps)
        return most > state->step ? (double)(most - state->step) / (double)task->steps * epoch : 0;
    return epoch * (job->o->epochs - state->epoch - 1) +
           train_seconds(task, &t->engine, task->steps - state->batches, seconds) +
           evaluation * evaluations_left(job, state) + test;
}

/*
 * Take the times of an imagined device from its cost model.  The model knows an evaluation only together with training.
 */
static enum chex_status
model_all(const struct trainer_task *task, const struct trainer_engine *engine, double *seconds, struct chex_error *err)
{
    struct plan_model model;
    enum chex_status status;

    if (!engine->backend->plan_model || !engine->options.train)
        return CHEX_OK;
    status = engine->backend->plan_model(engine->device, &engine->options, NULL, &model, err);
    if (status == CHEX_OK) {
        seconds[TIMED_BATCH] = (model.forward + model.backward) / task->each;
        seconds[TIMED_UPDATE] = model.update;
        seconds[TIMED_EVALUATE] = model.score.seconds;
    }
    plan_model_free(&model);
    return status;
}

/* Use a plan without a reducer, because ranks may time different numbers of steps. */
static enum chex_status
time_all(const struct trainer_job *job, const struct trainer_task *task, const struct trainer_engine *engine,
         const struct checkpoint_arrays *host, double *seconds, struct chex_error *err)
{
    struct plan_options options = engine->options;
    struct timed_batch b = {.statistics = host->stats};
    struct plan_facts facts;
    struct plan *plan = NULL;
    enum chex_status status;
    int i;

    if (engine->device->info.imagined)
        return model_all(task, engine, seconds, err);
    status = make_batch(task, engine, &b, err);
    options.reduce = NULL;
    options.part = NULL;
    if (status == CHEX_OK)
        status = engine->backend->plan_new(engine->device, &options, &plan, &facts, err);
    if (status == CHEX_OK)
        status = engine->backend->write(plan, ARENA_PARAMETERS, host->params, err);
    if (status == CHEX_OK)
        status = engine->backend->write(plan, ARENA_STATISTICS, host->stats, err);
    for (i = job->o->evaluate_only ? TIMED_EVALUATE : TIMED_BATCH; status == CHEX_OK && i < TIMED_COUNT; i++)
        status = time_one(job, engine, plan, &b, (enum timed)i, &seconds[i], err);
    engine->backend->plan_free(plan);
    free_batch(&b);
    return status;
}

enum chex_status
trainer_estimate(struct trainer *t, struct trainer_estimate *out, struct chex_error *err)
{
    double seconds[TIMED_COUNT] = {0}, evaluation;
    enum chex_status status = CHEX_OK;

    *out = (struct trainer_estimate){.modelled = t->engine.device->info.imagined};
    if (t->job.o->limit && t->task.validation >= 0 && t->task.evaluated.count == 0)
        status = trainer_list_samples(&t->job, &t->task, t->task.validation, &t->task.evaluated, err);
    status = collective_agree(t->job.all, status, NULL, err);
    if (status != CHEX_OK)
        return status;
    if (!t->job.is_rank_0)
        weights_random(t->task.graph, t->job.o->seed, t->host.params, t->host.stats);
    status = collective_agree(t->job.all, time_all(&t->job, &t->task, &t->engine, &t->host, seconds, err), NULL, err);
    if (status == CHEX_OK)
        status = take_slowest(&t->job, seconds, err);
    if (status != CHEX_OK)
        return status;
    out->micro_batch = seconds[t->job.o->evaluate_only ? TIMED_EVALUATE : TIMED_BATCH];
    evaluation = evaluation_seconds(&t->job, &t->task, &t->engine, t->task.validation, seconds);
    out->run = evaluation_seconds(&t->job, &t->task, &t->engine, t->task.test, seconds);
    if (t->job.o->evaluate_only)
        return CHEX_OK;
    out->epoch = train_seconds(&t->task, &t->engine, t->task.steps, seconds) + evaluation;
    out->run = run_seconds(t, evaluation, out->run, seconds);
    return CHEX_OK;
}

enum chex_status
trainer_model(const struct trainer *t, struct plan_model *out, struct chex_error *err)
{
    const struct trainer_engine *engine = &t->engine;

    *out = (struct plan_model){.launch = NULL};
    if (!engine->backend->plan_model || !engine->options.train)
        return CHEX_OK;
    return engine->backend->plan_model(engine->device, &engine->options, engine->plan, out, err);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Returns the bytes of a plan with this micro-batch; infinity if the backend supports no such plan. */
static double
plan_bytes(const struct trainer_engine *engine, unsigned micro_batch)
{
    struct plan_options options = engine->options;
    const struct plan_memory *m;
    struct plan_facts facts;
    struct chex_error ignored;

    options.batch = micro_batch;
    if (engine->backend->plan_size(engine->device, &options, &facts, &ignored) != CHEX_OK)
        return INFINITY;
    m = &facts.memory;
    return (double)(m->parameters + m->optimizer + m->activations + m->workspace);
}

/*
 * The memory of a plan grows nearly linearly with its micro-batch.  So the line through the last two plans finds the
 * largest one after a few plans; otherwise bisection does.
 */
static unsigned
largest_micro_batch(const struct trainer_engine *engine, double bytes)
{
    unsigned low = 1, high = TRAINER_MAX_BATCH + 1, plans, guess = LINE_FROM;
    double used = plan_bytes(engine, low); /* by the plan of `low` */

    if (used > bytes)
        return 0;
    for (plans = 0; low + 1 < high; plans++) {
        double needed = plan_bytes(engine, guess), each = fmax(1, (needed - used) / (guess - low)), next;

        if (needed <= bytes) {
            low = guess;
            used = needed;
        } else {
            high = guess;
        }
        next = low + (plans < LINE_PLANS ? (bytes - used) / each : (high - low) / 2);
        guess = (unsigned)fmin(fmax(next, low + 1), high - 1);
    }
    return low;
}

size_t
trainer_find_fits(const struct trainer *t, struct trainer_fit out[DEVICE_SIZES])
{
    const struct trainer_engine *engine = &t->engine;
    const unsigned *sold = engine->device->info.sold;
    size_t count;

    for (count = 0; count < DEVICE_SIZES && sold[count] > 0; count++) {
        double bytes = 1e9 * sold[count];

        out[count] = (struct trainer_fit){.sold = sold[count],
                                          .fits = (double)engine->memory_all <= bytes,
                                          .micro_batch = largest_micro_batch(engine, bytes)};
    }
    return count;
}
