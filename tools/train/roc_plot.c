/*
 * roc_plot.c - see roc_plot.h
 *
 * Colours are two of Okabe and Ito (Color Universal Design, 2008), and the mean has another marker and dash as well.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/roc_plot.h"

#include "base/progress.h"
#include "dataset/dataset.h"
#include "draw/svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MARGIN = 20,
    ROW = 26,
    TOP = 136,   /* of the first row */
    NAMES = 160, /* their right end */
    PLOT_LEFT = 180,
    PLOT_RIGHT = 590,
    /* right ends of the columns */
    COLUMN_AUROC = 650,
    COLUMN_INTERVAL = 765, /* of the AUROC */
    COLUMN_WIDTH = 67,     /* of each further metric */
    COLUMN_POSITIVES = COLUMN_INTERVAL + COLUMN_WIDTH * (METRIC_COUNT - 1) + 148,
    WIDTH = COLUMN_POSITIVES + MARGIN,
    CELLS = 7,   /* curves side by side */
    CURVE = 115, /* side of one */
    CELL_HEIGHT = 158,
    HASH = 16, /* digits shown */
    NAME = 24  /* characters shown of a name that the user gave */
};

/* Classes as svg.h has them; 0 is a finding, 3 the mean. */
static const char style[] =
    "text{font:13px system-ui,-apple-system,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif;fill:#16191d;"
    "font-variant-numeric:tabular-nums}.d{fill:#50575f}.m{text-anchor:middle}.e{text-anchor:end}.b{font-weight:600}"
    ".t{font-size:19px;font-weight:600}.n{font-size:11.5px}.g{stroke:#d5d9de}.a{stroke:#16191d}.band{fill:#f3f5f7}"
    ".s0{fill:none;stroke:#0072b2;stroke-width:1.7;stroke-linejoin:round}.i0{stroke:#0072b2;stroke-width:2.6}"
    ".f0{fill:#0072b2}.i3{stroke:#b34a00;stroke-width:2.6}.f3{fill:#b34a00}"
    ".l3{stroke:#b34a00;stroke-width:1.3;stroke-dasharray:5 4}.c{stroke:#6b727a;stroke-dasharray:3 3}"
    ".f5{fill:none;stroke:#16191d;stroke-width:1.5}";

struct plot {
    const struct evaluation *e;
    const struct evaluation_source *from;
    const struct metrics *m;
    unsigned order[METRICS_OUTPUTS]; /* findings, the best first; those without an AUROC last */
    unsigned count;
    struct html h;
};

/* "Pleural Thickening" */
static const char *
shown_name(unsigned finding, char out[64])
{
    char *at;

    snprintf(out, 64, "%s", chex_finding_name(finding));
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

/* A name, cut where it is long, so that the lines are known to fit. */
static const char *
cut(const char *name, char out[NAME + 1])
{
    snprintf(out, NAME + 1, "%s", name);
    if (strlen(name) > NAME)
        memcpy(out + NAME - 3, "...", 3);
    return out;
}

/* "[0.802, 0.814]", or nothing. */
static const char *
interval_text(const struct measured *m, char out[32])
{
    out[0] = '\0';
    if (!isnan(m->low))
        snprintf(out, 32, "[%.3f, %.3f]", m->low, m->high);
    return out;
}

static void
headline(const struct plot *p, char *out, size_t size)
{
    char interval[32], split[NAME + 1], n[PROGRESS_TEXT];

    cut(chex_dataset_split(p->from->ds, p->e->split)->name, split);
    if (p->e->not_finite > 0)
        snprintf(out, size, "No AUROC on split %s: the scores of %s images are no numbers", split,
                 format_count(p->e->not_finite, n));
    else if (p->m->defined == 0)
        snprintf(out, size, "No AUROC on split %s: no finding is there and absent", split);
    else
        snprintf(out, size, "AUROC on split %s: mean %.3f %s over %u finding%s", split, p->m->mean[METRIC_AUROC].value,
                 interval_text(&p->m->mean[METRIC_AUROC], interval), p->m->defined, p->m->defined == 1 ? "" : "s");
}

static void
draw_split(struct plot *p, double y)
{
    const struct chex_split_info *split = chex_dataset_split(p->from->ds, p->e->split);
    char name[NAME + 1], rule[NAME + 1], images[PROGRESS_TEXT], patients[PROGRESS_TEXT];

    svg_text(&p->h, MARGIN, y, "d", "Split %s (%s), members %.*s, of data set %s: %s images of %s patients",
             cut(split->name, name), cut(p->from->ds->manifest.split_rule, rule), HASH, split->members_sha256,
             chex_dataset_info(p->from->ds)->id, format_count(p->e->count, images),
             format_count(p->e->patients, patients));
}

static void
draw_model(struct plot *p, double y)
{
    char checkpoint[NAME + 1] = "", hash[40] = "", model[NAME + 1], steps[PROGRESS_TEXT];

    if (p->from->checkpoint)
        cut(p->from->checkpoint, checkpoint);
    if (p->from->checkpoint && p->from->checkpoint_sha256)
        snprintf(hash, sizeof(hash), " (sha256 %.*s)", HASH, p->from->checkpoint_sha256);
    svg_text(&p->h, MARGIN, y, "d", "Model %s, %u x %u pixels%s%s%s, step %s, epoch %.4g", cut(p->from->model, model),
             p->from->side, p->from->side, checkpoint[0] ? ", " : "", checkpoint, hash,
             format_count(p->from->step, steps), p->from->epochs);
}

static void
draw_method(struct plot *p, double y)
{
    char intervals[96] = "Without intervals of confidence", views[64] = "", skipped[64] = "", n[PROGRESS_TEXT];

    if (p->m->replicates > 0)
        snprintf(intervals, sizeof(intervals), "95 %% intervals from %s bootstrap samples of patients",
                 format_count(p->m->replicates, n));
    if (p->e->views > 1)
        snprintf(views, sizeof(views), "; probabilities are means of %u views (%s)", p->e->views, tta_names[p->e->tta]);
    if (p->e->skipped_count > 0)
        snprintf(skipped, sizeof(skipped), "; %s damaged images left out", format_count(p->e->skipped_count, n));
    svg_text(&p->h, MARGIN, y, "d", "%s%s%s", intervals, views, skipped);
}

static void
draw_title(struct plot *p)
{
    char title[256];

    headline(p, title, sizeof(title));
    svg_text(&p->h, MARGIN, 30, "t", "%s", title);
    draw_split(p, 54);
    draw_model(p, 73);
    if (p->e->not_finite == 0)
        draw_method(p, 92);
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

/* From 0.5, or lower where an interval reaches below. */
static double
lowest(const struct plot *p)
{
    double low = 0.5;
    unsigned i;

    for (i = 0; i < p->count; i++) {
        const struct measured *auroc = &p->m->finding[i].metric[METRIC_AUROC];

        low = fmin(low, fmin(auroc->value, auroc->low)); /* a NaN does not count */
    }
    return floor(low * 10) / 10;
}

static void
draw_measured(struct plot *p, const struct svg_axis *x, double y, const struct measured metric[METRIC_COUNT],
              unsigned series)
{
    const struct measured *auroc = &metric[METRIC_AUROC];
    char kind[8], interval[32];
    unsigned i;

    snprintf(kind, sizeof(kind), "i%u", series);
    if (!isnan(auroc->low))
        svg_line(&p->h, svg_at(x, auroc->low), y, svg_at(x, auroc->high), y, kind);
    svg_marker(&p->h, svg_at(x, auroc->value), y, series);
    svg_text(&p->h, COLUMN_AUROC, y + 4.5, "e b", "%.3f", auroc->value);
    svg_text(&p->h, COLUMN_INTERVAL, y + 4.5, "e", "%s", interval_text(auroc, interval));
    for (i = METRIC_AUROC + 1; i < METRIC_COUNT; i++)
        svg_text(&p->h, COLUMN_INTERVAL + (double)COLUMN_WIDTH * i, y + 4.5, "e", "%.3f", metric[i].value);
}

static void
draw_finding(struct plot *p, const struct svg_axis *x, double y, unsigned finding)
{
    const struct finding_metrics *f = &p->m->finding[finding];
    char name[64], n[PROGRESS_TEXT];

    svg_text(&p->h, NAMES, y + 4.5, "e", "%s", shown_name(finding, name));
    svg_text(&p->h, COLUMN_POSITIVES, y + 4.5, "e", "%s (%.1f %%)", format_count(f->positives, n),
             100 * (double)f->positives / (double)p->m->images);
    if (isnan(f->metric[METRIC_AUROC].value)) {
        svg_text(&p->h, PLOT_LEFT + 8, y + 4.5, "d", "n/a (%s)", f->positives == 0 ? "0 positives" : "0 negatives");
        return;
    }
    draw_measured(p, x, y, f->metric, 0);
}

static void
draw_mean(struct plot *p, const struct svg_axis *x, double top, double y)
{
    double at;

    if (p->m->defined == 0)
        return;
    at = svg_at(x, p->m->mean[METRIC_AUROC].value);
    svg_line(&p->h, MARGIN, y - ROW / 2.0, WIDTH - MARGIN, y - ROW / 2.0, "a");
    svg_line(&p->h, at, top, at, y, "l3");
    svg_text(&p->h, NAMES, y + 4.5, "e b", "Mean of %u", p->m->defined);
    draw_measured(p, x, y, p->m->mean, 3);
}

/* What a score without any knowledge reaches: lowest() is at 0.5 or below. */
static void
draw_chance(struct plot *p, const struct svg_axis *x, double bottom)
{
    double at = svg_at(x, 0.5);

    svg_line(&p->h, at, TOP, at, bottom, "c");
    svg_text(&p->h, at, TOP - 9, "m n d", "chance");
}

static void
draw_rows(struct plot *p)
{
    struct svg_axis x = {.from = lowest(p), .to = 1, .start = PLOT_LEFT, .end = PLOT_RIGHT};
    double bottom = TOP + ROW * (p->count + 1.0), value;
    unsigned i;

    svg_text(&p->h, COLUMN_AUROC, TOP - 9, "e d", "%s", metric_info[METRIC_AUROC].title);
    svg_text(&p->h, COLUMN_INTERVAL, TOP - 9, "e d", "%s", p->m->replicates > 0 ? "95 % interval" : "");
    for (i = METRIC_AUROC + 1; i < METRIC_COUNT; i++)
        svg_text(&p->h, COLUMN_INTERVAL + (double)COLUMN_WIDTH * i, TOP - 9, "e d", "%s", metric_info[i].title);
    svg_text(&p->h, COLUMN_POSITIVES, TOP - 9, "e d", "positive images");
    for (i = 0; i < p->count; i += 2)
        html_format(&p->h, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"band\"/>\n", MARGIN,
                    (int)(TOP + ROW * i), WIDTH - 2 * MARGIN, ROW);
    for (value = x.from; value < 1.001; value += 0.1)
        svg_line(&p->h, svg_at(&x, value), TOP, svg_at(&x, value), bottom, "g");
    draw_chance(p, &x, bottom);
    draw_mean(p, &x, TOP, TOP + ROW * (p->count + 0.5));
    for (i = 0; i < p->count; i++)
        draw_finding(p, &x, TOP + ROW * (i + 0.5), p->order[i]);
    svg_axis_bottom(&p->h, &x, TOP, bottom, 0.1, "AUROC");
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

/* Points nearer than this to the last one are not drawn, in pixels. */
#define NEAR 0.7

static void
draw_curve(struct plot *p, unsigned finding, struct scored *item, const struct svg_axis *x, const struct svg_axis *y)
{
    const struct finding_metrics *f = &p->m->finding[finding];
    const struct operating_point *youden = &f->point[CRITERION_YOUDEN];
    double positives = (double)f->positives, negatives = (double)(p->e->count - f->positives), px = -1, py = -1;
    uint64_t tp = 0, fp = 0;
    size_t i;

    for (i = 0; i < p->e->count; i++) {
        size_t at = i * p->e->outputs + finding;

        item[i] = (struct scored){p->e->probability[at], p->e->label[at]};
    }
    qsort(item, p->e->count, sizeof(*item), compare_scored);
    svg_curve_begin(&p->h, 0);
    svg_curve_to(&p->h, x->start, y->start);
    for (i = 0; i < p->e->count; i++) {
        double ax, ay;

        tp += item[i].positive;
        fp += !item[i].positive;
        if (i + 1 < p->e->count && item[i + 1].score == item[i].score)
            continue;
        ax = svg_at(x, (double)fp / negatives);
        ay = svg_at(y, (double)tp / positives);
        if (fabs(ax - px) + fabs(ay - py) < NEAR && i + 1 < p->e->count)
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

static void
draw_cell(struct plot *p, unsigned finding, double left, double top, struct scored *item)
{
    double auroc = p->m->finding[finding].metric[METRIC_AUROC].value;
    struct svg_axis x = {.from = 0, .to = 1, .start = left, .end = left + CURVE};
    struct svg_axis y = {.from = 0, .to = 1, .start = top + 18 + CURVE, .end = top + 18};
    char name[64];

    svg_text(&p->h, left, top + 10, "n", "%s", shown_name(finding, name));
    html_format(&p->h, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" fill=\"none\" class=\"g\"/>\n", left,
                y.end, CURVE, CURVE);
    if (isnan(auroc)) {
        svg_text(&p->h, left + CURVE / 2.0, y.end + CURVE / 2.0, "m n d", "n/a");
        return;
    }
    svg_line(&p->h, x.start, y.start, x.end, y.end, "c");
    draw_curve(p, finding, item, &x, &y);
    svg_text(&p->h, x.end - 6, y.start - 7, "e n b", "%.3f", auroc);
}

static void
draw_curves(struct plot *p, double top, struct scored *item)
{
    double apart = (WIDTH - 2 * MARGIN - CURVE) / (CELLS - 1.0);
    unsigned i;

    svg_text(&p->h, MARGIN, top, "b", "ROC curves");
    svg_text(&p->h, MARGIN + 88, top, "d",
             "sensitivity upwards, 1 - specificity to the right, from 0 to 1.  Ring: the largest sensitivity + "
             "specificity.  "
             "Dashed: chance.");
    for (i = 0; i < p->count; i++)
        draw_cell(p, p->order[i], MARGIN + apart * (i % CELLS), top + 14 + CELL_HEIGHT * (double)(i / CELLS), item);
}

/* ---- page ------------------------------------------------------------------------------------------------------ */

static void
draw_page(struct plot *p, struct scored *item)
{
    double curves = TOP + ROW * (p->m->outputs + 1.0) + 64, bottom = 122;
    char title[256];

    sort_findings(p);
    headline(p, title, sizeof(title));
    if (p->count > 0)
        bottom = curves + 14 + CELL_HEIGHT * (double)((p->count + CELLS - 1) / CELLS) + 8;
    svg_begin_file(&p->h, WIDTH, (unsigned)bottom + 16, title, style);
    draw_title(p);
    if (p->count > 0) {
        draw_rows(p);
        draw_curves(p, curves, item);
    }
    svg_text(&p->h, MARGIN, bottom, "b", "Research use only, not for diagnosis.");
    svg_text(&p->h, WIDTH - MARGIN, bottom, "e d", "chex-tools %s", chex_version());
    svg_end(&p->h);
}

enum chex_status
roc_plot_write(const struct evaluation *e, const struct evaluation_source *from, const struct folder *folder,
               const char *name, struct chex_error *err)
{
    struct plot p = {.e = e, .from = from, .m = &e->metrics};
    struct scored *item = malloc((e->count ? e->count : 1) * sizeof(*item));
    enum chex_status status = CHEX_OK;

    if (item)
        draw_page(&p, item);
    if (!item || p.h.failed)
        status = error_memory(err);
    if (status == CHEX_OK)
        status = safe_file_put(folder, name, p.h.b.data, p.h.b.size, err);
    html_release(&p.h);
    free(item);
    return status;
}
