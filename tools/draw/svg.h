/*
 * svg.h - the parts of which plots are made: axes with ticks, markers, legends, text
 *
 * Drawn into a page (html.h), in user units that are CSS pixels at full size.  Colours and fonts are those of the
 * page's style sheet, by class: c0 .. c5 are the series, told apart by marker and dash too, so that neither colour
 * vision nor a colour printer is needed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_SVG_H
#define CHEX_TOOLS_SVG_H

#include "draw/html.h"

#define SVG_SERIES 6 /* kinds of markers, dashes and colours */

/* From values to places: `from` lies at `start`, `to` at `end`; with log both are above 0. */
struct svg_axis {
    double from, to, start, end;
    bool log;
};

double svg_at(const struct svg_axis *axis, double value);
/* A step of 1, 2 or 5 times a power of ten, of which about `wanted` make up the span. */
double svg_step(double span, unsigned wanted);

/* kind: classes of the drawing. */
void svg_begin(struct html *h, unsigned width, unsigned height, const char *title, const char *kind);
/* The same as a file of its own; the style sheet is the program's own text, and `.paper` the colour of the ground. */
void svg_begin_file(struct html *h, unsigned width, unsigned height, const char *title, const char *style);
void svg_end(struct html *h);

/* kind: classes; "m" is centred and "e" ends at x, "d" is dimmed. */
void svg_text(struct html *h, double x, double y, const char *kind, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void svg_line(struct html *h, double x1, double y1, double x2, double y2, const char *kind);
void svg_marker(struct html *h, double x, double y, unsigned series);

/* Lines across and numbers for a vertical axis; values are multiplied by scale for the numbers (100: per cent). */
void svg_axis_left(struct html *h, const struct svg_axis *y, double left, double right, double scale, const char *unit);
/* The same for a horizontal one; `step` 0: chosen. */
void svg_axis_bottom(struct html *h, const struct svg_axis *x, double top, double bottom, double step,
                     const char *unit);
/* Decades and their thirds. */
void svg_axis_bottom_log(struct html *h, const struct svg_axis *x, double top, double bottom, double scale,
                         const char *unit);
void svg_axis_left_log(struct html *h, const struct svg_axis *y, double left, double right, double scale,
                       const char *unit);

/* One entry of a legend, with the sign of its series; and the width that it takes. */
enum svg_key { SVG_CURVE, SVG_BAR, SVG_INTERVAL };
double svg_legend_width(const char *name);
void svg_legend(struct html *h, double x, double y, unsigned series, enum svg_key key, const char *name);
/* A curve through points that svg_curve_to() gives. */
void svg_curve_begin(struct html *h, unsigned series);
void svg_curve_to(struct html *h, double x, double y);
void svg_curve_end(struct html *h);

#endif
