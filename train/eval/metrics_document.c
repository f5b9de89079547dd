/*
 * metrics_document.c - the document of an evaluation (schemas/evaluation.schema.json); see predictions.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/predictions.h"

#include "base/json.h"
#include "dataset/dataset.h"

#include <math.h>

/* A value that could not be made is NULL; json_pack() gives NULL then too, and json_append() says so in the end. */
static json_t *
count_json(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static json_t *
real_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *
share_json(uint64_t part, uint64_t whole)
{
    return whole > 0 ? json_real((double)part / (double)whole) : json_null();
}

static json_t *
interval_json(double value, const struct interval *i)
{
    return json_pack("{s:o,s:o,s:o}", "value", real_json(value), "low", real_json(i->low), "high", real_json(i->high));
}

static json_t *
point_json(const struct operating_point *p, uint64_t positives, uint64_t negatives)
{
    uint64_t tp = p->true_positives, fp = p->false_positives;

    if (isnan(p->value))
        return json_null();
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "threshold", real_json(p->threshold), "value",
                     real_json(p->value), "sensitivity", share_json(tp, positives), "specificity",
                     share_json(negatives - fp, negatives), "precision", share_json(tp, tp + fp), "true_positives",
                     count_json(tp), "false_positives", count_json(fp), "true_negatives", count_json(negatives - fp),
                     "false_negatives", count_json(positives - tp));
}

static json_t *
finding_json(const char *name, const struct finding_metrics *f, uint64_t images)
{
    uint64_t negatives = images - f->positives;

    return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "name", name, "positives", count_json(f->positives),
                     "negatives", count_json(negatives), "prevalence", share_json(f->positives, images), "auroc",
                     interval_json(f->auroc, &f->auroc_95), "auprc", interval_json(f->auprc, &f->auprc_95), "youden",
                     point_json(&f->youden, f->positives, negatives), "f1",
                     point_json(&f->f1, f->positives, negatives));
}

static json_t *
findings_json(const struct metrics *m)
{
    json_t *list = json_array();
    unsigned k;

    for (k = 0; list && k < m->outputs; k++) {
        if (json_array_append_new(list, finding_json(chex_finding_name(k), &m->finding[k], m->images)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
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
split_json(const struct evaluation *e, const struct chex_dataset *ds)
{
    const struct chex_split_info *split = chex_dataset_split(ds, e->split);

    return json_pack("{s:s,s:s,s:s,s:o,s:o,s:o}", "name", split->name, "rule", ds->manifest.split_rule,
                     "members_sha256", split->members_sha256, "images", count_json(e->count), "patients",
                     count_json(e->patients), "skipped", skipped_json(e, ds));
}

static json_t *
model_json(const struct evaluation_source *from)
{
    return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o}", "name", from->model, "side", count_json(from->side), "checkpoint",
                     json_text(from->checkpoint), "checkpoint_sha256", json_text(from->checkpoint_sha256), "step",
                     count_json(from->step), "epochs", real_json(from->epochs));
}

static json_t *
means_json(const struct metrics *m)
{
    return json_pack("{s:o,s:o,s:o}", "findings", count_json(m->defined), "auroc",
                     interval_json(m->mean_auroc, &m->mean_auroc_95), "auprc",
                     interval_json(m->mean_auprc, &m->mean_auprc_95));
}

static json_t *
document(const struct evaluation *e, const struct evaluation_source *from)
{
    const struct metrics *m = &e->metrics;
    json_t *bootstrap = json_pack("{s:s,s:s,s:i,s:o,s:o}", "unit", "patient", "interval", "percentile", "percent", 95,
                                  "replicates", count_json(m->replicates), "seed", count_json(e->seed));
    json_t *views = json_pack("{s:s,s:o,s:s}", "tta", tta_names[e->tta], "count", count_json(e->views), "mean",
                              "probability");

    return json_pack("{s:i,s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "format", METRICS_DOCUMENT_FORMAT, "tool",
                     "chex-train", "version", chex_version(), "use", "research only, not for diagnosis", "dataset_id",
                     chex_dataset_info(from->ds)->id, "split", split_json(e, from->ds), "model", model_json(from),
                     "views", views, "loss", real_json(e->loss), "not_finite", count_json(e->not_finite), "bootstrap",
                     bootstrap, "mean", means_json(m), "findings", findings_json(m));
}

enum chex_status
metrics_write(const struct evaluation *e, const struct evaluation_source *from, const struct folder *folder,
              const char *name, struct chex_error *err)
{
    json_t *doc = document(e, from);
    struct buffer text = {0};
    enum chex_status status = json_append(doc, JSON_INDENT(2) | JSON_REAL_PRECISION(17), &text, err);

    json_decref(doc);
    if (status == CHEX_OK)
        status = safe_file_put(folder, name, text.data, text.size, err);
    buffer_release(&text);
    return status;
}
