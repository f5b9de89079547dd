/*
 * many_report.c - the section about several runs in the report of a run, and its JSON; see run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/diff/runs.h"
#include "inspect/run/each.h"
#include "inspect/run/tables.h"

#include <math.h>

#define NUMBER(value) run_number(value, 4, (char[RUN_DIGITS]){0})
#define COUNT(n)      format_count(n, (char[FORMAT_TEXT]){0})

static const struct {
    const char *name, *key;
} measures[RUN_MEASURES] = {[RUN_AUROC] = {"AUROC", "auroc"},
                            [RUN_AUPRC] = {"AUPRC", "auprc"},
                            [RUN_BRIER] = {"Brier", "brier"},
                            [RUN_SKILL] = {"skill", "skill"},
                            [RUN_ECE] = {"ECE raw", "ece"}};

static const char *const points[EACH_POINTS] = {"sensitivity", "specificity"};

static void
put_number(struct html *h, double value)
{
    html_format(h, "<td>%s</td>", NUMBER(value));
}

static void
put_spread(struct html *h, const struct run_spread *s)
{
    put_number(h, s->mean);
    put_number(h, s->deviation);
    put_number(h, s->least);
    put_number(h, s->most);
}

static void
put_runs(struct html *h, const struct runs_diff *d)
{
    static const char *const heading[] = {"run",  "mean AUROC",           "minus run 1", "p",
                                          "Holm", "<options that differ", NULL};
    char options[RUNS_OPTIONS_TEXT], number[16];
    unsigned i;

    run_table_begin(h, heading);
    for (i = 0; i <= d->count; i++) {
        const struct runs_row *row = &d->row[i];
        const struct measured auroc = {row->auroc, row->low, row->high};

        snprintf(number, sizeof(number), "%u", i + 1);
        run_table_row(h, i < d->count ? number : "ensemble");
        if (isnan(row->low)) {
            run_cell_note(h, 4, "too few");
        } else {
            run_cell_measured(h, &auroc);
            run_cell_measured(h, &row->difference);
            run_cell_number(h, row->p);
            run_cell_number(h, row->holm);
        }
        html_raw(h, "<td class=\"t\">");
        if (i < d->count) {
            runs_diff_options(d, i, options);
            html_words(h, d->run[i].options ? options : "not known, there is no run.json");
            if (d->run[i].p.leaky)
                html_raw(h, " leaky: its results are too good");
            if (d->run[i].p.short_run[0]) {
                html_raw(h, " short run: ");
                html_text(h, d->run[i].p.short_run);
            }
        }
        html_raw(h, "</td></tr>\n");
    }
    run_table_end(h);
}

static void
put_measures(struct html *h, const struct run_many *m)
{
    static const char *const heading[] = {"measure", "mean over runs", "SD", "lowest", "highest", "ensemble", NULL};
    unsigned i;

    run_table_begin(h, heading);
    for (i = 0; i < RUN_MEASURES; i++) {
        run_table_row(h, measures[i].name);
        put_spread(h, &m->measure[i]);
        put_number(h, m->measure[i].ensemble);
        html_raw(h, "</tr>\n");
    }
    run_table_end(h);
}

static void
put_findings(struct html *h, const struct run_report *r)
{
    static const char *const heading[] = {
        "finding", "mean over runs", "SD", "lowest", "highest", "run 1, with interval", "ensemble, with interval",
        NULL};
    const struct run_many *m = r->many;
    unsigned k;

    run_table_begin(h, heading);
    for (k = 0; k < r->p.outputs; k++) {
        run_table_row(h, r->finding[k].name);
        if (m->enough[k] && r->finding[k].enough) {
            put_spread(h, &m->finding[k][RUN_AUROC]);
            run_cell_measured(h, &r->metrics->finding[k].metric[METRIC_AUROC]);
            run_cell_measured(h, &m->ensemble->finding[k].metric[METRIC_AUROC]);
        } else {
            run_cell_note(h, 6, "too few");
        }
        html_raw(h, "</tr>\n");
    }
    run_table_end(h);
}

/* The other measures of each finding: a row for each. */
static void
put_finding_measures(struct html *h, const struct run_report *r)
{
    static const char *const heading[] = {"finding", "<measure", "mean over runs", "SD",
                                          "lowest",  "highest",  "ensemble",       NULL};
    const struct run_many *m = r->many;
    unsigned k, i;

    html_fold_begin(h, "measures", "AUPRC, Brier, skill and ECE of each finding", false);
    run_table_begin(h, heading);
    for (k = 0; k < r->p.outputs; k++) {
        for (i = RUN_AUPRC; i < RUN_MEASURES && m->enough[k]; i++) {
            run_table_row(h, i == RUN_AUPRC ? r->finding[k].name : "");
            html_format(h, "<td class=\"t w\">%s</td>", measures[i].name);
            put_spread(h, &m->finding[k][i]);
            put_number(h, m->finding[k][i].ensemble);
            html_raw(h, "</tr>\n");
        }
        if (m->enough[k])
            continue;
        run_table_row(h, r->finding[k].name);
        run_cell_note(h, 6, "too few");
        html_raw(h, "</tr>\n");
    }
    run_table_end(h);
    html_fold_end(h);
}

/* Sensitivity and specificity at the threshold that each model chose. */
static void
put_points(struct html *h, const struct run_report *r)
{
    static const char *const heading[] = {"finding", "<measure", "mean over runs", "SD",
                                          "lowest",  "highest",  "ensemble",       NULL};
    unsigned k, i;

    html_fold_begin(h, "points", "Sensitivity and specificity at the threshold of each run (Youden)", false);
    run_table_begin(h, heading);
    for (k = 0; k < r->p.outputs; k++) {
        const struct run_spread *s = r->many->each->point[k];

        for (i = 0; i < EACH_POINTS && !isnan(s->mean); i++) {
            run_table_row(h, i == 0 ? r->finding[k].name : "");
            html_format(h, "<td class=\"t w\">%s</td>", points[i]);
            run_cells_spread(h, &s[i]);
            html_raw(h, "</tr>\n");
        }
        if (!isnan(s->mean))
            continue;
        run_table_row(h, r->finding[k].name);
        run_cell_note(h, 6, r->finding[k].enough ? "a run has no threshold" : "too few");
        html_raw(h, "</tr>\n");
    }
    run_table_end(h);
    html_fold_end(h);
}

void
run_tables_many(struct html *h, const struct run_report *r)
{
    const struct run_many *m = r->many;
    size_t left_out = m ? matched_left_out(&m->diff->images) : 0;

    if (!m)
        return;
    html_format(h, "<p>%s</p>\n",
                m->only_seeds ? "The runs differ only in their seed, so the SD is that of seeds."
                              : "The runs differ in more than their seed, or that is not known, so the SD is not that "
                                "of seeds alone.");
    if (left_out > 0)
        html_format(h, "<p class=\"look\">%s images are not in all runs. This section leaves them out.</p>\n",
                    COUNT(left_out));
    html_format(h,
                "<p>The first table has the mean over the %u finding%s with a positive and a negative image, as "
                "metrics-SPLIT.json does.</p>\n",
                m->diff->defined, m->diff->defined == 1 ? "" : "s");
    put_runs(h, m->diff);
    html_format(h, "<h3>Means over the %u finding%s with enough patients</h3>\n", m->findings,
                m->findings == 1 ? "" : "s");
    put_measures(h, m);
    html_raw(h, "<h3>AUROC of each finding</h3>\n");
    put_findings(h, r);
    put_finding_measures(h, r);
    put_points(h, r);
    run_tables_gaps(h, r);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *
row_json(const struct runs_row *row)
{
    if (isnan(row->low)) /* too few patients */
        return json_null();
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "auroc", real_json(row->auroc), "low", real_json(row->low),
                     "high", real_json(row->high), "difference", real_json(row->difference.value), "difference_low",
                     real_json(row->difference.low), "difference_high", real_json(row->difference.high), "p",
                     real_json(row->p), "holm", real_json(row->holm));
}

json_t *
run_many_json(const struct run_report *r)
{
    const struct run_many *m = r->many;
    json_t *object, *rows, *findings;
    unsigned i, k;

    if (!m)
        return json_null();
    rows = json_array();
    for (i = 0; i <= m->diff->count; i++)
        inspect_json_push(&rows, row_json(&m->diff->row[i]));
    findings = json_array();
    for (k = 0; k < r->p.outputs; k++) {
        json_t *finding = json_pack("{s:o}", "name", text_json(r->finding[k].name));

        for (i = 0; i < RUN_MEASURES; i++)
            inspect_json_set(&finding, measures[i].key, run_spread_json(&m->finding[k][i]));
        for (i = 0; i < EACH_POINTS; i++)
            inspect_json_set(&finding, points[i], run_spread_json(&m->each->point[k][i]));
        inspect_json_push(&findings, finding);
    }
    object = json_pack("{s:o,s:o,s:b,s:o,s:o}", "images", count_json(m->diff->images.count), "left_out",
                       count_json(matched_left_out(&m->diff->images)), "only_seeds", m->only_seeds, "rows", rows,
                       "findings", findings);
    for (i = 0; i < RUN_MEASURES; i++)
        inspect_json_set(&object, measures[i].key, run_spread_json(&m->measure[i]));
    run_each_json(r, &object);
    return object;
}
