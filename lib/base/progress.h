/*
 * progress.h - computes the rate and the remaining time of a run
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PROGRESS_H
#define CHEX_LIB_PROGRESS_H

#include <stdint.h>

/* A rate over about the last ten seconds.  Old samples fade, so the rate shows a stall. */
struct progress {
    uint64_t total, done;
    uint64_t first;          /* done at the start; a caller that resumes sets it and sampled_done */
    double started, sampled; /* clock_now() */
    uint64_t sampled_done;
    double rate; /* per second, smoothed; 0 until known */
};

void progress_start(struct progress *p, uint64_t total);
/* Pass the number of finished items; call it about twice per second. */
void progress_update(struct progress *p, uint64_t done);
/* Returns the remaining seconds, or a negative number while unknown. */
double progress_left(const struct progress *p);

#endif
