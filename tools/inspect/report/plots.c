/*
 * plots.c - draws the plots of the report that compare splits; see report.h, svg.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "draw/svg.h"
#include "inspect/report/report.h"

#include <math.h>
#include <string.h>

#define HALF_WIDTH  420 /* width of a plot that shares a row with another plot */
#define HALF_HEIGHT 320

unsigned
report_shown_splits(const struct html_report *r, unsigned shown[SPLIT_MAX])
{
    unsigned i, used = 0;

    for (i = 0; i < r->dataset->info.split_count && used < SVG_SERIES; i++)
        if (r->split[i].images > 0)
            shown[used++] = i;
    return used;
}

const char *
report_paper(bool slim)
{
    return slim ? "slim" : "broad";
}

#define LEGEND_ROW 20

/* Returns by how much the additional rows of the legend move the plot down. */
static unsigned
legend_shift(const struct html_report *r, double left, double right)
{
    unsigned shown[SPLIT_MAX], used = report_shown_splits(r, shown), i, rows = 1;
    double x = left;

    for (i = 0; i < used; i++) {
        double width = svg_legend_width(r->dataset->split[shown[i]].name);

        if (x > left && x + width > right) {
            rows++;
            x = left;
        }
        x += width;
    }
    return (rows - 1) * LEGEND_ROW;
}

/* Begin a plot with a legend; its extra rows move the plot down.  The caller ends it with end_plot(). */
static void
begin_plot(struct html *h, const struct html_report *r, const char *title, const char *kind, enum svg_key key,
           double left, unsigned width, unsigned height)
{
    unsigned shown[SPLIT_MAX], used = report_shown_splits(r, shown), i, shift = legend_shift(r, left, width);
    double x = left, y = 18;

    svg_begin(h, width, height + shift, title, kind);
    for (i = 0; i < used; i++) {
        const char *name = r->dataset->split[shown[i]].name;

        if (x > left && x + svg_legend_width(name) > width) {
            x = left;
            y += LEGEND_ROW;
        }
        svg_legend(h, x, y, i, key, name);
        x += svg_legend_width(name);
    }
    html_format(h, "<g transform=\"translate(0 %u)\">\n", shift);
}

static void
end_plot(struct html *h)
{
    html_raw(h, "</g>");
    svg_end(h);
}

/* ---- prevalence -------------------------------------------------------------------------------------------------- */

#define ROW   34
#define NAMES 140 /* least room for the names */

/* Pixels for the names on the left.  Longer names than the room allows are cut: name_letters(). */
static unsigned
name_letters(const struct html_report *r, bool slim)
{
    size_t longest = 0, most = slim ? 24 : 48;

    for (unsigned i = 0; i < r->dataset->info.finding_count; i++)
        longest = strlen(r->dataset->manifest.findings.name[i]) > longest
                      ? strlen(r->dataset->manifest.findings.name[i])
                      : longest;
    return (unsigned)(longest < most ? longest : most);
}

static unsigned
names_width(const struct html_report *r, bool slim)
{
    unsigned width = 14 + 7 * name_letters(r, slim);

    return width > NAMES ? width : NAMES;
}

void
report_sort_findings(const struct html_report *r, unsigned order[FINDINGS_MAX])
{
    unsigned i, j;

    for (i = 0; i < r->dataset->info.finding_count; i++) {
        for (j = i; j > 0 && r->together[order[j - 1]][order[j - 1]] < r->together[i][i]; j--)
            order[j] = order[j - 1];
        order[j] = i;
    }
}

static void
draw_interval(struct html *h, const struct svg_axis *x, double y, const struct ratio *v, unsigned series)
{
    struct share_interval i = ratio_wilson(v);
    char kind[16];

    snprintf(kind, sizeof(kind), "i%u", series);
    svg_line(h, svg_at(x, i.low), y, svg_at(x, i.high), y, kind);
    if (v->y > 0)
        svg_marker(h, svg_at(x, ratio_value(v)), y, series);
}

void
report_draw_prevalence(struct html *h, const struct html_report *r, bool slim)
{
    unsigned width = slim ? REPORT_SLIM : REPORT_BROAD, names = names_width(r, slim);
    const unsigned findings = r->dataset->info.finding_count;
    int letters = (int)name_letters(r, slim);
    struct svg_axis x = {.from = 0.0005, .to = 1, .start = names, .end = width - 14, .log = true};
    unsigned shown[SPLIT_MAX], used = report_shown_splits(r, shown), order[FINDINGS_MAX + 1], i, k;
    double top = 34, bottom = top + ROW * (findings + 1);

    report_sort_findings(r, order);
    order[findings] = VARIABLE_NONE;
    begin_plot(h, r, "Prevalence of the findings by split with 95 % intervals", report_paper(slim), SVG_INTERVAL,
               slim ? 0 : names, width, (unsigned)bottom + 44);
    for (i = 1; i <= findings; i += 2)
        html_format(h, "<rect x=\"0\" y=\"%.1f\" width=\"%u\" height=\"%d\" class=\"band\"/>\n", top + ROW * i, width,
                    ROW);
    svg_axis_bottom_log(h, &x, top, bottom, 100, "% of images, logarithmic");
    for (i = 0; i <= findings; i++) {
        double middle = top + ROW * (i + 0.5);

        svg_text(h, names - 10, middle + 4, "e", "%.*s", letters > 10 ? letters : 10, report_finding_name(r, order[i]));
        for (k = 0; k < used; k++)
            draw_interval(h, &x, middle + ((double)k - (used - 1) / 2.0) * (ROW - 8) / (used > 3 ? used : 3),
                          &r->split[shown[k]].variable[order[i]], k);
    }
    end_plot(h);
}

/* ---- ages -------------------------------------------------------------------------------------------------------- */

#define YEARS_A_BIN 5
#define AGE_BINS    21 /* the last one: 100 and more */

static double
age_share(const struct report_split *s, unsigned bin)
{
    uint64_t n = 0, known = s->images - s->unknown_age;
    unsigned year;

    for (year = bin * YEARS_A_BIN; year < REPORT_YEARS && (bin == AGE_BINS - 1 || year < (bin + 1) * YEARS_A_BIN);
         year++)
        n += s->years[year];
    return known > 0 ? (double)n / (double)known : 0;
}

void
report_draw_ages(struct html *h, const struct html_report *r)
{
    struct svg_axis x = {.from = 0, .to = AGE_BINS * YEARS_A_BIN, .start = 56, .end = HALF_WIDTH - 16};
    struct svg_axis y = {.from = 0, .to = 0.02, .start = HALF_HEIGHT - 46, .end = 52};
    unsigned shown[SPLIT_MAX], used = report_shown_splits(r, shown), i, bin;

    for (i = 0; i < used; i++)
        for (bin = 0; bin < AGE_BINS; bin++)
            y.to = fmax(y.to, age_share(&r->split[shown[i]], bin) * 1.05);
    begin_plot(h, r, "Ages by split", "", SVG_CURVE, 56, HALF_WIDTH, HALF_HEIGHT);
    svg_axis_left(h, &y, x.start, x.end, 100, "% of images");
    svg_axis_bottom(h, &x, y.end, y.start, 10, "age, years (classes of 5)");
    for (i = 0; i < used; i++) {
        svg_curve_begin(h, i);
        svg_curve_to(h, x.start, y.start);
        for (bin = 0; bin < AGE_BINS; bin++) {
            double at = svg_at(&y, age_share(&r->split[shown[i]], bin));

            svg_curve_to(h, svg_at(&x, bin * YEARS_A_BIN), at);
            svg_curve_to(h, svg_at(&x, (bin + 1) * YEARS_A_BIN), at);
        }
        svg_curve_to(h, x.end, y.start);
        svg_curve_end(h);
    }
    end_plot(h);
}

/* ---- images of a patient ----------------------------------------------------------------------------------------- */

void
report_draw_visits(struct html *h, const struct html_report *r)
{
    static const char *const names[REPORT_VISITS] = {"1", "2", "3", "4-5", "6-10", "11-20", "21-50", ">50"};
    struct svg_axis y = {.from = 0, .to = 0.1, .start = HALF_HEIGHT - 46, .end = 52};
    double left = 56, right = HALF_WIDTH - 16, slot = (right - left) / REPORT_VISITS;
    unsigned shown[SPLIT_MAX], used = report_shown_splits(r, shown), i, k;
    double bar = (slot - 12) / (used > 0 ? used : 1);

    for (k = 0; k < used; k++)
        for (i = 0; i < REPORT_VISITS; i++)
            y.to = fmax(y.to, 1.05 * (double)r->split[shown[k]].visits[i] / (double)r->split[shown[k]].patients);
    begin_plot(h, r, "Images of a patient by split", "", SVG_BAR, left, HALF_WIDTH, HALF_HEIGHT);
    svg_axis_left(h, &y, left, right, 100, "% of patients");
    for (i = 0; i < REPORT_VISITS; i++) {
        svg_text(h, left + slot * (i + 0.5), y.start + 18, "m d", "%s", names[i]);
        for (k = 0; k < used; k++) {
            const struct report_split *s = &r->split[shown[k]];
            double at = svg_at(&y, (double)s->visits[i] / (double)s->patients);

            if (s->visits[i] > 0)
                html_format(h, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"f%u\"/>\n",
                            left + slot * i + 6 + bar * k + 0.5, at, bar - 1, y.start - at, k);
        }
    }
    svg_line(h, left, y.start, right, y.start, "a");
    svg_text(h, (left + right) / 2, y.start + 36, "m d", "images of a patient in the split");
    end_plot(h);
}

/* ---- sex and view ------------------------------------------------------------------------------------------------ */

#define BAR      24
#define BAR_GAP  8
#define BAR_NAME 18 /* the row of a name above its bar */

struct bar_piece {
    const char *name;
    uint64_t n;
};

/* Draw one stacked bar. */
static void
draw_parts(struct html *h, double left, double right, double y, const struct bar_piece *part, unsigned parts,
           uint64_t all)
{
    double at = left;
    unsigned i;

    for (i = 0; i < parts; i++) {
        double share = all > 0 ? (double)part[i].n / (double)all : 0, width = share * (right - left);
        double room = 8.0 * (double)(strlen(part[i].name) + strlen(" 99.9 %"));

        if (part[i].n == 0)
            continue;
        html_format(h,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" class=\"p%u\"><title>%s: %llu "
                    "images</title></rect>\n",
                    at, y, width, BAR, i, part[i].name, (unsigned long long)part[i].n);
        if (width >= room)
            svg_text(h, at + width / 2, y + BAR / 2.0 + 4,
                     i == 0   ? "m on0"
                     : i == 1 ? "m on1"
                              : "m on2",
                     "%s %.1f %%", part[i].name, 100 * share);
        at += width;
    }
}

static void
draw_sexes(struct html *h, double left, double right, double y, const struct report_split *s)
{
    const struct bar_piece sex[] = {{"M", s->sex[SEX_M]}, {"F", s->sex[SEX_F]}, {"unknown", s->sex[SEX_U]}};

    draw_parts(h, left, right, y, sex, 3, s->images);
}

static void
draw_views(struct html *h, double left, double right, double y, const struct report_split *s)
{
    const struct bar_piece view[] = {
        {"PA", s->view[VIEW_PA]}, {"AP", s->view[VIEW_AP]}, {"other", s->view[VIEW_OTHER] + s->view[VIEW_UNKNOWN]}};

    draw_parts(h, left, right, y, view, 3, s->images);
}

/* Draw names above the bars, and sex above view. */
static void
draw_sex_view_slim(struct html *h, const struct html_report *r)
{
    static const struct {
        const char *title;
        void (*draw)(struct html *, double, double, double, const struct report_split *);
    } of[] = {{"Sex", draw_sexes}, {"View position", draw_views}};
    unsigned shown[SPLIT_MAX], used = report_shown_splits(r, shown), k, i;
    unsigned row = BAR_NAME + BAR + BAR_GAP, block = 30 + used * row;

    svg_begin(h, REPORT_SLIM, 2 * block, "Sex and view by split", report_paper(true));
    for (i = 0; i < 2; i++) {
        svg_text(h, 0, i * block + 16, "b", "%s", of[i].title);
        for (k = 0; k < used; k++) {
            double y = i * block + 28 + k * row;

            svg_text(h, 0, y + 10, "d", "%s", r->dataset->split[shown[k]].name);
            of[i].draw(h, 0, REPORT_SLIM, y + BAR_NAME, &r->split[shown[k]]);
        }
    }
    svg_end(h);
}

void
report_draw_sex_view(struct html *h, const struct html_report *r, bool slim)
{
    unsigned shown[SPLIT_MAX], used = report_shown_splits(r, shown), k;
    double left = 180, right = REPORT_BROAD, half = (right - left - 30) / 2;

    if (slim) {
        draw_sex_view_slim(h, r);
        return;
    }
    svg_begin(h, REPORT_BROAD, 30 + used * (BAR + BAR_GAP) + 4, "Sex and view by split", report_paper(false));
    svg_text(h, left, 16, "b", "Sex");
    svg_text(h, left + half + 30, 16, "b", "View position");
    for (k = 0; k < used; k++) {
        double y = 28 + k * (double)(BAR + BAR_GAP);

        svg_text(h, left - 10, y + BAR / 2.0 + 4, "e", "%s", r->dataset->split[shown[k]].name);
        draw_sexes(h, left, left + half, y, &r->split[shown[k]]);
        draw_views(h, left + half + 30, right, y, &r->split[shown[k]]);
    }
    svg_end(h);
}

/* ---- pixels ------------------------------------------------------------------------------------------------------ */

#define LEVEL_LEAST 1e-5 /* share of the pixels; smaller shares are drawn on the axis */

static double
level_share(const struct report_split *s, unsigned level)
{
    uint64_t all = 0;
    unsigned i;

    for (i = 0; i < 256; i++)
        all += s->histogram[i];
    return all > 0 ? (double)s->histogram[level] / (double)all : 0;
}

void
report_draw_levels(struct html *h, const struct html_report *r, bool slim)
{
    unsigned width = slim ? REPORT_SLIM : REPORT_BROAD;
    struct svg_axis x = {.from = 0, .to = 256, .start = slim ? 56 : 70, .end = width - 16};
    struct svg_axis y = {.from = LEVEL_LEAST, .to = 10 * LEVEL_LEAST, .start = 300, .end = 52, .log = true};
    unsigned shown[SPLIT_MAX], used = report_shown_splits(r, shown), k, i;

    for (k = 0; k < used; k++)
        for (i = 0; i < 256; i++)
            while (y.to < level_share(&r->split[shown[k]], i))
                y.to *= 10;
    begin_plot(h, r, "Gray levels of the pixels by split", report_paper(slim), SVG_CURVE, x.start, width, 346);
    svg_axis_left_log(h, &y, x.start, x.end, 100, "% of pixels");
    svg_axis_bottom(h, &x, y.end, y.start, slim ? 64 : 32, "gray level, 0 = black");
    for (k = 0; k < used; k++) {
        svg_curve_begin(h, k);
        for (i = 0; i < 256; i++)
            svg_curve_to(h, svg_at(&x, i + 0.5), svg_at(&y, level_share(&r->split[shown[k]], i)));
        svg_curve_end(h);
    }
    end_plot(h);
}
