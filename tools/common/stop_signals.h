/*
 * stop_signals.h - catches the signals that ask a program to finish its current work and stop
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_STOP_SIGNALS_H
#define CHEX_TOOLS_STOP_SIGNALS_H

#include <stdatomic.h>

/*
 * Catch SIGINT, SIGTERM, SIGUSR1 (mpirun forwards it and leaves time to save) and SIGHUP, unless the process ignores it
 * as under nohup(1).  The first signal sets the returned flag; SIGINT also prints what_next to the terminal, such as
 * "saving after the current step".  Another signal more than a second later ends the process with its default action.
 * Call it once per process.
 */
atomic_bool *stop_signals_catch(const char *what_next);

/*
 * Allow the process to exit while it has nothing to save.  One second after the first signal it ends with exit_code,
 * even inside a call that blocks (a file system that does not answer, a library that keeps reading).  0: the process
 * has something to save now and must not exit this way.
 */
void stop_signals_may_exit(int exit_code);

#endif
