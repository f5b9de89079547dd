/*
 * predict_gate.c - see predict_gate.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_gate.h"

#include <stdio.h>

const struct gate *
predict_gate_of(const struct models *models)
{
    size_t i;

    for (i = 0; i < models->count; i++)
        if (models->model[i].operating.there && models->model[i].operating.gate.there)
            return &models->model[i].operating.gate;
    return NULL;
}

enum chex_status
predict_gate_check(const struct models *models, struct resampler *resampler, const uint8_t *pixels,
                   struct gate_result *out, unsigned *doubts, struct chex_error *err)
{
    const struct gate *gate = predict_gate_of(models);
    uint8_t small[GATE_PIXELS];
    enum chex_status status;

    *out = (struct gate_result){.change = GATE_AS_IS};
    *doubts = 0;
    if (!gate || models->size < GATE_SIDE)
        return CHEX_OK;
    status = gate_shrink(resampler, pixels, models->size, small, err);
    if (status == CHEX_OK)
        *out = gate_check(gate, small);
    if (gate_change_turns(out->change))
        *doubts |= DOUBT_TURNED;
    if (gate_change_inverts(out->change))
        *doubts |= DOUBT_INVERTED;
    return status;
}

char *
predict_gate_text(const struct gate_result *r, char out[PREDICT_GATE_TEXT])
{
    snprintf(out, PREDICT_GATE_TEXT, "fits better %s: %.2f, and %.2f as it is", gate_change_names[r->change], r->better,
             r->fit);
    return out;
}
