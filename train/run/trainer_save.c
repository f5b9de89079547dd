/*
 * trainer_save.c - checkpoints and the best model of a run; see trainer.h
 *
 * A checkpoint is a copy of state and arenas, which a thread writes while training goes on.  The thread is met before
 * the next checkpoint and wherever the run needs to know: before it stops, before the best model is written, at its
 * end.  Rank 0 hears of its end at the next step; what came of it is the business of all ranks where they meet for it.
 *
 * A disk that is full ends no run: what could not be written is tried again with the next checkpoint, and the run ends
 * with an error only where the last one is not there.  The best model is written before the checkpoint whose state
 * names it, so whatever a run goes on from has its best model.
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
trainer_save_is_due(const struct trainer *t)
{
    const struct trainer_options *o = t->o;

    return o->checkpoint_seconds > 0 && progress_clock() - t->saved_at >= o->checkpoint_seconds;
}

static enum chex_status
read_arrays(struct trainer *t, struct checkpoint_arrays *a, struct chex_error *err)
{
    float *const to[] = {[ARENA_PARAMETERS] = a->params, [ARENA_STATISTICS] = a->stats, [ARENA_GRADIENTS] = NULL,
                         [ARENA_MOMENT1] = a->moment1,   [ARENA_MOMENT2] = a->moment2,  [ARENA_AVERAGE] = a->average};
    enum chex_status status = CHEX_OK;
    unsigned i;

    for (i = 0; status == CHEX_OK && i < sizeof(to) / sizeof(to[0]); i++)
        if (to[i])
            status = t->backend->read(t->plan, (enum arena_id)i, to[i], err);
    return status;
}

/* ---- the best model ---------------------------------------------------------------------------------------------- */

static enum chex_status
write_best(struct trainer *t, const struct checkpoint_state *state, const struct checkpoint_arrays *from,
           struct chex_error *err)
{
    return checkpoint_save_model(&t->folder, TRAINER_BEST, t->graph, state, from, t->best_hash, err);
}

/* A copy until the disk takes it. */
static enum chex_status
keep_copy(struct trainer *t, const struct checkpoint_arrays *from, struct chex_error *err)
{
    size_t params = t->graph->param_floats * sizeof(float), stats = t->graph->stat_floats * sizeof(float);

    if (!t->best.params)
        t->best.params = malloc(params);
    if (!t->best.stats)
        t->best.stats = malloc(stats);
    if (!t->best.params || !t->best.stats)
        return error_memory(err);
    memcpy(t->best.params, from->params, params);
    memcpy(t->best.stats, from->stats, stats);
    t->best_state = t->state;
    t->best_pending = true;
    return CHEX_OK;
}

/* Rank 0. */
static enum chex_status
keep_best(struct trainer *t, struct chex_error *err)
{
    enum chex_status status = read_arrays(t, &t->host, err); /* which no thread reads: trainer_keep_best() */
    struct checkpoint_arrays model = {.params = t->host.average ? t->host.average : t->host.params,
                                      .stats = t->host.stats};

    if (status == CHEX_OK)
        status = write_best(t, &t->state, &model, err);
    t->best_pending = false;
    if (status != CHEX_ERR_WRITE)
        return status;
    trainer_warn(t, "%s; it is kept in memory and tried again", err->text);
    t->result.unsaved = true;
    return keep_copy(t, &model, err);
}

enum chex_status
trainer_keep_best(struct trainer *t, struct chex_error *err)
{
    enum chex_status status = trainer_finish_save(t, err);

    if (status == CHEX_OK && t->is_rank_0)
        status = keep_best(t, err);
    return collective_agree(t->all, status, NULL, err);
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static void *
write_snapshot(void *context)
{
    struct trainer *t = context;
    struct saving *s = &t->saving;

    s->status = checkpoint_save(&t->folder, t->graph, &s->state, &t->host, t->o->keep, &s->err);
    s->seconds = progress_clock() - s->since;
    atomic_store(&s->done, true);
    return NULL;
}

/* Rank 0.  A model that the disk did not take comes first. */
static enum chex_status
start_writing(struct trainer *t, struct chex_error *err)
{
    struct saving *s = &t->saving;
    enum chex_status status = CHEX_OK;

    s->state = t->state;
    if (t->best_pending) {
        status = write_best(t, &t->best_state, &t->best, err);
        t->best_pending = status != CHEX_OK;
    }
    if (status == CHEX_ERR_WRITE) { /* the same as where the checkpoint itself cannot be written */
        s->status = status;
        s->err = *err;
        return CHEX_OK;
    }
    if (status == CHEX_OK)
        status = read_arrays(t, &t->host, err);
    if (status != CHEX_OK)
        return status;
    atomic_store(&s->done, false);
    s->running = pthread_create(&s->thread, NULL, write_snapshot, t) == 0;
    if (!s->running)
        write_snapshot(t);
    return CHEX_OK;
}

/* Rank 0: the thread is met.  What came of it is shown, and kept until all ranks know of it. */
static void
meet_thread(struct trainer *t)
{
    struct saving *s = &t->saving;

    if (!s->pending)
        return;
    if (s->running)
        pthread_join(s->thread, NULL);
    s->running = s->pending = false;
    t->result.unsaved = s->status == CHEX_ERR_WRITE;
    if (s->status == CHEX_ERR_DAMAGED)
        s->status = error_set(
            &s->err, CHEX_ERR_DIVERGED,
            "diverged at step %s: a parameter is not finite; last good checkpoint %s; try a lower --lr",
            COUNT_TEXT(s->state.step), t->result.last[0] ? t->result.last : "none");
    if (t->result.unsaved) {
        trainer_warn(t, "checkpoint of step %s NOT saved: %s; training continues, and tries again",
                     COUNT_TEXT(s->state.step), s->err.text);
        s->status = CHEX_OK;
    } else if (s->status == CHEX_OK) {
        checkpoint_name(s->state.step, t->result.last);
        if (t->w->saved)
            t->w->saved(t->w->context, t, t->result.last, s->seconds);
    }
}

void
trainer_look_at_save(struct trainer *t)
{
    if (t->saving.running && atomic_load(&t->saving.done))
        meet_thread(t);
}

static void
took(struct trainer *t, double since)
{
    double seconds = progress_clock() - since;

    t->epoch.times.seconds[PART_SAVE] += seconds;
    t->result.times.seconds[PART_SAVE] += seconds;
}

enum chex_status
trainer_finish_save(struct trainer *t, struct chex_error *err)
{
    struct saving *s = &t->saving;
    double since = progress_clock();
    enum chex_status status;
    uint64_t unsaved;

    meet_thread(t);
    status = s->status;
    s->status = CHEX_OK;
    if (status != CHEX_OK && err)
        *err = s->err;
    unsaved = t->is_rank_0 && t->result.unsaved;
    status = collective_agree(t->all, status, &unsaved, err);
    t->result.unsaved = unsaved;
    if (status == CHEX_OK && !unsaved && t->saving.begun)
        checkpoint_name(t->saving.step, t->result.last);
    took(t, since);
    return status;
}

enum chex_status
trainer_save(struct trainer *t, struct chex_error *err)
{
    struct saving *s = &t->saving;
    enum chex_status status = trainer_finish_save(t, err);
    double since = progress_clock();

    if (status == CHEX_OK && t->is_rank_0) {
        s->since = since;
        status = start_writing(t, err);
        s->pending = status == CHEX_OK;
    }
    s->begun = true;
    s->step = t->state.step;
    t->saved_at = progress_clock();
    status = collective_agree(t->all, status, NULL, err);
    took(t, since);
    return status;
}

enum chex_status
trainer_save_now(struct trainer *t, struct chex_error *err)
{
    enum chex_status status = trainer_save(t, err);

    return status == CHEX_OK ? trainer_finish_save(t, err) : status;
}

void
trainer_end_save(struct trainer *t)
{
    meet_thread(t);
}
