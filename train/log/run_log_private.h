/*
 * run_log_private.h - shared by the log: numbers of a step, lines of metrics.jsonl, and their removal after a restart
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RUN_LOG_PRIVATE_H
#define CHEX_TRAIN_RUN_LOG_PRIVATE_H

#include "log/run_json.h"
#include "log/run_log.h"

/* Seconds since 1970. */
double run_log_now(void);

/* A number of a step: NAME in metrics.jsonl, train/NAME in TensorBoard. */
struct step_number {
    const char *name;
    size_t offset; /* of a double in struct run_log_step */
};
enum { STEP_NUMBERS = 3 };
extern const struct step_number step_number[STEP_NUMBERS];
double step_number_of(const struct run_log_step *s, unsigned number);

/* Members of every line. */
struct line_head {
    double time;           /* seconds since 1970 */
    bool leaky;            /* of run_log_options */
    const char *short_run; /* of run_log_options; "": a whole run */
};

/* Append a line, with its newline.  CHEX_ERR_MEMORY: nothing was appended. */
enum chex_status run_log_step_line(const struct run_log_step *s, struct line_head head, struct buffer *b,
                                   struct chex_error *err);
enum chex_status run_log_epoch_line(const struct run_log_epoch *e, struct line_head head, struct buffer *b,
                                    struct chex_error *err);
enum chex_status run_log_times_line(uint64_t step, uint32_t epoch, const char *over, const struct rank_times *times,
                                    struct line_head head, struct buffer *b, struct chex_error *err);
enum chex_status run_log_evaluation_line(const struct run_log_evaluation *e, struct line_head head, struct buffer *b,
                                         struct chex_error *err);
enum chex_status run_log_note_line(uint64_t step, uint32_t epoch, const char *what, const char *text,
                                   struct line_head head, struct buffer *b, struct chex_error *err);

/*
 * Remove the lines after the checkpoint of o->step from metrics.jsonl: lines of later steps, epochs beyond the
 * `trained` ones, evaluations of epochs beyond the completed `epochs`, and malformed lines (an incomplete last one).
 * In a leaky run also mark the lines without a mark.  If no line changes, nothing is written.  CHEX_ERR_READ,
 * CHEX_ERR_WRITE, CHEX_ERR_LIMIT, CHEX_ERR_MEMORY: the file is unchanged
 */
enum chex_status run_log_trim(const struct run_log_options *o, struct chex_error *err);

#endif
