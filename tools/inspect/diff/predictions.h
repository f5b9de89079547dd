/*
 * predictions.h - compares the predictions of two runs on one split, for `diff --split NAME A B`
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_DIFF_PREDICTIONS_H
#define CHEX_TOOLS_INSPECT_DIFF_PREDICTIONS_H

#include "inspect/inspect.h"

/* Read and compare predictions-SPLIT.csv of both runs, and print the result.  Returns the exit code. */
int inspect_predictions_diff(struct inspect *in, const char *a, const char *b, const char *split);

#endif
