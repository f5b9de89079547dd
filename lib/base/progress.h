/*
 * progress.h - rate and time left of a run; and numbers as people read them
 *
 * Computes and formats, prints nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PROGRESS_H
#define CHEX_LIB_PROGRESS_H

#include "base/error.h"

/* Seconds of a clock that never jumps. */
double progress_clock(void);

/* A rate over about the last ten seconds: old samples fade, so a stall shows. */
struct progress {
    uint64_t total, done;
    uint64_t first;          /* done at the start: set by a caller that resumes, with sampled_done */
    double started, sampled; /* progress_clock() */
    uint64_t sampled_done;
    double rate; /* per second, smoothed; 0 until known */
};

void progress_start(struct progress *p, uint64_t total);
/* done so far; call it about twice a second. */
void progress_update(struct progress *p, uint64_t done);
/* Seconds left, or a negative number while unknown. */
double progress_left(const struct progress *p);

/* "112,120".  Returns out. */
#define PROGRESS_TEXT 40
char *format_count(uint64_t n, char out[PROGRESS_TEXT]);
/* The same as an expression; it lives as long as the block. */
#define COUNT_TEXT(n) format_count((uint64_t)(n), (char[PROGRESS_TEXT]){0})
/* "1 image", "2,113 images"; the noun is one of ours, with a regular plural.  Returns out. */
#define PROGRESS_THINGS 64
char *format_things(uint64_t n, const char *noun, char out[PROGRESS_THINGS]);
/* "7.4 GB" (powers of 1000). */
char *format_bytes(uint64_t n, char out[PROGRESS_TEXT]);
/* The same beside another number; "4,412,032 bytes" where the two differ and would read alike. */
char *format_bytes_beside(uint64_t n, uint64_t other, char out[PROGRESS_TEXT]);
/* "0:08", "12:34", "1:02:03". */
char *format_seconds(double seconds, char out[PROGRESS_TEXT]);

#endif
