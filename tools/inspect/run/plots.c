/*
 * plots.c - the plots of the report of a run: ROC, precision over recall, and calibration of each finding; see run.h
 *
 * A curve has a point for each step of half a pixel, not for each image, so the size of the page is bounded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "draw/svg.h"
#include "eval/ranking.h"
#include "inspect/run/run.h"

#include <math.h>

#define WIDTH  300
#define HEIGHT 286
#define TOP    24
#define FINEST 0.5 /* pixels */

enum { RAW, CALIBRATED }; /* series */

struct finding_plot {
    struct html *h;
    struct svg_axis x, y;
    double at_x, at_y; /* the last point */
    bool begun;
};

static void
plot_begin_at(struct finding_plot *p, struct html *h, const char *what, double right, double low, double high,
              const char *x, const char *y)
{
    *p = (struct finding_plot){.h = h,
                               .x = {.from = 0, .to = right, .start = 50, .end = WIDTH - 12},
                               .y = {.from = low, .to = high, .start = HEIGHT - 46, .end = TOP}};
    html_raw(h, "<figure>\n");
    svg_begin(h, WIDTH, HEIGHT, what, "");
    svg_axis_left(h, &p->y, p->x.start, p->x.end, 1, "");
    svg_axis_bottom(h, &p->x, p->y.end, p->y.start, svg_step(right, 4), x);
    svg_text(h, 0, 12, "d", "%s", y);
}

/* Both axes are from 0 to most. */
static void
plot_begin(struct finding_plot *p, struct html *h, const char *what, double most, const char *x, const char *y)
{
    plot_begin_at(p, h, what, most, 0, most, x, y);
}

static void
plot_end(struct finding_plot *p, const char *caption)
{
    svg_end(p->h);
    html_format(p->h, "<figcaption>%s</figcaption></figure>\n", caption);
}

/* Add a point of a curve, unless it is too close to the last one. */
static void
point(struct finding_plot *p, double x, double y, bool always)
{
    double at_x = svg_at(&p->x, x), at_y = svg_at(&p->y, y);

    if (p->begun && !always && fabs(at_x - p->at_x) < FINEST && fabs(at_y - p->at_y) < FINEST)
        return;
    svg_curve_to(p->h, at_x, at_y);
    p->at_x = at_x;
    p->at_y = at_y;
    p->begun = true;
}

static void
diagonal(struct finding_plot *p)
{
    svg_line(p->h, p->x.start, p->y.start, p->x.end, p->y.end, "g");
}

/* ---- ROC and precision ------------------------------------------------------------------------------------------- */

static void
draw_points(struct finding_plot *p, const struct run_report *r, unsigned k)
{
    const struct finding_metrics *m = &r->metrics->finding[k];
    unsigned i;

    for (i = 0; i < OPERATING_RULES; i++) {
        const struct run_point *at = &r->finding[k].point[i];

        if (!isnan(at->threshold))
            svg_marker(p->h, svg_at(&p->x, run_share(at->false_positives, m->negatives)),
                       svg_at(&p->y, run_share(at->true_positives, m->positives)), 1 + i);
    }
}

static void
draw_roc(struct html *h, const struct run_report *r, unsigned k, const struct ranking *ranking)
{
    const struct finding_metrics *m = &r->metrics->finding[k];
    double tp = 0, fp = 0;
    struct finding_plot p;
    size_t i;

    plot_begin(&p, h, "ROC", 1, "1 - specificity", "sensitivity");
    diagonal(&p);
    svg_curve_begin(h, RAW);
    point(&p, 0, 0, true);
    for (i = 0; i < ranking->steps; i++) {
        const struct curve_step *s = &ranking->step[i];

        fp += s->before;
        point(&p, fp / (double)m->negatives, tp / (double)m->positives, false);
        fp += s->negatives;
        tp += s->positives;
        point(&p, fp / (double)m->negatives, tp / (double)m->positives, false);
    }
    point(&p, fp / (double)m->negatives, 1, true);
    point(&p, 1, 1, true);
    svg_curve_end(h);
    draw_points(&p, r, k);
    plot_end(&p, "ROC");
}

/* The area under the drawn steps is the AUPRC. */
static void
draw_precision(struct html *h, const struct run_report *r, unsigned k, const struct ranking *ranking)
{
    const struct finding_metrics *m = &r->metrics->finding[k];
    double tp = 0, all = 0, recall, share = run_share(m->positives, m->positives + m->negatives);
    struct finding_plot p;
    size_t i;

    plot_begin(&p, h, "Precision", 1, "sensitivity (recall)", "precision (PPV)");
    svg_line(h, p.x.start, svg_at(&p.y, share), p.x.end, svg_at(&p.y, share), "g");
    svg_curve_begin(h, RAW);
    for (i = 0; i < ranking->steps; i++) {
        const struct curve_step *s = &ranking->step[i];

        recall = tp / (double)m->positives;
        tp += s->positives;
        all += s->before + s->negatives + s->positives;
        point(&p, recall, tp / all, i == 0);
        point(&p, tp / (double)m->positives, tp / all, i + 1 == ranking->steps);
    }
    svg_curve_end(h);
    plot_end(&p, "Precision and recall");
}

/* ---- calibration ------------------------------------------------------------------------------------------------- */

static double
largest(const struct calibration *c, double most)
{
    unsigned i;

    for (i = 0; i < c->bins; i++)
        most = fmax(most, fmax(c->bin[i].probability, run_share(c->bin[i].positives, c->bin[i].images)));
    return most;
}

static void
draw_bins(struct finding_plot *p, const struct calibration *c, unsigned series)
{
    unsigned i;

    svg_curve_begin(p->h, series);
    for (i = 0; i < c->bins; i++)
        svg_curve_to(p->h, svg_at(&p->x, c->bin[i].probability),
                     svg_at(&p->y, run_share(c->bin[i].positives, c->bin[i].images)));
    svg_curve_end(p->h);
    for (i = 0; i < c->bins; i++)
        svg_marker(p->h, svg_at(&p->x, c->bin[i].probability),
                   svg_at(&p->y, run_share(c->bin[i].positives, c->bin[i].images)), series);
}

static void
draw_calibration(struct html *h, const struct run_finding *f)
{
    double most = fmin(1, 1.05 * largest(&f->calibrated, largest(&f->raw, 0.01)));
    struct finding_plot p;

    if (f->raw.bins == 0)
        return;
    plot_begin(&p, h, "Calibration", most, "mean probability", "share of positives");
    diagonal(&p);
    draw_bins(&p, &f->raw, RAW);
    if (f->calibrated.bins > 0)
        draw_bins(&p, &f->calibrated, CALIBRATED);
    plot_end(&p, f->calibrated.bins > 0 ? "Calibration: raw (circles) and calibrated (squares)" : "Calibration, raw");
}

/* ---- net benefit and classes ------------------------------------------------------------------------------------- */

static void
draw_decision(struct html *h, const struct run_finding *f)
{
    const struct run_decision *d = &f->decision;
    double high = d->all[0], low = 0;
    struct finding_plot p;
    unsigned t;

    for (t = 0; t < RUN_DECISIONS; t++) {
        high = fmax(high, d->network[t]);
        low = fmin(low, d->network[t]);
    }
    low = fmax(fmin(low, -0.1 * high), -0.5 * high);
    plot_begin_at(&p, h, "Net benefit", d->threshold[RUN_DECISIONS - 1], low, 1.05 * high, "threshold t",
                  "net benefit");
    svg_line(h, p.x.start, svg_at(&p.y, 0), p.x.end, svg_at(&p.y, 0), "g");
    svg_curve_begin(h, 1);
    for (t = 0; t < RUN_DECISIONS && d->all[t] >= low; t++)
        svg_curve_to(h, svg_at(&p.x, d->threshold[t]), svg_at(&p.y, d->all[t]));
    svg_curve_end(h);
    svg_curve_begin(h, 0);
    for (t = 0; t < RUN_DECISIONS; t++)
        svg_curve_to(h, svg_at(&p.x, d->threshold[t]), svg_at(&p.y, fmax(low, d->network[t])));
    svg_curve_end(h);
    plot_end(&p, d->calibrated ? "Net benefit, p calibrated" : "Net benefit, raw p");
}

static void
draw_classes(struct html *h, const struct run_report *r, unsigned k)
{
    const struct finding_metrics *m = &r->metrics->finding[k];
    const uint64_t all[2] = {m->negatives, m->positives};
    double most = 0.1;
    struct finding_plot p;
    unsigned label, c;

    for (label = 0; label < 2; label++)
        for (c = 0; c < RUN_CLASSES; c++)
            most = fmax(most, run_share(r->finding[k].by_class[label][c], all[label]));
    plot_begin_at(&p, h, "Probabilities", 1, 0, most, "raw probability", "share of images");
    for (label = 0; label < 2; label++) {
        svg_curve_begin(h, label);
        svg_curve_to(h, p.x.start, p.y.start);
        for (c = 0; c < RUN_CLASSES; c++) {
            double at = svg_at(&p.y, run_share(r->finding[k].by_class[label][c], all[label]));

            svg_curve_to(h, svg_at(&p.x, (double)c / RUN_CLASSES), at);
            svg_curve_to(h, svg_at(&p.x, (double)(c + 1) / RUN_CLASSES), at);
        }
        svg_curve_end(h);
    }
    plot_end(&p, "Probabilities of negatives (solid) and positives (dashed)");
}

void
run_plots(struct html *h, const struct run_report *r)
{
    const struct scores s = run_scores(r);
    struct ranking *ranking = NULL;
    unsigned k;

    if (rankings_new(&s, r->in->common->threads, &ranking, NULL) != CHEX_OK)
        h->failed = true;
    for (k = 0; k < r->p.outputs && !h->failed; k++) {
        if (!r->finding[k].enough)
            continue;
        html_raw(h, "<h3>");
        html_text(h, r->finding[k].name);
        html_raw(h, "</h3><div class=\"trio\">\n");
        draw_roc(h, r, k, &ranking[k]);
        draw_precision(h, r, k, &ranking[k]);
        draw_calibration(h, &r->finding[k]);
        draw_decision(h, &r->finding[k]);
        draw_classes(h, r, k);
        html_raw(h, "</div>\n");
    }
    rankings_free(ranking, r->p.outputs);
}
