/*
 * svg.h - the parts of plots: axes with ticks, markers, legends, text
 *
 * They are drawn into a page (html.h), in user units that equal CSS pixels at full size.  The style sheet of the page
 * defines colours and fonts by class.  Series 0 to 5 differ in colour, marker and dashes, so a reader without colour
 * vision or with a black-and-white printer can distinguish them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_SVG_H
#define CHEX_TOOLS_SVG_H

#include "draw/html.h"

#define SVG_SERIES 6 /* kinds of markers, dashes and colours */

/* Maps values to coordinates: `from` to `start`, `to` to `end`.  With log, from and to must be positive. */
struct svg_axis {
    double from, to, start, end;
    bool log;
};

double svg_at(const struct svg_axis *axis, double value);
/* Returns a step of 1, 2 or 5 times a power of ten; about `wanted` steps fill the span. */
double svg_step(double span, unsigned wanted);

/* kind: CSS classes of the drawing. */
void svg_begin(struct html *h, unsigned width, unsigned height, const char *title, const char *kind);
/* As svg_begin(), for a file of its own.  The style sheet is text of the program; `.paper` is the background. */
void svg_begin_file(struct html *h, unsigned width, unsigned height, const char *title, const char *style);
void svg_end(struct html *h);

/* kind: CSS classes; "m" centres the text, "e" ends it at x, "d" dims it. */
void svg_text(struct html *h, double x, double y, const char *kind, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void svg_line(struct html *h, double x1, double y1, double x2, double y2, const char *kind);
void svg_marker(struct html *h, double x, double y, unsigned series);

/* Draws grid lines and labels of a vertical axis.  Labels show the value times scale (100: per cent). */
void svg_axis_left(struct html *h, const struct svg_axis *y, double left, double right, double scale, const char *unit);
/* As above, for a horizontal axis; step 0: chosen automatically. */
void svg_axis_bottom(struct html *h, const struct svg_axis *x, double top, double bottom, double step,
                     const char *unit);
/* As above, with a logarithmic scale: labels at 1 and 3 times a power of ten. */
void svg_axis_bottom_log(struct html *h, const struct svg_axis *x, double top, double bottom, double scale,
                         const char *unit);
void svg_axis_left_log(struct html *h, const struct svg_axis *y, double left, double right, double scale,
                       const char *unit);

/* Draws one entry of a legend with the symbol of its series; svg_legend_width() returns its width. */
enum svg_key { SVG_CURVE, SVG_BAR, SVG_INTERVAL };
double svg_legend_width(const char *name);
void svg_legend(struct html *h, double x, double y, unsigned series, enum svg_key key, const char *name);
/* Draws a curve through the points of svg_curve_to(). */
void svg_curve_begin(struct html *h, unsigned series);
void svg_curve_to(struct html *h, double x, double y);
void svg_curve_end(struct html *h);

#endif
