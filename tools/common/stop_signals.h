/*
 * stop_signals.h - signals that ask a program to end what is at hand and stop
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_STOP_SIGNALS_H
#define CHEX_TOOLS_STOP_SIGNALS_H

#include <stdatomic.h>

/*
 * Catch SIGINT, SIGTERM, SIGUSR1 (which mpirun passes on, with time to save) and SIGHUP, unless it is ignored as under
 * nohup(1).  The first of them sets *returned; after SIGINT what_next is said on the terminal: "saving after the step
 * at hand".  A second one, later than a second, ends the process as if nothing had been caught.  Once in a process.
 */
atomic_bool *stop_signals_catch(const char *what_next);

/*
 * While there is nothing to save: a second after the first signal the process ends with exit_code, in any call (a file
 * system that does not answer, a library that keeps reading).  0: from now on there is something to save.
 */
void stop_signals_may_exit(int exit_code);

#endif
