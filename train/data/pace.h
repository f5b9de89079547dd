/*
 * pace.h - a simulated GPU, which uses images at a fixed rate and waits if they come later
 *
 * It works on one micro-batch after the other.  As with a real GPU, the host gives it the next one while it works:
 *
 *     loader_next(...)
 *     sleep until pace_take(&pace, images)
 *     loader_return(...)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_PACE_H
#define CHEX_TRAIN_PACE_H

#include <stdbool.h>

struct pace {
    double rate;   /* images per second; 0: it takes no time, so it waits all the time */
    double ready;  /* clock_now() when all of its work is done */
    double waited; /* seconds without work, except before the first images and where pace_excuse() was called */
    bool begun;
};

/* Give it images that are there now.  Returns the time at which it begins to work on them. */
double pace_take(struct pace *p, unsigned images);

/* The time until now does not count as waiting for images: the host did something else. */
void pace_excuse(struct pace *p);

#endif
