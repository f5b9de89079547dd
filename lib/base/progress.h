/*
 * progress.h - computes the rate and the remaining time of a run, and formats numbers for people
 *
 * It prints nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PROGRESS_H
#define CHEX_LIB_PROGRESS_H

#include "base/error.h"

/* Returns the seconds of a monotonic clock. */
double progress_clock(void);

/* A rate over about the last ten seconds.  Old samples fade, so the rate shows a stall. */
struct progress {
    uint64_t total, done;
    uint64_t first;          /* done at the start; a caller that resumes sets it and sampled_done */
    double started, sampled; /* progress_clock() */
    uint64_t sampled_done;
    double rate; /* per second, smoothed; 0 until known */
};

void progress_start(struct progress *p, uint64_t total);
/* Pass the number of finished items; call it about twice per second. */
void progress_update(struct progress *p, uint64_t done);
/* Returns the remaining seconds, or a negative number while unknown. */
double progress_left(const struct progress *p);

/* Format "112,120".  Returns out. */
#define PROGRESS_TEXT 40
char *format_count(uint64_t n, char out[PROGRESS_TEXT]);
/* The same as an expression; the text is valid until the end of the block. */
#define COUNT_TEXT(n) format_count((uint64_t)(n), (char[PROGRESS_TEXT]){0})
/* Format "1 image", "2,113 images".  The noun must have a regular plural.  Returns out. */
#define PROGRESS_THINGS 64
char *format_things(uint64_t n, const char *noun, char out[PROGRESS_THINGS]);
/* Format "7.4 GB" (powers of 1000). */
char *format_bytes(uint64_t n, char out[PROGRESS_TEXT]);
/*
 * Format n for a text that also contains `other`.  If both would look the same although they differ, write "4,412,032
 * bytes".
 */
char *format_bytes_compared(uint64_t n, uint64_t other, char out[PROGRESS_TEXT]);
/* Format "0:08", "12:34", "1:02:03". */
char *format_seconds(double seconds, char out[PROGRESS_TEXT]);

#endif
