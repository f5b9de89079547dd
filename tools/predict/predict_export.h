/*
 * predict_export.h - chex-predict --export: the model of a run as an ONNX file, for other programs
 *
 * The metadata of the file says what its numbers mean: findings in the order of the outputs, thresholds, data set, how
 * the images were shrunk, and the SHA-256 of the model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PREDICT_EXPORT_H
#define CHEX_TOOLS_PREDICT_EXPORT_H

#include "predict/predict_options.h"

/*
 * Read the model of the only RUN, write o->export, and print a line about it; with --json a document.
 * Errors of models_read(), flags_choose() and onnx_write()
 */
enum chex_status predict_export(const struct predict_options *o, const struct cli_common *common,
                                struct chex_error *err);

#endif
