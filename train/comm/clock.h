/*
 * clock.h - offset between the clocks of the ranks, measured with messages
 *
 * No message arrives before it was sent.  In each round every rank reads its clock, gathers (collective.h), and reads
 * its clock again.  If rank 0 sent at A (its clock) and this rank received by B (this clock), this clock is at most B -
 * A ahead.  If this rank sent at C and rank 0 received by D, this clock is at least C - D ahead.  Each round gives both
 * bounds and the tightest are kept, so the offset is between them for any network delay (Cristian, "Probabilistic clock
 * synchronization", Distributed Computing 3, 1989, uses the round trip).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_CLOCK_H
#define CHEX_TRAIN_CLOCK_H

#include "ranks/collective.h"

/* Bounds of the offset of this clock to that of rank 0, in seconds; positive: ahead. */
struct clock_distance {
    double least, most;
};

/* Tighten the bounds by a message: `sent` by the clock of its sender, `arrived` by the clock of its receiver. */
void clock_distance_from_0(struct clock_distance *d, double sent, double arrived); /* from rank 0 to this one */
void clock_distance_to_0(struct clock_distance *d, double sent, double arrived);   /* from this one to rank 0 */

/*
 * Converts times of this clock to the clock of rank 0, piecewise linearly; each measurement ends a piece.
 *
 * Clocks drift, and each measurement has a different error: many milliseconds if a busy machine delays messages.  A
 * constant new offset for a piece could move its spans over those of the previous piece.  So within a piece the offset
 * changes linearly from its value at the end of the previous piece, and only as far as the new bounds require.
 * Converted times keep their order, and nested spans stay nested.
 */
struct clock_map {
    bool measured;             /* zero-initialise; the last piece: */
    double from, to;           /* by this clock */
    double ahead_from, ahead;  /* offset to rank 0's clock at both ends */
    struct clock_distance now; /* the bounds at `to` */
};

/* Add a measurement at time `now` of this clock. */
void clock_map_add(struct clock_map *m, const struct clock_distance *found, double now);
/* Convert a time to rank 0's clock; before the last piece the offset is that at its start. */
double clock_map_time(const struct clock_map *m, double time);

/* Add a measurement to *m; all ranks call it.  On rank 0 the offset is 0.  Errors as in collective.h. */
enum chex_status collective_clock(struct collective *c, double (*clock)(void *context), void *context,
                                  struct clock_map *m, struct chex_error *err);

#endif
