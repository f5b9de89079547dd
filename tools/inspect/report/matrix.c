/*
 * matrix.c - draws the co-occurrence heat map and the shards of the report; see report.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "draw/svg.h"
#include "inspect/report/report.h"

#include <math.h>
#include <string.h>

/* ---- findings together ------------------------------------------------------------------------------------------- */

#define TOP      130
#define MIN_CELL 15
#define MOST     60 /* findings in the plot; a plot of 254 would have 64,516 cells */
#define STEPS    12 /* classes h0 .. h11 of the style sheet, light to dark */

/* Lower limits of the steps in per cent; finer at the low end, because most shares are small. */
static const double step_from[STEPS] = {0, 0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50};

static unsigned
step_of(double share)
{
    unsigned step = STEPS - 1;

    while (step > 0 && 100 * share < step_from[step])
        step--;
    return step;
}

/* Position of the cells. */
struct grid {
    unsigned left, top, cell;
    bool numbers;                          /* there is room for a number in a cell */
    unsigned count, finding[FINDINGS_MAX]; /* the findings, in the order of the list, or the MOST most frequent ones */
};

/* Up to 14 findings have the cells of ChestX-ray14.  More get smaller cells, and then a page that scrolls sideways. */
static struct grid
grid_of(const struct html_report *r, bool slim)
{
    struct grid g = slim ? (struct grid){.left = 124, .cell = 36} : (struct grid){.left = 150, .cell = 46};
    unsigned findings = r->dataset->info.finding_count, room = g.cell * 14, longest = 18;

    for (unsigned i = 0; i < findings; i++) {
        unsigned length = (unsigned)strlen(r->dataset->manifest.findings.name[i]);

        longest = length > longest ? length : longest;
    }
    report_sort_findings(r, g.finding);
    for (unsigned i = 0; findings <= MOST && i < findings; i++)
        g.finding[i] = i;
    g.count = findings = findings <= MOST ? findings : MOST;
    g.top = TOP;
    g.numbers = true;
    g.left += 7 * (longest - 18);
    g.top += 6 * (longest - 18);
    if (findings > 14) {
        g.cell = room / findings > MIN_CELL ? room / findings : MIN_CELL;
        g.numbers = g.cell >= 34;
    }
    return g;
}

static void
draw_cell(struct html *h, const struct html_report *r, const struct grid *g, unsigned row, unsigned column)
{
    unsigned i = g->finding[row], j = g->finding[column];
    uint64_t n = r->together[i][j], of = r->together[i][i];
    double share = of > 0 ? (double)n / (double)of : 0, x = g->left + g->cell * column, y = g->top + g->cell * row;
    unsigned step = step_of(share);

    html_format(h, "<rect x=\"%.0f\" y=\"%.0f\" width=\"%u\" height=\"%u\" class=\"h%u\">", x + 1, y + 1, g->cell - 2,
                g->cell - 2, row == column ? 0 : step);
    html_format(h, "<title>%s: %llu of %llu images also have %s</title></rect>\n", report_finding_name(r, i),
                (unsigned long long)n, (unsigned long long)of, report_finding_name(r, j));
    if (!g->numbers)
        return;
    if (row == column)
        svg_text(h, x + g->cell / 2.0, y + g->cell / 2.0 + 4, "m b hl n", "%llu", (unsigned long long)n);
    else if (of > 0)
        svg_text(h, x + g->cell / 2.0, y + g->cell / 2.0 + 4, step > STEPS / 2 + 1 ? "m hd" : "m hl",
                 share >= 0.0995 || n == 0 ? "%.0f" : "%.1f", 100 * share);
}

/* Even the slim plot is wider than a phone, which scrolls it: it has a column for each finding. */
void
report_draw_together(struct html *h, const struct html_report *r, bool slim)
{
    const struct grid g = grid_of(r, slim);
    const unsigned findings = g.count;
    unsigned i, j, width = g.left + findings * g.cell + 72;
    double y = g.top + g.cell * findings + 24, x;

    width = width < (slim ? 6u : g.left) + STEPS * 32 + 72 ? (slim ? 6u : g.left) + STEPS * 32 + 72 : width;
    width = slim || width > REPORT_BROAD ? width : REPORT_BROAD;

    svg_begin(h, width, (unsigned)y + 64, "Which findings come together", report_paper(slim));
    for (i = 0; i < findings; i++) {
        double at = g.left + g.cell * (i + 0.5);

        svg_text(h, g.left - 8, g.top + g.cell * (i + 0.5) + 4, "e", "%s", report_finding_name(r, g.finding[i]));
        html_format(h, "<text class=\"\" transform=\"translate(%.1f %u) rotate(-50)\">%s</text>\n", at + 2, g.top - 8,
                    report_finding_name(r, g.finding[i]));
        for (j = 0; j < findings; j++)
            draw_cell(h, r, &g, i, j);
    }
    for (i = 0; i < STEPS; i++) {
        x = (slim ? 6 : g.left) + i * 32.0;
        html_format(h, "<rect x=\"%.0f\" y=\"%.0f\" width=\"32\" height=\"14\" class=\"h%u\"/>\n", x, y, i);
        svg_text(h, x, y + 30, "m d", "%g", step_from[i]);
    }
    x = (slim ? 6 : g.left) + STEPS * 32.0;
    svg_text(h, x, y + 30, "m d", "100");
    svg_text(h, slim ? 0 : g.left, y + 52, "d", "%% of the row's images that also have the column's finding%s",
             findings < r->dataset->info.finding_count ? "; the 60 most frequent findings" : "");
    svg_end(h);
}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

#define SHARD_LEFT 70
#define KEY_ROW    20

static const struct {
    const char *kind, *text;
    unsigned at;
} key[] = {{"fine", "whole", SHARD_LEFT},
           {"some", "whole, with padding", SHARD_LEFT + 80},
           {"bad", "with faults", SHARD_LEFT + 240}};

static double
shard_mean(const struct html_report *r, unsigned shard)
{
    const struct report_shard *s = &r->shard[shard];

    return (double)s->sum / ((double)s->images * r->dataset->info.width * r->dataset->info.height);
}

/* Returns an axis that spans the mean levels, rounded to tens. */
static struct svg_axis
level_axis(const struct html_report *r)
{
    struct svg_axis y = {.from = 255, .to = 0, .start = 250, .end = 52};
    unsigned i;

    for (i = 0; i < r->dataset->info.shard_count; i++) {
        if (r->shard[i].images == 0)
            continue;
        y.from = fmin(y.from, shard_mean(r, i));
        y.to = fmax(y.to, shard_mean(r, i));
    }
    if (y.from > y.to)
        y.from = 0, y.to = 255;
    y.from = fmax(0, floor((y.from - 5) / 10) * 10);
    y.to = fmin(260, ceil((y.to + 5) / 10) * 10);
    return y;
}

static void
draw_shard(struct html *h, const struct html_report *r, const struct svg_axis *x, const struct svg_axis *y,
           unsigned shard)
{
    const struct report_shard *s = &r->shard[shard];
    double at = svg_at(x, shard), width = fmax(0.6, (x->end - x->start) / r->dataset->info.shard_count - 0.6);
    const char *kind = s->bad ? "bad" : s->padding ? "some" : "fine";

    html_format(h, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"16\" class=\"%s\"><title>", at - width / 2,
                y->start + 44, width, kind);
    html_text(h, r->dataset->shard[shard].name);
    html_format(h, ": %u images, %u padding, %u faults</title></rect>\n", s->images, s->padding, s->bad);
    if (s->images > 0)
        html_format(h, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" class=\"f%u\"/>\n", at,
                    svg_at(y, shard_mean(r, shard)), r->dataset->info.shard_count > 100 ? 2.0 : 3.5,
                    r->dataset->shard[shard].split % SVG_SERIES);
}

void
report_draw_shards(struct html *h, const struct html_report *r, bool slim)
{
    const struct chex_dataset *ds = r->dataset;
    unsigned width = slim ? REPORT_SLIM : REPORT_BROAD, i;
    /* Each shard is 1 wide, centred at its number. */
    struct svg_axis x = {.from = -0.5, .to = ds->info.shard_count - 0.5, .start = SHARD_LEFT, .end = width - 16};
    struct svg_axis y = level_axis(r);
    double free_from = SHARD_LEFT - 14;

    svg_begin(h, width, slim ? 338 + 2 * KEY_ROW : 338, "Mean gray level and state of each shard", report_paper(slim));
    svg_axis_left(h, &y, x.start, x.end, 1, "gray");
    svg_text(h, x.start, 16, "b", "Mean gray level of each shard");
    for (i = 0; i < ds->info.split_count; i++) {
        const struct chex_split_info *s = &ds->split[i];
        double from = svg_at(&x, s->first_shard - 0.5), to = svg_at(&x, s->first_shard + s->shard_count - 0.5);

        svg_line(h, from, y.end - 10, from, y.start + 62, "g");
        /* Skip a name that would overlap the previous one; the table has it. */
        if ((from + to) / 2 - 4.5 * (double)strlen(s->name) > free_from &&
            (from + to) / 2 + 4.5 * (double)strlen(s->name) < x.end) {
            svg_text(h, (from + to) / 2, y.end - 12, "m d", "%s", s->name);
            free_from = (from + to) / 2 + 4.5 * (double)strlen(s->name) + 6;
        }
    }
    for (i = 0; i < ds->info.shard_count; i++)
        draw_shard(h, r, &x, &y, i);
    svg_axis_bottom(h, &x, y.end, y.start + 4, fmax(1, svg_step(ds->info.shard_count, slim ? 5 : 8)), "");
    svg_text(h, x.start - 7, y.start + 56, "e d", "state");
    svg_text(h, x.end, 330, "e d", "number of the shard");
    for (i = 0; i < 3; i++) {
        double at = slim ? 0 : key[i].at, top = slim ? 322 + KEY_ROW * i : 322;

        html_format(h, "<rect x=\"%.0f\" y=\"%.0f\" width=\"12\" height=\"10\" class=\"%s\"/>", at, top, key[i].kind);
        svg_text(h, at + 18, top + 9, "d", "%s", key[i].text);
    }
    svg_end(h);
}
