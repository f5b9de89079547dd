/*
 * page.c - fills the values and parts of the report of a run into page.html; see run.h
 *
 * The page contains neither paths nor times, so the same files of a run always give the same page.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "draw/canvas.h"
#include "draw/template.h"
#include "inspect/diff/runs.h"
#include "inspect/run/each.h"
#include "inspect/run/run.h"
#include "inspect/run/suspects.h"

#include <math.h>
#include <string.h>

#define add      template_add
#define COUNT(n) format_count(n, (char[FORMAT_TEXT]){0})

extern const char *const run_template[]; /* page.html */

static void
add_identity(struct template_values *v, const struct run_report *r)
{
    add(v, "title", "%s", r->in->options->title ? r->in->options->title : "");
    add(v, "synthetic", "%s", r->synthetic ? PICTURE_SYNTHETIC : "");
    template_add_some(v, "unread", !r->dataset_read);
    add(v, "model", "%s", r->model);
    add(v, "split", "%s", r->split);
    add(v, "rule", "%s", r->rule);
    add(v, "version", "%s", chex_version());
    add(v, "step", "%s", COUNT(r->step));
    add(v, "epochs", "%s", isnan(r->epochs) ? "" : run_number(r->epochs, 1, (char[RUN_DIGITS]){0}));
    add(v, "checkpoint_sha256", "%s", r->checkpoint_sha256);
    add(v, "dataset_id", "%s", r->dataset_id);
    add(v, "members", "%s", r->members);
    add(v, "tta", "%s", strcmp(r->tta, "none") == 0 ? "the center" : r->tta);
    add(v, "tool_version", "%s", r->tool_version);
    template_add_some(v, "has_command", r->command[0] != '\0');
}

static void
add_counts(struct template_values *v, const struct run_report *r)
{
    unsigned few = r->p.outputs - r->enough;

    add(v, "images", "%s", COUNT(r->p.count));
    add(v, "patients", "%s", COUNT(r->patients));
    add(v, "findings", "%u", r->p.outputs);
    add(v, "few", "%u", few);
    template_add_some(v, "has_few", few);
    add(v, "auroc", "%s",
        run_number(r->enough > 0 ? r->metrics->mean[METRIC_AUROC].value : (double)NAN, 3, (char[RUN_DIGITS]){0}));
    add(v, "fewest", "%d", METRICS_FEWEST_PATIENTS);
    add(v, "floor_images", "%s", r->floor->missing[0] ? "" : COUNT(r->floor->images));
    add(v, "floor_split", "%s", r->floor->split);
    add(v, "floor_missing", "%s", r->floor->missing);
    add(v, "chosen_on", "%s", r->chosen_on);
    template_add_some(v, "optimistic", r->optimistic);
    add(v, "groups_missing", "%s", r->groups->missing);
    template_add_some(v, "many", r->many ? r->many->diff->count : 0);
    template_add_some(v, "has_suspects", r->suspects && r->suspects->have > 0);
    template_add_some(v, "references", r->references != NULL);
    template_add_some(v, "labels", r->labels != NULL);
    template_add_some(v, "maps", r->maps != NULL);
    add(v, "maps_images", "%s", COUNT(r->maps ? r->maps->images : 0));
    add(v, "maps_covered", "%s", COUNT(r->maps ? r->maps->covered : 0));
    add(v, "maps_other", "%s",
        r->maps && r->maps->images > r->maps->covered ? COUNT(r->maps->images - r->maps->covered) : "");
    add(v, "maps_options", "%s", r->maps ? run_maps_options(r->maps, (char[RUN_MAPS_OPTIONS]){0}) : "");
    template_add_some(v, "maps_synthetic", r->maps && (r->maps->synthetic || r->maps->box_synthetic));
    add(v, "maps_compared", "%s", COUNT(r->maps ? r->maps->compared : 0));
    template_add_some(v, "groups_any", r->groups->count);
    template_add_some(v, "groups_file", r->groups->of_file);
    add(v, "groups_without", "%s", COUNT(r->groups->without));
    add(v, "group_fewest", "%d", SUBGROUP_FEWEST);
    add(v, "tested", "%s", COUNT(r->groups->tested));
    add(v, "draws", "%s", COUNT(RUN_DRAWS));
    add(v, "slope_fewest", "%d", CALIBRATION_FEWEST);
    add(v, "ece_fewest", "%d", CALIBRATION_IMAGES);
    add(v, "bins", "%d", CALIBRATION_BINS);
}

/* At the top: whoever reads only the numbers must see it. */
static void
put_used(struct html *h, const struct run_report *r)
{
    if (r->many && r->many->each->used > 0)
        r = r->many->each->ensemble;
    if (r->answers == 0 || strcmp(r->answer[0].id, RUN_USED) != 0)
        return;
    html_raw(h, "<p class=\"synthetic\" id=\"used\">");
    html_words(h, r->answer[0].text);
    html_raw(h, "</p>\n");
}

static void
put_command(struct html *h, const struct run_report *r)
{
    html_raw(h, "<pre id=\"command\">");
    html_words(h, r->command);
    html_raw(h, "</pre>\n");
}

static const struct run_part {
    const char *name;
    void (*put)(struct html *h, const struct run_report *r);
} parts[] = {
    {"used", put_used},
    {"answers", run_put_answers},
    {"command", put_command},
    {"table_flow", run_table_flow},
    {"table_findings", run_table_findings},
    {"table_calibration", run_table_calibration},
    {"table_points", run_table_points},
    {"table_underdiagnosis", run_table_underdiagnosis},
    {"tables_groups", run_tables_groups},
    {"table_shortcuts", run_table_shortcuts},
    {"tables_many", run_tables_many},
    {"tables_references", run_tables_references},
    {"tables_labels", run_tables_labels},
    {"tables_maps", run_tables_maps},
    {"plots", run_plots},
    {"each", run_put_each},
};

static enum chex_status
put_part(struct html *h, const void *context, const char *name, size_t length, bool *found, struct chex_error *err)
{
    static const char suspects[] = "suspects";
    size_t i;

    if (length == strlen(suspects) && memcmp(name, suspects, length) == 0) {
        *found = true;
        return run_put_suspects(h, context, err);
    }
    for (i = 0; i < sizeof(parts) / sizeof(parts[0]) && !*found; i++) {
        *found = strlen(parts[i].name) == length && memcmp(parts[i].name, name, length) == 0;
        if (*found)
            parts[i].put(h, context);
    }
    return CHEX_OK;
}

enum chex_status
run_report_page(struct run_report *r, struct html *h, struct chex_error *err)
{
    struct template_values values = {.count = 0};

    add_identity(&values, r);
    add_counts(&values, r);
    return template_fill(run_template, &values, put_part, r, h, err);
}
