/*
 * tables.c - the tables of the report of a run; see run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/tables.h"

#include <math.h>
#include <string.h>

#define COUNT(n) format_count(n, (char[FORMAT_TEXT]){0})

void
run_table_begin(struct html *h, const char *const *heading)
{
    unsigned i;

    html_raw(h, "<div class=\"wide\"><table><thead><tr>");
    for (i = 0; heading[i]; i++)
        html_format(h, heading[i][0] == '<' ? "<th class=\"t\">%s</th>" : "<th>%s</th>",
                    heading[i] + (heading[i][0] == '<'));
    html_raw(h, "</tr></thead>\n<tbody>");
}

void
run_table_end(struct html *h)
{
    html_raw(h, "</tbody></table></div>\n");
}

void
run_table_row(struct html *h, const char *name)
{
    html_raw(h, "<tr><th>");
    html_text(h, name);
    html_raw(h, "</th>");
}

void
run_cell_number(struct html *h, double value)
{
    html_format(h, "<td>%s</td>", run_number(value, 3, (char[RUN_DIGITS]){0}));
}

void
run_cells_spread(struct html *h, const struct run_spread *s)
{
    run_cell_number(h, s->mean);
    run_cell_number(h, s->deviation);
    run_cell_number(h, s->least);
    run_cell_number(h, s->most);
    run_cell_number(h, s->ensemble);
}

void
run_cell_count(struct html *h, uint64_t n)
{
    html_format(h, "<td>%s</td>", COUNT(n));
}

void
run_cell_measured(struct html *h, const struct measured *m)
{
    html_format(h, "<td class=\"w\">%s", run_number(m->value, 3, (char[RUN_DIGITS]){0}));
    if (!isnan(m->low))
        html_format(h, " (%s to %s)", run_number(m->low, 3, (char[RUN_DIGITS]){0}),
                    run_number(m->high, 3, (char[RUN_DIGITS]){0}));
    html_raw(h, "</td>");
}

void
run_cell_note(struct html *h, unsigned columns, const char *text)
{
    html_format(h, "<td class=\"t dim\" colspan=\"%u\">%s</td>", columns, text);
}

/* "fewer than 10 positives in val" */
static void
put_refused(struct html *h, unsigned columns, const struct run_report *r, const struct run_finding *f)
{
    html_format(h, "<td class=\"t dim\" colspan=\"%u\">", columns);
    html_text(h, f->refused[0] ? f->refused : "n/a");
    if (f->refused[0] && r->chosen_on[0]) {
        html_raw(h, " in ");
        html_text(h, r->chosen_on);
    }
    html_raw(h, "</td>");
}

void
run_table_findings(struct html *h, const struct run_report *r)
{
    static const char *const heading[] = {"finding", "positives", "patients",      "negatives", "AUROC",
                                          "AUPRC",   "floor",     "AUROC - floor", NULL};
    unsigned k;

    run_table_begin(h, heading);
    for (k = 0; k < r->p.outputs; k++) {
        const struct finding_metrics *m = &r->metrics->finding[k];
        const struct compared *c = &r->floor->result.finding[k];

        run_table_row(h, r->finding[k].name);
        run_cell_count(h, m->positives);
        run_cell_count(h, m->positive_patients);
        run_cell_count(h, m->negatives);
        if (r->finding[k].enough) {
            run_cell_measured(h, &m->metric[METRIC_AUROC]);
            run_cell_measured(h, &m->metric[METRIC_AUPRC]);
            if (r->floor->fitted[k]) {
                run_cell_number(h, c->auroc[0]);
                run_cell_measured(h, &c->difference);
            } else {
                run_cell_note(h, 2, "n/a");
            }
        } else {
            run_cell_note(h, 4, "too few");
        }
        html_raw(h, "</tr>\n");
    }
    run_table_end(h);
}

void
run_table_calibration(struct html *h, const struct run_report *r)
{
    static const char *const heading[] = {"finding", "Brier",   "skill",          "slope",   "intercept",
                                          "ECE raw", "perfect", "ECE calibrated", "perfect", NULL};
    unsigned k;

    run_table_begin(h, heading);
    for (k = 0; k < r->p.outputs; k++) {
        const struct run_finding *f = &r->finding[k];

        run_table_row(h, f->name);
        if (f->enough) {
            run_cell_number(h, f->raw.brier);
            run_cell_number(h, f->raw.skill);
            run_cell_number(h, f->raw.slope);
            run_cell_number(h, f->raw.intercept);
            run_cell_number(h, f->raw.ece);
            run_cell_number(h, f->raw.perfect);
            if (isnan(f->a)) {
                put_refused(h, 2, r, f);
            } else {
                run_cell_number(h, f->calibrated.ece);
                run_cell_number(h, f->calibrated.perfect);
            }
        } else {
            run_cell_note(h, 8, "too few");
        }
        html_raw(h, "</tr>\n");
    }
    run_table_end(h);
}

static void
point_cells(struct html *h, const struct finding_metrics *m, const struct run_point *p)
{
    uint64_t tp = p->true_positives, fp = p->false_positives, fn = m->positives - tp, tn = m->negatives - fp;

    html_format(h, "<td>%s</td>", run_number(p->threshold, 4, (char[RUN_DIGITS]){0}));
    run_cell_number(h, run_share(tp, m->positives));
    run_cell_number(h, run_share(tn, m->negatives));
    run_cell_number(h, run_share(tp, tp + fp));
    run_cell_number(h, run_share(tn, tn + fn));
    run_cell_count(h, tp);
    run_cell_count(h, fp);
    run_cell_count(h, fn);
    run_cell_count(h, tn);
}

/* A finding without thresholds has one row. */
static void
point_rows(struct html *h, const struct run_report *r, unsigned k)
{
    static const char *const rule[OPERATING_RULES] = {"Youden", "sensitivity 0.90"};
    const struct run_finding *f = &r->finding[k];
    bool none = isnan(f->point[OPERATING_YOUDEN].threshold) && isnan(f->point[OPERATING_SENSITIVITY].threshold);
    unsigned i;

    for (i = 0; i < OPERATING_RULES; i++) {
        run_table_row(h, i == 0 ? f->name : "");
        if (!f->enough || none) {
            if (f->enough)
                put_refused(h, 10, r, f);
            else
                run_cell_note(h, 10, "too few");
            html_raw(h, "</tr>\n");
            return;
        }
        html_format(h, "<td class=\"t w\">%s</td>", rule[i]);
        if (isnan(f->point[i].threshold))
            run_cell_note(h, 9, "n/a");
        else
            point_cells(h, &r->metrics->finding[k], &f->point[i]);
        html_raw(h, "</tr>\n");
    }
}

void
run_table_points(struct html *h, const struct run_report *r)
{
    static const char *const heading[] = {"finding", "<rule", "threshold", "sensitivity", "specificity", "PPV",
                                          "NPV",     "TP",    "FP",        "FN",          "TN",          NULL};
    unsigned k;

    run_table_begin(h, heading);
    for (k = 0; k < r->p.outputs; k++)
        point_rows(h, r, k);
    run_table_end(h);
}

/* "train (--limit 40: 43 images an epoch)" */
static void
put_use(struct html *h, const struct run_report *r, const struct run_split *s)
{
    bool train = strcmp(s->name, r->train) == 0, validation = strcmp(s->name, r->validation) == 0;

    html_raw(h, "<td class=\"t\">");
    html_text(h, s->use[0] ? s->use : "-");
    if (r->limit[0] && (train || validation)) {
        html_raw(h, " (--limit ");
        html_text(h, r->limit);
        if (train && r->epoch_images > 0)
            html_format(h, ": %s images an epoch", COUNT(r->epoch_images));
        html_raw(h, ")");
    }
    html_raw(h, "</td>");
}

void
run_table_flow(struct html *h, const struct run_report *r)
{
    static const char *const heading[] = {"split", "<used for", "images", "patients", NULL};
    unsigned i;

    run_table_begin(h, heading);
    for (i = 0; i < r->splits; i++) {
        const struct run_split *s = &r->of[i];

        run_table_row(h, s->name);
        put_use(h, r, s);
        run_cell_count(h, s->images);
        run_cell_count(h, s->patients);
        html_raw(h, "</tr>\n");
    }
    html_raw(h, "<tr><th>this report: ");
    html_text(h, r->split);
    html_format(h, "</th><td class=\"t\">%s unreadable</td>", COUNT(r->skipped));
    run_cell_count(h, r->p.count);
    run_cell_count(h, r->patients);
    html_raw(h, "</tr>\n");
    run_table_end(h);
}
