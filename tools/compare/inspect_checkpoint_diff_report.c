/*
 * inspect_checkpoint_diff_report.c - the table, CSV and JSON of --diff of two checkpoints; see inspect_checkpoint.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/inspect_checkpoint.h"

#include "base/progress.h"
#include "common/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 10

#define TEXT(number) format_count(number, (char[PROGRESS_TEXT]){0})

/* ---- the table ------------------------------------------------------------------------------------------------- */

struct printing {
    enum tensor_diff_kind kind;
    uint64_t shown, most;
};

static void
on_line(void *context, enum tensor_diff_kind kind, const char *name, const char *a, const char *b,
        const struct tensor_pair *pair)
{
    struct printing *p = context;

    (void)pair;
    if (kind != p->kind || p->shown++ >= p->most)
        return;
    if (kind == TENSOR_META)
        printf("         %-26s %-24.24s %.24s\n", name, a[0] ? a : "-", b[0] ? b : "-");
    else if (kind == TENSOR_ONLY_A || kind == TENSOR_ONLY_B)
        printf("         %s  %s\n", name, kind == TENSOR_ONLY_A ? a : b);
    else
        printf("         %s  %s -> %s\n", name, a, b);
}

static void
print_lines(struct checkpoint_diff *d, enum tensor_diff_kind kind)
{
    bool all = d->in->common->verbose > 0 || kind == TENSOR_META;
    struct printing p = {.kind = kind, .most = all ? UINT64_MAX : SHOWN};

    checkpoint_diff_walk(d, on_line, &p);
    if (p.shown > p.most)
        printf("         and %s more: -v, or --format csv\n", TEXT(p.shown - p.most));
}

static void
print_sides(const struct checkpoint_diff *d)
{
    char tensors[PROGRESS_THINGS], bytes[PROGRESS_TEXT], file[PLAIN_TEXT];
    unsigned i;

    for (i = 0; i < 2; i++)
        printf("%s        %s, %s  %s\n", i ? "B" : "A", format_things(d->side[i].file.count, "tensor", tensors),
               format_bytes(d->side[i].file.size, bytes), plain_text(d->side[i].target->file, file));
}

static void
print_model(struct checkpoint_diff *d)
{
    static const struct {
        enum tensor_diff_kind kind;
        const char *name, *what;
    } lines[] = {{TENSOR_ONLY_A, "only_a", "only in A"},
                 {TENSOR_ONLY_B, "only_b", "only in B"},
                 {TENSOR_SHAPE, "shape", "of another shape"},
                 {TENSOR_TYPE, "dtype", "of another type"}};
    const struct color *color = &d->in->color;
    char tensors[PROGRESS_THINGS];
    size_t i;

    if (checkpoint_diff_same_model(d))
        printf("model    %sthe same: %s of the same names and shapes%s\n", color->green,
               format_things(d->both, "tensor", tensors), color->off);
    else
        printf("model    %sanother one: %s in both, %s only in A, %s only in B, %s of another shape%s\n", color->yellow,
               format_things(d->both, "tensor", tensors), TEXT(d->count[TENSOR_ONLY_A]), TEXT(d->count[TENSOR_ONLY_B]),
               TEXT(d->count[TENSOR_SHAPE]), color->off);
    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (d->count[lines[i].kind] == 0)
            continue;
        printf("%-8s %s%s %s%s\n", lines[i].name, color->yellow,
               format_things(d->count[lines[i].kind], "tensor", tensors), lines[i].what, color->off);
        print_lines(d, lines[i].kind);
    }
}

/* NaN: it cannot be told. */
static char *
relative_text(double value, char out[32])
{
    if (isnan(value))
        snprintf(out, 32, "-");
    else
        snprintf(out, 32, "%.3g", value);
    return out;
}

static void
print_values(const struct checkpoint_diff *d)
{
    const struct value_difference *v = &d->all;
    const struct color *color = &d->in->color;
    char relative[32], bad[PROGRESS_TEXT];

    if (v->differ == 0) {
        printf("values   %sthe same in all %s%s\n", color->green, TEXT(v->count), color->off);
    } else {
        printf("values   %s%s of %s differ (%.3g %%)%s, by %.4g at most, relative L2 difference %s\n", color->yellow,
               TEXT(v->differ), TEXT(v->count), 100 * (double)v->differ / (double)v->count, color->off, v->max_abs,
               relative_text(value_difference_relative(v), relative));
        if (v->bytes > 0)
            printf("bytes    %s of %s are equal\n", TEXT(v->equal_bytes), TEXT(v->bytes));
    }
    if (v->bad[0] + v->bad[1] > 0)
        printf("         %s%s values in A and %s in B are not finite%s\n", color->red, TEXT(v->bad[0]),
               format_count(v->bad[1], bad), color->off);
}

/* What is not finite first; integers last; the largest relative difference first, what cannot be told before it. */
static int
by_difference(const void *a, const void *b)
{
    const struct tensor_pair *const *x = a, *const *y = b;
    bool bad_x = (*x)->values.bad[0] + (*x)->values.bad[1] > 0, bad_y = (*y)->values.bad[0] + (*y)->values.bad[1] > 0;
    double p = value_difference_relative(&(*x)->values), q = value_difference_relative(&(*y)->values);

    if (bad_x != bad_y)
        return bad_x ? -1 : 1;
    if (dtype_is_integer((*x)->a->type) != dtype_is_integer((*y)->a->type))
        return dtype_is_integer((*y)->a->type) ? -1 : 1;
    if (isnan(p) != isnan(q))
        return isnan(p) ? -1 : 1;
    if (!isnan(p) && p != q)
        return p > q ? -1 : 1;
    return strcmp((*x)->a->name, (*y)->a->name);
}

static void
print_pair(const struct tensor_pair *p, int width, const struct color *color)
{
    char name[INSPECT_TEXT], relative[32];

    printf("         %-*s  %11s %11s %11.4g %11s", width, inspect_text(inspect_bytes(p->a->name), name),
           TEXT(p->values.count), TEXT(p->values.differ), p->values.max_abs,
           relative_text(value_difference_relative(&p->values), relative));
    if (p->values.bad[0] + p->values.bad[1] > 0)
        printf("  %s%s -> %s not finite%s", color->red, TEXT(p->values.bad[0]), TEXT(p->values.bad[1]), color->off);
    printf("\n");
}

static void
print_pairs(struct checkpoint_diff *d)
{
    const struct tensor_pair **order = malloc((d->pair_count + 1) * sizeof(*order));
    size_t most = d->in->common->verbose > 0 || d->pair_count < SHOWN ? d->pair_count : SHOWN, i;
    char name[INSPECT_TEXT];
    int width = 6;

    for (i = 0; order && i < d->pair_count; i++)
        order[i] = &d->pair[i];
    if (!order) {
        d->in->json_failed = true; /* the exit code says that something is lacking */
        return;
    }
    qsort(order, d->pair_count, sizeof(*order), by_difference);
    for (i = 0; i < most; i++) {
        int length = (int)strlen(inspect_text(inspect_bytes(order[i]->a->name), name));

        width = length > width && length < 60 ? length : width;
    }
    printf("%stensors%s  %-*s  %11s %11s %11s %11s\n", d->in->color.bold, d->in->color.off, width, "name", "values",
           "differ", "largest", "relative");
    for (i = 0; i < most; i++)
        print_pair(order[i], width, &d->in->color);
    if (d->pair_count > most)
        printf("         and %s more: -v, or --format csv\n", TEXT(d->pair_count - most));
    free(order);
}

static void
print_table(struct checkpoint_diff *d)
{
    print_sides(d);
    print_model(d);
    if (d->count[TENSOR_META] > 0) {
        printf("meta     %sthe metadata differ%s\n", d->in->color.yellow, d->in->color.off);
        print_lines(d, TENSOR_META);
    }
    if (d->all.count > 0)
        print_values(d);
    if (d->pair_count > 0)
        print_pairs(d);
    if (checkpoint_diff_is_same(d))
        printf("%ssame%s\n", d->in->color.green, d->in->color.off);
}

/* ---- for programs ---------------------------------------------------------------------------------------------- */

static void
on_row(void *context, enum tensor_diff_kind kind, const char *name, const char *a, const char *b,
       const struct tensor_pair *pair)
{
    struct rows *r = context;
    const struct value_difference *v = pair ? &pair->values : NULL;
    unsigned i;

    rows_text(r, tensor_diff_name(kind));
    rows_text(r, name);
    rows_text(r, a);
    rows_text(r, b);
    if (!v) {
        for (i = 0; i < 9; i++)
            rows_none(r);
    } else {
        uint64_t count[] = {v->worst, v->count, v->differ, v->bytes, v->equal_bytes, v->bad[0], v->bad[1]};

        for (i = 0; i < 7; i++)
            rows_count(r, count[i]);
        rows_number(r, isfinite(v->max_abs) ? v->max_abs : (double)NAN);
        rows_number(r, isfinite(value_difference_relative(v)) ? value_difference_relative(v) : (double)NAN);
    }
    rows_next(r);
}

static json_t *
numbers_json(const struct value_difference *v)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "values", inspect_number(v->count), "differ",
                     inspect_number(v->differ), "bytes", inspect_number(v->bytes), "equal_bytes",
                     inspect_number(v->equal_bytes), "not_finite_a", inspect_number(v->bad[0]), "not_finite_b",
                     inspect_number(v->bad[1]), "max_abs", checkpoint_real(v->max_abs), "relative",
                     checkpoint_real(value_difference_relative(v)));
}

static void
on_json(void *context, enum tensor_diff_kind kind, const char *name, const char *a, const char *b,
        const struct tensor_pair *pair)
{
    json_t *change = json_pack("{s:s, s:s, s:s, s:s}", "kind", tensor_diff_name(kind), "name", name, "a", a, "b", b);

    if (pair) {
        json_t *numbers = numbers_json(&pair->values);

        inspect_json_set(&change, "index", inspect_number(pair->values.worst));
        if (!numbers || json_object_update(change, numbers) != 0) {
            json_decref(change);
            change = NULL;
        }
        json_decref(numbers);
    }
    inspect_json_push(context, change);
}

static json_t *
result_json(struct checkpoint_diff *d)
{
    json_t *counts = json_object(), *changes = json_array(), *paths = json_array(), *files = json_array();
    unsigned i;

    for (i = 0; i < TENSOR_DIFF_KINDS; i++)
        inspect_json_set(&counts, tensor_diff_name((enum tensor_diff_kind)i), inspect_number(d->count[i]));
    for (i = 0; i < 2; i++) {
        inspect_json_push(&paths, inspect_json_text(inspect_bytes(d->side[i].target->path)));
        inspect_json_push(&files, inspect_json_text(inspect_bytes(d->side[i].target->file)));
    }
    checkpoint_diff_walk(d, on_json, &changes);
    return json_pack("{s:s, s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:o}", "kind", "checkpoints", "paths", paths, "files",
                     files, "same", checkpoint_diff_is_same(d), "same_model", checkpoint_diff_same_model(d), "in_both",
                     inspect_number(d->both), "counts", counts, "numbers", numbers_json(&d->all), "changes", changes);
}

void
checkpoint_diff_report(struct checkpoint_diff *d)
{
    static const char *const columns[] = {"kind",         "name",    "a",        "b",           "index",
                                          "values",       "differ",  "bytes",    "equal_bytes", "not_finite_a",
                                          "not_finite_b", "max_abs", "relative", NULL};
    enum rows_format format = d->in->options->format;
    struct rows r;

    if (d->in->common->json) {
        inspect_json_add(d->in, result_json(d));
    } else if (format == ROWS_CSV || format == ROWS_JSONL) {
        rows_begin(&r, format, columns);
        checkpoint_diff_walk(d, on_row, &r);
        d->in->json_failed |= r.failed;
    } else if (!d->in->common->quiet) {
        print_table(d);
    }
}
