/*
 * trainer_start.c - RUN and its lock; state and weights from a checkpoint, a file or random numbers; see trainer.h
 *
 * Rank 0 reads, the others get all of it from there: they need not see RUN.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "base/progress.h"
#include "checkpoint/checkpoint_private.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static enum chex_status
make_arrays(struct trainer *t, struct chex_error *err)
{
    struct {
        enum arena_id arena;
        float **at;
    } const wanted[] = {
        {ARENA_PARAMETERS, &t->host.params}, {ARENA_STATISTICS, &t->host.stats}, {ARENA_MOMENT1, &t->host.moment1},
        {ARENA_MOMENT2, &t->host.moment2},   {ARENA_AVERAGE, &t->host.average},
    };
    bool failed = false;
    size_t i;

    for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (!arena_is_wanted(&t->plan_options, wanted[i].arena))
            continue;
        *wanted[i].at = calloc(arena_floats(t->graph, wanted[i].arena), sizeof(float));
        failed |= !*wanted[i].at;
    }
    if (t->plan_options.train) {
        t->order = malloc((t->samples.count ? t->samples.count : 1) * sizeof(*t->order));
        failed |= !t->order;
    }
    return failed ? error_memory(err) : CHEX_OK;
}

/* From rank 0's host arrays into the plan of every rank.  The others need no copy after that. */
static enum chex_status
broadcast(struct trainer *t, struct chex_error *err)
{
    float *const from[] = {
        [ARENA_PARAMETERS] = t->host.params, [ARENA_STATISTICS] = t->host.stats, [ARENA_GRADIENTS] = NULL,
        [ARENA_MOMENT1] = t->host.moment1,   [ARENA_MOMENT2] = t->host.moment2,  [ARENA_AVERAGE] = t->host.average};
    enum chex_status status = collective_broadcast(t->all, &t->state, sizeof(t->state), err);
    unsigned i;

    for (i = 0; status == CHEX_OK && i < sizeof(from) / sizeof(from[0]); i++) {
        if (!from[i])
            continue;
        status = collective_broadcast(t->all, from[i], arena_floats(t->graph, (enum arena_id)i) * sizeof(float), err);
        if (status == CHEX_OK)
            status = t->backend->write(t->plan, (enum arena_id)i, from[i], err);
    }
    if (status == CHEX_OK)
        status = t->backend->set_state(t->plan, &t->state.plan, err);
    t->checkpoint_steps = t->o->checkpoint_steps;
    if (status == CHEX_OK)
        status = collective_broadcast(t->all, &t->checkpoint_steps, sizeof(t->checkpoint_steps), err);
    if (!t->is_rank_0)
        trainer_free_arrays(&t->host);
    return status;
}

/* ---- weights of a file ------------------------------------------------------------------------------------------- */

/* Damage of a file that was given by name is no fault of the data set. */
static enum chex_status
not_usable(enum chex_status status, struct chex_error *err)
{
    if (!chex_status_is_data(status))
        return status;
    if (err)
        err->status = CHEX_ERR_INCOMPATIBLE;
    return CHEX_ERR_INCOMPATIBLE;
}

enum chex_status
trainer_read_model(const struct trainer *t, int folder_fd, const char *path, bool other_head,
                   const struct checkpoint_arrays *to, struct weights_report *report, struct chex_error *err)
{
    struct safetensors s;
    enum chex_status status = safetensors_open(folder_fd, path, &s, err);
    const char *labels = status == CHEX_OK ? safetensors_metadata(&s, "labels") : NULL;
    char ours[CHECKPOINT_LABELS];

    if (labels && strcmp(labels, checkpoint_labels(ours)) != 0 && !other_head)
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "its findings are '%.200s', not those of this data set", labels);
    if (status == CHEX_OK)
        status = weights_read(t->graph, &s, other_head, to->params, to->stats, report, err);
    safetensors_close(&s);
    return status == CHEX_OK ? status : error_context(err, not_usable(status, err), "'%s'", path);
}

enum chex_status
trainer_load_model(struct trainer *t, const char *name, struct chex_error *err)
{
    struct weights_report report;
    enum chex_status status = CHEX_OK;

    if (t->is_rank_0)
        status = trainer_read_model(t, t->folder.fd, name, false, &t->host, &report, err);
    if (t->is_rank_0 && status == CHEX_OK && !t->best_hash[0])
        status = checkpoint_hash(&t->folder, name, t->best_hash, err);
    status = collective_agree(t->all, status, NULL, err);
    if (status != CHEX_OK)
        return status;
    if (!t->host.params) {
        t->host.params = calloc(t->graph->param_floats, sizeof(float));
        t->host.stats = calloc(t->graph->stat_floats, sizeof(float));
    }
    status = t->host.params && t->host.stats ? CHEX_OK : error_memory(err);
    status = collective_agree(t->all, status, NULL, err);
    if (status == CHEX_OK)
        status = collective_broadcast(t->all, t->host.params, t->graph->param_floats * sizeof(float), err);
    if (status == CHEX_OK)
        status = collective_broadcast(t->all, t->host.stats, t->graph->stat_floats * sizeof(float), err);
    if (status == CHEX_OK)
        status = t->backend->write(t->plan, ARENA_PARAMETERS, t->host.params, err);
    if (status == CHEX_OK)
        status = t->backend->write(t->plan, ARENA_STATISTICS, t->host.stats, err);
    return status;
}

/* ---- a new run --------------------------------------------------------------------------------------------------- */

static void
new_state(const struct trainer *t, struct checkpoint_state *state)
{
    struct schedule_options schedule = t->o->schedule;

    *state = (struct checkpoint_state){.side = t->side,
                                       .window = t->reading.window,
                                       .seed = t->o->seed,
                                       .global_batch = t->global,
                                       .optimizer = t->o->optimizer.kind,
                                       .best = (double)NAN};
    memcpy(state->model, t->graph->model, strnlen(t->graph->model, sizeof(state->model) - 1));
    memcpy(state->dataset_id, chex_dataset_info(t->ds)->id, sizeof(state->dataset_id));
    schedule.steps = t->steps * t->o->epochs;
    schedule_init(&state->schedule, &schedule);
}

static enum chex_status
start_fresh(struct trainer *t, struct trainer_start *start, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    new_state(t, &t->state);
    status = settings_keep(&t->settings, t->state.settings, err);
    weights_random(t->graph, t->o->seed, t->host.params, t->host.stats);
    start->from = "random";
    if (status == CHEX_OK && t->o->init) {
        start->from = t->o->init;
        status = trainer_read_model(t, AT_FDCWD, t->o->init, true, &t->host, &start->weights, err);
    }
    if (t->host.average)
        memcpy(t->host.average, t->host.params, t->graph->param_floats * sizeof(float));
    return status;
}

/* ---- a run that goes on ------------------------------------------------------------------------------------------ */

/*
 * Where another number of images makes a step: the step that holds the next sample; what was used of it comes again.
 * An epoch of which all is used stays so.
 */
static void
change_batch(struct trainer *t)
{
    uint64_t position = t->state.batches * t->state.global_batch;

    t->state.batches = position < t->samples.count ? position / t->global : t->steps;
    t->state.global_batch = t->global;
}

/*
 * Of the whole run: those that were made and those that come.  Where batches or images were others before, that is not
 * what as many epochs have now, and a cosine would be at its end too early or never.
 */
static uint64_t
steps_of_run(const struct trainer *t)
{
    uint64_t all = t->steps * t->o->epochs, begun = t->steps * t->state.epoch + t->state.batches;

    return t->state.step + (all > begun ? all - begun : 0);
}

static void
change_data(struct trainer *t)
{
    memcpy(t->state.dataset_id, chex_dataset_info(t->ds)->id, sizeof(t->state.dataset_id));
    t->state.batches = 0;
    t->state.loss_sum = 0;
    t->state.loss_images = 0;
    t->state.best = (double)NAN;
    t->state.bad_epochs = 0;
    t->state.schedule.best = (double)INFINITY;
    t->state.schedule.bad_epochs = 0;
}

static enum chex_status
copy_best(struct trainer *t, const struct folder *from, struct chex_error *err)
{
    struct weights_report report;

    t->best.params = calloc(t->graph->param_floats, sizeof(float));
    t->best.stats = calloc(t->graph->stat_floats, sizeof(float));
    if (!t->best.params || !t->best.stats)
        return error_memory(err);
    t->best_pending = true;
    return trainer_read_model(t, from->fd, TRAINER_BEST, false, &t->best, &report, err);
}

/*
 * The best model that the state names must be there.  One of a later step is that of the same run, killed before its
 * checkpoint, and will be made again; but not where the run goes on in another way.
 */
static enum chex_status
find_best(struct trainer *t, const struct folder *from, bool changed, struct chex_error *err)
{
    struct chex_error why = {.text = "it is of another step"};
    struct checkpoint_state *best = &t->best_state;

    if (isnan(t->state.best))
        return CHEX_OK;
    if (checkpoint_read_state(from, "best", best, &why) == CHEX_OK &&
        (best->step == t->state.best_step || (!changed && best->step > t->state.best_step)))
        return from == &t->folder ? CHEX_OK : copy_best(t, from, err);
    trainer_warn(t, "the best model of step %s is missing (%s): the next model that is evaluated becomes the best",
                 COUNT_TEXT(t->state.best_step), why.text);
    t->state.best = (double)NAN;
    t->state.bad_epochs = 0;
    return CHEX_OK;
}

static enum chex_status
resume(struct trainer *t, const struct folder *from, const char *name, struct trainer_start *start,
       struct chex_error *err)
{
    struct settings_change change;
    enum chex_status status = checkpoint_read_state(from, name, &t->state, err);

    if (status == CHEX_OK) {
        status = settings_compare(&t->settings, t->state.settings, t->o->allow_batch_change, t->o->allow_new_data,
                                  &change, err);
        if (status != CHEX_OK)
            error_context(err, status, "cannot go on from '%s/%s'", from->path, name);
    }
    if (status == CHEX_OK)
        status = trainer_compare_window(t, from, name, err);
    if (status == CHEX_OK)
        status = checkpoint_read(from, name, t->graph, &t->host, err);
    if (status != CHEX_OK)
        return not_usable(status, err);
    if (change.text[0])
        trainer_note(t, "changed since %s: %s", name, change.text);
    status = find_best(t, from, from != &t->folder || change.text[0], err);
    if (status != CHEX_OK)
        return not_usable(status, err);
    if (change.data)
        change_data(t);
    if (change.batch)
        change_batch(t);
    if (t->state.batches > t->steps)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s/%s' says that it is at step %s of an epoch of %s", from->path,
                         name, COUNT_TEXT(t->state.batches), COUNT_TEXT(t->steps));
    t->state.schedule.options = t->o->schedule;
    t->state.schedule.options.steps = steps_of_run(t);
    start->resumed = true;
    memcpy(t->result.last, name, strnlen(name, CHECKPOINT_NAME - 1));
    start->from = t->result.last;
    return settings_keep(&t->settings, t->state.settings, err);
}

/* "runs/a/step-000100.safetensors": the folder, and "step-000100".  A folder: the newest in it. */
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
    enum chex_status status = find_given(t->o->resume, &folder, name, err);

    status = status == CHEX_OK ? resume(t, &folder, name, start, err) : not_usable(status, err);
    folder_close(&folder);
    return status;
}

/* From what lies in RUN; *found is false where there is nothing. */
static enum chex_status
resume_here(struct trainer *t, struct trainer_start *start, bool *found, struct chex_error *err)
{
    char name[CHECKPOINT_NAME];
    struct chex_error other;
    bool fallback;
    enum chex_status status = checkpoint_find(&t->folder, name, &fallback, err);

    *found = status != CHEX_ERR_MISSING;
    if (!*found)
        return CHEX_OK;
    if (status == CHEX_OK && fallback) {
        trainer_warn(t, "the latest checkpoint is damaged (%s); using %s", err->text, name);
        if (!t->o->plan_only)
            status = checkpoint_set_aside(&t->folder, name, err);
    }
    status = status == CHEX_OK ? resume(t, &t->folder, name, start, err) : not_usable(status, err);
    /* What stays behind once more harms nobody: no run ends for it. */
    if (status == CHEX_OK && !fallback && !t->o->plan_only &&
        checkpoint_sweep(&t->folder, t->graph, &t->state, t->o->keep, &other) != CHEX_OK)
        trainer_warn(t, "an older checkpoint stays: %s", other.text);
    return status;
}

/* Rank 0: state and arrays. */
static enum chex_status
find_start(struct trainer *t, struct trainer_start *start, struct chex_error *err)
{
    bool found = false;
    enum chex_status status = CHEX_OK;

    if (strcmp(t->o->resume, "auto") == 0)
        status = resume_here(t, start, &found, err);
    else if (strcmp(t->o->resume, "none") != 0)
        return resume_given(t, start, err);
    return status != CHEX_OK || found ? status : start_fresh(t, start, err);
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

/* What a killed process was writing: names as file.c makes them, of files that a run has. */
static bool
is_left_over(const char *name)
{
    static const char *const ours[] = {".step-",        ".best.",   ".latest.",   "..next.",
                                       ".predictions-", ".metrics", ".run.json.", ".auroc"};
    const char *infix = strstr(name, ".tmp.");
    size_t i;

    if (strcmp(name, CHECKPOINT_NEXT) == 0)
        return true;
    if (!infix || infix[5] == '\0' || strspn(infix + 5, "0123456789") != strlen(infix + 5))
        return false;
    for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (strncmp(name, ours[i], strlen(ours[i])) == 0)
            return true;
    return false;
}

static enum chex_status
sweep(const struct folder *folder, struct chex_error *err)
{
    struct folder_names names = {.count = 0};
    enum chex_status status = folder_list(folder, is_left_over, &names, err);
    size_t i;

    for (i = 0; status == CHEX_OK && i < names.count; i++)
        status = folder_remove(folder, names.name[i], err);
    folder_names_release(&names);
    return status;
}

/* "runs" of "runs/a"; what is wrong with it shows when the folder itself is made. */
static enum chex_status
make_parents(const char *path, struct chex_error *err)
{
    char *parent = strdup(path);
    size_t i;

    if (!parent)
        return error_memory(err);
    for (i = 1; parent[i]; i++) {
        if (parent[i] != '/' || parent[i - 1] == '/')
            continue;
        parent[i] = '\0';
        (void)mkdir(parent, 0777);
        parent[i] = '/';
    }
    free(parent);
    return CHEX_OK;
}

/* RUN has files that come and go, a data set those of its manifest. */
static enum chex_status
refuse_data_folder(const struct trainer *t, struct chex_error *err)
{
    struct stat run, data;

    if (fstat(t->folder.fd, &run) == 0 && stat(t->o->data, &data) == 0 && run.st_dev == data.st_dev &&
        run.st_ino == data.st_ino)
        return error_set(err, CHEX_ERR_USAGE, "'%s' holds the data set: give the run a folder of its own", t->o->run);
    return CHEX_OK;
}

/* Rank 0. */
static enum chex_status
take_folder(struct trainer *t, bool create, struct chex_error *err)
{
    enum chex_status status = create ? make_parents(t->o->run, err) : CHEX_OK;

    if (status == CHEX_OK)
        status = folder_open(t->o->run, create, &t->folder, err);
    if (status == CHEX_OK && create)
        status = refuse_data_folder(t, err);
    if (status == CHEX_OK)
        status = lock_take(&t->lock, &t->folder, t->o->break_lock, err);
    if (status == CHEX_OK)
        status = sweep(&t->folder, err);
    return status;
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

enum chex_status
trainer_begin(struct trainer *t, struct chex_error *err)
{
    struct trainer_start start = {.from = NULL};
    enum chex_status status = make_arrays(t, err);

    if (status == CHEX_OK && t->is_rank_0)
        status = take_folder(t, true, err);
    if (status == CHEX_OK && t->is_rank_0)
        status = trainer_check_predict(t, err);
    if (status == CHEX_OK && t->is_rank_0)
        status = find_start(t, &start, err);
    status = collective_agree(t->all, status, NULL, err);
    if (status == CHEX_OK)
        status = broadcast(t, err);
    if (status == CHEX_OK) {
        t->reading.window = t->state.window;
        status = trainer_open_data(t, err);
    }
    if (status != CHEX_OK)
        return status;
    t->saved_at = progress_clock();
    start.complete = trainer_is_complete(t);
    if (t->is_rank_0 && t->w->started)
        t->w->started(t->w->context, t, &start);
    if (t->best_pending)
        return trainer_save_now(t, err);
    /*
     * A run that begins anew has a checkpoint at once: from here on there is something to go on from, and the next
     * start will not take an older run in this folder for this one.
     */
    if (t->state.step == 0 && t->state.epoch == 0) {
        status = trainer_save_now(t, err);
        if (t->is_rank_0 && status == CHEX_OK && !t->result.unsaved)
            status = folder_remove(&t->folder, TRAINER_BEST, err);
        status = collective_agree(t->all, status, NULL, err);
    }
    return status;
}

/* Weights to judge are those of --init, or RUN's best. */
static enum chex_status
look_at_best(struct trainer *t, struct trainer_start *start, struct chex_error *err)
{
    start->from = t->o->init ? t->o->init : TRAINER_BEST;
    return trainer_read_model(t, t->o->init ? AT_FDCWD : t->folder.fd, start->from, false, &t->host, &start->weights,
                              err);
}

enum chex_status
trainer_look(struct trainer *t, struct trainer_start *start, struct chex_error *err)
{
    enum chex_status status = make_arrays(t, err);

    *start = (struct trainer_start){.from = NULL};
    new_state(t, &t->state);
    if (t->is_rank_0 && status == CHEX_OK && t->o->run && !(t->o->evaluate_only && t->o->init)) {
        bool there = access(t->o->run, F_OK) == 0 || errno != ENOENT;

        /* A run makes its folder. */
        if (there || t->o->evaluate_only)
            status = folder_open(t->o->run, false, &t->folder, err);
        if (status == CHEX_OK && t->o->evaluate_only)
            status = look_at_best(t, start, err);
        else if (status == CHEX_OK && !there && strcmp(t->o->resume, "auto") == 0)
            status = start_fresh(t, start, err);
        else if (status == CHEX_OK)
            status = find_start(t, start, err);
    } else if (t->is_rank_0 && status == CHEX_OK) {
        status = look_at_best(t, start, err);
    }
    start->complete = trainer_is_complete(t);
    return status;
}

enum chex_status
trainer_begin_evaluation(struct trainer *t, struct chex_error *err)
{
    struct trainer_start start = {.from = t->o->init ? t->o->init : TRAINER_BEST};
    struct checkpoint_state best;
    enum chex_status status = make_arrays(t, err);

    new_state(t, &t->state);
    if (status == CHEX_OK && t->is_rank_0 && t->o->init)
        status = trainer_read_model(t, AT_FDCWD, t->o->init, false, &t->host, &start.weights, err);
    /* With weights from elsewhere the folder is one for results, made where it is missing. */
    if (status == CHEX_OK && t->is_rank_0 && t->o->run)
        status = take_folder(t, t->o->init != NULL, err);
    if (status == CHEX_OK && t->is_rank_0)
        status = trainer_check_predict(t, err);
    if (status == CHEX_OK && t->is_rank_0 && !t->o->init) {
        status = trainer_read_model(t, t->folder.fd, TRAINER_BEST, false, &t->host, &start.weights, err);
        if (status == CHEX_OK)
            status = checkpoint_hash(&t->folder, TRAINER_BEST, t->best_hash, err);
        if (status == CHEX_OK && checkpoint_read_state(&t->folder, "best", &best, NULL) == CHEX_OK) {
            t->state.step = best.step;
            t->state.epoch = best.epoch;
        }
    }
    status = collective_agree(t->all, status, NULL, err);
    if (status == CHEX_OK)
        status = broadcast(t, err);
    if (status == CHEX_OK)
        status = trainer_open_data(t, err);
    if (status == CHEX_OK && t->is_rank_0 && t->w->started)
        t->w->started(t->w->context, t, &start);
    return status;
}
