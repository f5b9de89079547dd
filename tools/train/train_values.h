/*
 * train_values.h - parses option values: real numbers, durations, numbers for findings
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_TRAIN_VALUES_H
#define CHEX_TOOLS_TRAIN_VALUES_H

#include "base/error.h"
#include "run/trainer.h"

/* Parse a number such as 1e-3.  CHEX_ERR_USAGE: the text is not a number in min .. max. */
enum chex_status value_real(const char *text, double min, double max, double *out, struct chex_error *err);

/* Parses "90", "90s", "10m", "2h", "1d", or "1:30:00" (hours, minutes, seconds) to seconds above 0.  CHEX_ERR_USAGE */
enum chex_status value_duration(const char *text, double *out, struct chex_error *err);

/*
 * Reads a file with a number above 0 for each finding: lines "Hernia,57.3" (or with a blank), in any order.  Empty
 * lines and lines that begin with # are ignored.  The caller compares the names with its findings.
 * example: such a line, for messages
 * CHEX_ERR_USAGE: "FILE:3: ...", or too many lines;  CHEX_ERR_MISSING;  CHEX_ERR_MEMORY
 */
enum chex_status value_weights(const char *path, const char *example, struct given_weight out[CHEX_FINDINGS_MAX],
                               size_t *count, struct chex_error *err);

#endif
