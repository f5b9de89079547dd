/*
 * trainer_save.c - checkpoints and the best model of a run; see trainer.h
 *
 * A checkpoint is a copy of state and arenas, which a thread writes while training continues.  The thread is met before
 * the next checkpoint and wherever the run needs to know: before it stops, before the best model is written, at its
 * end.  Rank 0 hears of its end at the next step; all ranks hear of the result where they meet for it.
 *
 * A disk that is full ends no run: what could not be written is tried again with the next checkpoint, and the run ends
 * with an error only where the last one is not there.  The best model is written before the checkpoint whose state
 * names it, so every checkpoint to resume from has its best model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "base/progress.h"
#include "checkpoint/checkpoint_private.h"

#include <stdlib.h>
#include <string.h>

bool
trainer_save_is_due(const struct trainer_job *job, const struct saving *saving)
{
    const struct trainer_options *o = job->o;

    return o->checkpoint_seconds > 0 && progress_clock() - saving->started_at >= o->checkpoint_seconds;
}

static enum chex_status
read_arrays(const struct trainer_engine *engine, struct checkpoint_arrays *a, struct chex_error *err)
{
    float *const to[] = {[ARENA_PARAMETERS] = a->params, [ARENA_STATISTICS] = a->stats, [ARENA_GRADIENTS] = NULL,
                         [ARENA_MOMENT1] = a->moment1,   [ARENA_MOMENT2] = a->moment2,  [ARENA_AVERAGE] = a->average};
    enum chex_status status = CHEX_OK;
    unsigned i;

    for (i = 0; status == CHEX_OK && i < sizeof(to) / sizeof(to[0]); i++)
        if (to[i])
            status = engine->backend->read(engine->plan, (enum arena_id)i, to[i], err);
    return status;
}

/* ---- the best model ---------------------------------------------------------------------------------------------- */

static enum chex_status
write_best(const struct trainer_task *task, const struct run_folder *run, struct trainer_best *best,
           const struct checkpoint_state *state, const struct checkpoint_arrays *from, struct chex_error *err)
{
    return checkpoint_save_model(&run->folder, TRAINER_BEST, task->graph, state, from, best->hash, err);
}

/* A copy until the disk takes it. */
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

/* Rank 0. */
static enum chex_status
keep_best(struct trainer *t, struct chex_error *err)
{
    enum chex_status status = read_arrays(&t->engine, &t->host, err); /* which no thread reads: trainer_keep_best() */
    struct checkpoint_arrays model = {.params = t->host.average ? t->host.average : t->host.params,
                                      .stats = t->host.stats};

    if (status == CHEX_OK)
        status = write_best(&t->task, &t->run, &t->best, &t->state, &model, err);
    t->best.pending = false;
    if (status != CHEX_ERR_WRITE)
        return status;
    trainer_warn(&t->job, "%s; it is kept in memory and tried again", err->text);
    t->result.unsaved = true;
    return keep_copy(&t->task, &t->state, &t->best, &model, err);
}

enum chex_status
trainer_keep_best(struct trainer *t, struct chex_error *err)
{
    enum chex_status status = trainer_finish_save(&t->job, &t->saving, &t->epoch, &t->result, err);

    if (status == CHEX_OK && t->job.is_rank_0)
        status = keep_best(t, err);
    return collective_agree(t->job.all, status, NULL, err);
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static void *
write_snapshot(void *context)
{
    struct trainer *t = context;
    struct saving *saving = &t->saving;

    saving->status = checkpoint_save(&t->run.folder, t->task.graph, &saving->state, &t->host, t->job.o->keep,
                                     &saving->err);
    saving->seconds = progress_clock() - saving->since;
    atomic_store(&saving->done, true);
    return NULL;
}

/* Rank 0.  A model that the disk did not take comes first. */
static enum chex_status
start_writing(struct trainer *t, struct chex_error *err)
{
    struct saving *saving = &t->saving;
    enum chex_status status = CHEX_OK;

    saving->state = t->state;
    if (t->best.pending) {
        status = write_best(&t->task, &t->run, &t->best, &t->best.state, &t->best.arrays, err);
        t->best.pending = status != CHEX_OK;
    }
    if (status == CHEX_ERR_WRITE) { /* the same as where the checkpoint itself cannot be written */
        saving->status = status;
        saving->err = *err;
        return CHEX_OK;
    }
    if (status == CHEX_OK)
        status = read_arrays(&t->engine, &t->host, err);
    if (status != CHEX_OK)
        return status;
    atomic_store(&saving->done, false);
    saving->running = pthread_create(&saving->thread, NULL, write_snapshot, t) == 0;
    if (!saving->running)
        write_snapshot(t);
    return CHEX_OK;
}

/* Rank 0: the thread is met.  The result is shown, and kept until all ranks know of it. */
static void
meet_thread(const struct trainer_job *job, struct saving *saving, struct trainer_result *result)
{

    if (!saving->pending)
        return;
    if (saving->running)
        pthread_join(saving->thread, NULL);
    saving->running = saving->pending = false;
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
    unsigned i;

    trainer_section_end(job, section, PART_SAVE, &both);
    for (i = 0; i < PART_COUNT; i++) {
        epoch->times.seconds[i] += both.seconds[i];
        result->times.seconds[i] += both.seconds[i];
    }
}

enum chex_status
trainer_finish_save(const struct trainer_job *job, struct saving *saving, struct trainer_epoch *epoch,
                    struct trainer_result *result, struct chex_error *err)
{
    const struct trainer_section section = trainer_section_begin(job);
    enum chex_status status;
    uint64_t unsaved;

    meet_thread(job, saving, result);
    status = saving->status;
    saving->status = CHEX_OK;
    if (status != CHEX_OK && err)
        *err = saving->err;
    unsaved = job->is_rank_0 && result->unsaved;
    status = collective_agree(job->all, status, &unsaved, err);
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
    const struct trainer_section section = trainer_section_begin(&t->job);

    if (status == CHEX_OK && t->job.is_rank_0) {
        saving->since = section.since;
        status = start_writing(t, err);
        saving->pending = status == CHEX_OK;
    }
    saving->begun = true;
    saving->step = t->state.step;
    saving->started_at = progress_clock();
    status = collective_agree(t->job.all, status, NULL, err);
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
