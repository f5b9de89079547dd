/*
 * prometheus.h - the state of a run for Prometheus: a file that node_exporter's textfile collector reads
 *
 * The whole file is replaced by a rename at most every PROMETHEUS_SECONDS, and at the end; so the collector never sees
 * half of one.  Metrics begin with chex_train_; counters (..._total) count from the start of this process.  An alarm
 * for a run that is stuck is `time() - chex_train_updated_timestamp_seconds > 600 and chex_train_running == 1`.
 *
 * Format: https://prometheus.io/docs/instrumenting/exposition_formats/, "Text-based format"; no time stamps behind the
 * values, which the collector refuses.
 *
 * run_log.h calls it; one thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_PROMETHEUS_H
#define CHEX_TRAIN_PROMETHEUS_H

#include "log/run_log.h"

#define PROMETHEUS_SECONDS 10
#define PROMETHEUS_SPLITS  4 /* splits whose evaluations are shown */

struct prometheus;

/* Is it a good name for the file?  CHEX_ERR_USAGE: it does not end in .prom. */
enum chex_status prometheus_check(const char *path, struct chex_error *err);

/*
 * Begin; nothing is written yet.  The texts of the run are those of the labels of chex_train_info; NULL is "".
 * CHEX_ERR_MISSING, CHEX_ERR_READ the folder; CHEX_ERR_MEMORY
 */
enum chex_status prometheus_open(const char *path, const char *run, const char *model, const char *dataset_id,
                                 struct prometheus **out, struct chex_error *err);

/* What happened: these only remember. */
void prometheus_step(struct prometheus *p, const struct run_log_step *s);
void prometheus_evaluation(struct prometheus *p, const struct run_log_evaluation *e);
/* epoch: of one, whose factors are shown; else of all since the start. */
enum chex_status prometheus_times(struct prometheus *p, const struct rank_times *times, bool epoch,
                                  struct chex_error *err);
void prometheus_checkpoint(struct prometheus *p, double time); /* seconds since 1970 */
void prometheus_end(struct prometheus *p, int exit);

/* Replace the file where that is due, or in any case.  CHEX_ERR_WRITE, CHEX_ERR_MEMORY */
enum chex_status prometheus_write(struct prometheus *p, bool now, struct chex_error *err);
void prometheus_free(struct prometheus *p); /* NULL is allowed; the file stays */

#endif
