/*
 * group_tables.c - the tables of groups and shortcuts in the report of a run; see run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/tables.h"

#include <math.h>

#define NUMBER(value) run_number(value, 3, (char[RUN_DIGITS]){0})
#define COUNT(n)      format_count(n, (char[FORMAT_TEXT]){0})

/* between: " " or "<br>" */
static void
put_interval(struct html *h, const struct measured *m, const char *between)
{
    html_format(h, "%s", NUMBER(m->value));
    if (!isnan(m->low))
        html_format(h, "%s(%s to %s)", between, NUMBER(m->low), NUMBER(m->high));
}

/* The group, the rest, the gap. */
static void
put_cell(struct html *h, const struct subgroup_cell *c)
{
    if (isnan(c->gap.value)) {
        html_raw(h, "<td class=\"dim\" colspan=\"3\">too few</td>");
        return;
    }
    html_format(h, "<td>%s</td><td>%s</td><td class=\"w%s\">", NUMBER(c->value[0]), NUMBER(c->value[1]),
                c->holm < RUN_SIGNIFICANT ? " look" : "");
    html_raw(h, c->holm < RUN_SIGNIFICANT ? "* " : "");
    put_interval(h, &c->gap, "<br>");
    html_raw(h, "</td>");
}

void
run_table_underdiagnosis(struct html *h, const struct run_report *r)
{
    static const char *const heading[] = {"group", "images", "rest images", "group", "rest", "gap", NULL};
    unsigned g;

    if (r->groups->count == 0)
        return;
    run_table_begin(h, heading);
    for (g = 0; g < r->groups->count; g++) {
        const struct subgroup *s = &r->groups->of[g];
        const struct run_group *group = &r->groups->group[g];

        if (!group->shown)
            continue;
        html_raw(h, "<tr><th>");
        html_text(h, group->name);
        html_raw(h, "; rest: ");
        html_text(h, group->rest);
        html_format(h, "</th><td>%s</td><td>%s</td>", COUNT(s->images[0]), COUNT(s->images[1]));
        put_cell(h, &s->underdiagnosis);
        html_raw(h, "</tr>\n");
    }
    run_table_end(h);
}

static void
put_group(struct html *h, const struct run_report *r, unsigned g)
{
    static const char *const heading[] = {"finding", "TPR",   "rest", "gap", "FPR", "rest",
                                          "gap",     "AUROC", "rest", "gap", NULL};
    unsigned k, m;

    run_table_begin(h, heading);
    for (k = 0; k < r->p.outputs; k++) {
        html_raw(h, "<tr><th>");
        html_text(h, r->p.finding[k]);
        html_raw(h, "</th>");
        for (m = 0; m <= SUBGROUP_AUROC; m++)
            if (m != SUBGROUP_AUROC && isnan(r->finding[k].point[OPERATING_YOUDEN].threshold))
                html_raw(h, "<td class=\"dim\" colspan=\"3\">no threshold</td>");
            else
                put_cell(h, &r->groups->of[g].cell[m][k]);
        html_raw(h, "</tr>\n");
    }
    run_table_end(h);
}

/* Mean p - share of positives in the group and the rest, then the ECE of the group. */
static void
put_group_calibration(struct html *h, const struct run_report *r, unsigned g)
{
    static const char *const heading[] = {"finding",          "mean p - share", "rest", "gap",
                                          "ECE of the group", "perfect",        NULL};
    unsigned k;

    html_raw(h, "<h3>Calibration</h3>\n");
    run_table_begin(h, heading);
    for (k = 0; k < r->p.outputs; k++) {
        const struct calibration *c = &r->groups->group[g].calibration[k];

        html_raw(h, "<tr><th>");
        html_text(h, r->p.finding[k]);
        html_raw(h, "</th>");
        put_cell(h, &r->groups->of[g].cell[SUBGROUP_BIAS][k]);
        if (isnan(c->ece))
            html_raw(h, "<td class=\"dim\" colspan=\"2\">too few</td></tr>\n");
        else
            html_format(h, "<td>%s</td><td>%s</td></tr>\n", NUMBER(c->ece), NUMBER(c->perfect));
    }
    run_table_end(h);
}

void
run_tables_groups(struct html *h, const struct run_report *r)
{
    char id[32], title[2 * GROUP_FILE_NAME + 32];
    unsigned g;

    for (g = 0; g < r->groups->count; g++) {
        const struct run_group *group = &r->groups->group[g];

        if (!group->shown)
            continue;
        snprintf(id, sizeof(id), "%sgroup%u", r->id, g);
        snprintf(title, sizeof(title), "%s, and the rest: %s", group->name, group->rest);
        html_fold_begin(h, id, title, !r->id[0] && (g < 2 || g + r->groups->of_file >= r->groups->count));
        put_group(h, r, g);
        put_group_calibration(h, r, g);
        html_fold_end(h);
    }
}

void
run_table_shortcuts(struct html *h, const struct run_report *r)
{
    static const char *const heading[] = {
        "finding", "AUROC, both views", "within views", "difference", "AP from PA without the finding", NULL};
    unsigned k;

    if (r->groups->missing[0]) {
        html_format(h, "<p>n/a: %s.</p>\n", r->groups->missing);
        return;
    }
    run_table_begin(h, heading);
    for (k = 0; k < r->p.outputs; k++) {
        const struct run_shortcut *s = &r->groups->shortcut[k];

        html_raw(h, "<tr><th>");
        html_text(h, r->p.finding[k]);
        html_raw(h, "</th>");
        if (isnan(s->within))
            html_raw(h, "<td class=\"dim\" colspan=\"3\">too few</td>");
        else
            html_format(h, "<td>%s</td><td>%s</td><td>%s</td>", NUMBER(s->pooled.value), NUMBER(s->within),
                        NUMBER(s->pooled.value - s->within));
        html_raw(h, "<td class=\"w\">");
        if (isnan(s->view.value))
            html_raw(h, "too few");
        else
            put_interval(h, &s->view, " ");
        html_raw(h, "</td></tr>\n");
    }
    run_table_end(h);
}
