/*
 * run_log.h - what people watch of a run: metrics.jsonl and the event file of TensorBoard, both in RUN
 *
 * The model to keep in mind: rank 0 reports an event once, and it appears in both.  metrics.jsonl has one JSON
 * object a line (schemas/metrics.schema.json), each with "kind" (step, epoch, evaluation, note), "step" and "time"; it
 * is one file for the whole run, whatever the number of restarts.  The event file is a new one for each start, as
 * TensorBoard wants it:
 *
 *     train/loss  train/learning_rate  train/gradient_norm         at steps
 *     speed/images_per_second  speed/data_wait  speed/forward ...  at steps; the parts as shares of the time, 0 to 1
 *     epoch/loss
 *     efficiency/parallel_efficiency ...                           after an epoch: factor_info of rank_times.h
 *     val/loss  val/auroc  val/auprc  val/auroc/Hernia ...         at evaluations, of split val; likewise of any other
 *     split
 *     val/predictions/Hernia                                       histograms of the scores
 *     val/curve/Hernia                                             curves of precision and recall (plugin pr_curves)
 *     options, and the plugin hparams                              once
 *
 * Where the options name one, also a file for Prometheus (prometheus.h), in which a note "checkpoint" is the time of
 * the last checkpoint.
 *
 * A log never ends a run: a disk that is full or a folder that is gone is reported once, through warn(), and the run
 * continues.  What could not be written is kept, up to a megabyte, and written later where that becomes possible.
 *
 * Restarts: lines behind the checkpoint of the resume are dropped from metrics.jsonl (rewritten as a whole
 * by the safe-file helper), and the new event file tells TensorBoard to forget them too.
 *
 * Times and the host's name (in the name of the event file) may differ from run to run; nothing that must be
 * reproducible is here.  One thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RUN_LOG_H
#define CHEX_TRAIN_RUN_LOG_H

#include "backend/step_parts.h"
#include "checkpoint/run_value.h"
#include "eval/metrics.h"
#include "io/file.h"
#include "log/rank_times.h"

#define RUN_LOG_METRICS "metrics.jsonl"

struct run_log;

struct run_log_options {
    const struct folder *folder; /* RUN; outlives the log */
    uint64_t step;               /* of the checkpoint of the resume, 0: a new run */
    uint32_t epochs;  /* complete and evaluated there: an evaluation at `step` that will be made again is dropped */
    uint32_t trained; /* whose training part is complete there: `epochs`, or one more, which is not reported again */
    const struct run_value *option; /* what TensorBoard shows of the options; read before the call returns */
    size_t options;
    const char *model, *dataset_id; /* for prometheus.h; NULL: "" */
    const char *prometheus;         /* path of its file, or NULL */
    /* Called at most once, with one line: "metrics.jsonl and TensorBoard: cannot write ...".  May be NULL. */
    void (*warn)(void *context, const char *text);
    void *context;
};

/* Open all.  What cannot be written is reported to warn(): the only error is CHEX_ERR_MEMORY. */
enum chex_status run_log_open(const struct run_log_options *options, struct run_log **out, struct chex_error *err);

/*
 * Steps since the last such call (one, or an interval of them): numbers of the whole job, times of rank 0.
 * A value that is NaN or infinite is null in metrics.jsonl.
 */
struct run_log_step {
    uint64_t step;           /* made so far: 1 after the first */
    uint32_t epoch;          /* the one at hand, 1 for the first */
    double loss;             /* mean over the images of the interval */
    double rate;             /* of learning, at the last step */
    double norm;             /* 2-norm of the gradient, at the last step */
    uint64_t images;         /* of weight 1, in the interval */
    double seconds;          /* of wall time, of the interval */
    struct step_times times; /* sums over the interval */
    uint64_t skipped;        /* bad records replaced, in the run so far */
    double loss_scale;       /* behind the last step; 1 without one */
    uint64_t steps_skipped;  /* in the run so far: their gradients overflowed, and they changed nothing */
};
void run_log_step(struct run_log *log, const struct run_log_step *s);

/* The training part of an epoch is over. */
struct run_log_epoch {
    uint64_t step;
    uint32_t epoch; /* this one, 1 for the first */
    double loss;    /* mean over its images */
    double rate;
    uint64_t images;
    double seconds; /* since it began, or since the run was resumed in its middle */
    struct step_times times;
    uint64_t skipped;
    double loss_scale;
    uint64_t steps_skipped;
    const char *order; /* order_hash() */
};
void run_log_epoch(struct run_log *log, const struct run_log_epoch *e);

/*
 * Where the time of all ranks went.
 * over  "epoch": one, with its evaluation and checkpoint; "run": all that this start has made
 */
void run_log_times(struct run_log *log, uint64_t step, uint32_t epoch, const char *over,
                   const struct rank_times *times);

struct run_log_evaluation {
    uint64_t step;
    uint32_t epoch;      /* the last complete one, 0 before the first */
    const char *split;   /* "val" */
    const char *sha256;  /* of its member list: members_sha256 */
    const char *weights; /* "parameters" or "average" */
    const char *tta;     /* "none", "flip", "tencrop" */
    double loss;         /* NaN: not known */
    double seconds;
    uint64_t skipped;
    bool best;                     /* the best so far by the metric that selects */
    const struct metrics *metrics; /* finding i is chex_finding_name(i) */
    const struct scores *scores;   /* for histograms and curves; NULL: without them */
};
void run_log_evaluation(struct run_log *log, const struct run_log_evaluation *e);

/*
 * Anything else, in metrics.jsonl alone.
 * what  a word for programs: "start", "resume", "checkpoint", "rate", "skip", "stop", "diverged", "end", ...
 * text  one line for people
 */
void run_log_note(struct run_log *log, uint64_t step, uint32_t epoch, const char *what, const char *text);

/*
 * The run ends with this code of the process; a note "end", and the last word for Prometheus.
 * text  one line for people: why
 */
void run_log_end(struct run_log *log, uint64_t step, uint32_t epoch, int exit, const char *text);

/* Hand the kept lines to the operating system; done by itself at every evaluation and every 10 s.  Not an fsync. */
void run_log_flush(struct run_log *log);

/* Flush, fsync, close.  NULL is allowed. */
void run_log_free(struct run_log *log);

#endif
