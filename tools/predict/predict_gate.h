/*
 * predict_gate.h - checks whether an image fits better turned or inverted (train/eval/gate.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PREDICT_GATE_H
#define CHEX_TOOLS_PREDICT_GATE_H

#include "image/resample.h"
#include "predict/predict_run.h"

/* Returns the gate of the first model that has one, or NULL. */
const struct gate *predict_gate_of(const struct models *models);

/*
 * Check an image of models->size; resampler: for RESAMPLE_AREA, one per thread.  Sets *doubts to DOUBT_TURNED,
 * DOUBT_INVERTED or 0.  CHEX_ERR_MEMORY
 */
enum chex_status predict_gate_check(const struct models *models, struct resampler *resampler, const uint8_t *pixels,
                                    struct gate_result *out, unsigned *doubts, struct chex_error *err);

/* Write "fits better turned by 90 degrees: 0.28, and 0.53 as it is"; returns out. */
#define PREDICT_GATE_TEXT 96
char *predict_gate_text(const struct gate_result *r, char out[PREDICT_GATE_TEXT]);

#endif
