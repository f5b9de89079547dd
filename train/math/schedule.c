/*
 * schedule.c - see schedule.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "math/schedule.h"

#include <math.h>
#include <stddef.h>

const char *const schedule_names[] = {
    [SCHEDULE_PLATEAU] = "plateau", [SCHEDULE_COSINE] = "cosine", [SCHEDULE_CONSTANT] = "constant", NULL};

#define THRESHOLD 1e-4 /* least relative improvement of the best loss */

void
schedule_init(struct schedule *s, const struct schedule_options *options)
{
    *s = (struct schedule){.options = *options, .factor = 1, .best = (double)INFINITY};
}

double
schedule_rate(const struct schedule *s, uint64_t number)
{
    const struct schedule_options *o = &s->options;
    double rate = o->base * s->factor;

    if (o->kind == SCHEDULE_COSINE && o->steps > 0) {
        double progress = (double)number / (double)o->steps;

        rate *= (1 + cos(3.14159265358979323846 * (progress < 1 ? progress : 1))) / 2;
    }
    return number < o->warmup ? rate * (double)(number + 1) / (double)o->warmup : rate;
}

bool
schedule_epoch(struct schedule *s, double validation_loss)
{
    if (validation_loss < s->best * (1 - THRESHOLD) || (isinf(s->best) && isfinite(validation_loss))) {
        s->best = validation_loss;
        s->bad_epochs = 0;
        return false;
    }
    s->bad_epochs++;
    if (s->options.kind != SCHEDULE_PLATEAU || s->bad_epochs <= s->options.patience)
        return false;
    s->factor *= s->options.factor;
    s->bad_epochs = 0;
    return true;
}
