/*
 * trainer_resume.c - loads the state and weights of a run that resumes, and checks what has changed since; see
 * trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "base/number_format.h"
#include "checkpoint/checkpoint_private.h"
#include "dataset/dataset.h"
#include "log/run_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

uint64_t
trainer_count_withdrawn(const struct manifest *m, const char *was, char when[TRAINER_WHEN])
{
    unsigned first = m->withdrawal_count, last = first - 1;
    uint64_t slots = 0;

    if (!manifest_had_id(m, was))
        return 0;
    do
        slots += m->withdrawal[--first].slots;
    while (strcmp(m->withdrawal[first].dataset_id, was) != 0);
    snprintf(when, TRAINER_WHEN, "%s%s%s", m->withdrawal[first].time, first < last ? " to " : "",
             first < last ? m->withdrawal[last].time : "");
    return slots;
}

/* Explain a refused change of the data set if patients were withdrawn from the data set of the checkpoint. */
static enum chex_status
refuse_withdrawn(const struct trainer *t, struct chex_error *err)
{
    const struct manifest *m = &t->task.ds->manifest;
    const char *was = t->state.dataset_id;
    char when[TRAINER_WHEN], images[FORMAT_THINGS];
    const uint64_t slots = t->job.o->allow_new_data ? 0 : trainer_count_withdrawn(m, was, when);

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
    trainer_mark_short(&t->job, trainer_steps_until(&t->task, &t->state, t->job.o->epochs), &t->state);
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
    t->state.schedule.options = trainer_make_schedule(&t->job, &t->task, &t->state);
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

enum chex_status
trainer_resume_given(struct trainer *t, struct trainer_start *start, struct chex_error *err)
{
    struct folder folder = {.fd = -1};
    char name[CHECKPOINT_NAME];
    enum chex_status status = find_given(t->job.o->resume, &folder, name, err);

    status = status == CHEX_OK ? resume(t, &folder, name, start, err) : trainer_not_usable(status, err);
    folder_close(&folder);
    return status;
}

enum chex_status
trainer_resume_here(struct trainer *t, struct trainer_start *start, bool *found, struct chex_error *err)
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
