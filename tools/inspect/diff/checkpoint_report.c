/*
 * checkpoint_report.c - writes the table, CSV and JSON of --diff of two checkpoints; see
 * inspect/checkpoint.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/checkpoint.h"

#include "base/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 10

#define TEXT(number) format_count(number, (char[PROGRESS_TEXT]){0})

/* ---- the table --------------------------------------------------------------------------------------------------- */

struct checkpoint_printing {
    enum tensor_diff_kind kind;
    uint64_t shown, most;
};

static void
on_line(void *context, enum tensor_diff_kind kind, const char *name, const char *a, const char *b,
        const struct tensor_pair *pair)
{
    struct checkpoint_printing *p = context;

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
    struct checkpoint_printing p = {.kind = kind, .most = all ? UINT64_MAX : SHOWN};

    checkpoint_diff_walk(d, on_line, &p);
    if (p.shown > p.most)
        printf("         and %s more: -v, or --format csv\n", TEXT(p.shown - p.most));
}

static void
print_sides(const struct checkpoint_diff *d)
{
    char tensors[PROGRESS_THINGS], bytes[PROGRESS_TEXT], file[PRINTABLE_TEXT];
    unsigned i;

    for (i = 0; i < 2; i++)
        printf("%s        %s, %s  %s\n", i ? "B" : "A", format_things(d->side[i].file.count, "tensor", tensors),
               format_bytes(d->side[i].file.size, bytes), printable_text(d->side[i].target->file, file));
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

/* Format a relative difference; NaN means undefined. */
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

/* Order: non-finite values first, integers last; larger relative differences first, after undefined ones. */
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

static const struct table_column columns[] = {
    {.name = "kind"},
    {.name = "name", .heading = "name", .width = TABLE_FIT},
    {.name = "a"},
    {.name = "b"},
    {.name = "index"},
    {.name = "values", .heading = "values", .width = 11, .gap = "  "},
    {.name = "differ", .heading = "differ", .width = 11},
    {.name = "bytes"},
    {.name = "equal_bytes"},
    {.name = "not_finite_a"},
    {.name = "not_finite_b"},
    {.name = "max_abs", .heading = "largest", .width = 11, .digits = 4},
    {.name = "relative", .heading = "relative", .width = 11, .digits = 3, .none = "-"},
    {.heading = "", .gap = "  "},
    {.name = NULL}};

/* bad: what text says of values that are not finite. */
static void
put_row(struct table_writer *t, enum tensor_diff_kind kind, const char *name, const char *a, const char *b,
        const struct tensor_pair *pair, const char *bad)
{
    struct cell cell[sizeof(columns) / sizeof(columns[0])] = {cell_text(tensor_diff_name(kind)), cell_text(name),
                                                              cell_text(a), cell_text(b)};
    const struct value_difference *v = pair ? &pair->values : NULL;
    unsigned i;

    if (v) {
        const uint64_t count[] = {v->worst, v->count, v->differ, v->bytes, v->equal_bytes, v->bad[0], v->bad[1]};

        for (i = 0; i < 7; i++)
            cell[4 + i] = cell_count(count[i]);
        cell[11] = cell_number(v->max_abs);
        cell[12] = cell_number(value_difference_relative(v));
        cell[13] = cell_text(bad);
    }
    table_row(t, cell);
}

static void
print_pairs(struct checkpoint_diff *d)
{
    const struct tensor_pair **order = malloc((d->pair_count + 1) * sizeof(*order));
    size_t most = d->in->common->verbose > 0 || d->pair_count < SHOWN ? d->pair_count : SHOWN, i;
    struct table_writer t = {.column = columns, .color = &d->in->color, .title = "tensors", .fit = 6};
    char name[INSPECT_TEXT], bad[128];

    for (i = 0; order && i < d->pair_count; i++)
        order[i] = &d->pair[i];
    if (!order) {
        d->in->output_failed = true; /* the exit code reports the incomplete output */
        return;
    }
    qsort(order, d->pair_count, sizeof(*order), by_difference);
    for (i = 0; i < most; i++)
        table_fit(&t, inspect_text(inspect_bytes(order[i]->a->name), name));
    table_begin(&t);
    for (i = 0; i < most; i++) {
        const uint64_t *n = order[i]->values.bad;

        bad[0] = '\0';
        if (n[0] + n[1] > 0)
            snprintf(bad, sizeof(bad), "%s%s -> %s not finite%s", d->in->color.red, TEXT(n[0]), TEXT(n[1]),
                     d->in->color.off);
        put_row(&t, TENSOR_VALUES, inspect_text(inspect_bytes(order[i]->a->name), name), "", "", order[i], bad);
    }
    if (d->pair_count > most)
        printf("         and %s more: -v, or --format csv\n", TEXT(d->pair_count - most));
    free(order);
}

static void
print_table(void *result)
{
    struct checkpoint_diff *d = result;

    if (d->in->common->quiet)
        return;
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

/* ---- for programs ------------------------------------------------------------------------------------------------ */

static void
on_row(void *context, enum tensor_diff_kind kind, const char *name, const char *a, const char *b,
       const struct tensor_pair *pair)
{
    put_row(context, kind, name, a, b, pair, "");
}

static void
put_rows(struct table_writer *t, void *result)
{
    checkpoint_diff_walk(result, on_row, t);
}

static json_t *
numbers_json(const struct value_difference *v)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "values", count_json(v->count), "differ",
                     count_json(v->differ), "bytes", count_json(v->bytes), "equal_bytes", count_json(v->equal_bytes),
                     "not_finite_a", count_json(v->bad[0]), "not_finite_b", count_json(v->bad[1]), "max_abs",
                     real_json(v->max_abs), "relative", real_json(value_difference_relative(v)));
}

static json_t *
result_json(void *result)
{
    struct checkpoint_diff *d = result;
    json_t *counts = json_object(), *paths = json_array(), *files = json_array();
    unsigned i;

    for (i = 0; i < TENSOR_DIFF_KINDS; i++)
        inspect_json_set(&counts, tensor_diff_name((enum tensor_diff_kind)i), count_json(d->count[i]));
    for (i = 0; i < 2; i++) {
        inspect_json_push(&paths, text_json(d->side[i].target->path));
        inspect_json_push(&files, text_json(d->side[i].target->file));
    }
    return json_pack("{s:s, s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:o}", "kind", "checkpoints", "paths", paths, "files",
                     files, "same", checkpoint_diff_is_same(d), "same_model", checkpoint_diff_same_model(d), "in_both",
                     count_json(d->both), "counts", counts, "numbers", numbers_json(&d->all), "changes",
                     inspect_rows_json(columns, put_rows, d));
}

const struct inspect_result checkpoint_diff_result = {columns, put_rows, result_json, print_table};
