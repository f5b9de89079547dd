/*
 * metrics_document.c - the JSON document of an evaluation (schemas/evaluation.schema.json, predictions.h), and metrics
 * as members of other documents (metrics.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/predictions.h"

#include "base/json.h"
#include "dataset/dataset.h"

#include <math.h>
#include <stdio.h>

/* A failed allocation gives NULL; then json_pack() returns NULL too, and append_json() reports it at the end. */
static json_t *
share_json(uint64_t part, uint64_t whole)
{
    return whole > 0 ? json_real((double)part / (double)whole) : json_null();
}

static json_t *
point_json(const struct operating_point *p, uint64_t positives, uint64_t negatives)
{
    uint64_t tp = p->true_positives, fp = p->false_positives;

    if (isnan(p->value))
        return json_null();
    /* The threshold was chosen with the labels of these images. */
    return json_pack("{s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "optimistic", true, "threshold",
                     real_json(p->threshold), "value", real_json(p->value), "sensitivity", share_json(tp, positives),
                     "specificity", share_json(negatives - fp, negatives), "precision", share_json(tp, tp + fp),
                     "true_positives", count_json(tp), "false_positives", count_json(fp), "true_negatives",
                     count_json(negatives - fp), "false_negatives", count_json(positives - tp));
}

/* Set the member NAMESUFFIX; takes ownership of value, also on failure. */
static bool
set(json_t *object, const char *name, const char *suffix, json_t *value)
{
    char key[64];

    snprintf(key, sizeof(key), "%s%s", name, suffix);
    return json_object_set_new(object, key, value) == 0;
}

static json_t *
keep_if(bool good, json_t *value)
{
    if (!good)
        json_decref(value);
    return good ? value : NULL;
}

bool
metrics_json_mark(json_t *object, bool leaky, const char *short_run)
{
    return (!leaky || set(object, "leaky", "", json_true())) &&
           (!short_run[0] || set(object, "short_run", "", json_string(short_run)));
}

bool
metrics_json_add(json_t *object, const struct measured metric[METRIC_COUNT], const struct metrics *m,
                 enum metrics_form form)
{
    bool good = metrics_json_mark(object, m->leaky, m->short_run);
    unsigned i;

    for (i = 0; i < METRIC_COUNT; i++) {
        const char *name = metric_info[i].name;
        double value = metric[i].value, low = metric[i].low, high = metric[i].high;

        if (form == METRICS_DOCUMENT)
            good &= set(
                object, name, "",
                json_pack("{s:o,s:o,s:o}", "value", real_json(value), "low", real_json(low), "high", real_json(high)));
        else
            good &= set(object, name, "", real_json(value)) &&
                    set(object, name, "_95",
                        isfinite(low) && isfinite(high) ? json_pack("[f,f]", low, high) : json_null());
    }
    return good;
}

static json_t *
finding_json(const struct metrics *m, unsigned finding, const char *name, enum metrics_form form)
{
    const struct finding_metrics *f = &m->finding[finding];
    uint64_t known = f->positives + f->negatives;
    json_t *object = json_pack("{s:s,s:o}", "name", name, "positives", count_json(f->positives));
    bool good = true;
    unsigned i;

    if (form == METRICS_DOCUMENT)
        good = set(object, "negatives", "", count_json(f->negatives)) &&
               set(object, "prevalence", "", share_json(f->positives, known));
    good &= metrics_json_add(object, f->metric, m, form);
    for (i = 0; i < CRITERION_COUNT && form != METRICS_SUMMARY; i++) {
        if (form == METRICS_DOCUMENT)
            good &= set(object, criterion_name[i], "", point_json(&f->point[i], f->positives, f->negatives));
        else
            good &= set(object, criterion_name[i], "", real_json(f->point[i].value)) &&
                    set(object, criterion_name[i], "_threshold", real_json(f->point[i].threshold));
    }
    return keep_if(good, object);
}

json_t *
metrics_json_optimistic(void)
{
    json_t *list = json_array();
    bool good = true;
    unsigned i;

    for (i = 0; i < CRITERION_COUNT; i++)
        good &= json_array_append_new(list, json_string(criterion_name[i])) == 0;
    return keep_if(good, list);
}

json_t *
metrics_json_findings(const struct metrics *m, const char *const *name, enum metrics_form form)
{
    json_t *list = json_array();
    bool good = true;
    unsigned k;

    for (k = 0; k < m->outputs; k++)
        good &= json_array_append_new(list, finding_json(m, k, name[k], form)) == 0;
    return keep_if(good, list);
}

static json_t *
means_json(const struct metrics *m)
{
    json_t *object = json_pack("{s:o}", "findings", count_json(m->defined));

    return keep_if(metrics_json_add(object, m->mean, m, METRICS_DOCUMENT), object);
}

static json_t *
skipped_json(const struct evaluation *e, const struct chex_dataset *ds)
{
    json_t *list = json_array();
    size_t i;

    for (i = 0; list && i < e->skipped_count; i++) {
        const struct sample_place *p = &e->skipped[i];

        if (json_array_append_new(list, json_pack("{s:s,s:o}", "shard", chex_dataset_shard(ds, p->shard)->name,
                                                  "record", count_json(p->index))) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *
split_json(const struct evaluation *e, const struct evaluation_source *from)
{
    const struct chex_dataset *ds = from->ds;
    const struct chex_split_info *split = chex_dataset_split(ds, e->split);

    return json_pack("{s:s,s:s,s:s,s:o,s:o,s:o,s:o}", "name", split->name, "rule", ds->manifest.split_rule,
                     "members_sha256", split->members_sha256, "certificate", certificate_json(from->certificate),
                     "images", count_json(e->count), "patients", count_json(e->patients), "skipped",
                     skipped_json(e, ds));
}

static json_t *
model_json(const struct evaluation_source *from)
{
    return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o}", "name", from->model, "side", count_json(from->side), "checkpoint",
                     text_json(from->checkpoint), "checkpoint_sha256", text_json(from->checkpoint_sha256), "step",
                     count_json(from->step), "epochs", real_json(from->epochs));
}

/* Complete the findings of a document: where their own thresholds come from, and the operating points of the model. */
static json_t *
findings_json(const struct evaluation *e, const struct evaluation_source *from)
{
    const struct chex_split_info *split = chex_dataset_split(from->ds, e->split);
    json_t *list = metrics_json_findings(&e->metrics, e->findings, METRICS_DOCUMENT), *object;
    bool good = true;
    size_t i;

    json_array_foreach (list, i, object) {
        unsigned k;

        for (k = 0; k < CRITERION_COUNT; k++) {
            json_t *point = json_object_get(object, criterion_name[k]);

            good &= !json_is_object(point) || set(point, "chosen_on", "", json_string(split->name));
        }
        good &= set(object, "operating", "",
                    operating_json_finding(from->operating, e, (unsigned)i, split->members_sha256));
    }
    return keep_if(good, list);
}

static json_t *
document(const struct evaluation *e, const struct evaluation_source *from)
{
    const struct chex_split_info *split = chex_dataset_split(from->ds, e->split);
    const struct metrics *m = &e->metrics;
    json_t *bootstrap = json_pack("{s:s,s:s,s:i,s:o,s:o}", "unit", "patient", "interval", "percentile", "percent", 95,
                                  "replicates", count_json(m->replicates), "seed", count_json(e->seed));
    json_t *views = json_pack("{s:s,s:o,s:s}", "tta", tta_names[e->tta], "count", count_json(e->views), "mean",
                              "probability");

    return json_pack("{s:i,s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "format", METRICS_DOCUMENT_FORMAT,
                     "tool", "chex-train", "version", chex_version(), "use", "research only, not for diagnosis",
                     "dataset_id", chex_dataset_info(from->ds)->id, "split", split_json(e, from), "model",
                     model_json(from), "views", views, "loss", real_json(e->loss), "not_finite",
                     count_json(e->not_finite), "bootstrap", bootstrap, "mean", means_json(m), "operating",
                     operating_json_origin(from->operating, split->members_sha256), "findings", findings_json(e, from));
}

enum chex_status
metrics_text(const struct evaluation *e, const struct evaluation_source *from, struct buffer *text,
             struct chex_error *err)
{
    json_t *doc = document(e, from);
    bool marked = metrics_json_mark(doc, e->metrics.leaky, e->metrics.short_run);
    enum chex_status status = !marked ? error_memory(err)
                                      : append_json(doc, JSON_INDENT(2) | JSON_REAL_PRECISION(17), text, err);

    json_decref(doc);
    return status;
}

enum chex_status
metrics_write(const struct evaluation *e, const struct evaluation_source *from, const struct folder *folder,
              const char *name, struct chex_error *err)
{
    struct buffer text = {0};
    enum chex_status status = metrics_text(e, from, &text, err);

    if (status == CHEX_OK)
        status = safe_file_put(folder, name, text.data, text.size, err);
    buffer_release(&text);
    return status;
}
