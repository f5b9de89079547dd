/*
 * trainer_evaluate.c - evaluates a split and acts on the result; see trainer.h
 *
 * After each epoch all ranks evaluate the validation split together.  The result decides whether the model is the best
 * so far (AUROC or loss, options.select), whether the plateau schedule lowers the learning rate, and how many epochs
 * passed without improvement (options.patience ends the run).  Without a validation split, the latest model counts as
 * the best and the schedule uses the training loss.  Rank 0 reports through the callbacks of struct trainer_watch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "backend/ranges.h"

#include "base/number_format.h"

#include <math.h>
#include <string.h>

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
trainer_evaluate_split(struct trainer *t, int split, bool average, struct evaluation *out, struct chex_error *err)
{
    bool again = split == t->task.validation;          /* so its samples are listed once and kept */
    struct loss_options loss = t->engine.options.loss; /* but without smoothing, so that runs can be compared */
    struct samples listed = {.count = 0}, *samples = again ? &t->task.evaluated : &listed;
    struct evaluate_options o = {
        .ds = t->task.ds,
        .split = (unsigned)split,
        .samples = samples,
        .backend = t->engine.backend,
        .plan = t->engine.plan,
        .weights = average ? ARENA_AVERAGE : ARENA_PARAMETERS,
        .batch = t->task.micro,
        .side = t->task.side,
        .tta = t->job.tta,
        .loss = &loss,
        .replicates = t->job.replicates,
        .seed = t->job.seed,
        .threads = t->job.o->threads,
        .ahead = AHEAD,
        .reader = t->images.reader,
        .skip_bad = t->job.o->skip_bad,
        .leaky = t->state.leaky,
        .short_run = t->state.short_run,
        .collective = t->job.all,
        .stop = t->job.w->stop,
        .until = t->job.is_rank_0 && t->job.o->time_limit > 0 ? t->job.began + t->job.o->time_limit : 0,
        .progress = on_progress,
        .context = &t->job,
    };
    enum chex_status status = samples->count > 0 ? CHEX_OK
                                                 : trainer_list_samples(&t->job, &t->task, split, samples, err);

    loss.smoothing = 0;
    memset(out, 0, sizeof(*out));
    status = collective_agree(t->job.all, status, NULL, err);
    if (status == CHEX_OK) {
        const struct trainer_section section = trainer_section_begin(&t->job);

        ranges_push(PART_EVALUATE);
        status = evaluate(&o, out, err);
        ranges_pop();
        trainer_section_end(&t->job, &section, PART_EVALUATE, NULL);
        /* Waiting for images counts as PART_WAIT here, too. */
        t->times.parts.seconds[PART_EVALUATE] -= out->wait;
        t->times.parts.seconds[PART_WAIT] += out->wait;
    }
    if (!again)
        samples_release(&listed);
    if (status == CHEX_OK) {
        t->result.skipped += out->skipped_count;
        status = trainer_report_bad_records(&t->job, &t->task, &t->images, &t->result, out->skipped, out->skipped_count,
                                            "it is left out", err);
        status = collective_agree(t->job.all, status, NULL, err);
    }
    return status;
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

/* Call the callback on rank 0. */
static void
call_evaluated(const struct trainer_job *job, const struct trainer_task *task, struct trainer_evaluation_result *v)
{
    const struct chex_split_info *info = chex_dataset_split(task->ds, v->evaluation->split);

    v->split = info->name;
    v->sha256 = info->members_sha256;
    if (job->is_rank_0 && job->w->evaluated)
        job->w->evaluated(job->w->context, job->trainer, v);
}

/* Say how many findings lack operating points.  A model without any, such as weights of another program, is no news. */
static void
note_refused(const struct trainer_job *job, const struct operating *o)
{
    unsigned refused = 0, k;

    for (k = 0; o->there && k < o->outputs; k++)
        if (isnan(o->finding[k].point[OPERATING_YOUDEN].threshold))
            refused++;
    if (refused > 0)
        trainer_note(job,
                     "%u of %u findings have no thresholds and no calibration: %s has fewer than %d positives or "
                     "negatives of them, or their outputs are all equal",
                     refused, o->outputs, o->split, OPERATING_FEWEST);
}

enum chex_status
trainer_report_evaluation(const struct trainer_job *job, const struct trainer_task *task, const struct run_folder *run,
                          const struct trainer_best *best, struct trainer_evaluation_result *v, struct chex_error *err)
{
    struct chex_error picture = {.status = CHEX_OK};
    enum chex_status status = CHEX_OK;

    v->split = chex_dataset_split(task->ds, v->evaluation->split)->name;
    if (job->is_rank_0)
        status = trainer_write_artifacts(job, task, run, best, v, &picture, err);
    if (picture.status != CHEX_OK)
        trainer_warn(job, "%s", picture.text);
    /* Report the result of hours even if it cannot be written. */
    if (status == CHEX_OK || status == CHEX_ERR_WRITE)
        call_evaluated(job, task, v);
    if (status == CHEX_OK && job->is_rank_0 && v->final && v->evaluation->not_finite == 0)
        note_refused(job, &best->operating);
    return collective_agree(job->all, status, NULL, err);
}

/* ---- the end of an epoch ----------------------------------------------------------------------------------------- */

/* Returns the mean loss over the images of the current epoch. */
static double
epoch_loss(const struct checkpoint_state *state)
{
    return state->loss_images > 0 ? state->loss_sum / (double)state->loss_images : (double)NAN;
}

void
trainer_report_epoch(struct trainer *t)
{
    t->epoch.skipped = t->result.skipped;
    t->epoch.loss = epoch_loss(&t->state);
    t->epoch.rate = schedule_rate(&t->state.schedule, t->state.step > 0 ? t->state.step - 1 : 0);
    memcpy(t->epoch.order, t->pass.order.hash, sizeof(t->epoch.order));
    if (t->job.is_rank_0 && t->job.w->epoch)
        t->job.w->epoch(t->job.w->context, t, &t->epoch);
}

/* Returns the metric that selects the best model. */
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

/* Go to the start of the next epoch. */
static void
open_next(struct checkpoint_state *state, bool better)
{
    state->epoch++;
    state->batches = 0;
    state->loss_sum = 0;
    state->loss_images = 0;
    state->bad_epochs = better ? 0 : state->bad_epochs + 1;
}

/* Advance the state to the start of the next epoch, with the numbers of this one. */
static void
advance(const struct trainer_job *job, const struct trainer_task *task, struct checkpoint_state *state, double now,
        bool better, double loss)
{
    char rate[SETTINGS_NUMBER];

    open_next(state, better);
    if (better) {
        state->best = now;
        state->best_step = state->step;
    }
    if (schedule_epoch(&state->schedule, loss))
        trainer_note(job, "learning rate lowered to %s: the %s has not become lower",
                     settings_format(state->schedule.options.base * state->schedule.factor, rate),
                     task->validation >= 0 ? "validation loss" : "training loss");
}

/* Without a validation split the latest model is the best. */
static void
end_unevaluated(struct trainer *t)
{
    advance(&t->job, &t->task, &t->state, epoch_loss(&t->state), true, epoch_loss(&t->state));
    t->saving.due.best = t->job.is_rank_0;
}

/* Save a trained epoch without its evaluation: a resumed run starts with the evaluation. */
static enum chex_status
save_unevaluated(struct trainer *t, struct chex_error *err)
{
    struct chex_error other;

    if (t->job.o->audit) /* it writes nothing */
        return error_set(err, CHEX_ERR_STOPPED, "stopped at step %s", COUNT_TEXT(t->state.step));
    if (trainer_save_now(t, &other) != CHEX_OK || t->result.unsaved)
        return error_set(err, CHEX_ERR_WRITE, "stopped, and step %s could not be saved", COUNT_TEXT(t->state.step));
    return error_set(err, CHEX_ERR_STOPPED, "stopped at step %s", COUNT_TEXT(t->state.step));
}

/* Take the evaluation; rank 0 writes it with the next checkpoint. */
static void
end_evaluated(struct trainer *t, struct evaluation *e)
{
    struct trainer_evaluation_result about = {
        .weights = TRAINER_BEST, .step = t->state.step, .epochs = t->state.epoch + 1};
    double now = merit(&t->task, e);

    about.evaluation = e;
    about.best = is_better(&t->task, now, t->state.best);
    t->state.skipped += e->skipped_count;
    advance(&t->job, &t->task, &t->state, now, about.best, e->loss);
    call_evaluated(&t->job, &t->task, &about);
    if (about.best && t->job.is_rank_0) {
        t->saving.due = (struct pending_result){.best = true, .there = true, .evaluation = *e, .result = about};
        *e = (struct evaluation){.count = 0};
    }
}

enum chex_status
trainer_end_epoch(struct trainer *t, struct chex_error *err)
{
    bool evaluated = t->task.validation >= 0 && trainer_is_evaluated(&t->job, t->state.epoch + 1);
    struct evaluation e = {.count = 0};
    enum chex_status status = CHEX_OK, copied;
    struct chex_error other;

    trainer_begin_snapshot(t);
    if (evaluated)
        status = trainer_evaluate_split(t, t->task.validation, t->job.o->average, &e, err);
    copied = trainer_end_snapshot(t, &other);
    if (copied != CHEX_OK) {
        if (err)
            *err = other;
        status = copied;
    } else if (status == CHEX_ERR_STOPPED) {
        status = save_unevaluated(t, err);
    } else if (status == CHEX_OK && t->task.validation < 0) {
        end_unevaluated(t);
    } else if (status == CHEX_OK && evaluated) {
        end_evaluated(t, &e);
    } else if (status == CHEX_OK) {
        open_next(&t->state, false); /* best model and plateau wait for the next evaluation */
    }
    evaluation_release(&e);
    return status;
}
