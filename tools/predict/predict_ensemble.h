/*
 * predict_ensemble.h - thresholds and calibration of the mean of several models, chosen on val
 *
 * The thresholds of a single model do not hold for the mean of several.  So they are chosen again, from the mean of the
 * members' predictions on val (predictions-val.csv of their runs), by the rules of train/eval/operating.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PREDICT_ENSEMBLE_H
#define CHEX_TOOLS_PREDICT_ENSEMBLE_H

#include "predict/predict_model.h"

#define ENSEMBLE_WHY CHEX_ERROR_TEXT

/*
 * Choose them for the models in their order.  out->there is false, and `why` has the reason, if a model has no
 * thresholds of its own, if the models were evaluated on different images, in other precision or with other views, or
 * if a file of predictions is missing, damaged, or not that of its model.  Otherwise why is "".  CHEX_ERR_MEMORY
 */
enum chex_status ensemble_choose(const struct models *models, struct operating *out, char why[ENSEMBLE_WHY],
                                 struct chex_error *err);

#endif
