/*
 * audit.c - chooses pairs of checkpoints, trains the steps between them, compares the results; see audit.h
 *
 * Rank 0 reads the files of RUN.  For each pair it broadcasts a struct audit_order, then state and weights of the first
 * checkpoint, as a run that resumes does.  RUN is never opened as the folder of the trainer, so no function of the
 * trainer can write to it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/audit_private.h"

#include "base/number_format.h"
#include "checkpoint/checkpoint_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const audit_outcome_names[] = {
    [AUDIT_EQUAL] = "equal", [AUDIT_DIFFERS] = "differs", [AUDIT_SKIPPED] = "skipped", NULL};

/* ---- the pairs --------------------------------------------------------------------------------------------------- */

static uint64_t
steps_of(const struct audit *a, size_t to)
{
    return to == 0 ? a->step[0] : a->step[to] - a->step[to - 1];
}

/* The first checkpoint follows from the initial weights, and so does the only one. */
static bool
begins_fresh(const struct audit *a)
{
    return a->steps == 1 || a->step[0] == 0;
}

/*
 * With a limit of steps: audit every k-th pair, counted from the newest, as long as the sum of their steps is within
 * the limit; at least one pair.
 */
static void
choose_pairs(struct audit *a)
{
    const size_t first = begins_fresh(a) ? 0 : 1;
    uint64_t most = a->t->job.o->audit_steps, all = 0, used = 0;
    size_t stride = 1, i;

    for (i = first; i < a->steps; i++)
        all += steps_of(a, i);
    if (most > 0 && all > most)
        stride = (size_t)((all + most - 1) / most);
    for (i = a->steps; i-- > first;) {
        bool wanted = (a->steps - 1 - i) % stride == 0 && (most == 0 || used + steps_of(a, i) <= most);

        if (!wanted && i != a->steps - 1 && steps_of(a, i) > 0) {
            a->result->left_out++;
            continue;
        }
        used += steps_of(a, i);
        a->pair[a->pairs++] = (struct audit_pair){.to = i, .fresh = i == 0};
    }
}

/* Rank 0: open RUN and list its checkpoints, oldest first. */
static enum chex_status
open_run(struct audit *a, struct chex_error *err)
{
    enum chex_status status = folder_open(a->t->job.o->audit, false, &a->folder, err);
    size_t i;

    if (status == CHEX_OK)
        status = checkpoint_list_steps(&a->folder, &a->step, &a->steps, err);
    if (status == CHEX_OK && a->steps == 0)
        status = error_set(err, CHEX_ERR_MISSING, "'%s' contains no checkpoint", a->folder.path);
    if (status != CHEX_OK)
        return status;
    for (i = 0; i < a->steps / 2; i++) {
        uint64_t newer = a->step[i];

        a->step[i] = a->step[a->steps - 1 - i];
        a->step[a->steps - 1 - i] = newer;
    }
    a->pair = calloc(a->steps, sizeof(*a->pair));
    if (!a->pair)
        return error_memory(err);
    choose_pairs(a);
    a->has_best = checkpoint_read_state(&a->folder, "best", a->t->task.graph, &a->best, &a->best_error) == CHEX_OK &&
                  checkpoint_hash(&a->folder, TRAINER_BEST, a->best_hash, &a->best_error) == CHEX_OK;
    return trainer_make_host(&a->t->task, &a->t->engine, &a->found, err);
}

/* ---- a pair, before it is trained -------------------------------------------------------------------------------- */

/* Settings that must be equal, because the bits depend on them: "device cpu -> ref"; "" if they are. */
static void
compare_settings(const struct audit *a, char out[SETTINGS_CHANGE])
{
    static const char *const names[] = {"device", "engine", "algorithms", "wire", "tta", "weight-decay", "clip", NULL};
    static const char *const forced[] = {"epochs", NULL}; /* the last epoch is always evaluated */
    const struct settings *own = &a->t->task.settings;
    const unsigned kinds = 1u << SETTING_BATCH | 1u << SETTING_DATA | 1u << SETTING_PRECISION | 1u << SETTING_FIXED;

    out[0] = '\0';
    settings_compare_names(own, a->was.settings, kinds, names, out);
    if (!out[0] && a->t->job.o->evaluate_every != 1)
        settings_compare_names(own, a->was.settings, 0, forced, out);
}

/* Rank 0: returns whether the pair can be compared here; otherwise the part is skipped. */
static bool
is_comparable(struct audit *a)
{
    double ranks = settings_kept_number(a->was.settings, "ranks", 1);
    char change[SETTINGS_CHANGE], text[SETTINGS_CHANGE + 160];

    compare_settings(a, change);
    a->part.reduced = (int)ranks != collective_size(a->t->job.all);
    if (change[0])
        snprintf(text, sizeof(text), "it was made with other settings: %s", change);
    else if (a->part.reduced && a->t->engine.device->info.own_memory)
        snprintf(text, sizeof(text), "on GPUs, only the same number of ranks gives the same bits: it had %.0f", ranks);
    else
        return true;
    audit_skip(a, text);
    return false;
}

/* Rank 0: set state and arrays of the trainer to the start of the pair. */
static enum chex_status
read_start(struct audit *a, const struct audit_pair *pair, struct chex_error *err)
{
    struct trainer *t = a->t;
    struct trainer_start start = {.from = NULL};
    enum chex_status status;

    if (pair->fresh) {
        status = trainer_start_fresh(t, &start, err);
        /* Without the file of --init, later pairs can be audited. */
        if (t->job.o->init &&
            (chex_status_is_data(status) || status == CHEX_ERR_MISSING || status == CHEX_ERR_INCOMPATIBLE)) {
            audit_skip(a, err->text);
            return CHEX_OK;
        }
        t->state.window = a->was.window;
    } else {
        status = checkpoint_read_state(&a->folder, a->part.from, t->task.graph, &t->state, err);
        if (status == CHEX_OK)
            status = checkpoint_read(&a->folder, a->part.from, t->task.graph, &t->host, err);
    }
    /* A run that resumes may change its schedule: that of these steps is in the second checkpoint. */
    t->state.schedule.options = a->was.schedule.options;
    return status;
}

static enum chex_status
read_pair(struct audit *a, const struct audit_pair *pair, struct audit_order *order, struct chex_error *err)
{
    const struct trainer *t = a->t;
    enum chex_status status;

    a->part = (struct audit_part){.outcome = AUDIT_EQUAL};
    checkpoint_name(a->step[pair->to], a->part.to);
    if (pair->fresh)
        snprintf(a->part.from, sizeof(a->part.from), "start");
    else
        checkpoint_name(a->step[pair->to - 1], a->part.from);
    status = checkpoint_read_state(&a->folder, a->part.to, t->task.graph, &a->was, err);
    if (status == CHEX_OK && a->was.step != a->step[pair->to])
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s/%s' is of step %s", a->folder.path, a->part.to,
                           COUNT_TEXT(a->was.step));
    if (status == CHEX_OK && is_comparable(a))
        status = read_start(a, pair, err);
    if (status == CHEX_OK && a->part.outcome != AUDIT_SKIPPED)
        status = checkpoint_read(&a->folder, a->part.to, t->task.graph, &a->found, err);
    if (status == CHEX_OK && a->part.outcome != AUDIT_SKIPPED &&
        (a->was.step < t->state.step || a->was.epoch < t->state.epoch || t->state.batches > t->task.steps ||
         a->was.batches > t->task.steps))
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "%s of '%s' cannot follow from %s", a->part.to, a->folder.path,
                           a->part.from);
    if (status != CHEX_OK)
        return trainer_not_usable(status, err);
    a->part.steps = a->part.outcome == AUDIT_SKIPPED ? 0 : a->was.step - t->state.step;
    *order = (struct audit_order){
        .skipped = a->part.outcome == AUDIT_SKIPPED, .step = a->was.step, .epoch = a->was.epoch};
    return CHEX_OK;
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* Train to the end of the epoch, or to the last step. */
static enum chex_status
train_steps(struct trainer *t, uint64_t last, struct chex_error *err)
{
    enum chex_status status = collective_agree(t->job.all, trainer_open_epoch(t, err), NULL, err);
    bool open = status == CHEX_OK;
    uint64_t requests;

    while (status == CHEX_OK && t->state.batches < t->task.steps && t->state.step < last) {
        status = trainer_make_step(t, &requests, err);
        if (t->job.w->save)
            atomic_store(t->job.w->save, false); /* there is nothing to save */
        if (status == CHEX_OK && requests & TRAINER_STOP)
            status = error_set(err, CHEX_ERR_STOPPED, "stopped at step %s", COUNT_TEXT(t->state.step));
    }
    if (open && status == CHEX_OK)
        status = trainer_count_bad(t, err);
    trainer_close_epoch(&t->pass, &t->stepping);
    return status;
}

/* Train from the state of the first checkpoint to that of the second. */
static enum chex_status
train_again(struct audit *a, const struct audit_order *order, struct chex_error *err)
{
    struct trainer *t = a->t;
    const uint64_t begun = t->state.step;
    enum chex_status status = CHEX_OK;

    t->stepping.last_step = order->step;
    while (status == CHEX_OK && (t->state.step < order->step || t->state.epoch < order->epoch)) {
        if (t->state.batches < t->task.steps && t->state.step == order->step)
            break; /* the second checkpoint has another epoch than its steps make: its state differs */
        if (t->state.batches < t->task.steps) {
            status = train_steps(t, order->step, err);
        } else {
            status = trainer_end_epoch(t, err);
            trainer_release_pending(&t->saving.due);
        }
    }
    a->result->steps += t->state.step - begun;
    return status;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

/* Rank 0: compare the arrays and the state with those of the second checkpoint. */
static enum chex_status
compare_pair(struct audit *a, struct chex_error *err)
{
    const struct trainer *t = a->t;
    const struct graph *g = t->task.graph;
    const struct checkpoint_arrays *was = &a->found, *now = &t->host;
    enum chex_status status = trainer_read_arrays(t, false, err);

    if (status != CHEX_OK)
        return status;
    audit_compare_tensors(&a->part, "", g->param, g->param_count, was->params, now->params);
    if (!a->part.reduced)
        audit_compare_tensors(&a->part, "", g->stat, g->stat_count, was->stats, now->stats);
    audit_compare_tensors(&a->part, "moment1.", g->param, g->param_count, was->moment1, now->moment1);
    audit_compare_tensors(&a->part, "moment2.", g->param, g->param_count, was->moment2, now->moment2);
    audit_compare_tensors(&a->part, "average.", g->param, g->param_count, was->average, now->average);
    audit_compare_state(&a->part, &a->was, &t->state);
    return CHEX_OK;
}

/* Rank 0: compare best.safetensors, if it is of the step that was trained last. */
static enum chex_status
compare_best(struct audit *a, struct chex_error *err)
{
    const struct trainer *t = a->t;
    const struct graph *g = t->task.graph;
    const struct checkpoint_arrays *now = &t->host;
    const bool reduced = a->part.reduced;
    struct weights_report report;
    struct chex_error none;
    enum chex_status status;

    if (!a->has_best || a->best.step != a->was.step || a->was.best_step != a->was.step)
        return CHEX_OK;
    a->part = (struct audit_part){.outcome = AUDIT_EQUAL, .reduced = reduced};
    checkpoint_name(a->was.step, a->part.from);
    snprintf(a->part.to, sizeof(a->part.to), TRAINER_BEST);
    status = trainer_read_model(&t->task, a->folder.fd, TRAINER_BEST, false, &a->found, &report, err);
    if (status != CHEX_OK)
        return status;
    audit_compare_tensors(&a->part, "", g->param, g->param_count, a->found.params,
                          now->average ? now->average : now->params);
    if (!reduced)
        audit_compare_tensors(&a->part, "", g->stat, g->stat_count, a->found.stats, now->stats);
    audit_compare_state(&a->part, &a->best, &t->state);
    if (strcmp(a->best.settings, a->was.settings) != 0)
        audit_differ(&a->part, "state.", "settings", "others", "those of the checkpoint");
    if (t->task.validation < 0 && /* with val, they are compared with its evaluation */
        (trainer_read_operating(&t->task, a->folder.fd, TRAINER_BEST, &a->t->best.operating, &none) != CHEX_OK ||
         a->t->best.operating.there))
        audit_differ(&a->part, "", "operating points", "some", "none");
    a->best_compared = true;
    audit_end_part(a);
    return CHEX_OK;
}

static enum chex_status
make_pair(struct audit *a, const struct audit_pair *pair, struct chex_error *err)
{
    struct trainer *t = a->t;
    struct audit_order order = {.skipped = 0};
    enum chex_status status = t->job.is_rank_0 ? read_pair(a, pair, &order, err) : CHEX_OK;

    status = collective_agree(t->job.all, status, NULL, err);
    if (status == CHEX_OK)
        status = collective_broadcast(t->job.all, &order, sizeof(order), err);
    if (status != CHEX_OK)
        return status;
    if (t->job.is_rank_0)
        audit_begin_part(a);
    if (!order.skipped)
        status = audit_spread(a, err);
    if (status == CHEX_OK && !order.skipped)
        status = train_again(a, &order, err);
    if (status == CHEX_OK && !order.skipped && t->job.is_rank_0)
        status = compare_pair(a, err);
    if (status == CHEX_OK && t->job.is_rank_0)
        audit_end_part(a);
    if (status == CHEX_OK && !order.skipped && t->job.is_rank_0)
        status = compare_best(a, err);
    a->result->pairs += !order.skipped;
    return collective_agree(t->job.all, status, NULL, err);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/*
 * Rank 0, after the pairs: report a best model that was not compared with its checkpoint.  The newest checkpoint
 * (a->was) names the step of the best model.  A run that was killed may already have a later one.
 */
static void
report_best(struct audit *a)
{
    const struct checkpoint_state *newest = &a->was;
    char x[24], y[24];

    if (a->best_compared)
        return;
    a->part = (struct audit_part){.outcome = AUDIT_EQUAL, .to = TRAINER_BEST};
    checkpoint_name(a->has_best ? a->best.step : newest->best_step, a->part.from);
    snprintf(x, sizeof(x), "%llu", (unsigned long long)a->best.step);
    snprintf(y, sizeof(y), "%llu", (unsigned long long)newest->best_step);
    if (!a->has_best && newest->best_step > 0)
        audit_differ(&a->part, "", a->best_error.text, "", "");
    else if (!a->has_best)
        audit_skip(a, "the run has no best model yet");
    else if (a->best.step != newest->best_step && a->best.step <= newest->step)
        audit_differ(&a->part, "", "step of the best model", x, y);
    else if (a->best.step > newest->step)
        audit_skip(a, "it is newer than all checkpoints");
    else
        audit_skip(a, "its checkpoint was not trained again (--keep 0 keeps all)");
    audit_end_part(a);
}

/* Fail if no pair could be compared: predictions say nothing about the training. */
static enum chex_status
check_any(const struct audit *a, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    if (a->result->pairs == 0 && a->t->job.is_rank_0 && err)
        *err = a->first;
    if (a->result->pairs == 0 && a->t->job.is_rank_0)
        status = CHEX_ERR_INCOMPATIBLE;
    return collective_agree(a->t->job.all, status, NULL, err);
}

static enum chex_status
run_audit(struct audit *a, struct chex_error *err)
{
    const struct trainer_task *task = &a->t->task;
    struct collective *all = a->t->job.all;
    uint64_t pairs;
    enum chex_status status = trainer_make_arrays(task, &a->t->engine, &a->t->host, &a->t->pass, err);

    if (status == CHEX_OK && a->t->job.is_rank_0)
        status = open_run(a, err);
    status = collective_agree(all, status, NULL, err);
    pairs = a->pairs;
    if (status == CHEX_OK)
        status = collective_broadcast(all, &pairs, sizeof(pairs), err);
    while (status == CHEX_OK && pairs-- > 0) /* chosen from the newest on, audited from the oldest on */
        status = make_pair(a, a->pair ? &a->pair[pairs] : NULL, err);
    if (status == CHEX_OK)
        status = check_any(a, err);
    if (status == CHEX_OK && a->t->job.is_rank_0)
        report_best(a);
    for (unsigned i = 0; status == CHEX_OK && i < chex_dataset_info(task->ds)->split_count; i++)
        if ((int)i == task->validation || (int)i == task->test)
            status = audit_split(a, i, err);
    return status == CHEX_OK ? collective_broadcast(all, a->result, sizeof(*a->result), err) : status;
}

enum chex_status
trainer_audit(struct trainer *t, const struct audit_watch *watch, struct audit_result *out, struct chex_error *err)
{
    struct audit *a = calloc(1, sizeof(*a));
    enum chex_status status;

    *out = (struct audit_result){.pairs = 0};
    status = collective_agree(t->job.all, a ? CHEX_OK : error_memory(err), NULL, err);
    if (status == CHEX_OK) {
        a->t = t;
        a->watch = watch;
        a->result = out;
        a->folder.fd = -1;
        trainer_times_begin(&t->job);
        status = run_audit(a, err);
        folder_close(&a->folder);
        trainer_free_arrays(&a->found);
        free(a->step);
        free(a->pair);
    }
    free(a);
    return status;
}
