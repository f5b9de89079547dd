/*
 * predict_write.c - the CSV files and the folder of a prediction; see predict_write.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_write.h"

#include "base/json.h"
#include "eval/predictions.h"
#include "io/csv.h"
#include "predict/predict_boxes.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
        put_number(t, (double)(float)flags_calibrate(p->flags, k,
                                                     r->members > 1 ? operating_mean_logit(mean_of(r, i, k))
                                                                    : r->logit[i * r->outputs + k]));
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
    put(&t, "," RESEARCH_COLUMN "\n", strlen(RESEARCH_COLUMN) + 2);
    for (i = 0; t.status == CHEX_OK && i < p->results->count; i++)
        put_image(&t, p, i);
    return t.status;
}

enum chex_status
prediction_refused(const struct prediction *p, struct buffer *out, struct chex_error *err)
{
    struct csv_text t = {.b = out, .err = err};
    size_t count, i;
    struct refusal *list = prediction_refusals(p, &count);

    if (!list)
        return error_memory(err);
    put(&t, "image,reason,detail," RESEARCH_COLUMN "\n", strlen(RESEARCH_COLUMN) + 21);
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
