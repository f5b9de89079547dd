/*
 * predict_report.h - the messages of chex-predict
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PREDICT_REPORT_H
#define CHEX_TOOLS_PREDICT_REPORT_H

#include "base/progress.h"
#include "predict/predict_write.h"

/* Before the first image: models, thresholds, images, device. */
void report_plan(const struct prediction *p, unsigned threads);
/* The text of the progress line. */
void report_scoring(const struct progress *progress, uint64_t refused, char *text, size_t size);
/* After the last image: counts, refusals and doubts. */
void report_done(const struct prediction *p, const struct cli_common *common);

#endif
