/*
 * predict_ensemble.c - see predict_ensemble.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_ensemble.h"

#include "eval/predictions_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns why the thresholds of the models cannot be joined, or NULL. */
static const char *
find_difference(const struct operating *a, const struct operating *b)
{
    if (!b->there || strchr(b->split, '/'))
        return "has no thresholds of its own";
    if (strcmp(a->split, b->split) != 0 || strcmp(a->members, b->members) != 0)
        return "chose its thresholds on other images";
    if (a->precision != b->precision || a->tta != b->tta)
        return "chose its thresholds with another --precision or --tta";
    return NULL;
}

/* Whether these are the predictions from which the model's thresholds were chosen: the counts at them are the same. */
static bool
are_of_model(const struct predictions *p, const struct predict_model *m)
{
    size_t i;
    unsigned k;

    if (p->outputs != m->findings.count || p->count != m->operating.images)
        return false;
    for (k = 0; k < p->outputs; k++) {
        const struct finding_operating *fitted = &m->operating.finding[k];
        const struct operating_point *point = &fitted->point[OPERATING_YOUDEN];
        uint64_t known[2] = {0, 0}, called[2] = {0, 0}; /* by label */

        if (strcmp(p->finding[k], m->findings.name[k]) != 0)
            return false;
        for (i = 0; i < p->count; i++) {
            unsigned label = p->label[i * p->outputs + k];

            if (label > 1)
                continue;
            known[label]++;
            called[label] += p->probability[i * p->outputs + k] >= (float)point->threshold; /* never, of NaN */
        }
        if (known[1] != fitted->positives || known[0] != fitted->negatives)
            return false;
        if (!isnan(point->threshold) && (called[1] != point->true_positives || called[0] != point->false_positives))
            return false;
    }
    return true;
}

/* Read predictions-val.csv in the folder of the model; *why gets the reason if it is of no use. */
static enum chex_status
read_member(const struct predict_model *m, struct predictions *out, char why[ENSEMBLE_WHY], struct chex_error *err)
{
    struct buffer path = {0};
    enum chex_status status = buffer_printf(&path, err, "%.*spredictions-%s.csv", (int)(m->file - m->path), m->path,
                                            m->operating.split);

    if (status == CHEX_OK)
        status = buffer_append(&path, "", 1, err);
    if (status == CHEX_OK)
        status = predictions_read((const char *)path.data, out, err);
    if (status == CHEX_OK && !are_of_model(out, m))
        snprintf(why, ENSEMBLE_WHY, "'%s' does not hold the predictions of '%s'", (const char *)path.data, m->path);
    if (status != CHEX_OK && status != CHEX_ERR_MEMORY) {
        snprintf(why, ENSEMBLE_WHY, "%s", err->text);
        status = CHEX_OK;
    }
    buffer_release(&path);
    return status;
}

/* The members, and the sum of their probabilities. */
struct ensemble {
    struct predictions *member; /* [models] */
    double *sum;                /* [values] */
    size_t values;
};

/* Read the predictions of model i, and add them. */
static enum chex_status
add_member(struct ensemble *e, const struct models *models, size_t i, char why[ENSEMBLE_WHY], struct chex_error *err)
{
    const struct predict_model *m = &models->model[i];
    const char *difference = find_difference(&models->model[0].operating, &m->operating);
    enum chex_status status;
    size_t k;

    if (difference) {
        snprintf(why, ENSEMBLE_WHY, "'%s' %s", m->path, difference);
        return CHEX_OK;
    }
    status = read_member(m, &e->member[i], why, err);
    if (status != CHEX_OK || why[0])
        return status;
    if (i == 0) {
        e->values = e->member[0].count * e->member[0].outputs;
        e->sum = calloc(e->values, sizeof(*e->sum));
        if (!e->sum)
            return error_memory(err);
    } else if (!predictions_same_images(&e->member[0], &e->member[i])) {
        snprintf(why, ENSEMBLE_WHY, "the predictions of '%s' have other labels than the first", m->path);
        return CHEX_OK;
    }
    for (k = 0; k < e->values; k++)
        e->sum[k] += (double)e->member[i].probability[k];
    return CHEX_OK;
}

/* Choose from the mean probabilities. */
static enum chex_status
choose(const struct operating *first, const struct ensemble *e, struct operating *out, struct chex_error *err)
{
    const struct predictions *p = &e->member[0];
    const struct chex_split_info split = {.name = first->split, .members_sha256 = first->members};
    const struct mean_scores mean = {
        .count = p->count, .outputs = p->outputs, .probability = e->sum, .label = p->label};
    enum chex_status status = operating_choose_mean(&mean, &split, first->precision, first->tta, out, err);

    out->patients = first->patients;
    return status;
}

enum chex_status
ensemble_choose(const struct models *models, struct operating *out, char why[ENSEMBLE_WHY], struct chex_error *err)
{
    struct ensemble e = {.member = calloc(models->count, sizeof(*e.member))};
    enum chex_status status = e.member ? CHEX_OK : error_memory(err);
    size_t i;

    *out = (struct operating){.there = false};
    why[0] = '\0';
    for (i = 0; status == CHEX_OK && !why[0] && i < models->count; i++)
        status = add_member(&e, models, i, why, err);
    if (status == CHEX_OK && !why[0]) {
        for (i = 0; i < e.values; i++)
            e.sum[i] /= (double)models->count;
        status = choose(&models->model[0].operating, &e, out, err);
        if (status == CHEX_OK && !out->there)
            snprintf(why, ENSEMBLE_WHY, "a mean probability on %s is 0 or 1", models->model[0].operating.split);
    }
    for (i = 0; e.member && i < models->count; i++)
        predictions_release(&e.member[i]);
    free(e.member);
    free(e.sum);
    return status;
}
