/*
 * trace.h - writes a timeline of all ranks, a file for ui.perfetto.dev and chrome://tracing
 *
 * Each rank is a process with three tracks.  The first has its steps and the activities between them (evaluation,
 * checkpoint), the second the host's parts of a step, the third the device's parts if the device has its own clock.
 * Spans of a track do not overlap.  Times are clock_now() of rank 0; the file has microseconds since trace_open().
 *
 * The format is the "JSON Array Format" of the Trace Event Format.  The complete file is replaced by a rename: when the
 * trace is opened, by trace_write(), and by trace_free().  So the file of a killed run can be opened too.  At a size
 * limit the trace ends with a span that says so, and the run continues.  A failure never ends a run: the first one is
 * reported through warn(), and nothing more is written.
 *
 * Functions accept NULL if no trace is wanted.  For a single thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_TRACE_H
#define CHEX_TRAIN_TRACE_H

#include "backend/step_parts.h"
#include "base/error.h"

#define TRACE_LIMIT (64u << 20) /* bytes: about 80,000 steps of a rank */
#define TRACE_RANKS 65536

struct trace;

struct trace_options {
    const char *path;                              /* an existing file is replaced */
    uint64_t limit;                                /* bytes; 0: TRACE_LIMIT */
    void (*warn)(void *context, const char *text); /* at most once; may be NULL */
    void *context;
};

/* CHEX_ERR_WRITE, CHEX_ERR_USAGE as store_open_output();  CHEX_ERR_MEMORY */
enum chex_status trace_open(const struct trace_options *options, struct trace **out, struct chex_error *err);

/* Name a rank, before its first span.  own_clock: of its device (device_info). */
void trace_rank(struct trace *t, int rank, const char *host, bool own_clock);

/* A part, or with TRACE_STEP the step with this number. */
#define TRACE_STEP PART_COUNT
struct trace_span {
    double begin, end; /* clock_now() of rank 0 */
    uint64_t step;
    uint32_t what;
    uint32_t unused; /* explicit padding, so that copies have no undefined bytes */
};
/* Add a span.  A start before the end of the track's last span is moved to that end. */
void trace_put(struct trace *t, int rank, const struct trace_span *span);

/* Write the spans since the last write; at most every 10 s unless `at_once`. */
void trace_write(struct trace *t, bool at_once);
void trace_free(struct trace *t); /* writes; NULL is allowed */

#endif
