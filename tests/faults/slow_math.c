/*
 * slow_math.c - a preloaded library in which exp() takes CHEX_SLOW_MATH microseconds longer, for check_times.py: it
 * imitates a slow rank
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double
exp(double x)
{
    static double (*real)(double);
    static struct timespec pause;

    if (!real) {
        const char *text = getenv("CHEX_SLOW_MATH");
        void *address = dlsym(RTLD_NEXT, "exp");

        pause.tv_nsec = text ? 1000 * strtol(text, NULL, 10) : 0;
        memcpy(&real, &address, sizeof(real));
    }
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    return real(x);
}
