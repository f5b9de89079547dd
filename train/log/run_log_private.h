/*
 * run_log_private.h - the lines of metrics.jsonl, made in run_log_lines.c; and what of an earlier start stays in it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RUN_LOG_PRIVATE_H
#define CHEX_TRAIN_RUN_LOG_PRIVATE_H

#include "log/run_json.h"
#include "log/run_log.h"

/* Append a line, with its newline.  time: seconds since 1970.  CHEX_ERR_MEMORY: nothing was appended. */
enum chex_status run_log_step_line(const struct run_log_step *s, double time, struct buffer *b, struct chex_error *err);
enum chex_status run_log_epoch_line(const struct run_log_epoch *e, double time, struct buffer *b,
                                    struct chex_error *err);
enum chex_status run_log_evaluation_line(const struct run_log_evaluation *e, double time, struct buffer *b,
                                         struct chex_error *err);
enum chex_status run_log_note_line(uint64_t step, uint32_t epoch, const char *what, const char *text, double time,
                                   struct buffer *b, struct chex_error *err);

/*
 * Drop from metrics.jsonl what lies behind the checkpoint of o->step: lines of later steps, epochs that are not among
 * the `trained` ones, evaluations of those that are not among the complete `epochs`, and what is no line of ours (a
 * torn last one).  Where nothing is to be dropped nothing is written.
 * CHEX_ERR_READ, CHEX_ERR_WRITE, CHEX_ERR_LIMIT, CHEX_ERR_MEMORY: the file is as it was
 */
enum chex_status run_log_trim(const struct run_log_options *o, struct chex_error *err);

#endif
