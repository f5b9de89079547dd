/*
 * trainer_save.c - saves checkpoints and the best model of a run; see trainer.h
 *
 * A checkpoint is a copy of state and arenas.  A thread of rank 0 writes it while training continues; if the epoch is
 * the best so far, the thread first writes its model, predictions and numbers.  The run joins the thread before the
 * next checkpoint and whenever it needs the result: before it stops, at its end.  So at most one save is in progress.
 * Rank 0 notices the end of a save at the next step; all ranks learn the result when they meet for it.
 *
 * A full disk does not end a run: a failed write is repeated with the next checkpoint, and the run ends with an error
 * only if the last checkpoint is missing.  The best model is written before the checkpoint whose state names it, so
 * every checkpoint has its best model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "backend/ranges.h"
#include "base/clock.h"
#include "base/number_format.h"
#include "checkpoint/checkpoint_private.h"

#include <stdlib.h>
#include <string.h>

bool
trainer_save_is_due(const struct trainer_job *job, const struct saving *saving)
{
    const struct trainer_options *o = job->o;

    return o->checkpoint_seconds > 0 && clock_now() - saving->started_at >= o->checkpoint_seconds;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static enum chex_status
write_best(const struct trainer_task *task, const struct run_folder *run, struct trainer_best *best,
           const struct checkpoint_state *state, const struct checkpoint_arrays *from, struct chex_error *err)
{
    const char *const *findings = chex_dataset_findings(task->ds, NULL);
    struct buffer operating = {0};
    enum chex_status status = CHEX_OK;

    if (best->operating.there)
        status = operating_format(&best->operating, findings, &operating, err);
    if (status == CHEX_OK)
        status = checkpoint_save_model(&run->folder, TRAINER_BEST, task->graph, state, from,
                                       best->operating.there ? (const char *)operating.data : NULL, best->hash, err);
    buffer_release(&operating);
    return status;
}

enum chex_status
trainer_write_best(const struct trainer_task *task, const struct run_folder *run, struct trainer_best *best,
                   struct chex_error *err)
{
    enum chex_status status = write_best(task, run, best, &best->state, &best->arrays, err);

    best->pending = status != CHEX_OK;
    return status;
}

/* Keep a copy until the disk accepts it. */
static enum chex_status
keep_copy(const struct trainer_task *task, const struct checkpoint_state *state, struct trainer_best *best,
          const struct checkpoint_arrays *from, struct chex_error *err)
{
    size_t params = task->graph->param_floats * sizeof(float), stats = task->graph->stat_floats * sizeof(float);

    if (!best->arrays.params)
        best->arrays.params = malloc(params);
    if (!best->arrays.stats)
        best->arrays.stats = malloc(stats);
    if (!best->arrays.params || !best->arrays.stats)
        return error_memory(err);
    memcpy(best->arrays.params, from->params, params);
    memcpy(best->arrays.stats, from->stats, stats);
    best->state = *state;
    best->pending = true;
    return CHEX_OK;
}

static void
warn_later(struct saving *saving, const struct chex_error *why)
{
    if (saving->warnings < SAVE_WARNINGS)
        saving->warning[saving->warnings++] = *why;
}

/* Add the gate to the operating points; it is fitted once.  Without it the model is complete, too. */
static enum chex_status
add_gate(struct trainer *t, struct chex_error *err)
{
    struct chex_error why = {.status = CHEX_OK};
    enum chex_status status = CHEX_OK;

    if (!t->best.gate_fitted)
        status = trainer_fit_gate(&t->task, &t->best.gate, &why);
    t->best.gate_fitted |= status == CHEX_OK;
    if (status == CHEX_ERR_MEMORY) {
        *err = why;
        return status;
    }
    if (status != CHEX_OK) {
        error_context(&why, status, "the best model has no gate for turned images");
        warn_later(&t->saving, &why);
    } else {
        t->best.operating.gate = t->best.gate;
    }
    return CHEX_OK;
}

static enum chex_status
keep_best(struct trainer *t, struct chex_error *err)
{
    struct saving *saving = &t->saving;
    struct checkpoint_arrays model = {.params = t->host.average ? t->host.average : t->host.params,
                                      .stats = t->host.stats};
    struct chex_error told;
    enum chex_status status = CHEX_OK;

    t->best.operating.there = false;
    if (saving->writing.there)
        status = operating_choose(&saving->writing.evaluation,
                                  chex_dataset_split(t->task.ds, saving->writing.evaluation.split),
                                  t->engine.facts.precision, &t->best.operating, err);
    if (status == CHEX_OK && t->best.operating.there)
        status = add_gate(t, err);
    if (status == CHEX_OK)
        status = write_best(&t->task, &t->run, &t->best, &saving->state, &model, err);
    t->best.pending = false;
    if (status != CHEX_ERR_WRITE)
        return status;
    error_set(&told, status, "%s; it is kept in memory and tried again", err->text);
    warn_later(saving, &told);
    return keep_copy(&t->task, &saving->state, &t->best, &model, err);
}

/* Write the files of an evaluation; a write error does not end the run. */
static enum chex_status
write_pending(struct trainer *t, struct chex_error *err)
{
    struct saving *saving = &t->saving;
    struct chex_error picture;
    enum chex_status status;

    saving->writing.result.evaluation = &saving->writing.evaluation;
    status = trainer_write_artifacts(&t->job, &t->task, &t->run, &t->best, &saving->writing.result, &picture, err);
    if (status == CHEX_ERR_WRITE)
        warn_later(saving, err);
    if (picture.status != CHEX_OK)
        warn_later(saving, &picture);
    return status == CHEX_ERR_WRITE ? CHEX_OK : status;
}

/* Write the files that the state of the checkpoint names, and then the checkpoint. */
static enum chex_status
write_all(struct trainer *t, struct chex_error *err)
{
    struct saving *saving = &t->saving;
    enum chex_status status = saving->writing.best ? keep_best(t, err) : CHEX_OK;

    if (status == CHEX_OK && saving->writing.there)
        status = write_pending(t, err);
    if (status == CHEX_OK && t->best.pending)
        status = trainer_write_best(&t->task, &t->run, &t->best, err);
    if (status == CHEX_OK)
        status = checkpoint_save(&t->run.folder, t->task.graph, &saving->state, &t->host, t->job.o->keep, err);
    return status;
}

static void *
write_snapshot(void *context)
{
    struct trainer *t = context;
    struct saving *saving = &t->saving;

    ranges_push(PART_SAVE);
    saving->status = write_all(t, &saving->err);
    ranges_pop();
    saving->seconds = clock_now() - saving->since;
    atomic_store(&saving->done, true);
    return NULL;
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

void
trainer_release_pending(struct pending_result *j)
{
    if (j->there)
        evaluation_release(&j->evaluation);
    *j = (struct pending_result){.best = false};
}

/* Rank 0: start the thread. */
static enum chex_status
start_writing(struct trainer *t, struct chex_error *err)
{
    struct saving *saving = &t->saving;
    enum chex_status status = t->snapshot.taken ? CHEX_OK : trainer_read_arrays(t, false, err);

    if (status != CHEX_OK)
        return status;
    saving->state = t->state;
    saving->writing = saving->due;
    saving->due = (struct pending_result){.best = false};
    saving->warnings = 0;
    atomic_store(&saving->done, false);
    saving->running = pthread_create(&saving->thread, NULL, write_snapshot, t) == 0;
    if (!saving->running)
        write_snapshot(t);
    return CHEX_OK;
}

/* Rank 0: join the thread and report the result, which is kept until all ranks know it. */
static void
meet_thread(const struct trainer_job *job, struct saving *saving, struct trainer_result *result)
{
    unsigned i;

    if (!saving->pending)
        return;
    if (saving->running)
        pthread_join(saving->thread, NULL);
    saving->running = saving->pending = false;
    for (i = 0; i < saving->warnings; i++)
        trainer_warn(job, "%s", saving->warning[i].text);
    saving->warnings = 0;
    trainer_release_pending(&saving->writing);
    result->unsaved = saving->status == CHEX_ERR_WRITE;
    if (saving->status == CHEX_ERR_DAMAGED)
        saving->status = error_set(
            &saving->err, CHEX_ERR_DIVERGED,
            "diverged at step %s: a parameter is not finite; last good checkpoint %s; try a lower --lr",
            COUNT_TEXT(saving->state.step), result->last[0] ? result->last : "none");
    if (result->unsaved) {
        trainer_warn(job, "checkpoint of step %s NOT saved: %s; training continues, and tries again",
                     COUNT_TEXT(saving->state.step), saving->err.text);
        saving->status = CHEX_OK;
    } else if (saving->status == CHEX_OK) {
        checkpoint_name(saving->state.step, result->last);
        if (job->w->saved)
            job->w->saved(job->w->context, job->trainer, result->last, saving->seconds);
    }
}

void
trainer_look_at_save(const struct trainer_job *job, struct saving *saving, struct trainer_result *result)
{
    if (saving->running && atomic_load(&saving->done))
        meet_thread(job, saving, result);
}

static void
took(const struct trainer_job *job, const struct trainer_section *section, struct trainer_epoch *epoch,
     struct trainer_result *result)
{
    struct step_times both = {.seconds = {0}};

    trainer_section_end(job, section, PART_SAVE, &both);
    step_times_add(&epoch->times, &both);
    step_times_add(&result->times, &both);
}

enum chex_status
trainer_finish_save(const struct trainer_job *job, struct saving *saving, struct trainer_epoch *epoch,
                    struct trainer_result *result, struct chex_error *err)
{
    const struct trainer_section section = trainer_section_begin(job);
    enum chex_status status;
    uint64_t unsaved;

    ranges_push(PART_SAVE);
    meet_thread(job, saving, result);
    status = saving->status;
    saving->status = CHEX_OK;
    if (status != CHEX_OK && err)
        *err = saving->err;
    unsaved = job->is_rank_0 && result->unsaved;
    status = collective_agree(job->all, status, &unsaved, err);
    ranges_pop();
    result->unsaved = unsaved;
    if (status == CHEX_OK && !unsaved && saving->begun)
        checkpoint_name(saving->step, result->last);
    took(job, &section, epoch, result);
    return status;
}

enum chex_status
trainer_save(struct trainer *t, struct chex_error *err)
{
    struct saving *saving = &t->saving;
    enum chex_status status = trainer_finish_save(&t->job, &t->saving, &t->epoch, &t->result, err);
    struct trainer_section section;

    /* The state includes all damaged records up to its step: a run that resumes from it does not count them again. */
    if (status == CHEX_OK && t->pass.loader)
        status = trainer_count_bad(t, err);
    section = trainer_section_begin(&t->job);
    /* A failure to start counts as one of the checkpoint: all ranks learn it at the end of the save. */
    if (status == CHEX_OK && t->job.is_rank_0) {
        struct chex_error why;

        saving->since = section.since;
        saving->pending = true;
        if (start_writing(t, &why) != CHEX_OK) {
            saving->status = why.status;
            saving->err = why;
        }
    }
    t->snapshot.taken = false;
    saving->begun = true;
    saving->step = t->state.step;
    saving->started_at = clock_now();
    took(&t->job, &section, &t->epoch, &t->result);
    return status;
}

enum chex_status
trainer_save_now(struct trainer *t, struct chex_error *err)
{
    enum chex_status status = trainer_save(t, err);

    return status == CHEX_OK ? trainer_finish_save(&t->job, &t->saving, &t->epoch, &t->result, err) : status;
}

void
trainer_end_save(const struct trainer_job *job, struct saving *saving, struct trainer_result *result)
{
    meet_thread(job, saving, result);
}
