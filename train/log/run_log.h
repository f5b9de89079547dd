/*
 * run_log.h - the logs of a run: metrics.jsonl and the event file of TensorBoard, both in RUN
 *
 * Rank 0 reports an event once, and both files record it.  metrics.jsonl has one JSON object per line
 * (schemas/metrics.schema.json), each with "kind" (step, epoch, evaluation, note), "step" and "time".  It is one file
 * for the whole run, also after restarts.  Each start creates a new event file, as TensorBoard requires:
 *
 *     train/loss  train/learning_rate  train/gradient_norm         at steps
 *     speed/images_per_second  speed/data_wait  speed/forward ...  at steps; the parts as shares of the time, 0 to 1
 *     epoch/loss
 *     efficiency/parallel_efficiency ...                           after an epoch: factor_info of rank_times.h
 *     val/loss  val/auroc  val/auprc  val/auroc/Hernia ...         at evaluations of split val; other splits have
 *               their own names
 *
 * In a leaky run, each line has "leaky": true, and the tags begin with "leaky/".  In a short run, each line has
 * "short_run": "OPTIONS", and the tags begin with "short_run/".
 *
 * A log never ends a run: a full disk or a removed folder is reported once, through warn(), and the run continues.  Up
 * to a megabyte of unwritten text is kept and written later if possible.
 *
 * After a restart, lines after the checkpoint of the resume are removed from metrics.jsonl (rewritten with safe_file),
 * and the new event file makes TensorBoard discard them too.  If the leak was found after a run began, a resume also
 * marks the remaining lines; earlier event files keep their tags.
 *
 * Times and the host's name (in the name of the event file) differ between runs; the logs are not reproducible.  For a
 * single thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RUN_LOG_H
#define CHEX_TRAIN_RUN_LOG_H

#include "backend/step_parts.h"
#include "eval/metrics.h"
#include "io/file.h"
#include "log/rank_times.h"

#define RUN_LOG_METRICS "metrics.jsonl"

struct run_log;

struct run_log_options {
    const struct folder *folder; /* RUN; must outlive the log */
    uint64_t step;               /* of the checkpoint of the resume; 0: a new run */
    uint32_t epochs;       /* completed and evaluated there; an evaluation at `step` that will be repeated is removed */
    bool leaky;            /* the data set or the weights are: mark all lines and tags */
    const char *short_run; /* the options of a short run: mark the new lines and tags; NULL or "": a whole run */
    uint32_t trained;      /* with a complete training part there: `epochs`, or one more, which is not reported again */
    /* Called at most once, with one line: "metrics.jsonl and TensorBoard: cannot write ...".  May be NULL. */
    void (*warn)(void *context, const char *text);
    void *context;
};

/* Open all files.  Write errors are reported through warn(); the only error is CHEX_ERR_MEMORY. */
enum chex_status run_log_open(const struct run_log_options *options, struct run_log **out, struct chex_error *err);

/*
 * The steps since the last such call (one or several): numbers of all ranks, times of rank 0.  NaN and infinity are
 * null in metrics.jsonl.
 */
struct run_log_step {
    uint64_t step;           /* steps so far: 1 after the first */
    uint32_t epoch;          /* the current epoch, 1 for the first */
    double loss;             /* mean over the images of the interval */
    double rate;             /* learning rate at the last step */
    double norm;             /* 2-norm of the gradient, at the last step */
    uint64_t images;         /* with weight 1, in the interval */
    double seconds;          /* wall time of the interval */
    struct step_times times; /* sums over the interval */
    uint64_t skipped;        /* replaced records of the run so far */
    double loss_scale;       /* after the last step; 1 without loss scaling */
    uint64_t steps_skipped;  /* of the run so far: steps without effect, because their gradients overflowed */
};
void run_log_step(struct run_log *log, const struct run_log_step *s);

/* A completed training part of an epoch. */
struct run_log_epoch {
    uint64_t step;
    uint32_t epoch; /* this one, 1 for the first */
    double loss;    /* mean over its images */
    double rate;
    uint64_t images;
    double seconds; /* since the epoch began, or since the resume within it */
    struct step_times times;
    uint64_t skipped;
    double loss_scale;
    uint64_t steps_skipped;
    const char *order; /* order_hash() */
};
void run_log_epoch(struct run_log *log, const struct run_log_epoch *e);

/*
 * Log the time accounts of all ranks.  over "epoch": one epoch, with its evaluation and checkpoint; "run": everything
 * since this start
 */
void run_log_times(struct run_log *log, uint64_t step, uint32_t epoch, const char *over,
                   const struct rank_times *times);

struct run_log_evaluation {
    uint64_t step;
    uint32_t epoch;      /* the last completed epoch, 0 before the first */
    const char *split;   /* "val" */
    const char *sha256;  /* of its member list: members_sha256 */
    const char *weights; /* "parameters" or "average" */
    const char *tta;     /* "none", "flip", "tencrop" */
    double loss;         /* NaN: unknown */
    double seconds;
    uint64_t skipped;
    bool best; /* the best so far by the selected metric */
    const struct metrics *metrics;
    const char *const *findings; /* [metrics->outputs] names */
};
void run_log_evaluation(struct run_log *log, const struct run_log_evaluation *e);

/*
 * Log any other event, only in metrics.jsonl.  what a keyword for programs: "start", "resume", "checkpoint", "rate",
 * "skip", "stop", "diverged", "end", ... text one line for the user
 */
void run_log_note(struct run_log *log, uint64_t step, uint32_t epoch, const char *what, const char *text);

/* Write the collected lines, without fsync.  Happens automatically at every evaluation and every 10 s. */
void run_log_flush(struct run_log *log);

/* Flush, fsync, close.  NULL is allowed. */
void run_log_free(struct run_log *log);

#endif
