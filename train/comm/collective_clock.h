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
 * Converts times of this clock to the clock of rank 0, piece by piece: each measurement ends a piece.
 *
 * Clocks drift, and each measurement has another error: many milliseconds if the machine is so busy that messages wait.
 * A new distance for a whole piece would move its spans over those of the piece before it.  So the distance changes
 * linearly within a piece, from its value at the end of the piece before, and no further than the new bounds require.
 * Converted times keep their order, and a span that lies within another one still does.
 */
struct clock_map {
    bool measured;             /* zero-initialise; then the last piece: */
    double from, to;           /* by this clock */
    double ahead_from, ahead;  /* of rank 0's, there */
    struct clock_distance now; /* the bounds at `to` */
};

/* A measurement at `now`, by this clock. */
void clock_map_add(struct clock_map *m, const struct clock_distance *found, double now);
/* A time by rank 0's clock; of times before the last piece the distance is that at its beginning. */
double clock_map_time(const struct clock_map *m, double time);

/* All ranks call: one more measurement for *m.  On rank 0 the distance is 0.  The errors of collective.h. */
enum chex_status collective_clock(struct collective *c, double (*clock)(void *context), void *context,
                                  struct clock_map *m, struct chex_error *err);

#endif
