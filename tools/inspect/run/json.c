/*
 * json.c - the numbers of the report of a run for scripts; see run.h, schemas/inspect.schema.json
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/run.h"

#include <math.h>

static json_t *
agreement_json(const struct run_report *r, unsigned k)
{
    const struct run_agreement *a = &r->labels->agreement[k];

    if (!r->labels->known[k])
        return json_null();
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "name", text_json(r->finding[k].name), "both",
                     count_json(a->count[1][1]), "only_run", count_json(a->count[1][0]), "only_file",
                     count_json(a->count[0][1]), "neither", count_json(a->count[0][0]), "kappa", real_json(a->kappa),
                     "auroc_run", isnan(a->own.value) ? json_null() : run_measured_json(&a->own), "auroc_file",
                     isnan(a->other.value) ? json_null() : run_measured_json(&a->other));
}

static json_t *
labels_json(const struct run_report *r)
{
    json_t *agreement = json_array();
    unsigned k;

    if (!r->labels) {
        json_decref(agreement);
        return json_null();
    }
    for (k = 0; k < r->p.outputs; k++)
        inspect_json_push(&agreement, agreement_json(r, k));
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "images", count_json(r->labels->report->p.count), "patients",
                     count_json(r->labels->report->patients), "others", count_json(r->labels->others), "unknown_labels",
                     count_json(r->labels->strange), "agreement", agreement, "findings",
                     run_findings_json(r->labels->report));
}

json_t *
run_report_json(const struct run_report *r, const char *output, size_t bytes)
{
    json_t *mean = r->enough > 0 ? run_measured_json(&r->metrics->mean[METRIC_AUROC]) : json_null();
    json_t *details = run_details_json(r);
    json_t *object = json_pack(
        "{s:o,s:o,s:o,s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:i,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "path", text_json(r->path),
        "output", text_json(output), "bytes", count_json(bytes), "use", "research only, not for diagnosis", "split",
        r->split, "members_sha256", r->members, "model", r->model, "synthetic",
        r->dataset_read ? json_boolean(r->synthetic) : json_null(), "images", count_json(r->p.count), "patients",
        count_json(r->patients), "chosen_on", text_json(r->chosen_on[0] ? r->chosen_on : NULL), "replicates", RUN_DRAWS,
        "seed", RUN_SEED, "mean_auroc", mean, "gaps_tested", count_json(r->groups->tested), "labels", labels_json(r),
        "runs", run_many_json(r), "references", run_references_json(r), "suspects", run_suspects_json(r), "maps",
        run_maps_json(r));

    if (!details || json_object_update(object, details) != 0) {
        json_decref(object);
        object = NULL;
    }
    json_decref(details);
    return object;
}
