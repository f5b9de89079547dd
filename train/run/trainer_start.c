/*
 * trainer_start.c - loads the initial state and weights of a run: random numbers, a file, or a checkpoint
 * (trainer_resume.c); see trainer.h
 *
 * Rank 0 reads and broadcasts, so the other ranks need no access to RUN.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "base/clock.h"
#include "base/number_format.h"
#include "checkpoint/checkpoint_private.h"
#include "dataset/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a new run --------------------------------------------------------------------------------------------------- */

static void
new_state(const struct trainer_job *job, const struct trainer_task *task, const struct trainer_images *images,
          struct checkpoint_state *state)
{
    struct schedule_options schedule;

    *state = (struct checkpoint_state){.side = task->side,
                                       .window = images->reading.window,
                                       .seed = job->o->seed,
                                       .global_batch = task->global,
                                       .optimizer = job->o->optimizer.kind,
                                       .leaky = task->leaky,
                                       .best = (double)NAN};
    memcpy(state->model, task->graph->model, strnlen(task->graph->model, sizeof(state->model) - 1));
    memcpy(state->dataset_id, chex_dataset_info(task->ds)->id, sizeof(state->dataset_id));
    schedule = trainer_make_schedule(job, task, state);
    schedule_init(&state->schedule, &schedule);
    trainer_mark_short(job, schedule.steps, state);
}

enum chex_status
trainer_start_fresh(struct trainer *t, struct trainer_start *start, struct chex_error *err)
{
    enum chex_status status;

    new_state(&t->job, &t->task, &t->images, &t->state);
    status = settings_keep(&t->task.settings, t->state.settings, err);
    weights_random(t->task.graph, t->job.o->seed, t->host.params, t->host.stats);
    start->from = "random";
    if (status == CHEX_OK && t->job.o->init) {
        start->from = t->job.o->init;
        status = trainer_read_model(&t->task, AT_FDCWD, t->job.o->init, true, &t->host, &start->weights, err);
        t->state.leaky |= start->weights.leaky;
    }
    if (t->host.average)
        memcpy(t->host.average, t->host.params, t->task.graph->param_floats * sizeof(float));
    return status;
}

static enum chex_status
start_fresh(struct trainer *t, struct trainer_start *start, struct chex_error *err)
{
    trainer_note_foreign(&t->job, &t->run);
    return trainer_start_fresh(t, start, err);
}

/* Returns whether the checkpoint to resume from is given. */
static bool
is_elsewhere(const struct trainer_options *o)
{
    return strcmp(o->resume, "auto") != 0 && strcmp(o->resume, "none") != 0;
}

/* Rank 0: find state and arrays.  Without a folder there is no checkpoint to resume from. */
static enum chex_status
find_start(struct trainer *t, struct trainer_start *start, struct chex_error *err)
{
    bool found = false;
    enum chex_status status = CHEX_OK;

    if (is_elsewhere(t->job.o))
        return trainer_resume_given(t, start, err);
    if (strcmp(t->job.o->resume, "auto") == 0 && t->run.folder.fd >= 0)
        status = trainer_resume_here(t, start, &found, err);
    return status != CHEX_OK || found ? status : start_fresh(t, start, err);
}

/* ---- start ------------------------------------------------------------------------------------------------------- */

/* Take a folder that did not exist a moment ago. */
static enum chex_status
take_new_folder(struct trainer *t, struct chex_error *err)
{
    char name[CHECKPOINT_NAME];
    struct chex_error none;
    bool fallback;
    enum chex_status status = trainer_take_folder(&t->job, &t->run, true, err);

    if (status == CHEX_OK && checkpoint_find(&t->run.folder, name, &fallback, &none) != CHEX_ERR_MISSING)
        status = error_set(err, CHEX_ERR_LOCKED, "another process has just started a run in '%s'", t->job.o->run);
    return status;
}

/* Rank 0: take RUN and find the start of the run.  A missing RUN is made last, so a start that fails makes none. */
static enum chex_status
take_start(struct trainer *t, struct trainer_start *start, struct chex_error *err)
{
    struct stat about;
    bool is_new = stat(t->job.o->run, &about) != 0 && errno == ENOENT;
    enum chex_status status = is_new ? CHEX_OK : trainer_take_folder(&t->job, &t->run, true, err);

    if (status == CHEX_OK && !is_new)
        status = trainer_check_predict(&t->job, err);
    if (status == CHEX_OK)
        status = find_start(t, start, err);
    if (status == CHEX_OK && is_new)
        status = take_new_folder(t, err);
    return status == CHEX_OK && is_new ? trainer_check_predict(&t->job, err) : status;
}

/*
 * Rank 0: mark the best model anew if its marks have changed, and what earlier sessions wrote before a leak was found.
 * Earlier checkpoints stay as they are: run.json marks them (trainer_weights.c).
 */
static enum chex_status
mark_earlier(struct trainer *t, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    if (t->best.pending)
        status = trainer_write_best(&t->task, &t->run, &t->best, err);
    if (status == CHEX_OK && t->state.leaky)
        status = trainer_drop_unmarked(&t->job, &t->task, &t->run, err);
    return status == CHEX_OK ? status : error_context(err, status, "cannot mark the results");
}

enum chex_status
trainer_begin(struct trainer *t, struct chex_error *err)
{
    struct trainer_start start = {.from = NULL};
    enum chex_status status = trainer_make_arrays(&t->task, &t->engine, &t->host, &t->pass, err);
    uint64_t pending;

    if (status == CHEX_OK && t->job.is_rank_0)
        status = take_start(t, &start, err);
    if (status == CHEX_OK && start.resumed && (t->state.leaky || t->best.pending) && !is_elsewhere(t->job.o))
        status = mark_earlier(t, err);
    pending = t->best.pending;
    status = collective_agree(t->job.all, status, &pending, err);
    if (status == CHEX_OK)
        status = trainer_broadcast(t, err);
    if (status == CHEX_OK) {
        t->images.reading.window = t->state.window;
        status = trainer_open_data(t, err);
    }
    if (status != CHEX_OK)
        return status;
    t->result.skipped = t->state.skipped;
    t->saving.started_at = clock_now();
    start.complete = trainer_is_complete(&t->job, &t->state);
    if (t->job.is_rank_0 && t->job.w->started)
        t->job.w->started(t->job.w->context, t, &start);
    status = trainer_count_unreadable(t, err);
    if (status != CHEX_OK)
        return status;
    if (pending)
        return trainer_save_now(t, err);
    /*
     * Save a new run immediately: now it can be resumed, and the next start does not confuse it with an older run in
     * this folder.
     */
    if (t->state.step == 0 && t->state.epoch == 0) {
        status = trainer_save_now(t, err);
        if (t->job.is_rank_0 && status == CHEX_OK && !t->result.unsaved)
            status = folder_remove(&t->run.folder, TRAINER_BEST, err);
        status = collective_agree(t->job.all, status, NULL, err);
    }
    return status;
}

/* Note that the data set has changed since the run that trained these weights, because patients were withdrawn. */
static void
note_withdrawn(const struct trainer_job *job, const struct trainer_task *task, const struct weights_report *weights)
{
    const struct manifest *m = &task->ds->manifest;
    char when[TRAINER_WHEN], images[FORMAT_THINGS];
    const uint64_t slots = trainer_count_withdrawn(m, weights->dataset_id, when);

    if (slots > 0)
        trainer_note(job,
                     "the data set was changed since the training: %s of patients %s withdrawn (%s), and %s "
                     "became %s; the scores are of the remaining images, and the weights may depend on the others: "
                     "chex-inspect list --trained-on %s, with a copy of %s, lists the steps that used them",
                     format_things(slots, "image", images), slots == 1 ? "was" : "were", when, weights->dataset_id,
                     m->dataset_id, job->o->run && !job->o->init ? job->o->run : "RUN", weights->dataset_id);
}

/* Find the weights to evaluate: --init, or RUN's best model. */
static enum chex_status
look_at_best(struct trainer *t, struct trainer_start *start, struct chex_error *err)
{
    const struct trainer_job *job = &t->job;
    int folder = job->o->init ? AT_FDCWD : t->run.folder.fd;
    enum chex_status status;

    start->from = job->o->init ? job->o->init : TRAINER_BEST;
    status = trainer_read_model(&t->task, folder, start->from, false, &t->host, &start->weights, err);
    if (status == CHEX_OK)
        status = trainer_read_operating(&t->task, folder, start->from, &t->best.operating, err);
    if (status == CHEX_OK)
        note_withdrawn(job, &t->task, &start->weights);
    return status;
}

enum chex_status
trainer_look(struct trainer *t, struct trainer_start *start, struct chex_error *err)
{
    enum chex_status status = trainer_make_arrays(&t->task, &t->engine, &t->host, &t->pass, err);

    *start = (struct trainer_start){.from = NULL};
    new_state(&t->job, &t->task, &t->images, &t->state);
    if (t->job.is_rank_0 && status == CHEX_OK && !t->job.o->evaluate_only)
        status = trainer_check_folder(&t->job, err);
    if (t->job.is_rank_0 && status == CHEX_OK)
        status = trainer_check_predict(&t->job, err);
    if (t->job.is_rank_0 && status == CHEX_OK && t->job.o->run && !(t->job.o->evaluate_only && t->job.o->init)) {
        bool there = access(t->job.o->run, F_OK) == 0 || errno != ENOENT;

        /* A run creates its folder. */
        if (there || t->job.o->evaluate_only)
            status = folder_open(t->job.o->run, false, &t->run.folder, err);
        if (status == CHEX_OK && t->job.o->evaluate_only)
            status = look_at_best(t, start, err);
        else if (status == CHEX_OK && !there && strcmp(t->job.o->resume, "auto") == 0)
            status = start_fresh(t, start, err);
        else if (status == CHEX_OK)
            status = find_start(t, start, err);
    } else if (t->job.is_rank_0 && status == CHEX_OK && t->job.o->evaluate_only) {
        status = look_at_best(t, start, err);
    } else if (t->job.is_rank_0 && status == CHEX_OK) {
        status = start_fresh(t, start, err); /* no -o */
    }
    start->complete = trainer_is_complete(&t->job, &t->state);
    return status;
}

/* Read step and epoch of RUN's best model; weights without a state of a run have none. */
static enum chex_status
read_best_state(struct trainer *t, struct chex_error *err)
{
    struct checkpoint_state best;
    struct chex_error why;
    enum chex_status status = checkpoint_read_state(&t->run.folder, "best", t->task.graph, &best, &why);

    if (status == CHEX_OK) {
        t->state.step = best.step;
        t->state.epoch = best.epoch;
    }
    if (status == CHEX_OK || status == CHEX_ERR_INCOMPATIBLE)
        return CHEX_OK;
    if (err)
        *err = why;
    return trainer_not_usable(status, err);
}

enum chex_status
trainer_begin_evaluation(struct trainer *t, struct chex_error *err)
{
    struct trainer_start start = {.from = NULL};
    enum chex_status status = trainer_make_arrays(&t->task, &t->engine, &t->host, &t->pass, err);

    new_state(&t->job, &t->task, &t->images, &t->state);
    if (status == CHEX_OK && t->job.is_rank_0 && t->job.o->init)
        status = look_at_best(t, &start, err);
    /* With weights from elsewhere, the folder is only for results, and is created if missing. */
    if (status == CHEX_OK && t->job.is_rank_0 && t->job.o->run)
        status = trainer_take_folder(&t->job, &t->run, t->job.o->init != NULL, err);
    if (status == CHEX_OK && t->job.is_rank_0)
        status = trainer_check_predict(&t->job, err);
    if (status == CHEX_OK && t->job.is_rank_0 && !t->job.o->init) {
        status = look_at_best(t, &start, err);
        if (status == CHEX_OK)
            status = checkpoint_hash(&t->run.folder, TRAINER_BEST, t->best.hash, err);
        if (status == CHEX_OK)
            status = read_best_state(t, err);
    }
    t->state.leaky |= start.weights.leaky;
    memcpy(t->state.short_run, start.weights.short_run, sizeof(t->state.short_run));
    status = collective_agree(t->job.all, status, NULL, err);
    if (status == CHEX_OK)
        status = trainer_broadcast(t, err);
    if (status == CHEX_OK)
        status = trainer_open_data(t, err);
    if (status == CHEX_OK && t->job.is_rank_0 && t->job.w->started)
        t->job.w->started(t->job.w->context, t, &start);
    if (status == CHEX_OK)
        status = trainer_count_unreadable(t, err);
    return status;
}
