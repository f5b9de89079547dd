/*
 * prometheus.h - writes the state of a run for Prometheus, to a file for node_exporter's textfile collector
 *
 * The file is replaced by a rename, at most every PROMETHEUS_SECONDS and at the end, so the collector never reads an
 * incomplete file.  Metrics begin with chex_train_; counters (..._total) count from the start of this process.  An
 * alert for a hanging run is `time() - chex_train_updated_timestamp_seconds > 600 and chex_train_running == 1`.
 *
 * Format: https://prometheus.io/docs/instrumenting/exposition_formats/, "Text-based format", without time stamps, which
 * the collector rejects.
 *
 * run_log.h calls it, in a single thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_PROMETHEUS_H
#define CHEX_TRAIN_PROMETHEUS_H

#include "log/run_log.h"

#define PROMETHEUS_SECONDS 10
#define PROMETHEUS_SPLITS  4 /* splits with exported evaluations */

struct prometheus;

/* Check the name of the file.  CHEX_ERR_USAGE: it does not end in .prom. */
enum chex_status prometheus_check(const char *path, struct chex_error *err);

/*
 * Initialize; writes nothing yet.  The texts become labels of chex_train_info; NULL is "".  CHEX_ERR_MISSING,
 * CHEX_ERR_READ the folder; CHEX_ERR_MEMORY
 */
enum chex_status prometheus_open(const char *path, const char *run, const char *model, const char *dataset_id,
                                 struct prometheus **out, struct chex_error *err);

/* Record an event; these functions write nothing. */
void prometheus_step(struct prometheus *p, const struct run_log_step *s);
void prometheus_evaluation(struct prometheus *p, const struct run_log_evaluation *e);
/* epoch: times of one epoch, whose factors are exported; otherwise of all epochs since the start. */
enum chex_status prometheus_times(struct prometheus *p, const struct rank_times *times, bool epoch,
                                  struct chex_error *err);
void prometheus_checkpoint(struct prometheus *p, double time); /* seconds since 1970 */
void prometheus_end(struct prometheus *p, int exit);

/* Replace the file if it is due, or always with `now`.  CHEX_ERR_WRITE, CHEX_ERR_MEMORY */
enum chex_status prometheus_write(struct prometheus *p, bool now, struct chex_error *err);
void prometheus_free(struct prometheus *p); /* NULL is allowed; the file stays */

#endif
