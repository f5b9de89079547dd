/*
 * trainer_judge.c - evaluations of a run, and their consequences: the learning rate, the best model, the end; see
 * trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "base/progress.h"
#include "checkpoint/checkpoint_private.h"
#include "eval/predictions.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AHEAD 4

/* ---- one split --------------------------------------------------------------------------------------------------- */

static void
on_progress(void *context, uint64_t done, uint64_t of)
{
    const struct trainer_job *job = context;

    if (job->is_rank_0 && job->w->evaluating)
        job->w->evaluating(job->w->context, job->trainer, done, of);
}

enum chex_status
trainer_judge(struct trainer *t, int split, bool average, struct evaluation *out, struct chex_error *err)
{
    bool again = split == t->task.validation; /* and so listed once */
    struct samples listed = {.count = 0}, *samples = again ? &t->task.judged : &listed;
    struct evaluate_options o = {
        .ds = t->task.ds,
        .split = (unsigned)split,
        .samples = samples,
        .backend = t->engine.backend,
        .plan = t->engine.plan,
        .weights = average ? ARENA_AVERAGE : ARENA_PARAMETERS,
        .batch = t->task.micro,
        .side = t->task.side,
        .tta = t->job.o->tta,
        .loss = &t->engine.options.loss,
        .replicates = t->job.o->replicates,
        .seed = t->job.o->seed,
        .threads = t->job.o->threads,
        .ahead = AHEAD,
        .reader = t->images.reader,
        .skip_bad = t->job.o->skip_bad,
        .collective = t->job.all,
        .stop = t->job.w->stop,
        .until = t->job.is_rank_0 && t->job.o->time_limit > 0 ? t->job.began + t->job.o->time_limit : 0,
        .progress = on_progress,
        .context = &t->job,
    };
    enum chex_status status = samples->count > 0 ? CHEX_OK : samples_list(t->task.ds, (unsigned)split, samples, err);

    memset(out, 0, sizeof(*out));
    status = collective_agree(t->job.all, status, NULL, err);
    if (status == CHEX_OK) {
        const struct trainer_section section = trainer_section_begin(&t->job);

        status = evaluate(&o, out, err);
        trainer_section_end(&t->job, &section, PART_EVALUATE, NULL);
        /* Waiting for images is that, here too. */
        t->times.parts.seconds[PART_EVALUATE] -= out->wait;
        t->times.parts.seconds[PART_WAIT] += out->wait;
    }
    if (!again)
        samples_release(&listed);
    if (status == CHEX_OK) {
        t->result.skipped += out->skipped_count;
        status = trainer_tell_bad(&t->job, &t->task, &t->images, &t->result, out->skipped, out->skipped_count,
                                  "it is left out", err);
        status = collective_agree(t->job.all, status, NULL, err);
    }
    return status;
}

/* ---- files of results -------------------------------------------------------------------------------------------- */

/* The folder of a file that the user named, and its name there.  A device or a pipe would be replaced by the file. */
static enum chex_status
open_elsewhere(const char *path, struct folder *folder, const char **name, struct chex_error *err)
{
    const char *slash = strrchr(path, '/');
    char parent[4096];
    struct stat there;

    *name = slash ? slash + 1 : path;
    if (snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".") >=
        (int)sizeof(parent))
        return error_set(err, CHEX_ERR_USAGE, "the path '%.100s...' is too long", path);
    if (folder_open(slash == path ? "/" : parent, false, folder, err) != CHEX_OK)
        return error_context(err, CHEX_ERR_WRITE, "--predict");
    if (**name == '\0' || (fstatat(folder->fd, *name, &there, 0) == 0 && !S_ISREG(there.st_mode)))
        return error_set(err, CHEX_ERR_WRITE, "--predict: '%s' is no regular file", path);
    if (faccessat(folder->fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return error_system(err, CHEX_ERR_WRITE, errno, "--predict: cannot write to the folder '%s'", folder->path);
    return CHEX_OK;
}

enum chex_status
trainer_check_predict(const struct trainer_job *job, struct chex_error *err)
{
    struct folder folder = {.fd = -1};
    const char *name;
    enum chex_status status = job->o->predict ? open_elsewhere(job->o->predict, &folder, &name, err) : CHEX_OK;

    folder_close(&folder);
    return status;
}

/* Into any folder, for --predict. */
static enum chex_status
write_elsewhere(const struct evaluation *e, const struct evaluation_source *from, const char *path,
                struct chex_error *err)
{
    struct folder folder = {.fd = -1};
    const char *name;
    enum chex_status status = open_elsewhere(path, &folder, &name, err);

    if (status == CHEX_OK)
        status = predictions_write(e, from, &folder, name, err);
    folder_close(&folder);
    return status;
}

static enum chex_status
leave(const struct trainer_job *job, const struct run_folder *run, const struct trainer_verdict *v,
      struct chex_error *err)
{
    const struct evaluation *e = v->evaluation;
    char predictions[64], numbers[64];
    enum chex_status status = CHEX_OK;

    snprintf(predictions, sizeof(predictions), "predictions-%s.csv", v->split);
    snprintf(numbers, sizeof(numbers), "metrics-%s.json", v->split);
    if (run->folder.path)
        status = predictions_write(e, v->source, &run->folder, predictions, err);
    if (status == CHEX_OK && run->folder.path)
        status = metrics_write(e, v->source, &run->folder, numbers, err);
    if (status == CHEX_OK && v->final && job->o->predict)
        status = write_elsewhere(e, v->source, job->o->predict, err);
    return status;
}

enum chex_status
trainer_tell(const struct trainer_job *job, const struct trainer_task *task, const struct run_folder *run,
             const struct trainer_best *best, struct trainer_verdict *v, struct chex_error *err)
{
    const struct chex_split_info *info = chex_dataset_split(task->ds, v->evaluation->split);
    const char *slash = strrchr(v->weights, '/');
    const struct evaluation_source source = {.ds = task->ds,
                                             .model = task->graph->model,
                                             .side = task->side,
                                             .checkpoint = slash ? slash + 1 : v->weights,
                                             .checkpoint_sha256 = best->hash[0] ? best->hash : NULL,
                                             .step = v->step,
                                             .epochs = v->epochs};
    enum chex_status status = CHEX_OK;

    v->split = info->name;
    v->sha256 = info->members_sha256;
    v->source = &source;
    if (job->is_rank_0 && (v->best || v->final))
        status = leave(job, run, v, err);
    if (job->is_rank_0 && status == CHEX_ERR_WRITE && !v->final) {
        trainer_warn(job, "%s", err->text);
        status = CHEX_OK;
    }
    /* What took hours is shown even where it cannot be written. */
    if (job->is_rank_0 && (status == CHEX_OK || status == CHEX_ERR_WRITE) && job->w->evaluated)
        job->w->evaluated(job->w->context, job->trainer, v);
    v->source = NULL;
    return collective_agree(job->all, status, NULL, err);
}

/* ---- the end of an epoch ----------------------------------------------------------------------------------------- */

/* The mean over the images of the epoch at hand. */
static double
epoch_loss(const struct checkpoint_state *state)
{
    return state->loss_images > 0 ? state->loss_sum / (double)state->loss_images : (double)NAN;
}

void
trainer_tell_epoch(struct trainer *t)
{
    t->epoch.skipped = t->result.skipped;
    t->epoch.loss = epoch_loss(&t->state);
    t->epoch.rate = schedule_rate(&t->state.schedule, t->state.step > 0 ? t->state.step - 1 : 0);
    memcpy(t->epoch.order, t->pass.hash, sizeof(t->epoch.order));
    if (t->job.is_rank_0 && t->job.w->epoch)
        t->job.w->epoch(t->job.w->context, t, &t->epoch);
}

/* What the best model is chosen by. */
static double
merit(const struct trainer_task *task, const struct evaluation *e)
{
    return task->select == SELECT_AUROC ? e->metrics.mean[METRIC_AUROC].value : e->loss;
}

static bool
is_better(const struct trainer_task *task, double now, double best)
{
    if (isnan(now))
        return false;
    return isnan(best) || (task->select == SELECT_AUROC ? now > best : now < best);
}

/* The state becomes that of the beginning of the next epoch. */
static void
advance(const struct trainer_job *job, const struct trainer_task *task, struct checkpoint_state *state, double now,
        bool better, double loss)
{
    char rate[SETTINGS_NUMBER];

    state->epoch++;
    state->batches = 0;
    state->loss_sum = 0;
    state->loss_images = 0;
    state->bad_epochs = better ? 0 : state->bad_epochs + 1;
    if (better) {
        state->best = now;
        state->best_step = state->step;
    }
    if (schedule_epoch(&state->schedule, loss))
        trainer_note(job, "learning rate lowered to %s: the %s has not become lower",
                     settings_format(state->schedule.options.base * state->schedule.factor, rate),
                     task->validation >= 0 ? "validation loss" : "training loss");
}

/* Without a validation split the last model is the best. */
static enum chex_status
end_unjudged(struct trainer *t, struct chex_error *err)
{
    advance(&t->job, &t->task, &t->state, epoch_loss(&t->state), true, epoch_loss(&t->state));
    return trainer_keep_best(t, err);
}

enum chex_status
trainer_end_epoch(struct trainer *t, struct chex_error *err)
{
    struct trainer_verdict about = {.weights = TRAINER_BEST, .step = t->state.step, .epochs = t->state.epoch + 1};
    struct evaluation e;
    enum chex_status status;

    status = collective_size(t->job.all) > 1 ? trainer_compare_weights(&t->job, &t->task, &t->engine, &t->state, err)
                                             : CHEX_OK;
    if (status != CHEX_OK)
        return status;
    if (t->task.validation < 0)
        return end_unjudged(t, err);
    status = trainer_judge(t, t->task.validation, t->job.o->average, &e, err);
    if (status == CHEX_ERR_STOPPED) {
        /* The epoch is trained, but not judged: a resumed run begins with that. */
        struct chex_error other;

        if (trainer_save_now(t, &other) != CHEX_OK || t->result.unsaved)
            status = error_set(err, CHEX_ERR_WRITE, "stopped, and step %s could not be saved",
                               COUNT_TEXT(t->state.step));
        else
            error_set(err, status, "stopped at step %s", COUNT_TEXT(t->state.step));
    }
    if (status == CHEX_OK) {
        about.evaluation = &e;
        about.best = is_better(&t->task, merit(&t->task, &e), t->state.best);
        advance(&t->job, &t->task, &t->state, merit(&t->task, &e), about.best, e.loss);
        if (about.best)
            status = trainer_keep_best(t, err);
        if (status == CHEX_OK)
            status = trainer_tell(&t->job, &t->task, &t->run, &t->best, &about, err);
    }
    evaluation_release(&e);
    return status;
}
