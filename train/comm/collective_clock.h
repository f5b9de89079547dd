/*
 * collective_clock.h - how far the clocks of the ranks are apart, measured by messages
 *
 * The model to keep in mind: nothing arrives before it was sent.  In a round every rank notes its clock, gathers
 * (collective.h), and notes its clock again.  What rank 0 sent at A by its clock has arrived by B on this one, so this
 * clock is at most B - A ahead; what this rank sent at C has arrived by D on rank 0, so it is at least C - D ahead.
 * Each round gives both bounds, and the tightest ones stay: the distance lies between them, whatever the network
 * does (Cristian, "Probabilistic clock synchronization", Distributed Computing 3, 1989, has the round trip).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_COLLECTIVE_CLOCK_H
#define CHEX_TRAIN_COLLECTIVE_CLOCK_H

#include "comm/collective.h"

/* How far this clock is ahead of that of rank 0, in seconds. */
struct clock_distance {
    double least, most;
};

/* What a message says: sent at `sent` by the clock of its sender, here by `arrived` by the clock of its receiver. */
void clock_distance_from_0(struct clock_distance *d, double sent, double arrived); /* from rank 0 to this one */
void clock_distance_to_0(struct clock_distance *d, double sent, double arrived);   /* from this one to rank 0 */

/*
 * All ranks call.  *ahead is how far this rank's clock() is ahead of that of rank 0, at most *error wrong; both are 0
 * on rank 0.  The errors of collective.h.
 */
enum chex_status collective_clock(struct collective *c, double (*clock)(void *context), void *context, double *ahead,
                                  double *error, struct chex_error *err);

#endif
