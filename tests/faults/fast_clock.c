/*
 * fast_clock.c - a preloaded library that makes CLOCK_MONOTONIC run CHEX_CLOCK_RATE times as fast, for check_times.py:
 * it imitates a rank whose clock drifts
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct timespec begun;
static double rate;

__attribute__((constructor)) static void
begin(void)
{
    const char *text = getenv("CHEX_CLOCK_RATE");

    rate = text ? strtod(text, NULL) : 1;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &begun);
}

int
clock_gettime(clockid_t clock, struct timespec *out)
{
    int result = (int)syscall(SYS_clock_gettime, clock, out);
    double since;

    if (result != 0 || clock != CLOCK_MONOTONIC || rate == 0)
        return result;
    since = rate * ((double)(out->tv_sec - begun.tv_sec) + 1e-9 * (double)(out->tv_nsec - begun.tv_nsec));
    since += 1e-9 * (double)begun.tv_nsec;
    out->tv_sec = begun.tv_sec + (time_t)since;
    out->tv_nsec = (long)(1e9 * (since - (double)(time_t)since));
    return result;
}
