/*
 * roc_plot.c - see roc_plot.h
 *
 * The colours are two of Okabe and Ito (Color Universal Design, 2008).  The mean also has its own marker and dashes, so
 * no reader needs to see colours.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/roc_plot.h"

#include "base/number_format.h"
#include "dataset/dataset.h"
#include "draw/canvas.h"
#include "draw/svg.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The page is one column.  It is so narrow that its text is still 9.5 pixels high on a phone that is 390 pixels wide.
 * A finding has two lines: its name and its positives on the left, its interval in the middle, its numbers on the
 * right.
 */
enum {
    WIDTH = 480,
    MARGIN = 16,
    RIGHT = WIDTH - MARGIN,
    LINE = 18, /* height of a line of the title */
    ROW = 38,
    FIRST = -4, /* offsets of the two lines from the middle of their row */
    SECOND = 12,
    PLOT_LEFT = 156,
    PLOT_RIGHT = 298,
    COLUMN_AUROC = 350, /* x of its right end */
    CELLS = 3,          /* curves in a row */
    TICKS = 26,         /* width of the tick labels, left of a curve */
    CURVE = 112,        /* width and height of the plot */
    CELL_HEIGHT = 164,
    HASH = 16,    /* digits shown of a hash */
    FINDING = 20, /* characters shown of a finding */
    NAME = 24     /* and of other names */
};

/* Classes as in svg.h; series 0 is a finding, 3 is the mean. */
static const char style[] =
    ":root{max-width:100%;height:auto}.paper{fill:#fff}"
    "text{font:13px system-ui,-apple-system,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif;fill:#16191d;"
    "font-variant-numeric:tabular-nums}.d{fill:#50575f}.m{text-anchor:middle}.e{text-anchor:end}.b{font-weight:600}"
    ".t{font-size:18px;font-weight:600}.n{font-size:12.5px}.w{fill:#8a5a00}.g{stroke:#d5d9de}.a{stroke:#16191d}"
    ".band{fill:#f3f5f7}"
    ".s0{fill:none;stroke:#0072b2;stroke-width:1.7;stroke-linejoin:round}.i0{stroke:#0072b2;stroke-width:2.6}"
    ".f0{fill:#0072b2}.i3{stroke:#b34a00;stroke-width:2.6}.f3{fill:#b34a00}"
    ".l3{stroke:#b34a00;stroke-width:1.3;stroke-dasharray:5 4}.c{stroke:#6b727a;stroke-dasharray:3 3}"
    ".f5{fill:none;stroke:#16191d;stroke-width:1.5}"
    "@media (prefers-color-scheme:dark){.paper{fill:#14171a}text{fill:#e8eaed}.d{fill:#a3abb5}.w{fill:#f0b85a}"
    ".g{stroke:#3a4048}.a,.f5{stroke:#e8eaed}.band{fill:#1e2327}.s0,.i0{stroke:#56b4e9}.f0{fill:#56b4e9}"
    ".i3,.l3{stroke:#e69f00}.f3{fill:#e69f00}.c{stroke:#8b939c}}";

struct plot {
    const struct evaluation *e;
    const struct evaluation_source *from;
    const struct metrics *m;
    unsigned order[METRICS_OUTPUTS]; /* findings by falling AUROC; those without an AUROC are last */
    unsigned count;
    double y; /* baseline of the last line of the title */
    struct html h;
};

/* Cuts a long name to `most` characters, so that every line fits. */
static const char *
cut_to(size_t most, const char *name, char out[NAME + 1])
{
    snprintf(out, most + 1, "%s", name);
    if (strlen(name) > most)
        memcpy(out + most - 3, "...", 3);
    return out;
}

static const char *
cut(const char *name, char out[NAME + 1])
{
    return cut_to(NAME, name, out);
}

/* Returns the name of a finding with blanks, "Pleural Thickening". */
static const char *
shown_name(const struct plot *p, unsigned finding, char out[NAME + 1])
{
    char *at;

    cut_to(FINDING, p->e->findings[finding], out);
    for (at = out; *at; at++)
        if (*at == '_')
            *at = ' ';
    return out;
}

static void
sort_findings(struct plot *p)
{
    unsigned i, j;

    for (i = 0; i < p->m->outputs; i++) {
        double value = p->m->finding[i].metric[METRIC_AUROC].value;

        for (j = p->count++; j > 0; j--) {
            double above = p->m->finding[p->order[j - 1]].metric[METRIC_AUROC].value;

            if (isnan(value) || value <= above)
                break;
            p->order[j] = p->order[j - 1];
        }
        p->order[j] = i;
    }
}

/* ---- title ----------------------------------------------------------------------------------------------------- */

/* Returns "[0.802, 0.814]", or "" without an interval. */
static const char *
interval_text(const struct measured *m, char out[32])
{
    out[0] = '\0';
    if (!isnan(m->low))
        snprintf(out, 32, "[%.3f, %.3f]", m->low, m->high);
    return out;
}

/* Writes the two headings of the picture, which are also the title of the file. */
static void
headline(const struct plot *p, char first[128], char second[128])
{
    char interval[32], split[NAME + 1], n[FORMAT_TEXT];

    cut(chex_dataset_split(p->from->ds, p->e->split)->name, split);
    if (p->e->not_finite > 0) {
        snprintf(first, 128, "No AUROC on split %s", split);
        snprintf(second, 128, "the scores of %s images are not finite", format_count(p->e->not_finite, n));
    } else if (p->m->defined == 0) {
        snprintf(first, 128, "No AUROC on split %s", split);
        snprintf(second, 128, "no finding has both positives and negatives");
    } else {
        snprintf(first, 128, "%s%sAUROC %.3f %s", p->m->leaky ? "Leaky: " : "", p->m->short_run[0] ? "Short run: " : "",
                 p->m->mean[METRIC_AUROC].value, interval_text(&p->m->mean[METRIC_AUROC], interval));
        snprintf(second, 128, "mean over %u finding%s on split %s", p->m->defined, p->m->defined == 1 ? "" : "s",
                 split);
    }
}

/* Draws the next line of the title. */
static void title_line(struct plot *p, const char *kind, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void
title_line(struct plot *p, const char *kind, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    p->y += LINE;
    svg_text(&p->h, MARGIN, p->y, kind, "%s", text);
}

static void
draw_split(struct plot *p)
{
    const struct chex_split_info *split = chex_dataset_split(p->from->ds, p->e->split);
    char name[NAME + 1], rule[NAME + 1], images[FORMAT_TEXT], patients[FORMAT_TEXT], text[CERTIFICATE_TEXT];

    title_line(p, "d", "Split %s (%s)", cut(split->name, name), cut(p->from->ds->manifest.split_rule, rule));
    title_line(p, "d", "of data set %s", chex_dataset_info(p->from->ds)->id);
    title_line(p, "d", "%s images of %s patients, members %.*s", format_count(p->e->count, images),
               format_count(p->e->patients, patients), HASH, split->members_sha256);
    if (!p->from->certificate->sha256[0]) {
        title_line(p, "d", "No certificate of the split");
        return;
    }
    title_line(p, "d", "Certificate of the split %.*s:", HASH, p->from->certificate->sha256);
    title_line(p, "d", "%s", certificate_text(p->from->certificate, text));
}

static void
draw_model(struct plot *p)
{
    char text[NAME + 1], steps[FORMAT_TEXT];

    title_line(p, "d", "Model %s, %u x %u pixels", cut(p->from->model, text), p->from->side, p->from->side);
    title_line(p, "d", "step %s, epoch %.4g", format_count(p->from->step, steps), p->from->epochs);
    if (p->from->checkpoint)
        title_line(p, "d", "%s%s%.*s", cut(p->from->checkpoint, text), p->from->checkpoint_sha256 ? ", sha256 " : "",
                   HASH, p->from->checkpoint_sha256 ? p->from->checkpoint_sha256 : "");
}

static void
draw_method(struct plot *p)
{
    char n[FORMAT_TEXT];

    if (p->m->replicates > 0)
        title_line(p, "d", "95 %% intervals: %s bootstrap samples of patients", format_count(p->m->replicates, n));
    else
        title_line(p, "d", "Without intervals of confidence");
    if (p->e->views > 1)
        title_line(p, "d", "Probabilities are means of %u views (%s)", p->e->views, tta_names[p->e->tta]);
    if (p->e->skipped_count > 0)
        title_line(p, "d", "%s damaged images left out", format_count(p->e->skipped_count, n));
}

static void
draw_title(struct plot *p)
{
    char first[128], second[128], patients[FORMAT_THINGS];

    headline(p, first, second);
    p->y = 12;
    title_line(p, "t", "%s", first);
    title_line(p, "b", "%s", second);
    if (p->from->ds->manifest.synthetic)
        title_line(p, "b w", PICTURE_SYNTHETIC);
    if (p->from->ds->info.leaky_patients > 0)
        title_line(p, "b w", "Leaky: %s in two splits",
                   format_things(p->from->ds->info.leaky_patients, "patient", patients));
    else if (p->from->certificate->images > 0)
        title_line(p, "b w", "Leaky: %s in two splits", format_things(p->from->certificate->images, "image", patients));
    else if (p->m->leaky)
        title_line(p, "b w", "Leaky: the weights are of a run with a leaky split");
    if (p->m->short_run[0])
        title_line(p, "b w", "Short run: %s", p->m->short_run);
    draw_split(p);
    draw_model(p);
    if (p->e->not_finite == 0)
        draw_method(p);
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

/* Returns the start of the axis: 0.5, or lower if a value or an interval is lower. */
static double
lowest(const struct plot *p)
{
    double low = 0.5;
    unsigned i;

    for (i = 0; i < p->count; i++) {
        const struct measured *auroc = &p->m->finding[i].metric[METRIC_AUROC];

        low = fmin(low, fmin(auroc->value, auroc->low)); /* fmin() ignores a NaN */
    }
    return floor(low * 10) / 10;
}

static void
draw_measured(struct plot *p, const struct svg_axis *x, double y, const struct measured metric[METRIC_COUNT],
              bool too_few, unsigned series)
{
    const struct measured *auroc = &metric[METRIC_AUROC];
    char kind[8], interval[32], others[64 * METRIC_COUNT] = "";
    size_t used = 0;
    unsigned i;

    snprintf(kind, sizeof(kind), "i%u", series);
    if (!isnan(auroc->low))
        svg_line(&p->h, svg_at(x, auroc->low), y, svg_at(x, auroc->high), y, kind);
    svg_marker(&p->h, svg_at(x, auroc->value), y, series);
    svg_text(&p->h, COLUMN_AUROC, y + FIRST, "e b", "%.3f", auroc->value);
    svg_text(&p->h, RIGHT, y + FIRST, "e", "%s", too_few ? "[too few]" : interval_text(auroc, interval));
    for (i = METRIC_AUROC + 1; i < METRIC_COUNT; i++)
        used += (size_t)snprintf(others + used, sizeof(others) - used, "%s%.16s %.3f", used > 0 ? ", " : "",
                                 metric_info[i].title, metric[i].value);
    svg_text(&p->h, RIGHT, y + SECOND, "e n d", "%s", others);
}

static void
draw_finding(struct plot *p, const struct svg_axis *x, double y, unsigned finding)
{
    const struct finding_metrics *f = &p->m->finding[finding];
    char name[NAME + 1], n[FORMAT_TEXT];

    svg_text(&p->h, MARGIN, y + FIRST, "", "%s", shown_name(p, finding, name));
    if (f->positives + f->negatives == 0)
        svg_text(&p->h, MARGIN, y + SECOND, "n d", "no known label");
    else
        svg_text(&p->h, MARGIN, y + SECOND, "n d", "%s positive, %.1f %%", format_count(f->positives, n),
                 100 * (double)f->positives / (double)(f->positives + f->negatives));
    if (isnan(f->metric[METRIC_AUROC].value)) {
        svg_text(&p->h, PLOT_LEFT + 8, y + 4.5, "d", "n/a (%s)", f->positives == 0 ? "0 positives" : "0 negatives");
        return;
    }
    draw_measured(p, x, y, f->metric, p->m->replicates > 0 && f->positive_patients < METRICS_FEWEST_PATIENTS, 0);
}

static void
draw_mean(struct plot *p, const struct svg_axis *x, double top, double y)
{
    double at;

    if (p->m->defined == 0)
        return;
    at = svg_at(x, p->m->mean[METRIC_AUROC].value);
    svg_line(&p->h, MARGIN, y - ROW / 2.0, RIGHT, y - ROW / 2.0, "a");
    svg_line(&p->h, at, top, at, y, "l3");
    svg_text(&p->h, MARGIN, y + 4.5, "b", "Mean of %u", p->m->defined);
    draw_measured(p, x, y, p->m->mean, false, 3);
}

/* Draws the AUROC of random scores; lowest() is at most 0.5, so the line is inside the plot. */
static void
draw_chance(struct plot *p, const struct svg_axis *x, double top, double bottom)
{
    double at = svg_at(x, 0.5);

    svg_line(&p->h, at, top, at, bottom, "c");
    svg_text(&p->h, at, top - 9, "m n d", "chance");
}

static const char *
axis_name(const struct metrics *m)
{
    if (m->short_run[0])
        return m->leaky ? "AUROC (leaky, short run)" : "AUROC (short run)";
    return m->leaky ? "AUROC (leaky)" : "AUROC";
}

/* Draws the findings and their mean, starting at y = top.  Returns the y of their lower end. */
static double
draw_rows(struct plot *p, double top)
{
    struct svg_axis x = {.from = lowest(p), .to = 1, .start = PLOT_LEFT, .end = PLOT_RIGHT};
    double bottom = top + ROW * (p->count + 1.0), step = x.from < 0.45 ? 0.25 : 0.1, value;
    unsigned i;

    svg_text(&p->h, COLUMN_AUROC, top - 9, "e n d", "%s", metric_info[METRIC_AUROC].title);
    svg_text(&p->h, RIGHT, top - 9, "e n d", "%s", p->m->replicates > 0 ? "95 % interval" : "");
    for (i = 0; i < p->count; i += 2)
        html_format(&p->h, "<rect x=\"0\" y=\"%.0f\" width=\"%d\" height=\"%d\" class=\"band\"/>\n", top + ROW * i,
                    WIDTH, ROW);
    for (value = ceil(x.from / step) * step; value < 1.001; value += step)
        svg_line(&p->h, svg_at(&x, value), top, svg_at(&x, value), bottom, "g");
    draw_chance(p, &x, top, bottom);
    draw_mean(p, &x, top, top + ROW * (p->count + 0.5));
    for (i = 0; i < p->count; i++)
        draw_finding(p, &x, top + ROW * (i + 0.5), p->order[i]);
    svg_axis_bottom(&p->h, &x, top, bottom, step, axis_name(p->m));
    return bottom + 36;
}

/* ---- curves ---------------------------------------------------------------------------------------------------- */

struct scored {
    float score;
    uint8_t positive;
};

static int
compare_scored(const void *a, const void *b)
{
    float x = ((const struct scored *)a)->score, y = ((const struct scored *)b)->score;

    return x > y ? -1 : x < y;
}

/* Minimum distance of two points of a curve, in pixels; points in between are left out. */
#define NEAR 0.7

static void
draw_curve(struct plot *p, unsigned finding, struct scored *item, const struct svg_axis *x, const struct svg_axis *y)
{
    const struct finding_metrics *f = &p->m->finding[finding];
    const struct operating_point *youden = &f->point[CRITERION_YOUDEN];
    double positives = (double)f->positives, negatives = (double)f->negatives, px = -1, py = -1;
    uint64_t tp = 0, fp = 0;
    size_t count = 0, i;

    for (i = 0; i < p->e->count; i++) {
        size_t at = i * p->e->outputs + finding;

        if (p->e->label[at] != CHEX_LABEL_UNKNOWN)
            item[count++] = (struct scored){p->e->probability[at], p->e->label[at]};
    }
    qsort(item, count, sizeof(*item), compare_scored);
    svg_curve_begin(&p->h, 0);
    svg_curve_to(&p->h, x->start, y->start);
    for (i = 0; i < count; i++) {
        double ax, ay;

        tp += item[i].positive;
        fp += !item[i].positive;
        if (i + 1 < count && item[i + 1].score == item[i].score)
            continue;
        ax = svg_at(x, (double)fp / negatives);
        ay = svg_at(y, (double)tp / positives);
        if (fabs(ax - px) + fabs(ay - py) < NEAR && i + 1 < count)
            continue;
        svg_curve_to(&p->h, ax, ay);
        px = ax;
        py = ay;
    }
    svg_curve_end(&p->h);
    html_format(&p->h, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\" class=\"f5\"/>\n",
                svg_at(x, (double)youden->false_positives / negatives),
                svg_at(y, (double)youden->true_positives / positives));
}

/* Draws 0, 0.5 and 1 on both axes. */
static void
draw_ticks(struct plot *p, const struct svg_axis *x, const struct svg_axis *y)
{
    unsigned i;

    for (i = 0; i <= 2; i++) {
        double value = i / 2.0, across = svg_at(x, value), up = svg_at(y, value);

        svg_line(&p->h, across, y->start, across, y->start + 4, "a");
        svg_line(&p->h, x->start - 4, up, x->start, up, "a");
        svg_text(&p->h, across, y->start + 16, "m n d", "%g", value);
        svg_text(&p->h, x->start - 7, up + 4, "e n d", "%g", value);
    }
}

static void
draw_cell(struct plot *p, unsigned finding, double left, double top, struct scored *item)
{
    double auroc = p->m->finding[finding].metric[METRIC_AUROC].value;
    struct svg_axis x = {.from = 0, .to = 1, .start = left + TICKS, .end = left + TICKS + CURVE};
    struct svg_axis y = {.from = 0, .to = 1, .start = top + 18 + CURVE, .end = top + 18};
    char name[NAME + 1];

    svg_text(&p->h, x.start, top + 8, "n", "%s", shown_name(p, finding, name));
    html_format(&p->h, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" fill=\"none\" class=\"g\"/>\n", x.start,
                y.end, CURVE, CURVE);
    if (isnan(auroc)) {
        svg_text(&p->h, x.start + CURVE / 2.0, y.end + CURVE / 2.0, "m n d", "n/a");
        return;
    }
    draw_ticks(p, &x, &y);
    svg_line(&p->h, x.start, y.start, x.end, y.end, "c");
    draw_curve(p, finding, item, &x, &y);
    svg_text(&p->h, x.end - 6, y.start - 7, "e n b", "%.3f%s", auroc,
             p->m->leaky          ? " leaky"
             : p->m->short_run[0] ? " short run"
                                  : "");
}

/* Returns the y of their lower end. */
static double
draw_curves(struct plot *p, double top, struct scored *item)
{
    double apart = (RIGHT - MARGIN - TICKS - CURVE) / (CELLS - 1.0);
    unsigned i;

    svg_text(&p->h, MARGIN, top, "b", "ROC curves");
    svg_text(&p->h, MARGIN, top + LINE, "n d", "sensitivity upwards, 1 - specificity to the right");
    svg_text(&p->h, MARGIN, top + 2 * LINE, "n d", "dashed: chance; ring: the largest sensitivity + specificity");
    top += 2 * LINE + 16;
    for (i = 0; i < p->count; i++)
        draw_cell(p, p->order[i], MARGIN + apart * (i % CELLS), top + CELL_HEIGHT * (double)(i / CELLS), item);
    return top + CELL_HEIGHT * (double)((p->count + CELLS - 1) / CELLS);
}

/* ---- page ------------------------------------------------------------------------------------------------------ */

/* Draws the picture inside its frame.  Returns its height. */
static unsigned
draw_body(struct plot *p, struct scored *item)
{
    double bottom;

    draw_title(p);
    bottom = p->y;
    if (p->count > 0) {
        bottom = draw_rows(p, p->y + 44);
        bottom = draw_curves(p, bottom + 36, item);
    }
    bottom += 24;
    svg_text(&p->h, MARGIN, bottom, "b", "Research use only, not for diagnosis.");
    svg_text(&p->h, RIGHT, bottom, "e n d", "chex-tools %s", chex_version());
    return (unsigned)bottom + MARGIN;
}

/* A file starts with its height, so the body is drawn first, into a page of its own. */
static enum chex_status
draw_page(struct plot *p, struct scored *item, struct html *page)
{
    char first[128], second[128], title[260];
    unsigned height;

    sort_findings(p);
    headline(p, first, second);
    snprintf(title, sizeof(title), "%s, %s", first, second);
    height = draw_body(p, item);
    svg_begin_file(page, WIDTH, height, title, style);
    html_append(page, &p->h);
    svg_end(page);
    return page->failed ? CHEX_ERR_MEMORY : CHEX_OK;
}

enum chex_status
roc_plot_write(const struct evaluation *e, const struct evaluation_source *from, const struct folder *folder,
               const char *name, struct chex_error *err)
{
    struct plot p = {.e = e, .from = from, .m = &e->metrics};
    struct scored *item = malloc((e->count ? e->count : 1) * sizeof(*item));
    struct html page = {{0}, false};
    enum chex_status status = CHEX_OK;

    if (!item || draw_page(&p, item, &page) != CHEX_OK)
        status = error_memory(err);
    if (status == CHEX_OK)
        status = safe_file_put(folder, name, page.b.data, page.b.size, err);
    html_release(&page);
    html_release(&p.h);
    free(item);
    return status;
}
