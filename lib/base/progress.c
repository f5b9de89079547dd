/*
 * progress.c - see progress.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Seconds after which an old rate has half of the weight. */
#define HALF_LIFE 5.0

double
progress_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void
progress_start(struct progress *p, uint64_t total)
{
    double now = progress_clock();

    *p = (struct progress){.total = total, .started = now, .sampled = now};
}

void
progress_update(struct progress *p, uint64_t done)
{
    double now = progress_clock();
    double elapsed = now - p->sampled;

    p->done = done;
    if (elapsed < 0.2)
        return;
    if (done < p->sampled_done)
        p->sampled_done = done;
    if (p->rate == 0) {
        /* At first only the average is known. */
        p->rate = (double)(done - p->first) / (now - p->started);
    } else {
        double fresh = (double)(done - p->sampled_done) / elapsed;
        double keep = HALF_LIFE / (HALF_LIFE + elapsed);

        p->rate = keep * p->rate + (1 - keep) * fresh;
    }
    p->sampled = now;
    p->sampled_done = done;
}

double
progress_left(const struct progress *p)
{
    if (p->rate <= 0)
        return -1;
    return p->done >= p->total ? 0 : (double)(p->total - p->done) / p->rate;
}

char *
format_count(uint64_t n, char out[PROGRESS_TEXT])
{
    char digits[PROGRESS_TEXT];
    int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
    int i, used = 0;

    for (i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

char *
format_things(uint64_t n, const char *noun, char out[PROGRESS_THINGS])
{
    char number[PROGRESS_TEXT];

    snprintf(out, PROGRESS_THINGS, "%s %s%s", format_count(n, number), noun, n == 1 ? "" : "s");
    return out;
}

char *
format_bytes(uint64_t n, char out[PROGRESS_TEXT])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    uint64_t whole = n, tenths = 0;
    size_t unit = 0;

    /* Integer arithmetic avoids the decimal comma of some locales. */
    while (whole >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        tenths = whole % 1000 / 100;
        whole /= 1000;
        unit++;
    }
    if (unit > 0 && whole < 100)
        snprintf(out, PROGRESS_TEXT, "%llu.%llu %s", (unsigned long long)whole, (unsigned long long)tenths,
                 units[unit]);
    else
        snprintf(out, PROGRESS_TEXT, "%llu %s", (unsigned long long)whole, units[unit]);
    return out;
}

char *
format_bytes_compared(uint64_t n, uint64_t other, char out[PROGRESS_TEXT])
{
    char text[PROGRESS_TEXT];

    if (n == other || strcmp(format_bytes(n, out), format_bytes(other, text)) != 0)
        return format_bytes(n, out);
    snprintf(out, PROGRESS_TEXT, "%s bytes", format_count(n, text));
    return out;
}

char *
format_seconds(double seconds, char out[PROGRESS_TEXT])
{
    unsigned long long s = seconds > 0 && seconds < 1e9 ? (unsigned long long)(seconds + 0.5) : 0;

    if (s >= 3600)
        snprintf(out, PROGRESS_TEXT, "%llu:%02llu:%02llu", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, PROGRESS_TEXT, "%llu:%02llu", s / 60, s % 60);
    return out;
}
