/*
 * events.h - writes event files for TensorBoard: TFRecord frames of tensorflow.Event messages (schemas/event.proto)
 *
 * events_scalar() collects values, and events_write() appends them as one Event of a step.  The first record names the
 * format ("brain.Event:2").  Then follows a SessionLog START; TensorBoard discards the values of earlier files in the
 * folder from that step on.
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

#include "log/append.h"

struct events;

/*
 * Start a new event file.  step the run resumes at this step: TensorBoard discards later steps of the folder; 0: a new
 * run, it discards all CHEX_ERR_MEMORY, CHEX_ERR_WRITE (only if no file could be created, see append.h)
 */
enum chex_status events_open(const struct folder *folder, uint64_t step, struct events **out, struct chex_error *err);

/* ---- values of the next Event ---------------------------------------------------------------------------------- */

/* Add a scalar; the tag is copied.  Tags are like "val/auroc"; each only once per Event. */
enum chex_status events_scalar(struct events *e, const char *tag, double value, struct chex_error *err);

/*
 * Append the Event, unless it has no values.  The values are dropped, also on failure.  time seconds since 1970
 */
enum chex_status events_write(struct events *e, uint64_t step, double time, struct chex_error *err);

/* See append_flush(), append_sync(). */
enum chex_status events_flush(struct events *e, struct chex_error *err);
enum chex_status events_sync(struct events *e, struct chex_error *err);
void events_free(struct events *e); /* NULL is allowed; does not flush */

#endif
