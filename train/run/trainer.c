/*
 * trainer.c - the sequence of a run; see trainer.h
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

/* ---- epochs ------------------------------------------------------------------------------------------------------ */

/* Between two steps: save if due or requested, stop if requested.  CHEX_ERR_STOPPED: everything is saved. */
static enum chex_status
between_steps(struct trainer *t, uint64_t requests, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    if (requests & TRAINER_STOP)
        status = trainer_save_now(t, err);
    else if (requests & TRAINER_SAVE)
        status = trainer_save(t, err);
    if (requests & TRAINER_SAVE && t->job.w->save)
        atomic_store(t->job.w->save, false);
    if (status != CHEX_OK || !(requests & TRAINER_STOP))
        return status;
    if (t->result.unsaved)
        return error_set(err, CHEX_ERR_WRITE, "stopped at step %s, which could not be saved",
                         COUNT_TEXT(t->state.step));
    return error_set(err, CHEX_ERR_STOPPED, "stopped at step %s", COUNT_TEXT(t->state.step));
}

/*
 * Make one step, then save or stop if necessary.  The last step of an epoch reports the epoch before anything is saved.
 * So a run that resumes from a later checkpoint does not report the epoch again, with no images.
 */
static enum chex_status
train_step(struct trainer *t, double since, struct chex_error *err)
{
    uint64_t requests;
    enum chex_status status = trainer_make_step(t, &requests, err);

    trainer_look_at_save(&t->job, &t->saving, &t->result);
    if (status == CHEX_OK && t->state.batches == t->task.steps) {
        status = trainer_count_bad(t, err);
        t->epoch.seconds = clock_now() - since;
        if (status == CHEX_OK)
            trainer_report_epoch(t);
    }
    return status == CHEX_OK ? between_steps(t, requests, err) : status;
}

static enum chex_status
train_epoch(struct trainer *t, struct chex_error *err)
{
    enum chex_status status = trainer_open_epoch(t, err);
    struct chex_error other;
    double since = clock_now();
    bool open;

    t->epoch = (struct trainer_epoch){.epoch = t->state.epoch + 1};
    status = collective_agree(t->job.all, status, NULL, err);
    open = status == CHEX_OK;
    while (status == CHEX_OK && t->state.batches < t->task.steps && !trainer_is_cut(&t->job, &t->task, &t->state))
        status = train_step(t, since, err);
    if (open && status_is_of_input(status)) /* saved after the epoch is closed */
        (void)trainer_count_bad(t, &other);
    t->result.seconds += clock_now() - since;
    trainer_close_epoch(&t->pass, &t->stepping);
    return status;
}

/*
 * After an error of a record, save the last good step; all ranks know of the error.  When the record is repaired, the
 * run resumes from there.
 */
static void
keep_reached(struct trainer *t, enum chex_status status)
{
    struct chex_error other = {.status = CHEX_OK};

    if (!status_is_of_input(status))
        return;
    if (trainer_save_now(t, &other) != CHEX_OK)
        trainer_warn(&t->job, "%s", other.text);
}

/* Evaluate the loaded best model.  The test split is the final result; the validation split only writes its files. */
static enum chex_status
evaluate_loaded(struct trainer *t, int split, bool final, struct chex_error *err)
{
    struct trainer_evaluation_result about = {
        .final = final, .weights = TRAINER_BEST, .step = t->state.best_step, .best = true};
    struct chex_error picture = {.status = CHEX_OK};
    struct evaluation e;
    enum chex_status status = trainer_evaluate_split(t, split, false, &e, err);

    about.evaluation = &e;
    about.split = chex_dataset_split(t->task.ds, (unsigned)split)->name;
    about.epochs = t->state.epoch - t->state.bad_epochs; /* earlier steps may have had another batch size */
    if (status == CHEX_OK && final)
        status = trainer_report_evaluation(&t->job, &t->task, &t->run, &t->best, &about, err);
    else if (status == CHEX_OK && t->job.is_rank_0)
        status = trainer_write_artifacts(&t->job, &t->task, &t->run, &t->best, &about, &picture, err);
    if (picture.status != CHEX_OK)
        trainer_warn(&t->job, "%s", picture.text);
    evaluation_release(&e);
    return collective_agree(t->job.all, status, NULL, err);
}

/* Say why a run that completed its epochs has no best model. */
static enum chex_status
report_no_best(const struct trainer *t, struct chex_error *err)
{
    /* Only an evaluation of finite outputs has a finite loss. */
    bool undefined = t->task.select == SELECT_AUROC && isfinite(t->state.schedule.best);

    if (undefined)
        return error_set(err, CHEX_ERR_USAGE,
                         "there is no best model: no finding has an AUROC in the validation split, because none has "
                         "positives and negatives there; start again with more images or --select loss");
    if (t->job.o->evaluate_every != 1 && isinf(t->state.schedule.best))
        return error_set(err, CHEX_ERR_USAGE,
                         "there is no best model: no epoch was evaluated (--eval-every); more --epochs continue");
    /* With a loss scale, a run can finish although all its steps were skipped. */
    return error_set(err, CHEX_ERR_DIVERGED,
                     "there is no best model: the output of the network was not finite after any epoch; try a lower "
                     "--lr");
}

/*
 * Evaluate the test split with the best model.  In a leaky run also the validation split, if trainer_drop_unmarked()
 * removed its files and no later model became the best.
 */
static enum chex_status
evaluate_best(struct trainer *t, struct chex_error *err)
{
    uint64_t again = t->job.is_rank_0 && t->state.leaky && t->task.validation >= 0 &&
                     !trainer_has_numbers(&t->task, &t->run, t->task.validation);
    enum chex_status status = collective_agree(t->job.all, CHEX_OK, &again, err);

    if (status != CHEX_OK || (t->task.test < 0 && !again))
        return status;
    status = trainer_load_model(t, TRAINER_BEST, err);
    if (status == CHEX_ERR_MISSING && t->state.best_step == 0)
        return report_no_best(t, err);
    if (status != CHEX_OK)
        return status;
    if (again)
        status = evaluate_loaded(t, t->task.validation, false, err);
    return status == CHEX_OK && t->task.test >= 0 ? evaluate_loaded(t, t->task.test, true, err) : status;
}

/* Report the final times, if all ranks arrive here.  Does not change the status of the run. */
static void
report_times(struct trainer *t, enum chex_status status)
{
    struct chex_error other;

    if ((status == CHEX_OK || status == CHEX_ERR_STOPPED) && !collective_broken(t->job.all))
        status = trainer_gather_times(t, true, &other);
    if (status != CHEX_OK)
        trainer_write_times(t);
}

static enum chex_status
run(struct trainer *t, struct chex_error *err)
{
    enum chex_status status = trainer_begin(t, err);

    trainer_times_begin(&t->job);
    if (status == CHEX_OK && t->job.w->spans)
        status = trainer_times_clock(&t->job, err);
    while (status == CHEX_OK && !trainer_is_complete(&t->job, &t->state) &&
           !trainer_is_cut(&t->job, &t->task, &t->state)) {
        status = train_epoch(t, err);
        if (status == CHEX_OK && !trainer_is_cut(&t->job, &t->task, &t->state))
            status = trainer_end_epoch(t, err);
        keep_reached(t, status);
        if (status == CHEX_OK)
            status = between_steps(t, TRAINER_SAVE, err);
        if (status == CHEX_OK)
            status = trainer_gather_times(t, false, err);
    }
    if (status == CHEX_OK)
        status = trainer_finish_save(&t->job, &t->saving, &t->epoch, &t->result, err);
    t->result.cut = status == CHEX_OK && trainer_is_cut(&t->job, &t->task, &t->state);
    t->result.early = status == CHEX_OK && !t->result.cut && t->state.epoch < t->job.o->epochs;
    if (status == CHEX_OK && t->result.unsaved)
        status = error_set(err, CHEX_ERR_WRITE,
                           "the run is at its end, but its last checkpoint could not be written: when it can, the same "
                           "command again resumes from %s",
                           t->result.last[0] ? t->result.last : "the start");
    status = collective_agree(t->job.all, status, NULL, err);
    return status == CHEX_OK && !t->result.cut ? evaluate_best(t, err) : status;
}

enum chex_status
trainer_run(struct trainer *t, struct chex_error *err)
{
    enum chex_status status;

    ranges_open(collective_rank(t->job.all));
    status = run(t, err);
    report_times(t, status);
    return status;
}

enum chex_status
trainer_evaluate(struct trainer *t, struct chex_error *err)
{
    struct trainer_evaluation_result about = {.final = true, .weights = t->job.o->init ? t->job.o->init : TRAINER_BEST};
    int split = t->task.test;
    struct evaluation e;
    enum chex_status status = trainer_begin_evaluation(t, err);

    if (status != CHEX_OK)
        return status;
    about.step = t->state.step;
    about.epochs = t->state.epoch;
    status = trainer_evaluate_split(t, split, false, &e, err);
    about.evaluation = &e;
    if (status == CHEX_OK)
        status = trainer_report_evaluation(&t->job, &t->task, &t->run, &t->best, &about, err);
    evaluation_release(&e);
    return status;
}

bool
trainer_free(struct trainer *t)
{
    struct chex_error err;
    bool ended = true;
    size_t i;

    if (!t)
        return true;
    trainer_end_save(&t->job, &t->saving, &t->result);
    trainer_release_pending(&t->saving.due);
    trainer_close_epoch(&t->pass, &t->stepping);
    if (t->run.lock.held && lock_drop(&t->run.lock, &err) != CHEX_OK)
        trainer_warn(&t->job, "%s", err.text);
    trainer_free_arrays(&t->host);
    trainer_free_arrays(&t->best.arrays);
    free(t->pass.order.sample);
    free(t->pass.next.sample);
    for (i = 0; i < STEPS_UNDER_WAY; i++)
        buffer_release(&t->stepping.step[i].names);
    if (t->engine.backend)
        t->engine.backend->plan_free(t->engine.plan);
    /* Until the plan is freed, its device may wait for a lost rank; freeing the store waits for the device. */
    trainer_close_data(&t->engine, &t->images);
    if (t->engine.backend) {
        if (t->engine.reduce)
            ended = t->engine.reduce->ops->free(t->engine.reduce);
        t->engine.backend->device_close(t->engine.device);
    }
    graph_free(t->task.graph);
    samples_release(&t->task.samples);
    samples_release(&t->task.evaluated);
    buffer_release(&t->images.told);
    trainer_times_release(&t->times);
    chex_dataset_close(t->task.ds);
    fold_free(t->task.fold);
    folder_close(&t->run.folder);
    settings_release(&t->task.settings);
    collective_free(t->job.all);
    free(t);
    return ended;
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

void
trainer_facts(const struct trainer *t, struct trainer_facts *out)
{
    *out = (struct trainer_facts){
        .ds = t->task.ds,
        .certificate = &t->task.certificate,
        .train = t->task.train,
        .validation = t->task.validation,
        .test = t->task.test,
        .fold = t->task.fold,
        .graph = t->task.graph,
        .backend = t->engine.backend,
        .device = t->engine.device ? t->engine.device->info.text : "",
        .precision = t->engine.facts.precision,
        .side = t->task.side,
        .source = t->engine.options.source,
        .micro_batch = t->task.micro,
        .micro_batches = t->task.each,
        .global_batch = t->task.global,
        .steps = t->task.steps,
        .images = t->task.samples.count,
        .memory = t->engine.facts.memory,
        .memory_all = t->engine.memory_all,
        .memory_there = t->engine.device && t->engine.device->info.memory < UINT64_MAX ? t->engine.device->info.memory
                                                                                       : 0,
        .select = t->task.select,
        .reading = t->images.reading,
        .sums = t->engine.reduce ? t->engine.reduce->text : "",
        .engine = t->engine.facts.engine,
        .ranks = t->job.all ? collective_size(t->job.all) : 1,
        .own_clock = t->engine.device && t->engine.device->info.own_clock,
        .collective = t->job.all,
        .folder = t->run.folder.path ? &t->run.folder : NULL,
        .value = t->task.settings.value,
        .values = t->task.settings.count,
    };
}

const struct trainer_options *
trainer_options(const struct trainer *t)
{
    return t->job.o;
}

const struct checkpoint_state *
trainer_state(const struct trainer *t)
{
    return &t->state;
}

uint64_t
trainer_steps_skipped(const struct trainer *t)
{
    return t->state.step > t->state.plan.applied ? t->state.step - t->state.plan.applied : 0;
}

const struct trainer_result *
trainer_result(const struct trainer *t)
{
    return &t->result;
}
