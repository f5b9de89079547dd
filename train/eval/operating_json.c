/*
 * operating_json.c - operating points as text in the metadata of a model, and in metrics-SPLIT.json; see operating.h
 *
 *     {"format": 1, "split": "val", "members_sha256": "...", "precision": "fp32", "tta": "none", "images": 8056,
 *      "patients": 2203, "findings": [{"name": "Atelectasis", "positives": 805, "negatives": 7251, "refused": null,
 *      "platt": {"a": 1.1, "b": -0.2}, "youden": {"threshold": 0.11, "true_positives": 600, "false_positives": 1500},
 *      "sensitivity_90": {...}}, ...], "gate": {...}}
 *
 * platt and the thresholds are null if they were refused.  gate (gate_json.c) is null if there is none; older models
 * lack it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/operating.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FORMAT 1

static const struct parse_bounds bounds = {.size = 1 << 20, .depth = 5, .values = 20000, .reals = true};

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* A failed allocation gives NULL; then json_pack() returns NULL too, and append_json() reports it at the end. */
static json_t *
refusal_json(enum operating_refusal refusal)
{
    return refusal == OPERATING_COMPLETE ? json_null() : json_string(operating_refusal_text(refusal));
}

static json_t *
platt_json(const struct finding_operating *f)
{
    return isnan(f->a) ? json_null() : json_pack("{s:f,s:f}", "a", f->a, "b", f->b);
}

static json_t *
stored_point(const struct operating_point *p)
{
    if (isnan(p->threshold))
        return json_null();
    return json_pack("{s:f,s:o,s:o}", "threshold", p->threshold, "true_positives", count_json(p->true_positives),
                     "false_positives", count_json(p->false_positives));
}

static json_t *
stored_finding(const struct finding_operating *f, const char *name)
{
    return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "name", name, "positives", count_json(f->positives), "negatives",
                     count_json(f->negatives), "refused", refusal_json(f->refusal), "platt", platt_json(f),
                     operating_rule_name[OPERATING_YOUDEN], stored_point(&f->point[OPERATING_YOUDEN]),
                     operating_rule_name[OPERATING_SENSITIVITY], stored_point(&f->point[OPERATING_SENSITIVITY]));
}

enum chex_status
operating_format(const struct operating *o, const char *const *findings, struct buffer *text, struct chex_error *err)
{
    json_t *list = json_array(), *top;
    enum chex_status status;
    bool good = true;
    unsigned k;

    for (k = 0; k < o->outputs; k++)
        good &= json_array_append_new(list, stored_finding(&o->finding[k], findings[k])) == 0;
    top = json_pack("{s:i,s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:o}", "format", FORMAT, "split", o->split, "members_sha256",
                    o->members, "precision", precision_names[o->precision], "tta", tta_names[o->tta], "images",
                    count_json(o->images), "patients", count_json(o->patients), "findings", list, "gate",
                    gate_json(&o->gate));
    status = good ? append_json(top, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17), text, err)
                  : error_memory(err);
    json_decref(top);
    if (status == CHEX_OK)
        text->data[text->size - 1] = '\0'; /* replaces the newline */
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Reads members; keeps the first fault. */
struct text_reading {
    struct chex_error *err;
    enum chex_status status;
};

static bool
refuse(struct text_reading *r, const char *key, const json_t *value)
{
    char shown[JSON_SHOWN];

    if (r->status == CHEX_OK)
        r->status = error_set(r->err, CHEX_ERR_DAMAGED, "'%s' is %s", key, json_show(value, shown));
    return false;
}

static uint64_t
take_count(struct text_reading *r, const json_t *object, const char *key, uint64_t most)
{
    const json_t *value = json_object_get(object, key);
    double x = json_number_value(value);

    if (json_is_number(value) && x >= 0 && x <= (double)most && x == floor(x))
        return (uint64_t)x;
    refuse(r, key, value);
    return 0;
}

static double
take_real(struct text_reading *r, const json_t *object, const char *key, double least, double most)
{
    const json_t *value = json_object_get(object, key);
    double x = json_number_value(value);

    if (json_is_number(value) && x >= least && x <= most)
        return x;
    refuse(r, key, value);
    return (double)NAN;
}

static void
take_text(struct text_reading *r, const json_t *object, const char *key, char *out, size_t size)
{
    const json_t *value = json_object_get(object, key);
    const char *text = json_string_value(value);

    if (!text || (size_t)snprintf(out, size, "%s", text) >= size)
        refuse(r, key, value);
}

/* Returns the index of the text in a list that ends with NULL. */
static unsigned
take_word(struct text_reading *r, const json_t *object, const char *key, const char *const *words)
{
    const json_t *value = json_object_get(object, key);
    const char *text = json_string_value(value);
    unsigned i;

    for (i = 0; text && words[i]; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    refuse(r, key, value);
    return 0;
}

static void
take_refusal(struct text_reading *r, const json_t *object, struct finding_operating *out)
{
    const json_t *value = json_object_get(object, "refused");
    const char *text = json_string_value(value);

    if (json_is_null(value))
        return;
    for (out->refusal = OPERATING_FEW_POSITIVES; out->refusal <= OPERATING_NO_OPTIMUM; out->refusal++)
        if (text && strcmp(text, operating_refusal_text(out->refusal)) == 0)
            return;
    out->refusal = OPERATING_COMPLETE;
    refuse(r, "refused", value);
}

/* A part that is there unless it was refused. */
static const json_t *
take_part(struct text_reading *r, const json_t *object, const char *key, bool refused)
{
    const json_t *part = json_object_get(object, key);

    if (refused ? json_is_null(part) : json_is_object(part))
        return refused ? NULL : part;
    refuse(r, key, part);
    return NULL;
}

static void
take_point(struct text_reading *r, const json_t *part, struct finding_operating *f, struct operating_point *out)
{
    *out = (struct operating_point){.threshold = (double)NAN, .value = (double)NAN};
    if (!part)
        return;
    out->threshold = take_real(r, part, "threshold", 0, 1);
    out->true_positives = take_count(r, part, "true_positives", f->positives);
    out->false_positives = take_count(r, part, "false_positives", f->negatives);
    out->value = (double)out->true_positives / (double)f->positives;
    if (out == &f->point[OPERATING_YOUDEN])
        out->value -= (double)out->false_positives / (double)f->negatives;
}

static void
take_finding(struct text_reading *r, const json_t *object, const char *name, uint64_t images,
             struct finding_operating *f)
{
    const char *theirs = json_string_value(json_object_get(object, "name"));
    const json_t *platt;
    bool refused;
    unsigned i;

    if (!theirs || strcmp(theirs, name) != 0) {
        if (r->status == CHEX_OK)
            r->status = error_set(r->err, CHEX_ERR_INCOMPATIBLE, "they are not of the finding '%s'", name);
        return;
    }
    take_refusal(r, object, f);
    f->positives = take_count(r, object, "positives", images);
    f->negatives = take_count(r, object, "negatives", images - f->positives);
    refused = f->refusal != OPERATING_COMPLETE && f->refusal != OPERATING_NO_OPTIMUM;
    if (!refused && (f->positives < OPERATING_FEWEST || f->negatives < OPERATING_FEWEST))
        refuse(r, "refused", json_object_get(object, "refused"));
    platt = take_part(r, object, "platt", f->refusal != OPERATING_COMPLETE);
    f->a = platt ? take_real(r, platt, "a", -1e30, 1e30) : (double)NAN;
    f->b = platt ? take_real(r, platt, "b", -1e30, 1e30) : (double)NAN;
    for (i = 0; i < OPERATING_RULES; i++)
        take_point(r, take_part(r, object, operating_rule_name[i], refused), f, &f->point[i]);
}

static void
take_document(struct text_reading *r, const json_t *top, const char *const *findings, struct operating *out)
{
    const json_t *list = json_object_get(top, "findings");
    unsigned k;

    take_text(r, top, "split", out->split, sizeof(out->split));
    take_text(r, top, "members_sha256", out->members, sizeof(out->members));
    out->precision = (enum precision)take_word(r, top, "precision", precision_names);
    if (out->precision == PRECISION_AUTO)
        refuse(r, "precision", json_object_get(top, "precision"));
    out->tta = (enum tta)take_word(r, top, "tta", tta_names);
    out->images = take_count(r, top, "images", UINT32_MAX);
    out->patients = take_count(r, top, "patients", out->images);
    if (!json_is_array(list) || json_array_size(list) != out->outputs) {
        if (r->status == CHEX_OK)
            r->status = error_set(r->err, CHEX_ERR_INCOMPATIBLE, "they are of %zu findings, not of %u",
                                  json_array_size(list), out->outputs);
        return;
    }
    for (k = 0; k < out->outputs && r->status == CHEX_OK; k++)
        take_finding(r, json_array_get(list, k), findings[k], out->images, &out->finding[k]);
    if (!gate_parse(json_object_get(top, "gate"), &out->gate))
        refuse(r, "gate", json_object_get(top, "gate"));
}

enum chex_status
operating_parse(const char *text, const char *const *findings, unsigned outputs, struct operating *out,
                struct chex_error *err)
{
    struct text_reading r = {.err = err};
    json_t *top = NULL;

    *out = (struct operating){.outputs = outputs};
    if (!text)
        return CHEX_OK;
    r.status = parse_json(text, strlen(text), &bounds, &top, err);
    if (r.status == CHEX_OK && json_number_value(json_object_get(top, "format")) != FORMAT)
        r.status = error_set(err, CHEX_ERR_INCOMPATIBLE, "a format other than %d", FORMAT);
    if (r.status == CHEX_OK)
        take_document(&r, top, findings, out);
    json_decref(top);
    out->there = r.status == CHEX_OK;
    return out->there ? CHEX_OK : error_context(err, r.status, "the operating points of the model");
}

/* ---- the document of an evaluation ------------------------------------------------------------------------------- */

static bool
is_there(const struct operating *o)
{
    return o && o->there;
}

/* On the images on which they were chosen, thresholds look too good. */
static bool
is_optimistic(const struct operating *o, const char *members)
{
    return strcmp(o->members, members) == 0;
}

static json_t *
share_json(uint64_t part, uint64_t whole)
{
    return whole > 0 ? json_real((double)part / (double)whole) : json_null();
}

static json_t *
applied_point(const struct operating *o, const struct evaluation *e, unsigned finding, enum operating_rule rule,
              const char *members)
{
    const struct finding_metrics *m = &e->metrics.finding[finding];
    const struct operating_point *chosen = &o->finding[finding].point[rule];
    struct operating_point p;

    if (isnan(chosen->threshold) || e->not_finite > 0)
        return json_null();
    p = operating_apply(e, finding, rule, chosen->threshold);
    return json_pack("{s:b,s:s,s:f,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "optimistic", is_optimistic(o, members),
                     "chosen_on", o->split, "threshold", p.threshold, "value", real_json(p.value), "sensitivity",
                     share_json(p.true_positives, m->positives), "specificity",
                     share_json(m->negatives - p.false_positives, m->negatives), "precision",
                     share_json(p.true_positives, p.true_positives + p.false_positives), "true_positives",
                     count_json(p.true_positives), "false_positives", count_json(p.false_positives), "true_negatives",
                     count_json(m->negatives - p.false_positives), "false_negatives",
                     count_json(m->positives - p.true_positives));
}

json_t *
operating_json_finding(const struct operating *o, const struct evaluation *e, unsigned finding, const char *members)
{
    const struct finding_operating *f;

    if (!is_there(o))
        return json_null();
    f = &o->finding[finding];
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "positives", count_json(f->positives), "negatives",
                     count_json(f->negatives), "refused", refusal_json(f->refusal), "platt", platt_json(f),
                     operating_rule_name[OPERATING_YOUDEN], applied_point(o, e, finding, OPERATING_YOUDEN, members),
                     operating_rule_name[OPERATING_SENSITIVITY],
                     applied_point(o, e, finding, OPERATING_SENSITIVITY, members));
}

json_t *
operating_json_origin(const struct operating *o, const char *members)
{
    if (!is_there(o))
        return json_null();
    return json_pack("{s:s,s:s,s:b,s:s,s:s,s:o,s:o}", "chosen_on", o->split, "members_sha256", o->members, "optimistic",
                     is_optimistic(o, members), "precision", precision_names[o->precision], "tta", tta_names[o->tta],
                     "images", count_json(o->images), "patients", count_json(o->patients));
}
