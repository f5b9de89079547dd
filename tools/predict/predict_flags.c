/*
 * predict_flags.c - see predict_flags.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_flags.h"

#include "math/loss.h"
#include "train/train_values.h"

#include <math.h>
#include <string.h>

/* Thresholds of a file: those of findings that it does not name are missing. */
static enum chex_status
read_file(const char *path, const struct findings *findings, struct flags *out, struct chex_error *err)
{
    struct given_weight given[CHEX_FINDINGS_MAX];
    size_t count, i;
    enum chex_status status = value_weights(path, "Hernia,0.12", given, &count, err);

    if (status == CHEX_ERR_USAGE && count < CHEX_FINDINGS_MAX) {
        const struct chex_error why = *err;

        return error_set(err, status, "%s, with a threshold above 0 and at most 1", why.text);
    }
    for (i = 0; status == CHEX_OK && i < count; i++) {
        int finding = finding_index(findings, given[i].name, strlen(given[i].name));

        if (finding < 0)
            return error_set(err, CHEX_ERR_USAGE, "%s:%lu: '%s' is not a finding of the model", path, given[i].line,
                             given[i].name);
        if (!isnan(out->threshold[finding]))
            return error_set(err, CHEX_ERR_USAGE, "%s:%lu: %s a second time", path, given[i].line,
                             findings->name[finding]);
        if (given[i].weight > 1)
            return error_set(err, CHEX_ERR_USAGE, "%s:%lu: a threshold is a probability, above 0 and at most 1", path,
                             given[i].line);
        out->threshold[finding] = given[i].weight;
    }
    out->rule = "file";
    return status;
}

/* Returns the rule of --threshold; OPERATING_RULES: it is a file. */
static enum operating_rule
rule_of(const char *text)
{
    if (!text || strcmp(text, "youden") == 0)
        return OPERATING_YOUDEN;
    return strcmp(text, "sens90") == 0 ? OPERATING_SENSITIVITY : OPERATING_RULES;
}

enum chex_status
flags_choose(const struct predict_options *o, const struct models *models, struct flags *out, struct chex_error *err)
{
    const struct predict_model *first = &models->model[0];
    enum operating_rule rule = rule_of(o->threshold);
    enum chex_status status = CHEX_OK;
    unsigned k;

    *out = (struct flags){.rule = NULL};
    if (models->count == 1 && first->operating.there)
        out->calibration = &first->operating;
    if (models->count > 1)
        status = ensemble_choose(models, &out->ensemble, out->why, err);
    if (out->ensemble.there)
        out->calibration = &out->ensemble;
    for (k = 0; k < models->outputs; k++) {
        bool fitted = rule != OPERATING_RULES && out->calibration;

        out->threshold[k] = fitted ? out->calibration->finding[k].point[rule].threshold : (double)NAN;
        if (out->calibration && !isnan(out->calibration->finding[k].a))
            out->calibrated++;
    }
    if (status == CHEX_OK && rule == OPERATING_RULES)
        status = read_file(o->threshold, &first->findings, out, err);
    else if (out->calibration)
        out->rule = operating_rule_name[rule];
    for (k = 0; k < models->outputs; k++)
        if (!isnan(out->threshold[k]))
            out->findings++;
    return status;
}

double
flags_calibrate(const struct flags *f, unsigned finding, float logit)
{
    const struct finding_operating *fitted = f->calibration ? &f->calibration->finding[finding] : NULL;

    return fitted && !isnan(fitted->a) ? sigmoid(fitted->a * (double)logit + fitted->b) : (double)NAN;
}

/* As operating_apply(). */
bool
flags_is_positive(const struct flags *f, unsigned finding, double probability)
{
    return (float)probability >= (float)f->threshold[finding];
}
