/*
 * operating_mean.c - thresholds and calibration of the mean of several models; see operating.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/operating.h"

#include <math.h>
#include <stdlib.h>

float
operating_mean_logit(double probability)
{
    return (float)(log(probability) - log1p(-probability));
}

enum chex_status
operating_choose_mean(const struct mean_scores *mean, const struct chex_split_info *split, enum precision precision,
                      enum tta tta, struct operating *out, struct chex_error *err)
{
    const size_t values = mean->count * mean->outputs;
    struct evaluation e = {
        .outputs = mean->outputs, .tta = tta, .count = mean->count, .patients = 1, .label = mean->label};
    struct scores scores = {.count = mean->count, .outputs = mean->outputs, .label = mean->label, .patients = 1};
    uint32_t *patient = calloc(mean->count, sizeof(*patient)); /* thresholds count images */
    enum chex_status status;
    size_t i;

    e.logit = calloc(values, sizeof(float));
    e.probability = calloc(values, sizeof(float));
    status = patient && e.logit && e.probability ? CHEX_OK : error_memory(err);
    for (i = 0; status == CHEX_OK && i < values; i++) {
        e.probability[i] = (float)mean->probability[i];
        e.logit[i] = operating_mean_logit(mean->probability[i]);
        if (!isfinite(e.logit[i]))
            e.not_finite++;
    }
    scores.score = e.probability;
    scores.patient = patient;
    if (status == CHEX_OK)
        status = metrics_compute(&scores, 0, 0, 1, &e.metrics, err);
    if (status == CHEX_OK)
        status = operating_choose(&e, split, precision, out, err);
    free(patient);
    free(e.logit);
    free(e.probability);
    return status;
}
