/*
 * stop_signals.c - see stop_signals.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/stop_signals.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Seconds; a repeated signal within it counts as the same one, because timeout(1) signals process and group. */
#define ONE_SIGNAL 1

static atomic_bool requested;
static volatile sig_atomic_t exit_code; /* not 0: see stop_signals_may_exit() */
static char message[128];               /* complete before the handlers are installed */

static void
on_signal(int signal_number)
{
    static struct timespec first; /* written by the first signal only */
    struct timespec now;
    int saved = errno; /* errno of the interrupted code */

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (atomic_exchange(&requested, true)) {
        if (now.tv_sec - first.tv_sec <= ONE_SIGNAL)
            return;
        /* Restore the default action, so that the parent sees the signal. */
        signal(signal_number, SIG_DFL);
        raise(signal_number);
        return;
    }
    first = now;
    if (exit_code != 0)
        alarm(1);
    if (signal_number == SIGINT && write(STDERR_FILENO, message, strlen(message)) < 0)
        errno = saved; /* hide a failure of write() from the interrupted code */
}

static void
on_alarm(int signal_number)
{
    (void)signal_number;
    if (exit_code != 0)
        _exit(exit_code);
}

void
stop_signals_may_exit(int code)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};

    exit_code = code;
    if (code != 0)
        sigaction(SIGALRM, &action, NULL);
}

atomic_bool *
stop_signals_catch(const char *what_next)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;

    snprintf(message, sizeof(message), "\n%s (once more to stop now)\n", what_next);
    sigfillset(&action.sa_mask); /* handle one signal at a time */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    return &requested;
}
