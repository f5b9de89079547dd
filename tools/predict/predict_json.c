/*
 * predict_json.c - the JSON document of a prediction, schemas/predict.schema.json; see predict_write.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_write.h"

#include "base/json.h"
#include "dataset/dataset.h"
#include "predict/predict_boxes.h"
#include "predict/predict_gate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *
json_models(const struct models *models)
{
    json_t *list = json_array();
    size_t i;

    for (i = 0; list && i < models->count; i++) {
        const struct predict_model *m = &models->model[i];
        json_t *object = json_pack("{s:o,s:s,s:s,s:i,s:s,s:o,s:i}", "file", text_json(m->file), "sha256", m->sha256,
                                   "name", m->state.model, "side", (int)m->state.side, "dataset_id",
                                   m->state.dataset_id, "step", count_json(m->state.step), "epoch",
                                   (int)m->state.epoch);

        if (json_array_append_new(list, object) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *
json_findings(const struct prediction *p)
{
    json_t *list = json_array();
    unsigned k;

    for (k = 0; list && k < p->models->outputs; k++) {
        const struct finding_operating *f = p->flags->calibration ? &p->flags->calibration->finding[k] : NULL;
        json_t *platt = f && !isnan(f->a) ? json_pack("{s:f,s:f}", "a", f->a, "b", f->b) : json_null();
        json_t *object = json_pack("{s:s,s:o,s:o}", "name", p->models->model[0].findings.name[k], "threshold",
                                   real_json(p->flags->threshold[k]), "platt", platt);

        if (json_array_append_new(list, object) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *
json_refusals(const struct prediction *p)
{
    size_t count, i;
    struct refusal *refusal = prediction_refusals(p, &count);
    json_t *list = refusal ? json_array() : NULL;

    for (i = 0; list && i < count; i++) {
        json_t *object = json_pack("{s:o,s:s,s:o}", "image", text_json(refusal[i].name), "reason", refusal[i].reason,
                                   "detail", text_json(refusal[i].detail));

        if (json_array_append_new(list, object) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    free(refusal);
    return list;
}

/* Images by doubt; one with two doubts counts twice. */
static json_t *
json_doubts(const struct results *r)
{
    json_t *object = json_object();
    unsigned k;
    size_t i;

    for (k = 0; object && k < DOUBTS; k++) {
        uint64_t count = 0;

        for (i = 0; i < r->count; i++)
            count += r->image[i].doubts >> k & 1;
        if (json_object_set_new(object, doubt_names[k], count_json(count)) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* Images that fit better turned or inverted, ordered by name. */
static json_t *
json_orientation(const struct prediction *p)
{
    const struct results *r = p->results;
    json_t *list = json_array();
    size_t i;

    for (i = 0; list && i < r->count; i++) {
        const struct gate_result *g = &r->image[i].gate;
        json_t *object;

        if (!(r->image[i].doubts & (DOUBT_TURNED | DOUBT_INVERTED)))
            continue;
        object = json_pack("{s:o,s:s,s:o,s:o}", "image", text_json(p->images->names.entry[i].name), "change",
                           gate_change_names[g->change], "fit", real_json(g->fit), "changed_fit", real_json(g->better));
        if (json_array_append_new(list, object) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* Where the thresholds come from. */
static json_t *
json_threshold(const struct flags *f)
{
    const struct operating *o = f->rule && strcmp(f->rule, "file") != 0 ? f->calibration : NULL;

    if (!f->rule)
        return json_null();
    return json_pack("{s:s,s:o,s:o,s:o}", "rule", f->rule, "chosen_on", text_json(o ? o->split : NULL),
                     "members_sha256", text_json(o ? o->members : NULL), "precision",
                     text_json(o ? precision_names[o->precision] : NULL));
}

bool
prediction_synthetic(const struct images *images)
{
    bool synthetic = false;
    size_t i;

    for (i = 0; i < images->source.dataset_count; i++)
        synthetic |= images->source.dataset[i]->manifest.synthetic;
    return synthetic || images->synthetic;
}

/* The members after the marks. */
static json_t *
json_body(const struct prediction *p)
{
    const struct models *m = p->models;
    const struct results *r = p->results;
    const struct gate *gate = predict_gate_of(m);
    const struct part part = p->options->part;

    return json_pack("{s:o,s:{s:i,s:s,s:s,s:s},s:o,s:o,s:o,s:i,s:i,s:b,s:{s:o,s:o,s:o,s:o,s:o,s:o},s:o,s:o,s:o}",
                     "models", json_models(m), "images", "size", (int)m->size, "resize",
                     images_resize(p->images, m->size, m->resize), "tta", tta_names[p->options->tta], "precision",
                     precision_names[m->model[0].facts.precision], "threshold", json_threshold(p->flags), "findings",
                     json_findings(p), "split", text_json(p->options->split), "part", (int)part.index + 1, "parts",
                     part_is_whole(part) ? 1 : (int)part.count, "synthetic", prediction_synthetic(p->images), "counts",
                     "images", count_json(r->count), "scored", count_json(r->count - r->refused), "doubtful",
                     json_doubts(r), "refused", count_json(r->refused), "damaged_archives",
                     count_json(prediction_damaged(p->images)), "unreadable_folders",
                     count_json(p->images->source.unreadable), "refused", json_refusals(p), "gate_images",
                     gate ? count_json(gate->images) : json_null(), "orientation", json_orientation(p));
}

/* The file of a contact sheet and what it counts. */
static json_t *
json_sheet(const struct map_writer *w, unsigned k)
{
    const char *finding = w->models->model[0].findings.name[k];
    const struct map_sheet *s = &w->sheets.sheet[k];
    char file[MAP_FILE_NAME] = "";

    if (maps_has_sheet(w, k) && maps_sheet_name(finding, file, NULL) != CHEX_OK)
        return NULL;
    return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o}", "finding", finding, "file", text_json(file[0] ? file : NULL),
                     "labelled", count_json(s->labelled), "hits", count_json(s->count[SHEET_HIT]), "false_alarms",
                     count_json(s->count[SHEET_ALARM]), "misses", count_json(s->count[SHEET_MISS]));
}

/* The contact sheets of the findings with a threshold; one that --finding excludes has only counts. */
static json_t *
json_sheets(const struct map_writer *w)
{
    json_t *list = json_array();
    unsigned k;

    for (k = 0; list && k < w->head.outputs; k++) {
        if (!isnan(w->flags->threshold[k]) && json_array_append_new(list, json_sheet(w, k)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* The maps compared with those of random weights. */
static json_t *
json_random(const struct map_writer *w)
{
    const struct map_check *c = &w->check;
    json_t *list = json_array();
    unsigned k;

    for (k = 0; list && k < w->head.outputs; k++)
        if (json_array_append_new(list, json_pack("{s:s,s:o}", "name", w->models->model[0].findings.name[k],
                                                  "rank_correlation", real_json(c->finding[k]))) != 0) {
            json_decref(list);
            list = NULL;
        }
    return json_pack("{s:o,s:i,s:o}", "rank_correlation", real_json(c->correlation), "images", (int)c->images,
                     "findings", list);
}

/* Where the maps are, and how little of them is left with random weights. */
static json_t *
json_maps(const struct map_writer *w)
{
    json_t *object = json_pack(
        "{s:s,s:o,s:o,s:i,s:i,s:f,s:f,s:i,s:o}", "folder", PREDICT_MAPS, "images", count_json(w->images), "pictures",
        count_json(w->pictures), "height", (int)w->grid.height, "width", (int)w->grid.width, "jump", w->grid.jump,
        "offset", w->grid.offset, "scale", (int)(w->options->map_scale > 0 ? w->options->map_scale : MAP_SCALE),
        "random_weights", json_random(w));

    if (object && w->options->map_sheet && json_object_set_new(object, "sheets", json_sheets(w)) != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

json_t *
prediction_json(const struct prediction *p)
{
    json_t *top = json_pack("{s:i,s:s,s:s,s:s}", "format", 1, "tool", "chex-predict", "version", chex_version(), "use",
                            "research only, not for diagnosis");
    json_t *body = json_body(p);
    bool made = top && body && metrics_json_mark(top, p->models->leaky, p->models->short_run) &&
                json_object_update(top, body) == 0;

    if (made && p->maps)
        made = json_object_set_new(top, "maps", json_maps(p->maps)) == 0;
    if (made && p->boxes)
        made = json_object_set_new(top, "boxes", boxes_json(p->boxes)) == 0;
    json_decref(body);
    if (made)
        return top;
    json_decref(top);
    return NULL;
}
