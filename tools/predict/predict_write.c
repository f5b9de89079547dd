/*
 * predict_write.c - see predict_write.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_write.h"

#include "base/ascii.h"
#include "base/json.h"
#include "dataset/dataset.h"
#include "io/csv.h"
#include "predict/predict_boxes.h"
#include "predict/predict_gate.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The last column, 1 in every line.  A comment before the header would break readers of CSV, and a column stays with
 * the numbers when a program copies some of the lines.
 */
#define RESEARCH "research_use_only"

/* ---- CSV --------------------------------------------------------------------------------------------------------- */

/* A growing text; keeps the first failure. */
struct csv_text {
    struct buffer *b;
    enum chex_status status;
    struct chex_error *err;
};

static void
put(struct csv_text *t, const char *text, size_t size)
{
    if (t->status == CHEX_OK)
        t->status = buffer_append(t->b, text, size, t->err);
}

static void
put_field(struct csv_text *t, const char *field)
{
    if (t->status == CHEX_OK)
        t->status = table_append_field(t->b, field, t->err);
}

/* Append a comma and a number; NaN: nothing after the comma. */
static void
put_number(struct csv_text *t, double value)
{
    if (t->status == CHEX_OK && isnan(value))
        t->status = buffer_append(t->b, ",", 1, t->err);
    else if (t->status == CHEX_OK)
        t->status = buffer_printf(t->b, t->err, ",%.9g", value);
}

static void
put_names(struct csv_text *t, const struct models *models, const char *prefix)
{
    unsigned k;

    for (k = 0; k < models->outputs; k++) {
        put(t, prefix, strlen(prefix));
        put(t, models->model[0].findings.name[k], strlen(models->model[0].findings.name[k]));
    }
}

/* "ok", "refused", or the doubts: "blank+small". */
static void
put_status(struct csv_text *t, const struct image_result *r)
{
    bool first = true;
    unsigned i;

    if (r->refused != CHEX_OK || r->doubts == 0) {
        put_field(t, r->refused != CHEX_OK ? "refused" : "ok");
        return;
    }
    for (i = 0; i < DOUBTS; i++) {
        if (!(r->doubts >> i & 1))
            continue;
        put(t, "+", first ? 0 : 1);
        put(t, doubt_names[i], strlen(doubt_names[i]));
        first = false;
    }
}

static double
probability_of(const struct results *r, size_t member, size_t image, unsigned finding)
{
    return (double)r->probability[(member * r->count + image) * r->outputs + finding];
}

/* The mean over the models, in their order. */
static double
mean_of(const struct results *r, size_t image, unsigned finding)
{
    double sum = 0;
    size_t m;

    for (m = 0; m < r->members; m++)
        sum += probability_of(r, m, image, finding);
    return sum / (double)r->members;
}

/* The standard deviation of the sample of models (n - 1). */
static double
deviation_of(const struct results *r, size_t image, unsigned finding)
{
    double mean = mean_of(r, image, finding), sum = 0;
    size_t m;

    for (m = 0; m < r->members; m++) {
        double off = probability_of(r, m, image, finding) - mean;

        sum += off * off;
    }
    return sqrt(sum / (double)(r->members - 1));
}

static void
put_scores(struct csv_text *t, const struct prediction *p, size_t i)
{
    const struct results *r = p->results;
    unsigned k;

    for (k = 0; k < r->outputs; k++)
        put_number(t, mean_of(r, i, k));
    for (k = 0; r->members > 1 && k < r->outputs; k++)
        put_number(t, deviation_of(r, i, k));
    for (k = 0; k < r->outputs; k++)
        put_number(t,
                   (double)(float)flags_calibrate(
                       p->flags, k, r->members > 1 ? ensemble_logit(mean_of(r, i, k)) : r->logit[i * r->outputs + k]));
    for (k = 0; k < r->outputs; k++)
        if (isnan(p->flags->threshold[k]))
            put(t, ",", 1);
        else
            put(t, flags_is_positive(p->flags, k, mean_of(r, i, k)) ? ",1" : ",0", 2);
}

static void
put_image(struct csv_text *t, const struct prediction *p, size_t i)
{
    const struct results *r = p->results;
    size_t columns = (size_t)r->outputs * (r->members > 1 ? 4 : 3);

    put_field(t, p->images->names.entry[i].name);
    put(t, ",", 1);
    put_status(t, &r->image[i]);
    if (r->image[i].refused == CHEX_OK)
        put_scores(t, p, i);
    else
        for (; columns > 0; columns--)
            put(t, ",", 1);
    if (p->models->leaky)
        put(t, ",1", 2);
    if (p->models->short_run[0]) {
        put(t, ",", 1);
        put_field(t, p->models->short_run);
    }
    put(t, ",1\n", 3);
}

enum chex_status
prediction_csv(const struct prediction *p, struct buffer *out, struct chex_error *err)
{
    struct csv_text t = {.b = out, .err = err};
    size_t i;

    put_field(&t, "image");
    put(&t, ",status", 7);
    put_names(&t, p->models, ",prob_");
    if (p->models->count > 1)
        put_names(&t, p->models, ",sd_");
    put_names(&t, p->models, ",cal_");
    put_names(&t, p->models, ",flag_");
    put(&t, ",leaky", p->models->leaky ? 6 : 0);
    put(&t, ",short_run", p->models->short_run[0] ? 10 : 0);
    put(&t, "," RESEARCH "\n", strlen(RESEARCH) + 2);
    for (i = 0; t.status == CHEX_OK && i < p->results->count; i++)
        put_image(&t, p, i);
    return t.status;
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

/* A refused image or a damaged archive. */
struct refusal {
    const char *name, *reason, *detail;
};

static int
compare_refusals(const void *a, const void *b)
{
    const struct refusal *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order != 0 ? order : strcmp(x->detail, y->detail);
}

size_t
prediction_damaged(const struct images *images)
{
    size_t count = 0, i;

    for (i = 0; i < images->source.archive_count; i++)
        count += images->content[i].damaged;
    return count;
}

/* The reason of --strict is the first doubt. */
static const char *
reason_of(const struct image_result *r)
{
    unsigned i;

    for (i = 0; i < DOUBTS; i++)
        if (r->doubts >> i & 1 && r->refused == CHEX_ERR_UNSUPPORTED)
            return doubt_names[i];
    return chex_status_name(r->refused);
}

/* List the refusals, ordered by name; the list is freed by the caller.  NULL when out of memory. */
static struct refusal *
list_refusals(const struct prediction *p, size_t *count)
{
    const struct results *r = p->results;
    const struct source *s = &p->images->source;
    struct refusal *list = calloc((size_t)r->refused + s->archive_count + 1, sizeof(*list));
    size_t i;

    *count = 0;
    for (i = 0; list && i < r->count; i++)
        if (r->image[i].refused != CHEX_OK)
            list[(*count)++] = (struct refusal){p->images->names.entry[i].name, reason_of(&r->image[i]),
                                                r->image[i].detail};
    for (i = 0; list && i < s->archive_count; i++) {
        const struct archive_content *c = &p->images->content[i];

        if (c->damaged)
            list[(*count)++] = (struct refusal){path_tail(s->archive[i], strlen(s->archive[i]), 1),
                                                chex_status_name(c->fault.error.status), c->fault.error.text};
    }
    if (list)
        qsort(list, *count, sizeof(*list), compare_refusals);
    return list;
}

enum chex_status
prediction_refused(const struct prediction *p, struct buffer *out, struct chex_error *err)
{
    struct csv_text t = {.b = out, .err = err};
    size_t count, i;
    struct refusal *list = list_refusals(p, &count);

    if (!list)
        return error_memory(err);
    put(&t, "image,reason,detail," RESEARCH "\n", strlen(RESEARCH) + 21);
    for (i = 0; i < count; i++) {
        put_field(&t, list[i].name);
        put(&t, ",", 1);
        put_field(&t, list[i].reason);
        put(&t, ",", 1);
        put_field(&t, list[i].detail);
        put(&t, ",1\n", 3);
    }
    free(list);
    return t.status;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

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
    struct refusal *refusal = list_refusals(p, &count);
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

    return json_pack("{s:o,s:{s:i,s:s,s:s,s:s},s:o,s:o,s:i,s:i,s:b,s:{s:o,s:o,s:o,s:o,s:o,s:o},s:o,s:o,s:o}", "models",
                     json_models(m), "images", "size", (int)m->size, "resize",
                     images_resize(p->images, m->size, m->resize), "tta", tta_names[p->options->tta], "precision",
                     precision_names[m->model[0].facts.precision], "threshold", json_threshold(p->flags), "findings",
                     json_findings(p), "part", (int)part.index + 1, "parts", part_is_whole(part) ? 1 : (int)part.count,
                     "synthetic", prediction_synthetic(p->images), "counts", "images", count_json(r->count), "scored",
                     count_json(r->count - r->refused), "doubtful", json_doubts(r), "refused", count_json(r->refused),
                     "damaged_archives", count_json(prediction_damaged(p->images)), "unreadable_folders",
                     count_json(p->images->source.unreadable), "refused", json_refusals(p), "gate_images",
                     gate ? count_json(gate->images) : json_null(), "orientation", json_orientation(p));
}

/* The counts of the contact sheets. */
static json_t *
json_sheets(const struct map_writer *w)
{
    json_t *list = json_array();
    unsigned k;

    for (k = 0; list && k < w->head.outputs; k++) {
        const struct map_sheet *s = &w->sheets.sheet[k];
        json_t *object;

        if (isnan(w->flags->threshold[k]))
            continue;
        object = json_pack("{s:s,s:o,s:o,s:o,s:o}", "finding", w->models->model[0].findings.name[k], "labelled",
                           count_json(s->labelled), "hits", count_json(s->count[SHEET_HIT]), "false_alarms",
                           count_json(s->count[SHEET_ALARM]), "misses", count_json(s->count[SHEET_MISS]));
        if (json_array_append_new(list, object) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* Where the maps are, and how little of them is left with random weights. */
static json_t *
json_maps(const struct map_writer *w)
{
    const struct map_check *c = &w->check;
    json_t *object = json_pack("{s:s,s:o,s:o,s:i,s:i,s:f,s:f,s:i,s:{s:o,s:i}}", "folder", PREDICT_MAPS, "images",
                               count_json(w->images), "pictures", count_json(w->pictures), "height",
                               (int)w->grid.height, "width", (int)w->grid.width, "jump", w->grid.jump, "offset",
                               w->grid.offset, "scale",
                               (int)(w->options->map_scale > 0 ? w->options->map_scale : MAP_SCALE), "random_weights",
                               "rank_correlation", real_json(c->correlation), "images", (int)c->images);

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
    json_decref(body);
    if (made)
        return top;
    json_decref(top);
    return NULL;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static enum chex_status
refuse_earlier(const struct predict_options *o, const struct folder *folder, struct chex_error *err)
{
    static const char *const names[] = {PREDICT_JSON, PREDICT_CSV, PREDICT_REFUSED, PREDICT_MAPS, PREDICT_BOXES_JSON};
    size_t i;

    for (i = 0; !o->force && i < sizeof(names) / sizeof(names[0]); i++)
        if (faccessat(folder->fd, names[i], F_OK, 0) == 0)
            return error_set(err, CHEX_ERR_USAGE, "'%s' has a %s already: choose another folder for -o, or --force",
                             o->out, names[i]);
    return CHEX_OK;
}

enum chex_status
prediction_check_output(const struct predict_options *o, struct chex_error *err)
{
    struct folder folder = {.fd = -1};
    enum chex_status status = folder_check_writable(o->out, err);

    if (status == CHEX_OK && folder_open(o->out, false, &folder, NULL) == CHEX_OK)
        status = refuse_earlier(o, &folder, err);
    folder_close(&folder);
    return status;
}

enum chex_status
prediction_open_output(const struct predict_options *o, struct prediction_output *out, struct chex_error *err)
{
    enum chex_status status;

    out->is_new = access(o->out, F_OK) != 0;
    status = folder_open(o->out, true, &out->folder, err);
    if (status == CHEX_OK)
        status = lock_take(&out->lock, &out->folder, o->break_lock, err);
    return status == CHEX_OK ? refuse_earlier(o, &out->folder, err) : status;
}

enum chex_status
prediction_close_output(const struct predict_options *o, struct prediction_output *out, struct chex_error *err)
{
    enum chex_status status = out->lock.held ? lock_drop(&out->lock, err) : CHEX_OK;

    folder_close(&out->folder);
    if (out->is_new)
        (void)rmdir(o->out); /* fails if it has a file */
    out->is_new = false;
    return status;
}

enum chex_status
prediction_write(const struct prediction *p, const struct prediction_output *out, struct chex_error *err)
{
    struct buffer csv = {0}, refused = {0}, json = {0};
    const struct folder *folder = &out->folder;
    json_t *top = prediction_json(p);
    enum chex_status status = append_json(top, JSON_INDENT(2) | JSON_REAL_PRECISION(17), &json, err);

    json_decref(top);
    if (status == CHEX_OK)
        status = prediction_csv(p, &csv, err);
    if (status == CHEX_OK)
        status = prediction_refused(p, &refused, err);
    if (status == CHEX_OK)
        status = lock_check(&out->lock, err);
    if (status == CHEX_OK)
        status = folder_remove(folder, PREDICT_JSON, err);
    if (status == CHEX_OK)
        status = p->boxes ? boxes_write(p->boxes, folder, err) : boxes_remove(folder, err);
    if (status == CHEX_OK && !p->maps)
        status = maps_remove(folder, err);
    if (status == CHEX_OK)
        status = safe_file_put(folder, PREDICT_REFUSED, refused.data, refused.size, err);
    if (status == CHEX_OK)
        status = safe_file_put(folder, PREDICT_CSV, csv.data, csv.size, err);
    if (status == CHEX_OK)
        status = safe_file_put(folder, PREDICT_JSON, json.data, json.size, err);
    buffer_release(&csv);
    buffer_release(&refused);
    buffer_release(&json);
    return status;
}
