/*
 * each_report.c - the details of each of several runs, and the gaps over runs, in the report of a run; see each.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/each.h"
#include "inspect/run/tables.h"

#include "inspect/diff/runs.h"

#include <math.h>

#define COUNT(n) format_count(n, (char[FORMAT_TEXT]){0})

/* ---- gaps over runs ---------------------------------------------------------------------------------------------- */

static void
put_gap(struct html *h, const struct each_gap *g, unsigned runs)
{
    if (isnan(g->gap.mean)) {
        run_cell_note(h, 6, "too few");
        return;
    }
    run_cells_spread(h, &g->gap);
    html_format(h, "<td class=\"w%s\">%u of %u</td>", g->marked > 0 ? " look" : "", g->marked, runs);
}

static void
put_underdiagnosis(struct html *h, const struct run_report *r)
{
    static const char *const heading[] = {"group",    "gap, mean over runs", "SD", "lowest", "highest",
                                          "ensemble", "marked in",           NULL};
    const struct run_each *each = r->many->each;
    unsigned g;

    run_table_begin(h, heading);
    for (g = 0; g < each->groups; g++) {
        if (!r->groups->group[g].shown)
            continue;
        html_raw(h, "<tr><th>");
        html_text(h, r->groups->group[g].name);
        html_raw(h, "; rest: ");
        html_text(h, r->groups->group[g].rest);
        html_raw(h, "</th>");
        put_gap(h, &each->gap[(size_t)g * EACH_GAPS(r->p.outputs) + EACH_UNDERDIAGNOSIS(r->p.outputs)],
                r->many->diff->count);
        html_raw(h, "</tr>\n");
    }
    run_table_end(h);
}

/* The rows of a finding: a measure without a number is left out, but not all of them. */
static void
put_gap_rows(struct html *h, const struct run_report *r, const struct each_gap *gap, unsigned k)
{
    static const char *const name[SUBGROUP_METRICS] = {"TPR", "FPR", "AUROC", "mean p - share"};
    bool first = true;
    unsigned m;

    for (m = 0; m < SUBGROUP_METRICS; m++) {
        const struct each_gap *g = &gap[EACH_GAP(m, k)];

        if (isnan(g->gap.mean))
            continue;
        run_table_row(h, first ? r->finding[k].name : "");
        html_format(h, "<td class=\"t w\">%s</td>", name[m]);
        put_gap(h, g, r->many->diff->count);
        html_raw(h, "</tr>\n");
        first = false;
    }
    if (!first)
        return;
    run_table_row(h, r->finding[k].name);
    run_cell_note(h, 7, "too few");
    html_raw(h, "</tr>\n");
}

static void
put_gaps(struct html *h, const struct run_report *r, unsigned g)
{
    static const char *const heading[] = {"finding", "<gap of",  "mean over runs", "SD", "lowest",
                                          "highest", "ensemble", "marked in",      NULL};
    const struct run_group *group = &r->groups->group[g];
    char id[32], title[2 * GROUP_FILE_NAME + 48];
    unsigned k;

    snprintf(id, sizeof(id), "gaps%u", g);
    snprintf(title, sizeof(title), "Gaps over runs: %s, and the rest: %s", group->name, group->rest);
    html_fold_begin(h, id, title, false);
    run_table_begin(h, heading);
    for (k = 0; k < r->p.outputs; k++)
        put_gap_rows(h, r, r->many->each->gap + (size_t)g * EACH_GAPS(r->p.outputs), k);
    run_table_end(h);
    html_fold_end(h);
}

void
run_tables_gaps(struct html *h, const struct run_report *r)
{
    const struct run_each *each = r->many->each;
    unsigned g;

    if (each->groups == 0)
        return;
    html_raw(h, "<h3>Gaps between groups</h3>\n<p>The gap of each run is at its own thresholds. Marked in: the runs "
                "whose gap has p below 0.05 after Holm's correction within the run. A gap that one run has and others "
                "lack may be chance, or the seed.</p>\n<h3>Underdiagnosis</h3>\n");
    put_underdiagnosis(h, r);
    for (g = 0; g < each->groups; g++)
        if (r->groups->group[g].shown)
            put_gaps(h, r, g);
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

static void
put_identity(struct html *h, const struct run_report *o)
{
    html_raw(h, "<p>");
    html_text(h, o->model);
    html_format(h, ", weights of step %s, SHA-256 <code>", COUNT(o->step));
    html_text(h, o->checkpoint_sha256);
    html_raw(h, "</code></p>\n");
    if (o->command[0]) {
        html_raw(h, "<pre>");
        html_words(h, o->command);
        html_raw(h, "</pre>\n");
    } else if (!o->train[0]) {
        html_raw(h, "<p>Without a run.json, nothing says on which images it was trained.</p>\n");
    }
}

static void
put_ensemble_identity(struct html *h, const struct run_report *r, const struct run_report *o)
{
    html_format(h, "<p>The mean of the probabilities of all %u runs, on the %s images that all of them have. ",
                r->many->diff->count, COUNT(o->p.count));
    if (o->unfitted[0]) {
        html_raw(h, "It has neither thresholds nor calibration: ");
        html_text(h, o->unfitted);
        html_raw(h, ". Those of a single run do not hold for a mean.");
    } else {
        html_raw(h,
                 "Thresholds and calibration of a single run do not hold for a mean. So they were chosen again, from "
                 "the mean of the runs' predictions of ");
        html_text(h, o->chosen_on);
        html_raw(h, ".");
    }
    html_raw(h, "</p>\n");
}

static void
put_floor(struct html *h, const struct run_report *o)
{
    if (!o->floor->missing[0])
        return;
    html_raw(h, "<p class=\"dim\">No floor: ");
    html_text(h, o->floor->missing);
    html_raw(h, ".</p>\n");
}

static void
put_details(struct html *h, const struct run_report *o)
{
    char id[32];

    html_raw(h, "<table class=\"checks\"><tbody>\n");
    run_put_answers(h, o);
    html_raw(h, "</tbody></table>\n<h3>Findings</h3>\n");
    run_table_findings(h, o);
    put_floor(h, o);
    html_raw(h, "<h3>Calibration</h3>\n");
    run_table_calibration(h, o);
    html_raw(h, "<h3>Thresholds</h3>\n");
    run_table_points(h, o);
    if (o->groups->count > 0)
        html_raw(h, "<h3>Subgroups: underdiagnosis, then each group</h3>\n");
    run_table_underdiagnosis(h, o);
    run_tables_groups(h, o);
    html_raw(h, "<h3>Shortcuts</h3>\n");
    run_table_shortcuts(h, o);
    snprintf(id, sizeof(id), "%splots", o->id);
    html_fold_begin(h, id, "Plots", false);
    run_plots(h, o);
    html_fold_end(h);
}

/* As at the top of the page. */
static const char *
mean_auroc(const struct run_report *o, char out[RUN_DIGITS])
{
    return run_number(o->enough > 0 ? o->metrics->mean[METRIC_AUROC].value : (double)NAN, 3, out);
}

void
run_put_each(struct html *h, const struct run_report *r)
{
    const struct run_each *each = r->many ? r->many->each : NULL;
    char title[80], number[RUN_DIGITS];
    unsigned i;

    if (each && matched_left_out(&r->many->diff->images) > 0)
        html_raw(
            h, "<p class=\"look\">Not all images are in all runs. The details of a run are about all its images, those "
               "of the ensemble about the images that all runs have.</p>\n");
    for (i = 1; each && i < each->shown; i++) {
        char id[16];

        snprintf(id, sizeof(id), "run%u", i + 1);
        snprintf(title, sizeof(title), "Run %u: mean AUROC %s", i + 1, mean_auroc(each->of[i], number));
        html_fold_begin(h, id, title, false);
        put_identity(h, each->of[i]);
        put_details(h, each->of[i]);
        html_fold_end(h);
    }
    if (!each)
        return;
    snprintf(title, sizeof(title), "Ensemble of all %u runs: mean AUROC %s", r->many->diff->count,
             mean_auroc(each->ensemble, number));
    html_fold_begin(h, "ensemble", title, false);
    put_ensemble_identity(h, r, each->ensemble);
    put_details(h, each->ensemble);
    html_fold_end(h);
    if (each->shown < r->many->diff->count)
        html_format(h, "<p>The page has the details of the first %u runs only. Means and SDs are over all %u.</p>\n",
                    each->shown, r->many->diff->count);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *
gap_json(const struct each_gap *g)
{
    json_t *object = isnan(g->gap.mean) ? json_null() : run_spread_json(&g->gap);

    if (!isnan(g->gap.mean))
        inspect_json_set(&object, "marked", count_json(g->marked));
    return object;
}

static json_t *
group_json(const struct run_report *r, unsigned g)
{
    static const char *const key[SUBGROUP_METRICS] = {"tpr", "fpr", "auroc", "bias"};
    const struct each_gap *gap = r->many->each->gap + (size_t)g * EACH_GAPS(r->p.outputs);
    json_t *list = json_array();
    unsigned k, m;

    for (k = 0; k < r->p.outputs; k++) {
        json_t *finding = json_pack("{s:o}", "name", text_json(r->finding[k].name));

        for (m = 0; m < SUBGROUP_METRICS; m++)
            inspect_json_set(&finding, key[m], gap_json(&gap[EACH_GAP(m, k)]));
        inspect_json_push(&list, finding);
    }
    return json_pack("{s:o,s:o,s:o,s:o}", "name", text_json(r->groups->group[g].name), "rest",
                     text_json(r->groups->group[g].rest), "underdiagnosis",
                     gap_json(&gap[EACH_UNDERDIAGNOSIS(r->p.outputs)]), "findings", list);
}

void
run_each_json(const struct run_report *r, json_t **runs)
{
    const struct run_each *each = r->many->each;
    json_t *groups = json_array(), *details = json_array();
    unsigned i;

    for (i = 0; i < each->groups; i++)
        if (r->groups->group[i].shown)
            inspect_json_push(&groups, group_json(r, i));
    for (i = 0; i < each->shown; i++)
        inspect_json_push(&details, run_details_json(each->of[i]));
    inspect_json_set(runs, "groups", groups);
    inspect_json_set(runs, "details", details);
    inspect_json_set(runs, "ensemble", run_details_json(each->ensemble));
}
