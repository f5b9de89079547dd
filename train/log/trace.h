/*
 * trace.h - when each rank did which part of each step, as a file for ui.perfetto.dev and chrome://tracing
 *
 * The model to keep in mind: each rank is a process with three tracks.  The first has its steps and what is between
 * them (evaluation, checkpoint), the second what its host did for a step, the third what its device did, where that
 * has a clock of its own.  Spans of a track do not overlap.  Times are those of progress_clock() on rank 0; the file
 * has microseconds since trace_open().
 *
 * The file is the "JSON Array Format" of the Trace Event Format.  It appears by rename, whole: first when the trace is
 * opened, then by trace_write(), at last by trace_free().  So what a killed run leaves can be opened too.  It grows up
 * to a limit; then the trace ends, with a span that says so, and the run continues.  As with run_log.h no failure ends
 * a run: the first one is reported through warn(), and nothing more is written.
 *
 * Functions take NULL where no trace is wanted.  One thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_TRACE_H
#define CHEX_TRAIN_TRACE_H

#include "backend/step_parts.h"
#include "base/error.h"

#define TRACE_LIMIT (64u << 20) /* bytes: some 80,000 steps of a rank */
#define TRACE_RANKS 65536

struct trace;

struct trace_options {
    const char *path;                              /* replaced where it is there */
    uint64_t limit;                                /* bytes; 0: TRACE_LIMIT */
    void (*warn)(void *context, const char *text); /* at most once; may be NULL */
    void *context;
};

/* CHEX_ERR_WRITE as folder_open_output();  CHEX_ERR_MEMORY */
enum chex_status trace_open(const struct trace_options *options, struct trace **out, struct chex_error *err);

/* The name of a rank; own_clock: of its device (device_info).  Before its first span. */
void trace_rank(struct trace *t, int rank, const char *host, bool own_clock);

/* A part, or with TRACE_STEP a step by its number. */
#define TRACE_STEP PART_COUNT
struct trace_span {
    double begin, end; /* progress_clock() of rank 0 */
    uint64_t step;
    uint32_t what;
    uint32_t unused; /* so that a copy of it has no other bytes */
};
/* What lies before the end of its track begins there. */
void trace_put(struct trace *t, int rank, const struct trace_span *span);

/* Write what has come since the file was written; unless `at_once`, not more often than every 10 s. */
void trace_write(struct trace *t, bool at_once);
void trace_free(struct trace *t); /* writes; NULL is allowed */

#endif
