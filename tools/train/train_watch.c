/*
 * train_watch.c - see train_watch.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/train_watch.h"

#include "common/launcher.h"
#include "common/versions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINES_EPOCH 100 /* approximate number of lines in metrics.jsonl for the steps of an epoch */

static void
warn(struct train_watch *w, const struct chex_error *err)
{
    if (w->warn)
        w->warn(w->context, err->text);
}

/* ---- the start --------------------------------------------------------------------------------------------------- */

static const char *
split_name(const struct trainer_facts *f, int split)
{
    return split >= 0 ? chex_dataset_split(f->ds, (unsigned)split)->name : NULL;
}

/* Returns the value of a setting of type text. */
static const char *
setting(const struct trainer_facts *f, const char *name)
{
    size_t i;

    for (i = 0; i < f->values; i++)
        if (strcmp(f->value[i].name, name) == 0)
            return f->value[i].text;
    return NULL;
}

#define OPENED_MAX 4

/* Adds the libraries that the backend opened. */
static unsigned
add_opened(const struct backend *backend, char text[OPENED_MAX][BACKEND_LIBRARY], struct run_value *out)
{
    const char *name;
    unsigned i;

    for (i = 0; i < OPENED_MAX && backend->library && (name = backend->library(i, text[i])); i++)
        out[i] = (struct run_value){.name = name, .kind = RUN_TEXT, .text = text[i]};
    return i;
}

static enum chex_status
start_file(struct train_watch *w, const struct trainer *t, const struct trainer_facts *f,
           const struct trainer_start *start, struct chex_error *err)
{
    const struct trainer_options *o = trainer_options(t);
    struct run_value library[VERSIONS_MAX + 1 + OPENED_MAX];
    struct version version[VERSIONS_MAX];
    char opened[OPENED_MAX][BACKEND_LIBRARY];
    const char **host = calloc((size_t)f->ranks, sizeof(*host));
    char cpu[128], mpi[128];
    size_t count = versions_list(version), i;
    enum chex_status status = CHEX_OK;

    if (!host)
        return error_memory(err);
    for (i = 0; i < (size_t)f->ranks; i++)
        host[i] = collective_host(f->collective, (int)i);
    for (i = 0; i < count; i++)
        library[i] = (struct run_value){.name = version[i].name, .kind = RUN_TEXT, .text = version[i].text};
    launcher_library(false, mpi, sizeof(mpi));
    library[count++] = (struct run_value){.name = "mpi", .kind = RUN_TEXT, .text = mpi};
    count += add_opened(f->backend, opened, library + count);
    {
        const struct run_facts facts = {.argc = w->cli->argc,
                                        .argv = w->cli->argv,
                                        .option = f->value,
                                        .options = f->values,
                                        .library = library,
                                        .libraries = count,
                                        .cpu = versions_cpu(cpu, sizeof(cpu)),
                                        .dataset = f->ds,
                                        .certificate = f->certificate,
                                        .dataset_path = o->data,
                                        .train = split_name(f, f->train),
                                        .validation = split_name(f, f->validation),
                                        .model = f->graph->model,
                                        .parameters = f->graph->param_floats,
                                        .init = start->resumed ? NULL
                                                : o->init      ? o->init
                                                               : "random",
                                        .host = host,
                                        .ranks = (unsigned)f->ranks,
                                        .threads = o->threads,
                                        .backend = f->backend->name,
                                        .device = f->device,
                                        .precision = setting(f, "precision"),
                                        .leaky = trainer_state(t)->leaky,
                                        .short_run = trainer_state(t)->short_run,
                                        .seed = o->seed,
                                        .global_batch = f->global_batch,
                                        .epoch_images = f->images,
                                        .step = trainer_state(t)->step};

        status = run_file_start(f->folder, &facts, &w->file, err);
    }
    free(host);
    return status;
}

static enum chex_status
start_log(struct train_watch *w, const struct trainer *t, const struct trainer_facts *f, struct chex_error *err)
{
    const struct checkpoint_state *state = trainer_state(t);
    const struct run_log_options o = {.folder = f->folder,
                                      .step = state->step,
                                      .leaky = state->leaky,
                                      .short_run = state->short_run,
                                      .epochs = state->epoch,
                                      .trained = state->epoch + (state->batches == f->steps),
                                      .warn = w->warn,
                                      .context = w->context};

    return run_log_open(&o, &w->log, err);
}

void
train_watch_start(struct train_watch *w, const struct trainer *t, const struct trainer_start *start)
{
    const struct trace_options trace = {.path = w->cli->trace, .warn = w->warn, .context = w->context};
    struct trainer_facts f;
    struct chex_error err;

    trainer_facts(t, &f);
    if (!f.folder || w->cli->train.evaluate_only)
        return;
    w->interval = f.steps / LINES_EPOCH > 0 ? f.steps / LINES_EPOCH : 1;
    if (start_file(w, t, &f, start, &err) != CHEX_OK)
        warn(w, &err);
    if (start_log(w, t, &f, &err) != CHEX_OK)
        warn(w, &err);
    if (w->cli->trace && trace_open(&trace, &w->trace, &err) != CHEX_OK)
        warn(w, &err);
    train_watch_note(w, t, start->resumed ? "resume" : "start", start->from);
}

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

void
train_watch_step(struct train_watch *w, const struct trainer *t, const struct trainer_step *step)
{
    const struct checkpoint_state *state = trainer_state(t);
    struct trainer_facts f;
    int i;

    if (!w->log)
        return;
    w->steps.images += step->images;
    w->steps.seconds += step->seconds;
    if (isfinite(step->loss)) { /* otherwise the trainer skipped the step */
        w->loss_sum += step->loss * (double)step->images;
        w->loss_images += step->images;
    }
    for (i = 0; i < PART_COUNT; i++)
        w->steps.times.seconds[i] += step->times.seconds[i];
    trainer_facts(t, &f);
    if (state->batches % w->interval != 0 && state->batches != f.steps && state->step != trainer_options(t)->max_steps)
        return;
    w->steps.step = state->step;
    w->steps.epoch = state->epoch + 1;
    w->steps.loss = w->loss_sum / (double)w->loss_images; /* no finite loss: NaN, which becomes null */
    w->steps.rate = step->rate;
    w->steps.norm = step->norm;
    w->steps.skipped = trainer_result(t)->skipped;
    w->steps.loss_scale = state->plan.loss_scale;
    w->steps.steps_skipped = trainer_steps_skipped(t);
    run_log_step(w->log, &w->steps);
    w->steps = (struct run_log_step){.step = 0};
    w->loss_sum = 0;
    w->loss_images = 0;
}

void
train_watch_epoch(struct train_watch *w, const struct trainer *t, const struct trainer_epoch *e)
{
    const struct run_log_epoch epoch = {.step = trainer_state(t)->step,
                                        .epoch = e->epoch,
                                        .loss = e->loss,
                                        .rate = e->rate,
                                        .images = e->images,
                                        .seconds = e->seconds,
                                        .times = e->times,
                                        .skipped = e->skipped,
                                        .loss_scale = trainer_state(t)->plan.loss_scale,
                                        .steps_skipped = trainer_steps_skipped(t),
                                        .order = e->order};

    if (w->log)
        run_log_epoch(w->log, &epoch);
}

void
train_watch_times(struct train_watch *w, const struct trainer *t, const struct rank_times *times, bool all)
{
    if (w->log && times->steps > 0)
        run_log_times(w->log, trainer_state(t)->step, trainer_state(t)->epoch, all ? "run" : "epoch", times);
}

void
train_watch_spans(struct train_watch *w, const struct trainer *t, int rank, const struct trace_span *span, size_t count)
{
    struct trainer_facts f;
    size_t i;

    trainer_facts(t, &f);
    trace_rank(w->trace, rank, collective_host(f.collective, rank), f.own_clock);
    for (i = 0; i < count; i++)
        trace_put(w->trace, rank, &span[i]);
    if (rank + 1 == f.ranks)
        trace_write(w->trace, false);
}

void
train_watch_evaluation(struct train_watch *w, const struct trainer *t, const struct trainer_evaluation_result *v)
{
    const struct evaluation *e = v->evaluation;
    const struct run_log_evaluation seen = {.step = v->step,
                                            .epoch = trainer_state(t)->epoch,
                                            .split = v->split,
                                            .sha256 = v->sha256,
                                            .weights = trainer_options(t)->average ? "average" : "parameters",
                                            .tta = tta_names[e->tta],
                                            .loss = e->loss,
                                            .seconds = e->seconds,
                                            .skipped = e->skipped_count,
                                            .best = v->best,
                                            .metrics = &e->metrics,
                                            .findings = e->findings};

    if (w->log)
        run_log_evaluation(w->log, &seen);
}

void
train_watch_note(struct train_watch *w, const struct trainer *t, const char *what, const char *text)
{
    if (w->log)
        run_log_note(w->log, trainer_state(t)->step, trainer_state(t)->epoch, what, text);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

void
train_watch_end(struct train_watch *w, const struct trainer *t, const struct run_result *result, size_t results,
                int code, const char *reason)
{
    const struct checkpoint_state *state = t ? trainer_state(t) : NULL;
    struct trainer_facts f;
    struct chex_error err;

    if (state && w->log)
        run_log_note(w->log, state->step, state->epoch, "end", reason ? reason : "done");
    if (state && w->file) {
        struct run_outcome outcome = {.exit = code,
                                      .reason = reason,
                                      .step = state->step,
                                      .epochs = state->epoch,
                                      .best = state->best,
                                      .leaky = state->leaky,
                                      .short_run = state->short_run,
                                      .best_step = state->best_step,
                                      .best_file = state->best_step > 0 ? TRAINER_BEST : NULL,
                                      .result = result,
                                      .results = results};

        trainer_facts(t, &f);
        outcome.selected = select_names[f.select];
        if (run_file_finish(w->file, &outcome, &err) != CHEX_OK)
            warn(w, &err);
    }
    run_log_free(w->log);
    run_file_free(w->file);
    trace_free(w->trace);
    w->log = NULL;
    w->file = NULL;
    w->trace = NULL;
}
