/*
 * trainer_save.c - checkpoints and the best model of a run; see trainer.h
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
        return chex_fail_memory(err);
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
    enum chex_status status = read_arrays(t, &t->host, err);
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
    enum chex_status status = t->leads ? keep_best(t, err) : CHEX_OK;

    return collective_agree(t->all, status, NULL, err);
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

/* Rank 0. */
static enum chex_status
save(struct trainer *t, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    if (t->best_pending) {
        status = write_best(t, &t->best_state, &t->best, err);
        t->best_pending = status != CHEX_OK;
    }
    if (status == CHEX_OK)
        status = read_arrays(t, &t->host, err);
    if (status == CHEX_OK)
        status = checkpoint_save(&t->folder, t->graph, &t->state, &t->host, t->o->keep, err);
    if (status == CHEX_ERR_DAMAGED)
        return chex_fail(err, CHEX_ERR_DIVERGED,
                         "diverged at step %s: a parameter is not finite; last good checkpoint %s; try a lower --lr",
                         COUNT_TEXT(t->state.step), t->result.last[0] ? t->result.last : "none");
    t->result.unsaved = status == CHEX_ERR_WRITE;
    if (t->result.unsaved) {
        trainer_warn(t, "checkpoint of step %s NOT saved: %s; training goes on, and it is tried again",
                     COUNT_TEXT(t->state.step), err->text);
        return CHEX_OK;
    }
    if (status == CHEX_OK)
        checkpoint_name(t->state.step, t->result.last);
    return status;
}

enum chex_status
trainer_save(struct trainer *t, struct chex_error *err)
{
    double since = progress_clock(), seconds;
    enum chex_status status = t->leads ? save(t, err) : CHEX_OK;
    uint64_t unsaved = t->result.unsaved;

    status = collective_agree(t->all, status, &unsaved, err);
    t->result.unsaved = unsaved;
    t->saved_at = progress_clock();
    seconds = t->saved_at - since;
    t->epoch.times.seconds[PART_SAVE] += seconds;
    t->result.times.seconds[PART_SAVE] += seconds;
    if (status == CHEX_OK && !unsaved) {
        checkpoint_name(t->state.step, t->result.last);
        if (t->leads && t->w->saved)
            t->w->saved(t->w->context, t, t->result.last, seconds);
    }
    return status;
}
