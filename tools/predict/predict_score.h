/*
 * predict_score.h - scores micro-batches with all models; the plans compute one while the next one is decoded
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PREDICT_SCORE_H
#define CHEX_TOOLS_PREDICT_SCORE_H

#include "predict/predict_batches.h"
#include "predict/predict_model.h"

struct scoring {
    const struct models *models;
    enum tta tta;
    struct batches *batches;
    /* Called for each image, in the order of the micro-batches.  logit, probability: [models][outputs] */
    enum chex_status (*scored)(void *context, uint32_t row, const float *logit, const float *probability,
                               struct chex_error *err);
    /* Called after scored(), with the image and its maps of the only model and view; NULL: no maps are computed. */
    enum chex_status (*mapped)(void *context, uint32_t row, const uint8_t *pixels, const float *map,
                               struct chex_error *err);
    void *context;
};

/*
 * Score micro-batches until there are no more.  Errors of the backend and of scored(), CHEX_ERR_MEMORY; after an error
 * no micro-batch is in flight.
 */
enum chex_status score_batches(const struct scoring *s, struct chex_error *err);

#endif
