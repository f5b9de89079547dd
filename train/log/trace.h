/*
 * trace.h - when which part of each step ran, as a file for chrome://tracing and ui.perfetto.dev
 *
 * The model to keep in mind: spans on the tracks of one process, rank 0.  Track 0 has the steps and what is between
 * them (evaluation, checkpoint), track 1 the parts of each step.  Times are of progress_clock(); the file has
 * microseconds since trace_open().
 *
 * The file is the "JSON Array Format" of the Trace Event Format: an array that may lack its end, so what a killed run
 * leaves can be opened too.  It grows up to a limit; then the trace ends, with a span that says so, and the run
 * continues.  As with run_log.h no failure ends a run: the first one is reported through warn(), and nothing more is
 * written.
 *
 * Functions take NULL where no trace is wanted.  One thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_TRACE_H
#define CHEX_TRAIN_TRACE_H

#include "backend/step_parts.h"
#include "base/error.h"

#define TRACE_LIMIT (64u << 20) /* bytes: some 80,000 steps */

struct trace;

struct trace_options {
    const char *path;                              /* replaced where it is there */
    uint64_t limit;                                /* bytes; 0: TRACE_LIMIT */
    void (*warn)(void *context, const char *text); /* at most once; may be NULL */
    void *context;
};

/* CHEX_ERR_MISSING no such folder;  CHEX_ERR_WRITE, CHEX_ERR_MEMORY */
enum chex_status trace_open(const struct trace_options *options, struct trace **out, struct chex_error *err);

/* A part of a step, from begin to end (progress_clock()). */
void trace_part(struct trace *t, enum step_part part, double begin, double end);
/* A step, by its number. */
void trace_step(struct trace *t, uint64_t step, double begin, double end);
/* Anything else: "evaluation", "checkpoint"; a constant text. */
void trace_span(struct trace *t, const char *name, double begin, double end);
/* A value that changes over time: "images per second". */
void trace_value(struct trace *t, const char *name, double time, double value);

void trace_free(struct trace *t); /* ends the array; NULL is allowed */

#endif
