/*
 * events.h - an event file of TensorBoard: TFRecord frames of tensorflow.Event messages (schemas/event.proto)
 *
 * Values are collected with events_scalar() and so on, and events_write() appends them as one Event of a step.  The
 * first record names the format ("brain.Event:2"); the file of a resumed run then has a SessionLog START, at which
 * TensorBoard drops what earlier files of the folder have at that step and later.
 *
 * The name is events.out.tfevents.SECONDS.HOST.PID: TensorBoard reads the files of a folder in the order of their
 * names, so the seconds are at least one more than those of any that is there, even when the clock went back.
 *
 * One thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_EVENTS_H
#define CHEX_TRAIN_EVENTS_H

#include "checkpoint/run_value.h"
#include "log/append.h"

struct events;

/*
 * Begin a new event file.
 * step  the run resumes there: TensorBoard forgets later steps of the folder; 0: a new run, it forgets all
 * CHEX_ERR_MEMORY, CHEX_ERR_WRITE (only where no file could be made: see append.h)
 */
enum chex_status events_open(const struct folder *folder, uint64_t step, struct events **out, struct chex_error *err);
const char *events_name(const struct events *e);

/* ---- values of the next Event ---------------------------------------------------------------------------------- */

/* Each takes what it needs before it returns.  Tags: "val/auroc"; each once in an Event. */
enum chex_status events_scalar(struct events *e, const char *tag, double value, struct chex_error *err);

/* Markdown. */
enum chex_status events_text(struct events *e, const char *tag, const char *text, struct chex_error *err);

/* The distribution of value[0], value[stride] ... (count of them) between 0 and 1, in 50 buckets of equal width. */
enum chex_status events_histogram(struct events *e, const char *tag, const float *value, size_t stride, size_t count,
                                  struct chex_error *err);

/*
 * A curve of precision and recall: score between 0 and 1, label 0 or 1, both with this stride; at thresholds i / 500,
 * i = 0 .. 500.
 * title  as TensorBoard shows it, "Hernia (12 of 8,056)"
 */
enum chex_status events_curve(struct events *e, const char *tag, const char *title, const float *score,
                              const uint8_t *label, size_t stride, size_t count, struct chex_error *err);

/* The options of the run, for the plugin hparams. */
enum chex_status events_hparams(struct events *e, const struct run_value *value, size_t count, struct chex_error *err);

/*
 * Append the Event; nothing where there are no values.  They are dropped, also on failure.
 * time  seconds since 1970
 */
enum chex_status events_write(struct events *e, uint64_t step, double time, struct chex_error *err);

/* See append_flush(), append_sync(). */
enum chex_status events_flush(struct events *e, struct chex_error *err);
enum chex_status events_sync(struct events *e, struct chex_error *err);
void events_free(struct events *e); /* NULL is allowed; does not flush */

#endif
