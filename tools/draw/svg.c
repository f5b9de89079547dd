/*
 * svg.c - see svg.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "draw/svg.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

double
svg_at(const struct svg_axis *axis, double value)
{
    double share;

    if (axis->log) {
        value = value > axis->from ? value : axis->from;
        share = log(value / axis->from) / log(axis->to / axis->from);
    } else {
        share = axis->to > axis->from ? (value - axis->from) / (axis->to - axis->from) : 0;
    }
    return axis->start + share * (axis->end - axis->start);
}

double
svg_step(double span, unsigned wanted)
{
    double rough = span / (wanted > 0 ? wanted : 1), unit = 1;

    if (!(span > 0))
        return 1;
    while (unit > rough)
        unit /= 10;
    while (unit * 10 <= rough)
        unit *= 10;
    return rough < 1.5 * unit ? unit : rough < 3.5 * unit ? 2 * unit : rough < 7.5 * unit ? 5 * unit : 10 * unit;
}

void
svg_begin(struct html *h, unsigned width, unsigned height, const char *title, const char *kind)
{
    html_format(h,
                "<svg class=\"%s\" viewBox=\"0 0 %u %u\" width=\"%u\" height=\"%u\" role=\"img\" aria-label=\"%s\">"
                "<title>%s</title>\n",
                kind, width, height, width, height, title, title);
}

void
svg_begin_file(struct html *h, unsigned width, unsigned height, const char *title, const char *style)
{
    html_format(h,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %u %u\" width=\"%u\" height=\"%u\" "
                "role=\"img\">\n<title>",
                width, height, width, height);
    html_text(h, title);
    html_raw(h, "</title>\n<style>");
    html_raw(h, style);
    html_format(h, "</style>\n<rect width=\"%u\" height=\"%u\" class=\"paper\"/>\n", width, height);
}

void
svg_end(struct html *h)
{
    html_raw(h, "</svg>\n");
}

void
svg_text(struct html *h, double x, double y, const char *kind, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    html_format(h, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, kind);
    html_text(h, text);
    html_raw(h, "</text>\n");
}

void
svg_line(struct html *h, double x1, double y1, double x2, double y2, const char *kind)
{
    html_format(h, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2, y2, kind);
}

void
svg_marker(struct html *h, double x, double y, unsigned series)
{
    switch (series % SVG_SERIES) {
    case 0:
        html_format(h, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" class=\"f0\"/>\n", x, y);
        break;
    case 1:
        html_format(h, "<rect x=\"%.1f\" y=\"%.1f\" width=\"7.4\" height=\"7.4\" class=\"f1\"/>\n", x - 3.7, y - 3.7);
        break;
    case 2:
        html_format(h, "<path d=\"M%.1f %.1fl4.6 8h-9.2z\" class=\"f2\"/>\n", x, y - 5);
        break;
    case 3:
        html_format(h, "<path d=\"M%.1f %.1fl5 5l-5 5l-5 -5z\" class=\"f3\"/>\n", x, y - 5);
        break;
    case 4:
        html_format(h, "<path d=\"M%.1f %.1fl4.6 -8h-9.2z\" class=\"f4\"/>\n", x, y + 5);
        break;
    default:
        html_format(h, "<path d=\"M%.1f %.1fl8 8m0 -8l-8 8\" class=\"s5\"/>\n", x - 4, y - 4);
    }
}

/* ---- axes ------------------------------------------------------------------------------------------------------ */

/* Returns the number of decimals of the step. */
static int
decimals(double step)
{
    int digits = 0;

    for (; digits < 6 && fabs(step - round(step)) > 1e-6 * step; digits++)
        step *= 10;
    return digits;
}

void
svg_axis_left(struct html *h, const struct svg_axis *y, double left, double right, double scale, const char *unit)
{
    double step = svg_step((y->to - y->from) * scale, 5), value;
    int digits = decimals(step);

    for (value = ceil(y->from * scale / step) * step + 0.0 /* avoids -0 */; value <= y->to * scale + step / 1000;
         value += step) {
        double at = svg_at(y, value / scale);

        svg_line(h, left, at, right, at, "g");
        svg_text(h, left - 7, at + 4, "e d", "%.*f", digits, value);
    }
    svg_text(h, left > 50 ? left - 50 : 0, y->end - 14, "d", "%s", unit);
}

void
svg_axis_bottom(struct html *h, const struct svg_axis *x, double top, double bottom, double step, const char *unit)
{
    double value;
    int digits;

    if (step <= 0)
        step = svg_step(x->to - x->from, 8);
    digits = decimals(step);
    for (value = ceil(x->from / step) * step + 0.0 /* + 0.0 avoids -0 */; value <= x->to + step / 1000; value += step) {
        double at = svg_at(x, value);

        svg_line(h, at, bottom, at, bottom + 4, "a");
        svg_text(h, at, bottom + 18, "m d", "%.*f", digits, value);
    }
    (void)top;
    svg_line(h, x->start, bottom, x->end, bottom, "a");
    svg_text(h, (x->start + x->end) / 2, bottom + 36, "m d", "%s", unit);
}

/* Returns the next value of 1, 3, 10, 30, ... times a power of ten. */
static double
next_third(double value, bool *third)
{
    *third = !*third;
    return *third ? value * 3 : value / 3 * 10;
}

void
svg_axis_bottom_log(struct html *h, const struct svg_axis *x, double top, double bottom, double scale, const char *unit)
{
    double value = pow(10, ceil(log10(x->from * scale) - 1e-9));
    bool third = false;

    for (; value <= x->to * scale * 1.0001; value = next_third(value, &third)) {
        double at = svg_at(x, value / scale);

        svg_line(h, at, top, at, bottom, "g");
        svg_text(h, at, bottom + 18, "m d", "%g", value);
    }
    svg_text(h, (x->start + x->end) / 2, bottom + 36, "m d", "%s", unit);
}

void
svg_axis_left_log(struct html *h, const struct svg_axis *y, double left, double right, double scale, const char *unit)
{
    double value = pow(10, ceil(log10(y->from * scale) - 1e-9));

    for (; value <= y->to * scale * 1.0001; value *= 10) {
        double at = svg_at(y, value / scale);

        svg_line(h, left, at, right, at, "g");
        svg_text(h, left - 7, at + 4, "e d", "%g", value);
    }
    svg_text(h, left > 50 ? left - 50 : 0, y->end - 14, "d", "%s", unit);
}

/* ---- series ---------------------------------------------------------------------------------------------------- */

double
svg_legend_width(const char *name)
{
    return 50 +
           8.0 * (double)strlen(name); /* 8: the average width of a letter is smaller in all fonts of the style sheet */
}

void
svg_legend(struct html *h, double x, double y, unsigned series, enum svg_key key, const char *name)
{
    char kind[16];

    snprintf(kind, sizeof(kind), key == SVG_CURVE ? "s%u" : "i%u", series % SVG_SERIES);
    if (key == SVG_BAR)
        html_format(h, "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"10\" class=\"f%u\"/>\n", x + 10, y - 9,
                    series % SVG_SERIES);
    else
        svg_line(h, x, y - 4, x + 24, y - 4, kind);
    if (key == SVG_INTERVAL)
        svg_marker(h, x + 12, y - 4, series);
    svg_text(h, x + 30, y, "", "%s", name);
}

void
svg_curve_begin(struct html *h, unsigned series)
{
    html_format(h, "<polyline class=\"s%u\" points=\"", series % SVG_SERIES);
}

void
svg_curve_to(struct html *h, double x, double y)
{
    html_format(h, "%.1f,%.1f ", x, y);
}

void
svg_curve_end(struct html *h)
{
    html_raw(h, "\"/>\n");
}
