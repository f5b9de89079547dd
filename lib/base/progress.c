/*
 * progress.c - see progress.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/progress.h"

#include "base/clock.h"

/* Seconds after which an old rate has half of the weight. */
#define HALF_LIFE 5.0

void
progress_start(struct progress *p, uint64_t total)
{
    double now = clock_now();

    *p = (struct progress){.total = total, .started = now, .sampled = now};
}

void
progress_update(struct progress *p, uint64_t done)
{
    double now = clock_now();
    double elapsed = now - p->sampled;

    p->done = done;
    if (elapsed < 0.2)
        return;
    if (done < p->sampled_done)
        p->sampled_done = done;
    if (p->rate == 0) {
        /* At first only the average is known. */
        p->rate = (double)(done - p->first) / (now - p->started);
    } else {
        double fresh = (double)(done - p->sampled_done) / elapsed;
        double keep = HALF_LIFE / (HALF_LIFE + elapsed);

        p->rate = keep * p->rate + (1 - keep) * fresh;
    }
    p->sampled = now;
    p->sampled_done = done;
}

double
progress_left(const struct progress *p)
{
    if (p->rate <= 0)
        return -1;
    return p->done >= p->total ? 0 : (double)(p->total - p->done) / p->rate;
}
