/*
 * clock.h - a monotonic clock, CPU clocks, and pauses of a thread
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CLOCK_H
#define CHEX_LIB_CLOCK_H

/* Returns the seconds of a monotonic clock. */
double clock_now(void);
/* Returns the CPU seconds, user and system, of all threads of this process, or of the calling thread. */
double clock_process(void);
double clock_thread(void);

/* Sleep before the next attempt or poll.  A signal ends the pause early. */
void backoff(double seconds);

#endif
