/*
 * clock.h - pauses of a thread
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CLOCK_H
#define CHEX_LIB_CLOCK_H

/* Sleep before the next attempt or poll.  A signal ends the pause early. */
void backoff(double seconds);

#endif
