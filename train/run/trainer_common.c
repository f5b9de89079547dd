/*
 * trainer_common.c - small things that several files of the trainer need; see trainer_private.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void
trainer_note(const struct trainer_job *job, const char *format, ...)
{
    char text[CHEX_ERROR_TEXT];
    va_list args;

    if (!job->is_rank_0 || !job->w->note)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    job->w->note(job->w->context, job->trainer, text);
}

void
trainer_warn(const struct trainer_job *job, const char *format, ...)
{
    char text[CHEX_ERROR_TEXT];
    va_list args;

    if (!job->is_rank_0 || !job->w->warn)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    job->w->warn(job->w->context, job->trainer, text);
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
trainer_is_complete(const struct trainer_job *job, const struct checkpoint_state *state)
{
    return state->epoch >= job->o->epochs || (job->o->patience > 0 && state->bad_epochs >= job->o->patience);
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
