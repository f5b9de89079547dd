/*
 * box_report.c - the table of boxes on the terminal (see predict_boxes.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/number_format.h"
#include "common/wrap.h"
#include "predict/predict_boxes.h"
#include "predict/predict_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The measures that fit into a line; boxes.csv has all. */
static const struct {
    unsigned measure;
    const char *heading;
} columns[] = {
    {BOX_POINT, "pointing game"},
    {BOX_IOU, "IoU > 0.1"},
    {BOX_IOBB, "IoBB > 0.1"},
    {BOX_FALSE, "false boxes"},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* Append "0.49 [0.40, 0.58]". */
static void
append_measured(char *line, size_t size, struct measured m)
{
    char text[40] = "";

    if (!isnan(m.low))
        snprintf(text, sizeof(text), "%.2f [%.2f, %.2f]", m.value, m.low, m.high);
    else if (!isnan(m.value))
        snprintf(text, sizeof(text), "%.2f", m.value);
    snprintf(line + strlen(line), size - strlen(line), " %-17s", text);
}

/* Formats "1 box", "984 boxes"; returns out. */
static char *
count_boxes(uint64_t n, char out[FORMAT_THINGS])
{
    snprintf(out, FORMAT_THINGS, "%s box%s", COUNT_TEXT(n), n == 1 ? "" : "es");
    return out;
}

static void
print_line(const char *name, char *line)
{
    size_t length = strlen(line);

    while (length > 0 && line[length - 1] == ' ')
        line[--length] = '\0';
    fprintf(stderr, "  %-8s%s\n", name, line);
}

/* Prints the published values of the columns, those of ChestX-ray14 where there are any. */
static void
print_published(const char *name)
{
    char line[160] = "";
    bool any = false;
    size_t c;
    unsigned i;

    for (c = 0; c < COLUMNS; c++) {
        struct measured m = {(double)NAN, (double)NAN, (double)NAN};

        for (i = 0; i < PUBLISHED_BOXES; i++)
            if (published_boxes[i].measure == columns[c].measure)
                m.value = published_value(&published_boxes[i], name);
        any |= !isnan(m.value);
        append_measured(line, sizeof(line), m);
    }
    if (any)
        print_line("Wang", line);
}

static void
print_localized(const struct box_run *b, const char *name, const struct localized *l)
{
    unsigned m;
    size_t c;

    for (m = 0; m < BOX_METHODS; m++) {
        char line[160] = "";

        for (c = 0; c < COLUMNS; c++)
            append_measured(line, sizeof(line), l->value[m][columns[c].measure]);
        print_line(box_method_names[m], line);
    }
    if (!b->synthetic)
        print_published(name);
}

static void
print_finding(const struct box_run *b, const char *name, const struct localized *l)
{
    const bool few = isnan(l->value[BOX_MAP][BOX_POINT].value);
    char n[FORMAT_THINGS];

    fprintf(stderr, "%s, %s%s\n", name, count_boxes(l->boxes, n), few ? ": too few" : "");
    if (!few)
        print_localized(b, name, l);
}

static void
print_heading(void)
{
    char line[160] = "";
    size_t c;

    for (c = 0; c < COLUMNS; c++)
        snprintf(line + strlen(line), sizeof(line) - strlen(line), " %-17s", columns[c].heading);
    print_line("", line);
}

/* Returns whether a finding of the table has published values. */
static bool
has_published(const struct box_run *b)
{
    for (unsigned k = 0; !b->synthetic && k < b->found.findings; k++)
        for (unsigned i = 0; b->found.finding[k].boxes > 0 && i < PUBLISHED_BOXES; i++)
            if (!isnan(published_value(&published_boxes[i], b->models->model[0].findings.name[k])))
                return true;
    return false;
}

void
boxes_report(const struct box_run *b)
{
    char n[FORMAT_THINGS], m[FORMAT_THINGS];
    struct wrap w = {.out = stderr};
    unsigned k;

    wrap_put(&w, "", "boxes    %s of %s", count_boxes(b->measured, n), format_things(b->scored, "image", m));
    if (b->list.count > b->count)
        wrap_put(&w, ", ", "%s of other images", format_count(b->list.count - b->count, n));
    if (b->refused > 0)
        wrap_put(&w, ", ", "%s of refused images", format_count(b->refused, n));
    if (b->outside > 0)
        wrap_put(&w, ", ", "%s outside of their images", format_count(b->outside, n));
    if (boxes_common_side(b) > 0)
        wrap_put(&w, "; ", "in pixels of %u x %u", boxes_common_side(b), boxes_common_side(b));
    if (b->synthetic)
        wrap_put(&w, "; ", "%s", "synthetic images");
    wrap_end(&w);
    if (b->outside > 0)
        wrap_line(stderr, "", "%s", b->first_outside.text);
    if (b->measured == 0) {
        wrap_line(stderr, "", "no box could be measured");
        return;
    }
    print_heading();
    for (k = 0; k < b->found.findings; k++)
        if (b->found.finding[k].boxes > 0)
            print_finding(b, b->models->model[0].findings.name[k], &b->found.finding[k]);
    if (b->found.defined > 1) {
        fprintf(stderr, "mean of %u findings\n", b->found.defined);
        print_localized(b, "mean", &b->found.mean);
    }
    if (has_published(b))
        wrap_line(stderr, "", "Wang: Wang et al. 2017, ResNet-50, tables 7 (IoU, ChestX-ray8) and 19 (ChestX-ray14)");
}
