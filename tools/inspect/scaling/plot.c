/*
 * plot.c - draws the comparison: speed-up and efficiency by the number of ranks; see scaling.h, svg.h
 *
 * The page is 440 pixels wide, so its letters have 7 points in a column of 85 mm.  Series differ in marker and dashes,
 * not only in colour: filled circles are ours, hollow shapes are published, dashes have no points of their own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "draw/svg.h"
#include "inspect/scaling/scaling.h"

#include <math.h>
#include <string.h>

#define WIDTH      440
#define LEFT       52.0
#define RIGHT      (WIDTH - 16.0)
#define LINE       18
#define TALL       200 /* height of the speed-up */
#define LOW        150 /* height of the efficiency */
#define GAP        54  /* between the two */
#define TITLE      128 /* bytes of a line of the title; up to 60 letters fit */
#define PUBLISHED  3   /* kinds of markers of published points: series 1 to 3 */
#define MOST_TICKS 9

static const char style[] =
    ":root{max-width:100%;height:auto}.paper{fill:#fff}"
    "text{font:13px system-ui,-apple-system,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif;fill:#16191d;"
    "font-variant-numeric:tabular-nums}.d{fill:#3b4148}.m{text-anchor:middle}.e{text-anchor:end}.b{font-weight:600}"
    ".g{stroke:#dfe3e7}.a{stroke:#16191d}.c{stroke:#6b727a;stroke-width:1.3;stroke-dasharray:2 3}"
    ".s0{fill:none;stroke:#0058a0;stroke-width:1.8;stroke-linejoin:round}.f0{fill:#0058a0}"
    ".h0{fill:#fff;stroke:#0058a0;stroke-width:1.8}"
    ".s1{fill:none;stroke:#0058a0;stroke-width:1.4;stroke-dasharray:8 3}"
    ".s2{fill:none;stroke:#0058a0;stroke-width:1.4;stroke-dasharray:6 2 1.5 2}"
    ".s4{fill:none;stroke:#16191d;stroke-width:1.4;stroke-dasharray:5 2 1 2 1 2}.i4{stroke:#16191d;stroke-width:1.4}"
    ".f4{fill:#fff;stroke:#16191d;stroke-width:1.6}"
    ".f1,.f2,.f3{fill:#fff;stroke:#a34400;stroke-width:1.6}";

struct figure {
    const struct scaling *s;
    struct svg_axis x, speedup, efficiency;
    const char *source[SCALING_POINTS]; /* the different ones */
    size_t sources;
    double at, y; /* of the legend: the end of the last entry, and its baseline */
    struct html h;
};

/* ---- sources and axes -------------------------------------------------------------------------------------------- */

static unsigned
series_of(const struct figure *p, const char *source)
{
    size_t i = 0;

    while (i < p->sources && strcmp(p->source[i], source) != 0)
        i++;
    return 1 + (unsigned)(i % PUBLISHED);
}

static void
find_sources(struct figure *p)
{
    const struct reference_point *r;
    size_t i;

    for (r = p->s->point; r < p->s->point + p->s->points; r++) {
        for (i = 0; i < p->sources && strcmp(p->source[i], r->source) != 0; i++)
            continue;
        if (i == p->sources)
            p->source[p->sources++] = r->source;
    }
}

static void
widen(struct svg_axis *axis, double value)
{
    if (!(value > 0)) /* also NaN */
        return;
    axis->from = fmin(axis->from, value);
    axis->to = fmax(axis->to, value);
}

static void
widen_modelled(struct figure *p)
{
    const struct scaling_prediction *m = &p->s->prediction;
    size_t i;

    for (i = 0; i < m->points; i++) {
        double speedup = scaling_speedup(p->s, &m->point[i]);

        widen(&p->x, m->point[i].ranks);
        widen(&p->speedup, speedup);
        widen(&p->efficiency, speedup / m->point[i].ranks);
    }
    widen(&p->speedup, scaling_speedup(p->s, scaling_predicted(p->s)) / m->factor);
    widen(&p->speedup, scaling_speedup(p->s, scaling_predicted(p->s)) * m->factor);
    widen(&p->efficiency, scaling_speedup(p->s, scaling_predicted(p->s)) * m->factor / m->ranks);
}

static void
find_ranges(struct figure *p)
{
    const struct scaling *s = p->s;
    const struct scaling_run *r;
    const struct reference_point *q;

    p->x = (struct svg_axis){.from = s->reference->ranks, .to = s->reference->ranks, .log = true};
    p->speedup = p->x;
    p->efficiency = (struct svg_axis){.from = 0, .to = 1};
    for (r = s->run; r < s->run + s->count; r++) {
        widen(&p->x, r->ranks);
        widen(&p->speedup, r->speedup);
        widen(&p->efficiency, r->efficiency);
        widen(&p->efficiency, r->computation);
    }
    for (q = s->point; q < s->point + s->points; q++) {
        widen(&p->x, q->gpus);
        widen(&p->speedup, q->speedup);
        widen(&p->efficiency, q->efficiency);
    }
    if (s->prediction.base)
        widen_modelled(p);
    p->speedup.to = fmax(p->speedup.to, p->x.to); /* the ideal */
    p->efficiency.from = 0;
    p->efficiency.to = ceil(p->efficiency.to * 5 - 0.1) / 5;
}

/* Leave room for markers at both ends of a logarithmic axis; a tick of 1, 2, 4 ... is inside. */
static void
pad(struct svg_axis *axis)
{
    double room;

    axis->from = exp2(floor(log2(axis->from) + 1e-9));
    axis->to = fmax(axis->to, 2 * axis->from);
    room = pow(axis->to / axis->from, 0.05);
    axis->from /= room;
    axis->to *= room;
}

/* Returns the factor between two ticks of a logarithmic axis. */
static double
tick_factor(const struct svg_axis *axis)
{
    return exp2(ceil(log2(axis->to / axis->from) / MOST_TICKS));
}

static double
first_tick(const struct svg_axis *axis)
{
    return exp2(ceil(log2(axis->from)));
}

static void
draw_bottom(struct figure *p, const struct svg_axis *y, const char *unit)
{
    double value;

    for (value = first_tick(&p->x); value <= p->x.to; value *= tick_factor(&p->x)) {
        double at = svg_at(&p->x, value);

        svg_line(&p->h, at, y->start, at, y->start + 4, "a");
        svg_text(&p->h, at, y->start + 18, "m d", "%g", value);
    }
    svg_line(&p->h, LEFT, y->start, RIGHT, y->start, "a");
    svg_text(&p->h, (LEFT + RIGHT) / 2, y->start + 36, "m", "%s", unit);
}

static void
draw_speedup_axis(struct figure *p)
{
    const struct svg_axis *y = &p->speedup;
    double value;

    for (value = first_tick(y); value <= y->to; value *= tick_factor(y)) {
        svg_line(&p->h, LEFT, svg_at(y, value), RIGHT, svg_at(y, value), "g");
        svg_text(&p->h, LEFT - 7, svg_at(y, value) + 4, "e d", "%g", value);
    }
    svg_text(&p->h, 4, y->end - 12, "", "speed-up");
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* Returns a value of a run: what 0: speed-up; 1: efficiency; 2: parallel efficiency; 3: computation scaling. */
static double
value_of(const struct scaling_run *r, unsigned what)
{
    return what == 0 ? r->speedup : what == 1 ? r->efficiency : what == 2 ? r->factor[FACTOR_PARALLEL] : r->computation;
}

/* Draws a line through the runs that are comparable and have the value; of each number of ranks the first. */
static void
draw_line(struct figure *p, const struct svg_axis *y, unsigned what, unsigned series)
{
    const struct scaling_run *r;
    unsigned last = 0;

    svg_curve_begin(&p->h, series);
    for (r = p->s->run; r < p->s->run + p->s->count; r++) {
        if (r->ranks == last || r->differs[0] || !(value_of(r, what) > 0))
            continue;
        svg_curve_to(&p->h, svg_at(&p->x, r->ranks), svg_at(y, value_of(r, what)));
        last = r->ranks;
    }
    svg_curve_end(&p->h);
}

static void
draw_runs(struct figure *p, const struct svg_axis *y, unsigned what)
{
    const struct scaling_run *r;

    draw_line(p, y, what, 0);
    for (r = p->s->run; r < p->s->run + p->s->count; r++) {
        double x = svg_at(&p->x, r->ranks), at = svg_at(y, value_of(r, what));

        if (r->differs[0])
            html_format(&p->h, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" class=\"h0\"/>\n", x, at);
        else
            svg_marker(&p->h, x, at, 0);
    }
}

/* The efficiency of a source that published only parallel efficiencies is drawn in their place. */
static double
point_efficiency(const struct reference_point *q)
{
    return isnan(q->efficiency) ? q->parallel_efficiency : q->efficiency;
}

static void
draw_points(struct figure *p)
{
    const struct reference_point *q;

    for (q = p->s->point; q < p->s->point + p->s->points; q++) {
        double x = svg_at(&p->x, q->gpus);

        if (!isnan(q->speedup))
            svg_marker(&p->h, x, svg_at(&p->speedup, q->speedup), series_of(p, q->source));
        svg_marker(&p->h, x, svg_at(&p->efficiency, point_efficiency(q)), series_of(p, q->source));
    }
}

/* Draws a bar with short ends. */
static void
draw_bar(struct figure *p, double x, double low, double high)
{
    svg_line(&p->h, x, low, x, high, "i4");
    svg_line(&p->h, x - 4, low, x + 4, low, "i4");
    svg_line(&p->h, x - 4, high, x + 4, high, "i4");
}

/* Draws the modelled points; each: divide the speed-up by the ranks. */
static void
draw_modelled(struct figure *p, const struct svg_axis *y, bool each)
{
    const struct scaling_prediction *m = &p->s->prediction;
    double x = 0, value = 0;
    size_t i;

    if (!m->base)
        return;
    svg_curve_begin(&p->h, 4);
    for (i = 0; i < m->points; i++) {
        x = svg_at(&p->x, m->point[i].ranks);
        value = scaling_speedup(p->s, &m->point[i]) / (each ? m->point[i].ranks : 1);
        svg_curve_to(&p->h, x, svg_at(y, value));
    }
    svg_curve_end(&p->h);
    if (!isnan(m->factor))
        draw_bar(p, x, svg_at(y, value / m->factor), svg_at(y, value * m->factor));
    svg_marker(&p->h, x, svg_at(y, value), 4);
}

static void
draw_ideal(struct figure *p)
{
    double from = p->s->reference->ranks, to = p->x.to;

    svg_line(&p->h, svg_at(&p->x, from), svg_at(&p->speedup, from), svg_at(&p->x, to), svg_at(&p->speedup, to), "c");
    svg_line(&p->h, LEFT, svg_at(&p->efficiency, 1), RIGHT, svg_at(&p->efficiency, 1), "c");
}

/* ---- legend ------------------------------------------------------------------------------------------------------ */

enum symbol { SYMBOL_RUN, SYMBOL_OTHER, SYMBOL_LINE, SYMBOL_POINT };

/* Adds an entry, on a new line if it does not fit.  kind: class of the line; series: of the point. */
static void
add_key(struct figure *p, enum symbol symbol, const char *kind, unsigned series, const char *name)
{
    double width = 46 + 7.6 * (double)strlen(name);

    if (p->at > 8 && p->at + width > WIDTH) {
        p->at = 8;
        p->y += LINE;
    }
    if (symbol != SYMBOL_POINT && symbol != SYMBOL_OTHER)
        svg_line(&p->h, p->at, p->y - 4, p->at + 26, p->y - 4, kind);
    if (symbol == SYMBOL_OTHER)
        html_format(&p->h, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" class=\"h0\"/>\n", p->at + 13, p->y - 4);
    else if (symbol != SYMBOL_LINE)
        svg_marker(&p->h, p->at + 13, p->y - 4, series);
    svg_text(&p->h, p->at + 32, p->y, "", "%s", name);
    p->at += width;
}

static bool
has_factors(const struct scaling *s)
{
    size_t i;

    for (i = 0; i < s->count; i++)
        if (!isnan(s->run[i].computation))
            return true;
    return false;
}

/* Returns whether this source has no rates. */
static bool
is_parallel_only(const struct figure *p, const char *source)
{
    const struct reference_point *q;

    for (q = p->s->point; q < p->s->point + p->s->points; q++)
        if (strcmp(q->source, source) == 0 && !isnan(q->rate))
            return false;
    return true;
}

static void
draw_legend(struct figure *p)
{
    char name[SCALING_SOURCE + 40];
    size_t i;

    p->at = 8;
    add_key(p, SYMBOL_RUN, "s0", 0, p->s->reference->short_run[0] ? "measured, short run" : "measured");
    add_key(p, SYMBOL_LINE, "c", 0, "ideal");
    if (!scaling_comparable(p->s))
        add_key(p, SYMBOL_OTHER, "", 0, "not comparable");
    if (has_factors(p->s)) {
        add_key(p, SYMBOL_LINE, "s1", 0, "parallel efficiency");
        add_key(p, SYMBOL_LINE, "s2", 0, "computation scaling");
    }
    if (p->s->prediction.base) {
        snprintf(name, sizeof(name), "modelled, %s", scale_link_name[p->s->prediction.machine.outside]);
        add_key(p, SYMBOL_RUN, "s4", 4, name);
    }
    for (i = 0; i < p->sources; i++) {
        snprintf(name, sizeof(name), "%s, published%s", p->source[i],
                 is_parallel_only(p, p->source[i]) ? " (parallel)" : "");
        add_key(p, SYMBOL_POINT, "", series_of(p, p->source[i]), name);
    }
}

/* ---- page -------------------------------------------------------------------------------------------------------- */

static void
format_title(const struct scaling *s, char first[TITLE], char second[TITLE])
{
    const struct scaling_run *r = s->reference;
    char text[2 * SCALING_TEXT + 40], batch[FORMAT_TEXT];

    snprintf(first, TITLE, "%.30s: %s%s", r->fact[FACT_MODEL], scaling_kind_name[s->kind],
             s->kind == SCALING_ONE ? " number of ranks" : " scaling");
    if (s->kind == SCALING_WEAK)
        snprintf(text, sizeof(text), "batch %s per rank", format_count(r->global_batch / r->ranks, batch));
    else if (s->kind == SCALING_MIXED)
        snprintf(text, sizeof(text), "several batches");
    else
        snprintf(text, sizeof(text), "global batch %s", format_count(r->global_batch, batch));
    snprintf(second, TITLE, "%.24s, %.8s, %.26s", text, r->fact[FACT_PRECISION], r->fact[FACT_DEVICE]);
}

/* Draws the picture inside its frame.  Returns its height. */
static unsigned
draw_body(struct figure *p, const char *first, const char *second)
{
    double top;

    svg_text(&p->h, 8, LINE, "b", "%s", first);
    svg_text(&p->h, 8, 2 * LINE, "d", "%s", second);
    p->y = 3 * LINE + 4;
    draw_legend(p);
    top = p->y + 36;
    p->speedup.end = top;
    p->speedup.start = top + TALL;
    p->efficiency.end = p->speedup.start + GAP;
    p->efficiency.start = p->efficiency.end + LOW;
    draw_speedup_axis(p);
    svg_axis_left(&p->h, &p->efficiency, LEFT, RIGHT, 1, "");
    svg_text(&p->h, 4, p->efficiency.end - 12, "", "efficiency");
    draw_bottom(p, &p->speedup, "");
    draw_bottom(p, &p->efficiency, p->s->points > 0 ? "ranks or GPUs" : "ranks");
    draw_ideal(p);
    draw_line(p, &p->efficiency, 2, 1);
    draw_line(p, &p->efficiency, 3, 2);
    draw_points(p);
    draw_modelled(p, &p->speedup, false);
    draw_modelled(p, &p->efficiency, true);
    draw_runs(p, &p->speedup, 0);
    draw_runs(p, &p->efficiency, 1);
    return (unsigned)p->efficiency.start + 46;
}

enum chex_status
scaling_plot(const struct scaling *s, struct buffer *out, struct chex_error *err)
{
    struct figure p = {.s = s};
    struct html page = {{0}, false};
    char first[TITLE], second[TITLE];
    unsigned height;
    bool failed;

    find_sources(&p);
    find_ranges(&p);
    pad(&p.x);
    pad(&p.speedup);
    p.x.start = LEFT;
    p.x.end = RIGHT;
    format_title(s, first, second);
    height = draw_body(&p, first, second);
    svg_begin_file(&page, WIDTH, height, first, style);
    html_append(&page, &p.h);
    svg_end(&page);
    html_release(&p.h);
    failed = page.failed;
    *out = page.b;
    return failed ? error_memory(err) : CHEX_OK;
}
