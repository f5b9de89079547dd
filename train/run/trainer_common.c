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
trainer_note(const struct trainer *t, const char *format, ...)
{
    char text[CHEX_ERROR_TEXT];
    va_list args;

    if (!t->is_rank_0 || !t->w->note)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    t->w->note(t->w->context, t, text);
}

void
trainer_warn(const struct trainer *t, const char *format, ...)
{
    char text[CHEX_ERROR_TEXT];
    va_list args;

    if (!t->is_rank_0 || !t->w->warn)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    t->w->warn(t->w->context, t, text);
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
trainer_is_complete(const struct trainer *t)
{
    return t->state.epoch >= t->o->epochs || (t->o->patience > 0 && t->state.bad_epochs >= t->o->patience);
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
