/*
 * events.h - writes event files for TensorBoard: TFRecord frames of tensorflow.Event messages (schemas/event.proto)
 *
 * events_scalar() and similar functions collect values, and events_write() appends them as one Event of a step.  The
 * first record names the format ("brain.Event:2").  Then follows a SessionLog START; TensorBoard discards the values of
 * earlier files in the folder from that step on.
 *
 * The name is events.out.tfevents.SECONDS.HOST.PID.  TensorBoard reads the files of a folder in order of their names.
 * So the seconds are at least one more than those of any existing file, even if the clock went back.
 *
 * For a single thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_EVENTS_H
#define CHEX_TRAIN_EVENTS_H

#include "checkpoint/run_value.h"
#include "log/append.h"

struct events;

/*
 * Start a new event file.  step the run resumes at this step: TensorBoard discards later steps of the folder; 0: a new
 * run, it discards all CHEX_ERR_MEMORY, CHEX_ERR_WRITE (only if no file could be created, see append.h)
 */
enum chex_status events_open(const struct folder *folder, uint64_t step, struct events **out, struct chex_error *err);
const char *events_name(const struct events *e);

/* ---- values of the next Event ---------------------------------------------------------------------------------- */

/* Each function copies its arguments.  Tags are like "val/auroc"; each only once per Event. */
enum chex_status events_scalar(struct events *e, const char *tag, double value, struct chex_error *err);

/* Markdown. */
enum chex_status events_text(struct events *e, const char *tag, const char *text, struct chex_error *err);

/*
 * Add the distribution of value[0], value[stride] ... (`count` values) between 0 and 1, in 50 buckets of equal width.
 */
enum chex_status events_histogram(struct events *e, const char *tag, const float *value, size_t stride, size_t count,
                                  struct chex_error *err);

/*
 * Add a precision-recall curve at thresholds i / 500, i = 0 .. 500.  score is between 0 and 1, label is 0 or 1; both
 * have this stride.  title shown by TensorBoard, "Hernia (12 of 8,056)"
 */
enum chex_status events_curve(struct events *e, const char *tag, const char *title, const float *score,
                              const uint8_t *label, size_t stride, size_t count, struct chex_error *err);

/* Add the options of the run, for the plugin hparams. */
enum chex_status events_hparams(struct events *e, const struct run_value *value, size_t count, struct chex_error *err);

/*
 * Append the Event, unless it has no values.  The values are dropped, also on failure.  time seconds since 1970
 */
enum chex_status events_write(struct events *e, uint64_t step, double time, struct chex_error *err);

/* See append_flush(), append_sync(). */
enum chex_status events_flush(struct events *e, struct chex_error *err);
enum chex_status events_sync(struct events *e, struct chex_error *err);
void events_free(struct events *e); /* NULL is allowed; does not flush */

#endif
