/*
 * trainer_start.c - loads the initial state and weights of a run from a checkpoint, a file or random numbers; see
 * trainer.h
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
#include "log/run_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHEN (2 * MANIFEST_TIME + 4) /* two times, " to " */

/* ---- a new run --------------------------------------------------------------------------------------------------- */

/*
 * Returns the number of steps that the run will have made after its first `epochs` epochs: completed plus remaining
 * ones.  If the batch size or the data changed during the run, this differs from steps per epoch * epochs, with which
 * the cosine schedule would end too early or never.
 */
static uint64_t
steps_until(const struct trainer_task *task, const struct checkpoint_state *state, uint64_t epochs)
{
    uint64_t all = task->steps * epochs, begun = task->steps * state->epoch + state->batches;

    return state->step + (all > begun ? all - begun : 0);
}

/* Returns the schedule of the run from its options, the number of ranks and the position of the run. */
static struct schedule_options
make_schedule(const struct trainer_job *job, const struct trainer_task *task, const struct checkpoint_state *state)
{
    struct schedule_options schedule = job->o->schedule;

    if (job->o->rate_scale == RATE_LINEAR)
        schedule.base *= collective_size(job->all);
    schedule.steps = steps_until(task, state, job->o->epochs);
    if (job->o->warmup_epochs > 0) {
        uint64_t all = task->steps * job->o->warmup_epochs, end = steps_until(task, state, job->o->warmup_epochs);

        /* After the warm-up its end is in the past; then the usual number makes the same checkpoints in every run. */
        schedule.warmup = end > state->step || all > state->step ? end : all;
    }
    return schedule;
}

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
    schedule = make_schedule(job, task, state);
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

/* ---- a run that resumes ------------------------------------------------------------------------------------------ */

/*
 * If the global batch has changed: continue at the step of the next sample; samples of that step that were already used
 * are used again.  A completely used epoch stays complete.
 */
static void
change_batch(const struct trainer_task *task, struct checkpoint_state *state)
{
    uint64_t position = state->batches * state->global_batch;

    state->batches = position < task->samples.count ? position / task->global : task->steps;
    state->global_batch = task->global;
}

static void
change_data(const struct trainer_task *task, struct checkpoint_state *state)
{
    memcpy(state->dataset_id, chex_dataset_info(task->ds)->id, sizeof(state->dataset_id));
    state->batches = 0;
    state->loss_sum = 0;
    state->loss_images = 0;
    state->best = (double)NAN;
    state->bad_epochs = 0;
    state->schedule.best = (double)INFINITY;
    state->schedule.bad_epochs = 0;
}

static enum chex_status
copy_best(const struct trainer_task *task, struct trainer_best *best, const struct folder *from, struct chex_error *err)
{
    struct weights_report report;
    enum chex_status status;

    best->arrays.params = calloc(task->graph->param_floats, sizeof(float));
    best->arrays.stats = calloc(task->graph->stat_floats, sizeof(float));
    if (!best->arrays.params || !best->arrays.stats)
        return error_memory(err);
    best->pending = true;
    status = trainer_read_model(task, from->fd, TRAINER_BEST, false, &best->arrays, &report, err);
    return status == CHEX_OK ? trainer_read_operating(task, from->fd, TRAINER_BEST, &best->operating, err) : status;
}

/*
 * Check that the best model named by the state exists.  A best model of a later step is from the same run, killed
 * before its checkpoint; the run will make it again.  It is not accepted if the run resumes with other options.  A copy
 * is pending if the run has another folder, or if its marks have changed: a leak of its data set was found later, or
 * the run goes on with other --max-steps.
 */
static enum chex_status
find_best(struct trainer *t, const struct folder *from, bool changed, struct chex_error *err)
{
    struct chex_error why = {.text = "it is of another step"};
    struct checkpoint_state *best = &t->best.state;

    if (isnan(t->state.best))
        return CHEX_OK;
    if (checkpoint_read_state(from, "best", t->task.graph, best, &why) == CHEX_OK &&
        (best->step == t->state.best_step || (!changed && best->step > t->state.best_step))) {
        bool marked = (best->leaky || !t->state.leaky) && strcmp(best->short_run, t->state.short_run) == 0;

        best->leaky |= t->state.leaky;
        memcpy(best->short_run, t->state.short_run, sizeof(best->short_run));
        return from == &t->run.folder && marked ? CHEX_OK : copy_best(&t->task, &t->best, from, err);
    }
    trainer_lost(&t->job,
                 "the best model of step %s is missing (%s): the next model that is evaluated becomes the best",
                 COUNT_TEXT(t->state.best_step), why.text);
    t->state.best = (double)NAN;
    t->state.bad_epochs = 0;
    return CHEX_OK;
}

static unsigned
allowed_changes(const struct trainer_options *o)
{
    return (o->allow_batch_change ? 1u << SETTING_BATCH : 0) | (o->allow_new_data ? 1u << SETTING_DATA : 0) |
           (o->allow_precision_change ? 1u << SETTING_PRECISION : 0);
}

/*
 * Reject changed training options for a completed run: it makes no more steps, so the changes would have no effect.
 * With another number of ranks the sizes of batches are not compared, because that number changes them.
 */
static enum chex_status
refuse_in_vain(const struct trainer *t, const struct folder *from, struct chex_error *err)
{
    const struct checkpoint_state *s = &t->state;
    const char *kept = s->settings;
    double epochs = settings_kept_number(kept, "epochs", INFINITY),
           patience = settings_kept_number(kept, "early-stop", 0);
    bool was_complete = s->epoch >= epochs || (patience > 0 && s->bad_epochs >= patience);
    unsigned kinds = 1u << SETTING_FREE;
    char text[SETTINGS_CHANGE], init[4096] = "";
    enum chex_status status = CHEX_OK;

    if (!was_complete || !trainer_is_complete(&t->job, s))
        return CHEX_OK;
    if (settings_kept_number(kept, "ranks", 0) == collective_size(t->job.all))
        kinds |= 1u << SETTING_BATCH;
    settings_compare_training(&t->task.settings, kept, kinds, text);
    if (t->job.o->init)
        status = run_file_init(from, init, sizeof(init), err);
    if (status == CHEX_OK && init[0] && strcmp(init, t->job.o->init) != 0)
        settings_note(text, sizeof(text), "init", init, t->job.o->init);
    if (status != CHEX_OK || !text[0])
        return status;
    return error_set(err, CHEX_ERR_INCOMPATIBLE,
                     "nothing to train: '%s' is complete; without effect: %s (another -o begins a new run%s)",
                     from->path, text,
                     s->epoch >= t->job.o->epochs ? ", more --epochs continue this one" : "; this one ended early");
}

/*
 * Returns the number of images withdrawn since the data set had this earlier id, or 0.  *when: "2026-11-24T02:10:00Z",
 * or the first and the last time.
 */
static uint64_t
count_withdrawn(const struct manifest *m, const char *was, char when[WHEN])
{
    unsigned first = m->withdrawal_count, last = first - 1;
    uint64_t slots = 0;

    if (!manifest_had_id(m, was))
        return 0;
    do
        slots += m->withdrawal[--first].slots;
    while (strcmp(m->withdrawal[first].dataset_id, was) != 0);
    snprintf(when, WHEN, "%s%s%s", m->withdrawal[first].time, first < last ? " to " : "",
             first < last ? m->withdrawal[last].time : "");
    return slots;
}

/* Explain a refused change of the data set if patients were withdrawn from the data set of the checkpoint. */
static enum chex_status
refuse_withdrawn(const struct trainer *t, struct chex_error *err)
{
    const struct manifest *m = &t->task.ds->manifest;
    const char *was = t->state.dataset_id;
    char when[WHEN], images[FORMAT_THINGS];
    const uint64_t slots = t->job.o->allow_new_data ? 0 : count_withdrawn(m, was, when);

    if (slots == 0)
        return CHEX_OK;
    return error_set(err, CHEX_ERR_INCOMPATIBLE,
                     "its data set was %s, which is %s since %s of patients %s withdrawn; its weights may "
                     "depend on them: train a new run, or resume with --allow-new-data",
                     was, m->dataset_id, format_things(slots, "image", images), slots == 1 ? "was" : "were");
}

static enum chex_status
resume(struct trainer *t, const struct folder *from, const char *name, struct trainer_start *start,
       struct chex_error *err)
{
    struct settings_change change;
    bool leaky;
    enum chex_status status = checkpoint_read_state(from, name, t->task.graph, &t->state, err);

    if (status == CHEX_OK) {
        status = refuse_withdrawn(t, err);
        if (status == CHEX_OK)
            status = settings_compare(&t->task.settings, t->state.settings, allowed_changes(t->job.o), &change, err);
        if (status != CHEX_OK)
            error_context(err, status, "cannot resume from '%s/%s'", from->path, name);
    }
    if (status == CHEX_OK && !change.data)
        status = refuse_in_vain(t, from, err);
    if (status == CHEX_OK)
        status = trainer_compare_window(&t->job, &t->images, &t->state, from, name, err);
    if (status == CHEX_OK)
        status = checkpoint_read(from, name, t->task.graph, &t->host, err);
    if (status != CHEX_OK)
        return trainer_not_usable(status, err);
    if (change.text[0])
        trainer_note(&t->job, "changed since %s: %s", name, change.text);
    status = run_file_is_leaky(from->fd, &leaky, err);
    if (status != CHEX_OK)
        return trainer_not_usable(status, err);
    /* run.json marks checkpoints that were saved before the leak was found, also if its certificate is gone now. */
    t->state.leaky |= t->task.leaky || leaky;
    trainer_mark_short(&t->job, steps_until(&t->task, &t->state, t->job.o->epochs), &t->state);
    status = find_best(t, from, from != &t->run.folder || change.text[0], err);
    if (status != CHEX_OK)
        return trainer_not_usable(status, err);
    if (change.data)
        change_data(&t->task, &t->state);
    if (change.batch)
        change_batch(&t->task, &t->state);
    if (change.precision) /* its loss scale does not apply: use the one of a new plan */
        t->state.plan = (struct plan_state){.applied = t->state.plan.applied};
    if (t->state.batches > t->task.steps)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s/%s' says that it is at step %s of an epoch of %s", from->path,
                         name, COUNT_TEXT(t->state.batches), COUNT_TEXT(t->task.steps));
    t->state.schedule.options = make_schedule(&t->job, &t->task, &t->state);
    start->resumed = true;
    memcpy(t->result.last, name, strnlen(name, CHECKPOINT_NAME - 1));
    start->from = t->result.last;
    return settings_keep(&t->task.settings, t->state.settings, err);
}

/* "runs/a/step-000100.safetensors": returns the folder and "step-000100".  For a folder: its newest checkpoint. */
static enum chex_status
find_given(const char *path, struct folder *folder, char name[CHECKPOINT_NAME], struct chex_error *err)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    size_t length = strcspn(file, ".");
    struct stat about;
    bool fallback = false;
    enum chex_status status;
    char *parent;

    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
        status = folder_open(path, false, folder, err);
        if (status == CHEX_OK)
            status = checkpoint_find(folder, name, &fallback, err);
        if (status == CHEX_OK && fallback)
            return error_context(err, CHEX_ERR_INCOMPATIBLE, "the newest checkpoint of '%s' is damaged", path);
        return status;
    }
    if (length == 0 || length >= CHECKPOINT_NAME)
        return error_set(err, CHEX_ERR_MISSING, "there is no checkpoint '%s'", path);
    memcpy(name, file, length);
    name[length] = '\0';
    parent = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (!parent)
        return error_memory(err);
    status = folder_open(parent, false, folder, err);
    free(parent);
    if (status == CHEX_OK)
        status = checkpoint_check(folder, name, err);
    return status == CHEX_OK ? status : error_context(err, status, "--resume");
}

static enum chex_status
resume_given(struct trainer *t, struct trainer_start *start, struct chex_error *err)
{
    struct folder folder = {.fd = -1};
    char name[CHECKPOINT_NAME];
    enum chex_status status = find_given(t->job.o->resume, &folder, name, err);

    status = status == CHEX_OK ? resume(t, &folder, name, start, err) : trainer_not_usable(status, err);
    folder_close(&folder);
    return status;
}

/* Resume from the checkpoint in RUN; *found is false if there is none. */
static enum chex_status
resume_here(struct trainer *t, struct trainer_start *start, bool *found, struct chex_error *err)
{
    char name[CHECKPOINT_NAME];
    struct chex_error other;
    bool fallback;
    enum chex_status status = checkpoint_find(&t->run.folder, name, &fallback, err);

    *found = status != CHEX_ERR_MISSING;
    if (!*found)
        return CHEX_OK;
    if (status == CHEX_OK && fallback) {
        trainer_lost(&t->job, "the latest checkpoint is damaged (%s); using %s", err->text, name);
        if (!t->job.o->plan_only)
            status = checkpoint_set_aside(&t->run.folder, name, err);
    }
    status = status == CHEX_OK ? resume(t, &t->run.folder, name, start, err) : trainer_not_usable(status, err);
    /* A remaining file is harmless and does not end the run. */
    if (status == CHEX_OK && !fallback && !t->job.o->plan_only &&
        checkpoint_sweep(&t->run.folder, t->task.graph, &t->state, t->job.o->keep, &other) != CHEX_OK)
        trainer_warn(&t->job, "an older checkpoint stays: %s", other.text);
    return status;
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
        return resume_given(t, start, err);
    if (strcmp(t->job.o->resume, "auto") == 0 && t->run.folder.fd >= 0)
        status = resume_here(t, start, &found, err);
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
    char when[WHEN], images[FORMAT_THINGS];
    const uint64_t slots = count_withdrawn(m, weights->dataset_id, when);

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
