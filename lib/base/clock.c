/*
 * clock.c - see clock.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/clock.h"

#include <time.h>

void
backoff(double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds};

    pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
    nanosleep(&pause, NULL);
}
