/*
 * trainer_common.c - small functions shared by several files of the trainer; see trainer_private.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "data/limit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void call_back(const struct trainer_job *job, void (*callback)(void *, const struct trainer *, const char *),
                      const char *format, va_list args) __attribute__((format(printf, 3, 0)));

static void
call_back(const struct trainer_job *job, void (*callback)(void *, const struct trainer *, const char *),
          const char *format, va_list args)
{
    char text[CHEX_ERROR_TEXT];

    if (!job->is_rank_0 || !callback)
        return;
    vsnprintf(text, sizeof(text), format, args);
    callback(job->w->context, job->trainer, text);
}

void
trainer_note(const struct trainer_job *job, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    call_back(job, job->w->note, format, args);
    va_end(args);
}

void
trainer_warn(const struct trainer_job *job, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    call_back(job, job->w->warn, format, args);
    va_end(args);
}

void
trainer_lost(const struct trainer_job *job, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    call_back(job, job->w->lost, format, args);
    va_end(args);
}

char *
trainer_shuffle(unsigned window, char out[TRAINER_SHUFFLE])
{
    if (window == 0)
        snprintf(out, TRAINER_SHUFFLE, "whole");
    else
        snprintf(out, TRAINER_SHUFFLE, "%u", window);
    return out;
}

bool
trainer_is_evaluated(const struct trainer_job *job, uint32_t epochs)
{
    uint32_t every = job->o->evaluate_every;

    return epochs >= job->o->epochs || (every > 0 && epochs % every == 0);
}

bool
trainer_is_complete(const struct trainer_job *job, const struct checkpoint_state *state)
{
    return state->epoch >= job->o->epochs ||
           (job->o->patience > 0 && state->bad_epochs >= job->o->patience && trainer_is_evaluated(job, state->epoch));
}

bool
trainer_is_cut(const struct trainer_job *job, const struct trainer_task *task, const struct checkpoint_state *state)
{
    return job->o->max_steps > 0 && state->step >= job->o->max_steps && state->batches < task->steps &&
           !trainer_is_complete(job, state);
}

void
trainer_mark_short(const struct trainer_job *job, uint64_t steps_of_run, struct checkpoint_state *state)
{
    const char *limit = job->o->limit;
    char steps[40] = "";

    if (job->o->max_steps > 0 && job->o->max_steps < steps_of_run && !trainer_is_complete(job, state))
        snprintf(steps, sizeof(steps), "--max-steps %llu", (unsigned long long)job->o->max_steps);
    snprintf(state->short_run, sizeof(state->short_run), "%s%.16s%s%s", limit ? "--limit " : "", limit ? limit : "",
             limit && steps[0] ? " " : "", steps);
}

void
trainer_free_arrays(struct checkpoint_arrays *a)
{
    free(a->params);
    free(a->stats);
    free(a->moment1);
    free(a->moment2);
    free(a->average);
    *a = (struct checkpoint_arrays){.params = NULL};
}

/* List the samples of a split, without a limit. */
static enum chex_status
list_whole(const struct trainer_task *task, int split, struct samples *out, struct chex_error *err)
{
    const struct samples *part;
    size_t bytes;

    if (!task->fold || (split != task->train && split != task->validation))
        return samples_list(task->ds, (unsigned)split, out, err);
    part = &task->fold->samples[split == task->train ? FOLD_TRAIN : FOLD_VALIDATION];
    bytes = part->count * sizeof(*part->place);
    *out = (struct samples){malloc(bytes), part->count};
    if (!out->place)
        return error_memory(err);
    memcpy(out->place, part->place, bytes);
    return CHEX_OK;
}

enum chex_status
trainer_list_samples(const struct trainer_job *job, const struct trainer_task *task, int split, struct samples *out,
                     struct chex_error *err)
{
    bool limited = job->o->limit && !job->o->evaluate_only && (split == task->train || split == task->validation);
    enum chex_status status = list_whole(task, split, out, err);
    struct sample_limit limit;

    if (status == CHEX_OK && limited)
        status = limit_parse(job->o->limit, &limit, err);
    if (status == CHEX_OK && limited)
        status = samples_limit(task->ds, &limit, job->o->seed, job->o->skip_bad, out, err);
    return status;
}

uint64_t
trainer_evaluated_images(const struct trainer_task *task, int split)
{
    if (split < 0)
        return 0;
    if (split == task->validation && task->evaluated.count > 0)
        return task->evaluated.count;
    return chex_dataset_split(task->ds, (unsigned)split)->image_count;
}

/* ---- the schedule of a run --------------------------------------------------------------------------------------- */

uint64_t
trainer_steps_until(const struct trainer_task *task, const struct checkpoint_state *state, uint64_t epochs)
{
    uint64_t all = task->steps * epochs, begun = task->steps * state->epoch + state->batches;

    return state->step + (all > begun ? all - begun : 0);
}

struct schedule_options
trainer_make_schedule(const struct trainer_job *job, const struct trainer_task *task,
                      const struct checkpoint_state *state)
{
    struct schedule_options schedule = job->o->schedule;

    if (job->o->rate_scale == RATE_LINEAR)
        schedule.base *= collective_size(job->all);
    schedule.steps = trainer_steps_until(task, state, job->o->epochs);
    if (job->o->warmup_epochs > 0) {
        uint64_t all = task->steps * job->o->warmup_epochs,
                 end = trainer_steps_until(task, state, job->o->warmup_epochs);

        /* After the warm-up its end is in the past; then the usual number makes the same checkpoints in every run. */
        schedule.warmup = end > state->step || all > state->step ? end : all;
    }
    return schedule;
}
