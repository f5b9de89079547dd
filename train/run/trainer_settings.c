/*
 * trainer_settings.c - the table of a run's settings; see settings.h
 *
 * The order is that of run.json and checkpoints.  An option that is added to the table has the value of older programs
 * in `before`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "dataset/record.h"

#include <stdio.h>

const char *const select_names[] = {[SELECT_AUROC] = "auroc", [SELECT_LOSS] = "loss", NULL};
const char *const rate_scale_names[] = {[RATE_GIVEN] = "none", [RATE_LINEAR] = "linear", NULL};
const char *const positive_names[] = {
    [POSITIVE_NONE] = "none", [POSITIVE_AUTO] = "auto", [POSITIVE_GIVEN] = "given", NULL};
const char *const cache_names[] = {
    [CACHE_AUTO] = "auto", [CACHE_DEVICE] = "device", [CACHE_HOST] = "host", [CACHE_NONE] = "none", NULL};
const char *const bad_record_names[] = {"stop", "skip", NULL};

/* Effective options, and values derived from them; options are the first member, so both have the same offsets. */
struct effective {
    struct trainer_options o;
    const char *version, *data_set, *shuffle, *positive, *warmup;
    uint64_t global_batch;
    unsigned ranks, rate_factor;
    double ema;
};

_Static_assert(offsetof(struct effective, o) == 0, "the offset of an option is that in struct trainer_options");

#define E(member) SETTING_AT(struct effective, member)
#define O(member) SETTING_AT(struct effective, o.member)
#define MILLION   .max = 1000000
#define EPOCHS    .max = CHECKPOINT_MAX_EPOCHS

#define WARMUP_TEXT 24

const struct setting trainer_settings[] = {
    {"version", SETTING_SHARED, SETTING_TEXT, E(version)},
    {"data-set", SETTING_DATA, SETTING_TEXT, E(data_set)},
    {"data", SETTING_LOCAL, SETTING_TEXT, O(data)},
    {"output", SETTING_LOCAL, SETTING_TEXT, O(run)},
    {"model", SETTING_FIXED, SETTING_TEXT, O(model)},
    {"init", SETTING_LOCAL, SETTING_TEXT, O(init), .none = "random"},
    {"resume", SETTING_LOCAL, SETTING_TEXT, O(resume)},
    {"crop", SETTING_FIXED, SETTING_NUMBER, O(side), .min = 1, .max = RECORD_MAX_SIDE},
    {"seed", SETTING_FIXED, SETTING_DIGITS, O(seed), .max = CHECKPOINT_MAX_SEED},
    {"device", SETTING_FREE, SETTING_TEXT, O(device)},
    {"precision", SETTING_PRECISION, SETTING_CHOICE, O(precision), .names = precision_names},
    {"engine", SETTING_FREE, SETTING_CHOICE, O(engine), .names = engine_names},
    {"deterministic", SETTING_FREE, SETTING_FLAG, O(deterministic)},
    {"wire", SETTING_FREE, SETTING_CHOICE, O(wire), .names = wire_names, .training = true},
    {"no-graph", SETTING_LOCAL, SETTING_FLAG, O(no_graph)},
    {"pdl", SETTING_LOCAL, SETTING_FLAG, O(pdl)},
    {"tta", SETTING_FREE, SETTING_CHOICE, O(tta), .names = tta_names},
    {"bootstrap", SETTING_SHARED, SETTING_NUMBER, O(replicates), MILLION},
    {"stage", SETTING_LOCAL, SETTING_TEXT, O(stage), .none = "none"},
    {"cache", SETTING_LOCAL, SETTING_CHOICE, O(cache), .names = cache_names},
    {"crc", SETTING_LOCAL, SETTING_CHOICE, O(check), .names = reader_check_names},
    {"shuffle", SETTING_SHARED, SETTING_TEXT, E(shuffle)},
    {"on-bad-record", SETTING_SHARED, SETTING_CHOICE, O(skip_bad), .names = bad_record_names},
    {"eval-only", SETTING_SHARED, SETTING_FLAG, O(evaluate_only)},
    {"epochs", SETTING_FREE, SETTING_NUMBER, O(epochs), .min = 1, EPOCHS, .training = true},
    {"fold", SETTING_FIXED, SETTING_TEXT, O(fold), .none = "none", .before = "none"},
    {"limit", SETTING_FIXED, SETTING_TEXT, O(limit), .none = "all", .before = "all", .training = true},
    {"max-steps", SETTING_SHARED, SETTING_NUMBER, O(max_steps), .min = 1, .max = CHECKPOINT_MAX_COUNT,
     .training = true},
    {"eval-every", SETTING_SHARED, SETTING_NUMBER, O(evaluate_every), .min = 1, EPOCHS, .training = true},
    {"global-batch", SETTING_BATCH, SETTING_NUMBER, E(global_batch), .training = true},
    {"micro-batch", SETTING_BATCH, SETTING_NUMBER, O(micro_batch), .min = 1, .max = TRAINER_MAX_BATCH,
     .training = true},
    {"batch", SETTING_SHARED, SETTING_NUMBER, O(batch), .min = 1, .max = TRAINER_MAX_BATCH, .training = true},
    {"accumulate", SETTING_SHARED, SETTING_NUMBER, O(accumulate), .min = 1, .max = TRAINER_MAX_BATCH, .training = true},
    {"ranks", SETTING_FREE, SETTING_NUMBER, E(ranks)},
    {"lr", SETTING_FREE, SETTING_REAL, O(schedule.base), .most = CHECKPOINT_MAX_RATE, .training = true},
    {"lr-scale", SETTING_FREE, SETTING_CHOICE, O(rate_scale), .names = rate_scale_names, .before = "none",
     .training = true},
    {"lr-factor", SETTING_BATCH, SETTING_NUMBER, E(rate_factor), .training = true}, /* of RATE_LINEAR */
    {"schedule", SETTING_FIXED, SETTING_CHOICE, O(schedule.kind), .names = schedule_names, .training = true},
    {"patience", SETTING_FREE, SETTING_NUMBER, O(schedule.patience), EPOCHS, .training = true},
    {"warmup", SETTING_FREE, SETTING_TEXT, E(warmup), .training = true},
    {"optimizer", SETTING_FIXED, SETTING_CHOICE, O(optimizer.kind), .names = optimizer_names, .training = true},
    {"weight-decay", SETTING_FREE, SETTING_REAL, O(optimizer.decay), .training = true},
    {"clip", SETTING_FREE, SETTING_REAL, O(clip), .most = 1e30, .training = true},
    {"ema", SETTING_FIXED, SETTING_REAL, E(ema), .training = true},
    {"loss", SETTING_FIXED, SETTING_CHOICE, O(loss), .names = loss_names, .training = true},
    {"gamma", SETTING_FIXED, SETTING_REAL, O(gamma), .training = true},
    {"label-smoothing", SETTING_FIXED, SETTING_REAL, O(smoothing), .most = 1 - 1e-9, .before = "0", .training = true},
    {"pos-weight", SETTING_FIXED, SETTING_TEXT, E(positive), .training = true},
    {"augment", SETTING_FIXED, SETTING_CHOICE, O(augment), .names = augment_names, .training = true},
    {"rotate", SETTING_FIXED, SETTING_REAL, O(rotate), .most = 180, .before = "0", .training = true},
    {"brightness", SETTING_FIXED, SETTING_REAL, O(brightness), .most = 1, .before = "0", .training = true},
    {"mixup", SETTING_FIXED, SETTING_REAL, O(mixup), .most = 100, .before = "0", .training = true},
    {"select", SETTING_FIXED, SETTING_CHOICE, O(select), .names = select_names, .training = true},
    {"early-stop", SETTING_FREE, SETTING_NUMBER, O(patience), .min = 1, EPOCHS, .training = true},
    {"keep", SETTING_SHARED, SETTING_NUMBER, O(keep), MILLION},
    {"checkpoint-every", SETTING_LOCAL, SETTING_TIME, O(checkpoint_seconds)},
    {"time-limit", SETTING_LOCAL, SETTING_TIME, O(time_limit)},
    {"timeout", SETTING_LOCAL, SETTING_TIME, O(timeout)},
    {"threads", SETTING_LOCAL, SETTING_NUMBER, O(threads)},

    {"break-lock", SETTING_UNSAID, SETTING_FLAG, O(break_lock)},
    {"allow-new-data", SETTING_UNSAID, SETTING_FLAG, O(allow_new_data)},
    {"allow-batch-change", SETTING_UNSAID, SETTING_FLAG, O(allow_batch_change)},
    {"allow-precision-change", SETTING_UNSAID, SETTING_FLAG, O(allow_precision_change)},
    {"split", SETTING_UNSAID, SETTING_TEXT, O(split)},
    {"audit", SETTING_UNSAID, SETTING_TEXT, O(audit)},
    {"predict", SETTING_UNSAID, SETTING_TEXT, O(predict)},
    {.name = NULL},
};

/* Returns "1,2.5,..." for given weights, otherwise the keyword. */
static const char *
positive_text(const struct trainer_job *job, const struct trainer_task *task, char *out, size_t size)
{
    char number[SETTINGS_NUMBER];
    size_t used = 0;
    unsigned findings = chex_dataset_info(task->ds)->finding_count, i;

    for (i = 0; i < findings; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? "," : "",
                                 settings_format(task->positive[i], number));
    return job->o->positive == POSITIVE_GIVEN ? out : positive_names[job->o->positive];
}

/* Writes the warm-up as --warmup has it: "500" or "2epochs".  Checkpoints of older versions have the same texts. */
static const char *
warmup_text(const struct trainer_options *o, char out[WARMUP_TEXT])
{
    if (o->warmup_epochs > 0)
        snprintf(out, WARMUP_TEXT, "%uepoch%s", o->warmup_epochs, o->warmup_epochs == 1 ? "" : "s");
    else
        snprintf(out, WARMUP_TEXT, "%llu", (unsigned long long)o->schedule.warmup);
    return out;
}

/* Returns whether a run has this setting: some belong to one value of another setting. */
static bool
is_used(const struct setting *s, const struct effective *e)
{
    if (s->kind == SETTING_UNSAID || (s->training && e->o.evaluate_only))
        return false;
    if (s->offset == offsetof(struct effective, o.gamma))
        return e->o.loss == LOSS_FOCAL;
    return s->offset != offsetof(struct effective, rate_factor) || e->o.rate_scale == RATE_LINEAR;
}

enum chex_status
trainer_make_settings(const struct trainer_job *job, struct trainer_task *task, const struct trainer_engine *engine,
                      struct chex_error *err)
{
    char shuffle[TRAINER_SHUFFLE], positive[CHEX_FINDINGS_MAX * (SETTINGS_NUMBER + 1)], warmup[WARMUP_TEXT];
    struct effective e = {
        .o = *job->o,
        .version = chex_version(),
        .data_set = chex_dataset_info(task->ds)->id,
        .shuffle = job->o->choose_window ? "auto" : trainer_shuffle(job->o->window, shuffle),
        .positive = positive_text(job, task, positive, sizeof(positive)),
        .warmup = warmup_text(job->o, warmup),
        .global_batch = task->global,
        .ranks = (unsigned)collective_size(job->all),
        .rate_factor = (unsigned)collective_size(job->all),
        .ema = job->o->average ? job->o->optimizer.average : 0,
    };
    const struct setting *s;

    e.o.fold = task->fold_text[0] ? task->fold_text : NULL;
    e.o.model = task->graph->model;
    e.o.side = task->side;
    e.o.device = engine->backend->name;
    if (e.o.precision == PRECISION_AUTO)
        e.o.precision = engine->device->info.precision;
    e.o.micro_batch = task->micro;
    e.o.select = task->select;
    if (e.o.rate_scale == RATE_LINEAR && e.o.schedule.base * e.rate_factor > CHECKPOINT_MAX_RATE)
        return error_set(err, CHEX_ERR_USAGE, "--lr %g times %u ranks is %g: a learning rate is at most %g",
                         e.o.schedule.base, e.rate_factor, e.o.schedule.base * e.rate_factor, CHECKPOINT_MAX_RATE);
    for (s = trainer_settings; s->name; s++)
        if (is_used(s, &e))
            settings_add(&task->settings, s, &e);
    return task->settings.failed ? error_memory(err) : CHEX_OK;
}
