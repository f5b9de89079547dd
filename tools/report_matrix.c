/*
 * report_matrix.c - heat maps and grids of --report: which findings come together, how the shards are; see report.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "report.h"
#include "svg.h"

#include <math.h>
#include <string.h>

/* ---- findings together ----------------------------------------------------------------------------------------- */

#define CELL  46
#define LEFT  150
#define TOP   130
#define STEPS 12 /* classes h0 .. h11 of the style sheet, light to dark */

/* Where the steps begin, in per cent: close together below, since most shares are small. */
static const double step_from[STEPS] = {0, 0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50};

static unsigned
step_of(double share)
{
    unsigned step = STEPS - 1;

    while (step > 0 && 100 * share < step_from[step])
        step--;
    return step;
}

static void
draw_cell(struct html *h, const struct report *r, unsigned row, unsigned column)
{
    uint64_t n = r->together[row][column], of = r->together[row][row];
    double share = of > 0 ? (double)n / (double)of : 0, x = LEFT + CELL * (double)column, y = TOP + CELL * (double)row;
    unsigned step = step_of(share);

    html_format(h, "<rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" class=\"h%u\">", x + 1, y + 1, CELL - 2,
                CELL - 2, row == column ? 0 : step);
    html_format(h, "<title>%s: %llu of %llu images also have %s</title></rect>\n", chex_finding_name(row),
                (unsigned long long)n, (unsigned long long)of, chex_finding_name(column));
    if (row == column)
        svg_text(h, x + CELL / 2.0, y + CELL / 2.0 + 4, "m b hl n", "%llu", (unsigned long long)n);
    else if (of > 0)
        svg_text(h, x + CELL / 2.0, y + CELL / 2.0 + 4, step > STEPS / 2 + 1 ? "m hd" : "m hl",
                 share >= 0.0995 || n == 0 ? "%.0f" : "%.1f", 100 * share);
}

void
report_draw_together(struct html *h, const struct report *r)
{
    unsigned i, j;
    double y = TOP + CELL * CHEX_FINDINGS + 24, x;

    svg_begin(h, 980, (unsigned)y + 44, "Which findings come together");
    for (i = 0; i < CHEX_FINDINGS; i++) {
        double at = LEFT + CELL * (i + 0.5);

        svg_text(h, LEFT - 8, TOP + CELL * (i + 0.5) + 4, "e", "%s", chex_finding_name(i));
        html_format(h, "<text class=\"\" transform=\"translate(%.1f %d) rotate(-50)\">%s</text>\n", at + 2, TOP - 8,
                    chex_finding_name(i));
        for (j = 0; j < CHEX_FINDINGS; j++)
            draw_cell(h, r, i, j);
    }
    for (i = 0; i < STEPS; i++) {
        x = LEFT + i * 32.0;
        html_format(h, "<rect x=\"%.0f\" y=\"%.0f\" width=\"32\" height=\"14\" class=\"h%u\"/>\n", x, y, i);
        svg_text(h, x, y + 30, "m d", "%g", step_from[i]);
    }
    svg_text(h, LEFT + STEPS * 32.0, y + 30, "m d", "100");
    svg_text(h, LEFT + STEPS * 32.0 + 18, y + 12, "d", "%% of the row's images that also have the column's finding");
    svg_end(h);
}

/* ---- shards ---------------------------------------------------------------------------------------------------- */

#define SHARD_LEFT 70

static double
shard_mean(const struct report *r, unsigned shard)
{
    const struct report_shard *s = &r->shard[shard];

    return (double)s->sum / ((double)s->images * r->dataset->info.width * r->dataset->info.height);
}

/* The levels between which the means lie, in whole tens. */
static struct svg_axis
level_axis(const struct report *r)
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
draw_shard(struct html *h, const struct report *r, const struct svg_axis *x, const struct svg_axis *y, unsigned shard)
{
    const struct report_shard *s = &r->shard[shard];
    double at = svg_at(x, shard + 0.5), width = fmax(0.6, (x->end - x->start) / r->dataset->info.shard_count - 0.6);
    const char *kind = s->bad ? "bad" : s->filling ? "some" : "fine";

    html_format(h, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"16\" class=\"%s\"><title>", at - width / 2,
                y->start + 44, width, kind);
    html_text(h, r->dataset->shard[shard].name);
    html_format(h, ": %u images, %u filling, %u faults</title></rect>\n", s->images, s->filling, s->bad);
    if (s->images > 0)
        html_format(h, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" class=\"f%u\"/>\n", at,
                    svg_at(y, shard_mean(r, shard)), r->dataset->info.shard_count > 100 ? 2.0 : 3.5,
                    r->dataset->shard[shard].split % SVG_SERIES);
}

void
report_draw_shards(struct html *h, const struct report *r)
{
    const struct chex_dataset *ds = r->dataset;
    struct svg_axis x = {.from = 0, .to = ds->info.shard_count, .start = SHARD_LEFT, .end = 964};
    struct svg_axis y = level_axis(r);
    double free_from = 0;
    unsigned i;

    svg_begin(h, 980, 338, "Mean gray level and state of each shard");
    svg_axis_left(h, &y, x.start, x.end, 1, "gray");
    svg_text(h, x.start, 16, "b", "Mean gray level of each shard");
    for (i = 0; i < ds->info.split_count; i++) {
        const struct chex_split_info *s = &ds->split[i];
        double from = svg_at(&x, s->first_shard), to = svg_at(&x, s->first_shard + s->shard_count);

        svg_line(h, from, y.end - 10, from, y.start + 62, "g");
        /* A name that would run into the one before it is left out; the table has it. */
        if ((from + to) / 2 - 4.5 * (double)strlen(s->name) > free_from &&
            (from + to) / 2 + 4.5 * (double)strlen(s->name) < x.end) {
            svg_text(h, (from + to) / 2, y.end - 12, "m d", "%s", s->name);
            free_from = (from + to) / 2 + 4.5 * (double)strlen(s->name) + 6;
        }
    }
    for (i = 0; i < ds->info.shard_count; i++)
        draw_shard(h, r, &x, &y, i);
    svg_axis_bottom(h, &x, y.end, y.start + 4, 0, "");
    svg_text(h, x.start - 7, y.start + 56, "e d", "state");
    html_format(h, "<rect x=\"%d\" y=\"318\" width=\"12\" height=\"10\" class=\"fine\"/>", SHARD_LEFT);
    svg_text(h, SHARD_LEFT + 18, 328, "d", "whole");
    html_format(h, "<rect x=\"%d\" y=\"318\" width=\"12\" height=\"10\" class=\"some\"/>", SHARD_LEFT + 80);
    svg_text(h, SHARD_LEFT + 98, 328, "d", "whole, with filling records");
    html_format(h, "<rect x=\"%d\" y=\"318\" width=\"12\" height=\"10\" class=\"bad\"/>", SHARD_LEFT + 290);
    svg_text(h, SHARD_LEFT + 308, 328, "d", "with faults");
    svg_text(h, x.end, 328, "e d", "number of the shard");
    svg_end(h);
}
