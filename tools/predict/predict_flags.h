/*
 * predict_flags.h - the thresholds of the flags, and the calibration of the probabilities
 *
 * Both were chosen on val and are in the model (train/eval/operating.h).  Those of several models are chosen again,
 * from the mean of their predictions on val (predict_ensemble.h).  A file of the user has thresholds for any models.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PREDICT_FLAGS_H
#define CHEX_TOOLS_PREDICT_FLAGS_H

#include "predict/predict_ensemble.h"

struct flags {
    const char *rule;                    /* "youden", "sensitivity_90", "file"; NULL: no thresholds */
    unsigned findings;                   /* with a threshold */
    double threshold[METRICS_OUTPUTS];   /* of each finding; NaN: none */
    const struct operating *calibration; /* of the only model, or ensemble; NULL: none */
    struct operating ensemble;           /* of the mean of several models */
    char why[ENSEMBLE_WHY];              /* they have none */
    unsigned calibrated;                 /* findings */
};

/*
 * *out points to itself: do not copy it.
 * CHEX_ERR_USAGE: a line of the file is wrong, names no finding of the models, or has a threshold above 1.
 * CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status flags_choose(const struct predict_options *o, const struct models *models, struct flags *out,
                              struct chex_error *err);

/* Returns the calibrated probability of a finding, NaN without a calibration. */
double flags_calibrate(const struct flags *f, unsigned finding, float logit);

/* Returns whether the finding is called positive; its threshold is there. */
bool flags_is_positive(const struct flags *f, unsigned finding, double probability);

#endif
