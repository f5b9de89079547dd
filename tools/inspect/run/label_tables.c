/*
 * label_tables.c - the section about other labels (--labels) in the report of a run; see run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/tables.h"

#include <math.h>

#define COUNT(n) format_count(n, (char[FORMAT_TEXT]){0})

static void
put_auroc(struct html *h, const struct measured *auroc)
{
    if (isnan(auroc->value))
        run_cell_note(h, 1, "too few");
    else
        run_cell_measured(h, auroc);
}

static void
put_agreement(struct html *h, const struct run_report *r)
{
    static const char *const heading[] = {"finding", "both",  "only the run",        "only the file",
                                          "neither", "kappa", "AUROC, run's labels", "AUROC, file's labels",
                                          NULL};
    unsigned k;

    run_table_begin(h, heading);
    for (k = 0; k < r->p.outputs; k++) {
        const struct run_agreement *a = &r->labels->agreement[k];

        run_table_row(h, r->finding[k].name);
        if (!r->labels->known[k]) {
            run_cell_note(h, 7, "not in the file");
            html_raw(h, "</tr>\n");
            continue;
        }
        run_cell_count(h, a->count[1][1]);
        run_cell_count(h, a->count[1][0]);
        run_cell_count(h, a->count[0][1]);
        run_cell_count(h, a->count[0][0]);
        run_cell_number(h, a->kappa);
        put_auroc(h, &a->own);
        put_auroc(h, &a->other);
        html_raw(h, "</tr>\n");
    }
    run_table_end(h);
}

void
run_tables_labels(struct html *h, const struct run_report *r)
{
    const struct run_labels *l = r->labels;

    if (!l)
        return;
    html_format(h,
                "<p>The file of --labels has %s of the %s images, of %s patients; %s other images in it are not among "
                "the predictions.</p>\n",
                COUNT(l->report->p.count), COUNT(r->p.count), COUNT(l->report->patients), COUNT(l->others));
    if (l->strange > 0) {
        html_format(h, "<p class=\"look\">%s labels in it are no finding of the run and were left out; the first is '",
                    COUNT(l->strange));
        html_text(h, l->stranger);
        html_raw(h, "'.</p>\n");
    }
    html_raw(h, "<h3>Agreement: images that are positive in both, or in only one of them</h3>\n");
    put_agreement(h, r);
    html_raw(h, "<h3>Findings, against the labels of the file</h3>\n");
    run_table_findings(h, l->report);
    html_raw(h, "<h3>Calibration, against the labels of the file</h3>\n");
    run_table_calibration(h, l->report);
    html_raw(h, "<h3>Thresholds of the model, against the labels of the file</h3>\n");
    run_table_points(h, l->report);
}
