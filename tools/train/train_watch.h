/*
 * train_watch.h - writes the files for monitoring a run: metrics.jsonl, TensorBoard's event file, run.json, a trace
 *
 * Only rank 0 uses it, from the callbacks of train_report.h.  A file that cannot be written is only a warning.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_TRAIN_WATCH_H
#define CHEX_TOOLS_TRAIN_WATCH_H

#include "log/run_file.h"
#include "log/run_log.h"
#include "log/trace.h"
#include "train/train_options.h"

struct train_watch {
    const struct train_cli *cli;
    struct run_log *log;
    struct run_file *file;
    struct trace *trace;
    struct run_log_step steps; /* sums since the last line of metrics.jsonl */
    double loss_sum;           /* over those images whose loss is finite */
    uint64_t loss_images;      /* number of these images */
    uint64_t interval;         /* steps per line */
    void (*warn)(void *context, const char *text);
    void *context;
};

/*
 * RUN must be open and the state known.  Without RUN (--eval-only without -o) this opens nothing.  Set w->warn before.
 */
void train_watch_start(struct train_watch *w, const struct trainer *t, const struct trainer_start *start);
void train_watch_step(struct train_watch *w, const struct trainer *t, const struct trainer_step *step);
void train_watch_epoch(struct train_watch *w, const struct trainer *t, const struct trainer_epoch *epoch);
/* Writes the times of one epoch or of the whole run; adds spans to the trace; see trainer.h. */
void train_watch_times(struct train_watch *w, const struct trainer *t, const struct rank_times *times, bool all);
void train_watch_spans(struct train_watch *w, const struct trainer *t, int rank, const struct trace_span *span,
                       size_t count);
void train_watch_evaluation(struct train_watch *w, const struct trainer *t, const struct trainer_evaluation_result *v);
/* what: a keyword for programs, see run_log_note(). */
void train_watch_note(struct train_watch *w, const struct trainer *t, const char *what, const char *text);
/* Write the end with the results of evaluations, and free everything.  Does nothing without a start. */
void train_watch_end(struct train_watch *w, const struct trainer *t, const struct run_result *result, size_t results,
                     int code, const char *reason);

#endif
