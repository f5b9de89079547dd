/*
 * box_write.c - boxes.csv and boxes.json (see predict_boxes.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/json.h"
#include "predict/predict_boxes.h"
#include "predict/predict_model.h"

#include <math.h>
#include <string.h>

/* The measures in the order of enum box_measure, and their thresholds. */
static const struct measure_info {
    const char *name;
    unsigned first, count;
    const double *threshold; /* [count]; NULL: none */
} measure_info[] = {
    {"pointing_game", BOX_POINT, 1, NULL},
    {"mass", BOX_MASS, 1, NULL},
    {"iou", BOX_IOU, BOX_IOU_STEPS, box_iou_at},
    {"iobb", BOX_IOBB, BOX_IOBB_STEPS, box_iobb_at},
    {"false_boxes", BOX_FALSE, BOX_IOBB_STEPS, box_iobb_at},
};
#define MEASURES (sizeof(measure_info) / sizeof(measure_info[0]))

static const struct measure_info *
info_of(unsigned measure)
{
    const struct measure_info *info = measure_info;

    while (measure >= info->first + info->count)
        info++;
    return info;
}

/* ---- CSV --------------------------------------------------------------------------------------------------------- */

static const char *
note_of(const struct box_run *b)
{
    return b->synthetic ? "research use only; synthetic images" : "research use only";
}

static enum chex_status
add_number(struct buffer *out, double value, struct chex_error *err)
{
    return isnan(value) ? buffer_append(out, ",", 1, err) : buffer_printf(out, err, ",%.9g", value);
}

/* Append "NAME,BOXES,PATIENTS". */
static enum chex_status
add_finding(struct buffer *out, const char *name, const struct localized *l, struct chex_error *err)
{
    return buffer_printf(out, err, "%s,%llu,%u", name, (unsigned long long)l->boxes, l->patients);
}

static enum chex_status
add_line(const struct box_run *b, const char *name, const struct localized *l, unsigned measure, const char *method,
         struct measured m, struct buffer *out, struct chex_error *err)
{
    const struct measure_info *info = info_of(measure);
    enum chex_status status = add_finding(out, name, l, err);

    if (status == CHEX_OK)
        status = buffer_printf(out, err, ",%s", info->name);
    if (status == CHEX_OK)
        status = add_number(out, info->threshold ? info->threshold[measure - info->first] : (double)NAN, err);
    if (status == CHEX_OK)
        status = buffer_printf(out, err, ",%s", method);
    if (status == CHEX_OK)
        status = add_number(out, m.value, err);
    if (status == CHEX_OK)
        status = add_number(out, m.low, err);
    if (status == CHEX_OK)
        status = add_number(out, m.high, err);
    return status == CHEX_OK ? buffer_printf(out, err, ",%s\n", note_of(b)) : status;
}

static enum chex_status
add_published(const struct box_run *b, const char *name, const struct localized *l, unsigned measure,
              struct buffer *out, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    for (unsigned i = 0; status == CHEX_OK && !b->synthetic && i < PUBLISHED_BOXES; i++) {
        const struct published_boxes *p = &published_boxes[i];
        struct measured m = {published_value(p, name), (double)NAN, (double)NAN};

        if (p->measure == measure && !isnan(m.value))
            status = add_line(b, name, l, measure, p->method, m, out, err);
    }
    return status;
}

/* Append the lines of a finding; one that says so if there are too few boxes. */
static enum chex_status
add_localized(const struct box_run *b, const char *name, const struct localized *l, struct buffer *out,
              struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    if (isnan(l->value[BOX_MAP][BOX_POINT].value)) {
        status = add_finding(out, name, l, err);
        return status == CHEX_OK ? buffer_printf(out, err, ",,,,,,,too few boxes; %s\n", note_of(b)) : status;
    }
    for (unsigned v = 0; v < BOX_MEASURES; v++) {
        for (unsigned m = 0; status == CHEX_OK && m < BOX_METHODS; m++)
            status = add_line(b, name, l, v, box_method_names[m], l->value[m][v], out, err);
        if (status == CHEX_OK)
            status = add_published(b, name, l, v, out, err);
    }
    return status;
}

enum chex_status
boxes_csv(const struct box_run *b, struct buffer *out, struct chex_error *err)
{
    enum chex_status status = buffer_printf(out, err,
                                            "finding,boxes,patients,measure,threshold,method,value,low,high,note\n");

    for (unsigned k = 0; status == CHEX_OK && k < b->found.findings; k++)
        if (b->found.finding[k].boxes > 0)
            status = add_localized(b, b->models->model[0].findings.name[k], &b->found.finding[k], out, err);
    if (status == CHEX_OK && b->found.defined > 1)
        status = add_localized(b, "mean", &b->found.mean, out, err);
    return status;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *
json_measured(struct measured m, double threshold)
{
    json_t *object = isnan(threshold) ? json_object() : json_pack("{s:f}", "threshold", threshold);

    if (object && (json_object_set_new(object, "value", real_json(m.value)) != 0 ||
                   json_object_set_new(object, "low", real_json(m.low)) != 0 ||
                   json_object_set_new(object, "high", real_json(m.high)) != 0)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* A measure without thresholds is an object, one with thresholds is a list. */
static json_t *
json_measure(const struct measure_info *info, const struct measured *value)
{
    json_t *list;

    if (!info->threshold)
        return json_measured(value[info->first], (double)NAN);
    list = json_array();
    for (unsigned i = 0; list && i < info->count; i++)
        if (json_array_append_new(list, json_measured(value[info->first + i], info->threshold[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *
json_method(const struct measured *value)
{
    json_t *object = json_object();

    for (size_t i = 0; object && i < MEASURES; i++)
        if (json_object_set_new(object, measure_info[i].name, json_measure(&measure_info[i], value)) != 0) {
            json_decref(object);
            return NULL;
        }
    return object;
}

/* The published values of a finding; an empty list: none. */
static json_t *
json_published(const struct box_run *b, const char *name)
{
    json_t *list = json_array();

    for (unsigned i = 0; list && !b->synthetic && i < PUBLISHED_BOXES; i++) {
        const struct published_boxes *p = &published_boxes[i];
        const struct measure_info *info = info_of(p->measure);
        double value = published_value(p, name);

        if (!isnan(value) &&
            json_array_append_new(list, json_pack("{s:s,s:s,s:f,s:f}", "source", p->source, "measure", info->name,
                                                  "threshold", info->threshold[p->measure - info->first], "value",
                                                  value)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *
json_localized(const struct box_run *b, const char *name, const struct localized *l)
{
    const bool few = isnan(l->value[BOX_MAP][BOX_POINT].value);
    json_t *object = json_pack("{s:s,s:o,s:i,s:b}", "name", name, "boxes", count_json(l->boxes), "patients",
                               (int)l->patients, "too_few", few);
    bool made = object != NULL;

    for (unsigned m = 0; made && !few && m < BOX_METHODS; m++)
        made = json_object_set_new(object, box_method_names[m], json_method(l->value[m])) == 0;
    if (made && !few)
        made = json_object_set_new(object, "published", json_published(b, name)) == 0;
    if (made)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *
json_findings(const struct box_run *b)
{
    json_t *list = json_array();

    for (unsigned k = 0; list && k < b->found.findings; k++) {
        const struct localized *l = &b->found.finding[k];

        if (l->boxes > 0 &&
            json_array_append_new(list, json_localized(b, b->models->model[0].findings.name[k], l)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

json_t *
boxes_json(const struct box_run *b)
{
    const struct predict_model *m = &b->models->model[0];
    uint32_t side = boxes_common_side(b);

    return json_pack("{s:i,s:s,s:s,s:s,s:b,s:s,s:s,s:{s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o},s:i,s:i,s:o,s:o}", "format",
                     1, "tool", "chex-predict", "version", chex_version(), "use", "research only, not for diagnosis",
                     "synthetic", b->synthetic, "model", m->state.model, "model_sha256", m->sha256, "list", "sha256",
                     b->list.sha256, "image_side", side > 0 ? json_integer(side) : json_null(), "boxes",
                     count_json(b->list.count), "other_findings", count_json(b->list.ignored), "not_scored",
                     count_json(b->list.count - b->count), "refused", count_json(b->refused), "outside",
                     count_json(b->outside), "measured", count_json(b->measured), "images", count_json(b->scored),
                     "replicates", BOX_REPLICATES, "seed", BOX_SEED, "findings", json_findings(b), "mean",
                     b->found.defined > 1 ? json_localized(b, "mean", &b->found.mean) : json_null());
}

enum chex_status
boxes_write(const struct box_run *b, const struct folder *folder, struct chex_error *err)
{
    struct buffer csv = {0}, json = {0};
    json_t *top = boxes_json(b);
    enum chex_status status = append_json(top, JSON_INDENT(2) | JSON_REAL_PRECISION(17), &json, err);

    json_decref(top);
    if (status == CHEX_OK)
        status = boxes_csv(b, &csv, err);
    if (status == CHEX_OK)
        status = safe_file_put(folder, PREDICT_BOXES_CSV, csv.data, csv.size, err);
    if (status == CHEX_OK)
        status = safe_file_put(folder, PREDICT_BOXES_JSON, json.data, json.size, err);
    buffer_release(&csv);
    buffer_release(&json);
    return status;
}

enum chex_status
boxes_remove(const struct folder *folder, struct chex_error *err)
{
    enum chex_status status = folder_remove(folder, PREDICT_BOXES_JSON, err);

    return status == CHEX_OK ? folder_remove(folder, PREDICT_BOXES_CSV, err) : status;
}
