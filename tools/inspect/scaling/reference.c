/*
 * reference.c - published points next to ours: those of published.csv, or of a CSV file; see scaling.h
 *
 * Speed-up and efficiency of a source refer to its point with the fewest GPUs that has a rate.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/scaling/scaling.h"

#include "base/ascii.h"
#include "io/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum chex_status
add_point(struct scaling *s, const char *source, unsigned gpus, double rate, double parallel, struct chex_error *err)
{
    struct reference_point *p = &s->point[s->points];

    if (s->points == SCALING_POINTS)
        return error_set(err, CHEX_ERR_USAGE, "more than %d published points", SCALING_POINTS);
    *p = (struct reference_point){
        .gpus = gpus, .rate = rate, .speedup = (double)NAN, .efficiency = (double)NAN, .parallel_efficiency = parallel};
    ascii_escape(source, strlen(source), p->source, sizeof(p->source));
    s->points++;
    return CHEX_OK;
}

/* ---- a file ------------------------------------------------------------------------------------------------------ */

enum { COLUMN_SOURCE, COLUMN_GPUS, COLUMN_RATE, COLUMN_PARALLEL, COLUMNS };

struct file_reading {
    struct scaling *s;
    int column[COLUMNS];
    bool begun;
};

static enum chex_status
read_header(const struct table_row *row, struct file_reading *f, struct chex_error *err)
{
    static const char *const names[COLUMNS][2] = {
        {"source", NULL}, {"gpus", NULL}, {"images_per_second", NULL}, {"parallel_efficiency", NULL}};
    unsigned i;

    f->begun = true;
    for (i = 0; i < COLUMNS; i++) {
        f->column[i] = table_column(row, names[i]);
        if (table_column_once(row, names[i], err) != CHEX_OK)
            return CHEX_ERR_USAGE;
    }
    if (f->column[COLUMN_SOURCE] >= 0 && f->column[COLUMN_GPUS] >= 0 &&
        (f->column[COLUMN_RATE] >= 0 || f->column[COLUMN_PARALLEL] >= 0))
        return CHEX_OK;
    if (table_check_separator(row, err) != CHEX_OK)
        return CHEX_ERR_USAGE;
    return table_fail(row, err, "needs the columns source, gpus, and images_per_second or parallel_efficiency");
}

/* Read a number above 0; an empty field is NaN. */
static enum chex_status
read_number(const struct table_row *row, int column, double most, double *out, struct chex_error *err)
{
    const char *text = column >= 0 && (size_t)column < row->count ? row->field[column] : "";
    char *end;

    *out = (double)NAN;
    if (!text[0])
        return CHEX_OK;
    *out = text[strspn(text, "0123456789.")] ? (double)NAN : strtod(text, &end);
    return *out > 0 && *out <= most ? CHEX_OK : table_fail(row, err, "'%.40s' is no number above 0 to %g", text, most);
}

static enum chex_status
read_row(const struct table_row *row, void *context, struct chex_error *err)
{
    struct file_reading *f = context;
    double gpus, rate, parallel;
    const char *source;

    if (!f->begun)
        return read_header(row, f, err);
    if (read_number(row, f->column[COLUMN_GPUS], RANK_TIMES_MAX, &gpus, err) != CHEX_OK ||
        read_number(row, f->column[COLUMN_RATE], 1e12, &rate, err) != CHEX_OK ||
        read_number(row, f->column[COLUMN_PARALLEL], 1, &parallel, err) != CHEX_OK)
        return CHEX_ERR_USAGE;
    source = (size_t)f->column[COLUMN_SOURCE] < row->count ? row->field[f->column[COLUMN_SOURCE]] : "";
    if (!source[0] || isnan(gpus) || gpus != floor(gpus) || (isnan(rate) && isnan(parallel)))
        return table_fail(row, err, "needs a source, a number of GPUs, and a rate or an efficiency");
    return add_point(f->s, source, (unsigned)gpus, rate, parallel, err);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* Returns the point that the rates of this source are compared with; NULL: the source has no rates. */
static const struct reference_point *
base_of(const struct scaling *s, const char *source)
{
    const struct reference_point *base = NULL, *p;

    for (p = s->point; p < s->point + s->points; p++)
        if (!isnan(p->rate) && strcmp(p->source, source) == 0 && (!base || p->gpus < base->gpus))
            base = p;
    return base;
}

static void
compare_points(struct scaling *s)
{
    struct reference_point *p;

    for (p = s->point; p < s->point + s->points; p++) {
        const struct reference_point *base = base_of(s, p->source);

        if (!base || isnan(p->rate))
            continue;
        p->speedup = p->rate / base->rate * base->gpus;
        p->efficiency = p->speedup / p->gpus;
    }
}

enum chex_status
scaling_add_reference(struct scaling *s, const char *which, struct chex_error *err)
{
    struct file_reading f = {.s = s};
    const struct published *p;
    enum chex_status status = CHEX_OK;
    size_t before = s->points;

    for (p = published; p->study && status == CHEX_OK; p++)
        if (strcmp(p->study, which) == 0)
            status = add_point(s, p->source, p->gpus, p->rate, p->parallel_efficiency, err);
    if (status == CHEX_OK && s->points == before)
        status = table_read(which, read_row, &f, NULL, err);
    if (status == CHEX_OK)
        compare_points(s);
    return status;
}
