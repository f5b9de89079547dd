/*
 * train_report.h - what chex-train prints: the plan, progress, epochs, evaluations, the end; as text or one JSON
 * document
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_TRAIN_REPORT_H
#define CHEX_TOOLS_TRAIN_REPORT_H

#include "base/clock.h"
#include "base/number_format.h"
#include "base/progress.h"
#include "common/printable.h"
#include "common/progress_line.h"
#include "run/audit.h"
#include "train/train_options.h"
#include "train/train_watch.h"

/* The results of an evaluation that the final report needs. */
struct train_evaluation {
    bool there;
    char split[32];
    const char *sha256;          /* valid while the data set is open, as the findings */
    const char *const *findings; /* [metrics.outputs] names */
    double loss, seconds;
    uint64_t step;
    struct metrics metrics;
};

/* The model of scale: 1, 2, 4 ... ranks. */
#define TRAIN_SCALE_ROWS 33
struct train_scale {
    struct scale_machine machine;
    struct trainer_scale row[TRAIN_SCALE_ROWS];
    size_t rows; /* 0: there is none */
};

/* The comparisons of --audit. */
struct train_audit {
    struct audit_part *part; /* [count] */
    size_t count, capacity;
    struct audit_part now; /* the one in progress */
    uint64_t first_step;   /* of its state, before it is trained */
    struct audit_result result;
    bool ended; /* all parts are there */
    bool lost;  /* memory ran out */
};

/* The state of rank 0 between callbacks. */
struct train_report {
    const struct train_cli *cli;
    const struct cli_common *common;
    struct progress_line line;
    struct progress images; /* of the whole run */
    bool training;
    double loss; /* of the last steps, smoothed */
    double loss_weight;
    double waited, worked;                           /* seconds since the line was last shown */
    struct train_evaluation validation, best, final; /* best: of validation */
    bool begun;         /* the first lines were printed: the plan, or the notes if there is no plan */
    struct buffer held; /* notes and warnings before that, each with its NUL */
    bool started, resumed, complete;
    char from[CHECKPOINT_NAME];
    struct train_watch watch;
    struct trainer_estimate estimate; /* run is 0 if there is no estimate */
    struct trainer_fit fit[DEVICE_SIZES];
    size_t fits; /* entries of fit */
    struct train_scale scale;
    struct train_audit audit;
    struct trainer_storage storage; /* ranks is 0 if no storage check has ended */
};

/* Format a rate as "1,234", or as "0.7" if it is small.  Returns out. */
char *train_report_rate(double rate, char out[FORMAT_TEXT]);

/* Write the mark before the numbers of a leaky or short run: "short run: --max-steps 9  ", or "".  Returns out. */
#define TRAIN_MARK 96
char *train_report_mark(const struct trainer *t, char out[TRAIN_MARK]);

void train_report_init(struct train_report *r, const struct train_cli *cli, const struct cli_common *common);
void train_report_release(struct train_report *r);

/* Print the lines before the first step. */
void train_report_plan(struct train_report *r, const struct trainer *t);
/* Print the held notes if there is no plan. */
void train_report_begin(struct train_report *r);
/* Print the start of a run or a dry run. */
void train_report_start(const struct train_report *r, const struct trainer *t, const struct trainer_start *start);
/* Print the estimated duration (r->estimate) in a dry run. */
void train_report_estimate(const struct train_report *r, const struct trainer *t);

/* Print the kernels of a step in a dry run, if the device has a model of them. */
void train_report_model(const struct train_report *r, const struct plan_model *m);

/* Print whether the plan fits in each size of memory (r->fit), and the table of the model of scale (r->scale). */
void train_report_fits(const struct train_report *r);
void train_report_scale(const struct train_report *r);

/* Prints the source of an epoch's images and their order; a part of the plan. */
void train_report_reading(const struct trainer_facts *f, const struct trainer_options *o);
/* Prints how the images are changed at random, if --rotate, --brightness or --mixup is given. */
void train_report_augmentation(const struct trainer_options *o);

/* Prints data set and rate of a storage check; a part of its plan. */
void train_report_check(const struct trainer_facts *f, const struct trainer_options *o);

/* Callbacks of struct trainer_watch; context is the report. */
void train_report_started(void *context, const struct trainer *t, const struct trainer_start *start);
void train_report_times(void *context, const struct trainer *t, const struct rank_times *times, bool all);
void train_report_spans(void *context, const struct trainer *t, int rank, const struct trace_span *span, size_t count);
void train_report_stepped(void *context, const struct trainer *t, const struct trainer_step *step);
void train_report_epoch(void *context, const struct trainer *t, const struct trainer_epoch *epoch);
void train_report_staging(void *context, const struct trainer *t, uint64_t done, uint64_t of);
void train_report_evaluating(void *context, const struct trainer *t, uint64_t done, uint64_t of);
void train_report_evaluated(void *context, const struct trainer *t, const struct trainer_evaluation_result *result);
enum chex_status train_report_draw(const struct folder *run, const struct trainer_evaluation_result *result,
                                   struct chex_error *err);
void train_report_saved(void *context, const struct trainer *t, const char *name, double seconds);
void train_report_note(void *context, const struct trainer *t, const char *text);
void train_report_warn(void *context, const struct trainer *t, const char *text);
/* Print the text even with -q. */
void train_report_lost(void *context, const struct trainer *t, const char *text);

/* Print the last lines.  err is NULL on success; t may be NULL. */
void train_report_end(const struct train_report *r, const struct trainer *t, const struct chex_error *err);

/* Print the last lines for the user before the caller frees the trainer.  err as above. */
void train_report_close(struct train_report *r, const struct trainer *t, const struct chex_error *err, int code);

/* Print the document of schemas/train.schema.json to stdout; t may be NULL. */
void train_report_json(const struct train_report *r, const struct trainer *t, const struct chex_error *err, int code);

#endif
