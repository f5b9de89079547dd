/*
 * clock.c - see clock.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/clock.h"

#include <time.h>

static double
read_clock(clockid_t id)
{
    struct timespec now = {.tv_sec = 0};

    clock_gettime(id, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double
clock_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double
clock_process(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

double
clock_thread(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void
backoff(double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds};

    pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
    nanosleep(&pause, NULL);
}
