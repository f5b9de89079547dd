/*
 * report.c - writes the table, CSV and JSON of `diff`; see diff.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/diff/diff.h"

#include "base/number_format.h"
#include "common/wrap.h"

#include <string.h>

#define SHOWN 10

#define TEXT(number) format_count(number, (char[FORMAT_TEXT]){0})

/* ---- the table --------------------------------------------------------------------------------------------------- */

struct printing {
    const struct diff *d;
    enum diff_kind kind;
    uint64_t shown;
};

static void
on_spec(void *context, enum diff_kind kind, const char *name, const char *a, const char *b)
{
    char x[FORMAT_TEXT], y[FORMAT_TEXT];

    (void)context;
    if (kind != DIFF_SPEC)
        return;
    if (strcmp(name, "seed") != 0) {
        a = inspect_count(a, x);
        b = inspect_count(b, y);
    }
    printf("         %-20s %-24.24s %.24s\n", name, a, b);
}

static void
on_example(void *context, enum diff_kind kind, const char *name, const char *a, const char *b)
{
    struct printing *p = context;

    if (kind != p->kind || p->shown++ >= SHOWN)
        return;
    if (kind == DIFF_ONLY_A || kind == DIFF_ONLY_B)
        printf("         %s  (%s)\n", name, kind == DIFF_ONLY_A ? a : b);
    else
        printf("         %s  %s -> %s\n", name, a, b);
}

static void
examples(struct diff *d, enum diff_kind kind)
{
    struct printing p = {.d = d, .kind = kind};

    diff_walk(d, on_example, &p);
    if (p.shown > SHOWN)
        printf("         and %s more: --format csv\n", TEXT(p.shown - SHOWN));
}

static void
print_sides(const struct diff *d)
{
    char images[FORMAT_THINGS], path[PRINTABLE_TEXT];
    struct wrap w = {.out = stdout};
    unsigned i;

    for (i = 0; i < 2; i++) {
        const struct chex_dataset *ds = d->side[i].target.dataset;

        wrap_put(&w, "", "%s        %s", i ? "B" : "A", ds->info.id);
        wrap_put(&w, "  ", "%s of %ux%u", format_things(ds->info.image_count, "image", images), ds->info.width,
                 ds->info.height);
        wrap_put(&w, ", ", "%s", ds->manifest.split_rule);
        wrap_put(&w, "  ", "%s", printable_text(d->side[i].target.path, path));
        wrap_end(&w);
    }
}

static void
print_moves(const struct diff *d)
{
    const struct chex_dataset *a = d->side[0].target.dataset, *b = d->side[1].target.dataset;
    char text[FORMAT_THINGS];
    unsigned i, j;

    printf("split    %s%s in another split%s\n", d->in->color.yellow,
           format_things(d->count[DIFF_SPLIT], "image", text), d->in->color.off);
    for (i = 0; i < a->info.split_count; i++)
        for (j = 0; j < b->info.split_count; j++)
            if (d->moved[i][j] > 0 && strcmp(a->split[i].name, b->split[j].name) != 0)
                printf("         %s -> %s: %s\n", a->split[i].name, b->split[j].name, TEXT(d->moved[i][j]));
}

static void
print_labels(const struct diff *d)
{
    char text[FORMAT_THINGS];
    unsigned f;

    printf("labels   %s%s with other findings%s\n", d->in->color.yellow,
           format_things(d->count[DIFF_LABELS], "image", text), d->in->color.off);
    for (f = 0; f < d->side[0].target.dataset->info.finding_count; f++)
        if (d->gained[f] + d->lost[f] > 0)
            printf("         %-20s +%s -%s\n", d->side[0].target.dataset->manifest.findings.name[f], TEXT(d->gained[f]),
                   TEXT(d->lost[f]));
}

static void
print_kind(struct diff *d, enum diff_kind kind, const char *what)
{
    if (d->count[kind] == 0)
        return;
    printf("%-8s %s%s %s%s\n", diff_kind_name(kind), d->in->color.yellow, TEXT(d->count[kind]), what, d->in->color.off);
    examples(d, kind);
}

static void
print_table(void *result)
{
    struct diff *d = result;

    if (d->in->common->quiet)
        return;
    print_sides(d);
    if (d->count[DIFF_SPEC] > 0) {
        printf("spec     %sthe data sets were made in different ways%s\n", d->in->color.yellow, d->in->color.off);
        diff_walk(d, on_spec, NULL);
    }
    if (d->same_shards) {
        printf("%ssame%s     the manifests name the same shards with the same SHA-256;\n         nothing was read\n",
               d->in->color.green, d->in->color.off);
        return;
    }
    printf("images   %s in both, %s only in A, %s only in B\n", TEXT(d->both), TEXT(d->count[DIFF_ONLY_A]),
           TEXT(d->count[DIFF_ONLY_B]));
    print_kind(d, DIFF_ONLY_A, "images only in A");
    print_kind(d, DIFF_ONLY_B, "images only in B");
    if (d->count[DIFF_SPLIT] > 0) {
        print_moves(d);
        examples(d, DIFF_SPLIT);
    }
    if (d->count[DIFF_LABELS] > 0) {
        print_labels(d);
        examples(d, DIFF_LABELS);
    }
    print_kind(d, DIFF_PATIENT, "images of another patient");
    print_kind(d, DIFF_AGE, "images with another age");
    print_kind(d, DIFF_SEX, "images with another sex");
    print_kind(d, DIFF_VIEW, "images of another view");
    print_kind(d, DIFF_PIXELS, "images with other pixels");
    if (!d->pixels)
        printf("pixels   of another size: not compared\n");
    else if (d->count[DIFF_PIXELS] == 0 && d->both > 0)
        printf("pixels   %sthe same in all %s%s\n", d->in->color.green, TEXT(d->both), d->in->color.off);
    print_kind(d, DIFF_PLACE, "images in another place of their split");
    if (diff_is_same(d))
        printf("%ssame%s\n", d->in->color.green, d->in->color.off);
}

/* ---- for programs ------------------------------------------------------------------------------------------------ */

static void
on_row(void *context, enum diff_kind kind, const char *name, const char *a, const char *b)
{
    table_row(context, (struct cell[]){cell_text(diff_kind_name(kind)), cell_text(name), cell_text(a), cell_text(b)});
}

static void
put_rows(struct table_writer *t, void *result)
{
    diff_walk(result, on_row, t);
}

static const struct table_column columns[] = {
    {.name = "kind"}, {.name = "name"}, {.name = "a"}, {.name = "b"}, {.name = NULL}};

static json_t *
result_json(void *result)
{
    struct diff *d = result;
    json_t *counts = json_object(), *paths = json_array();
    unsigned i;

    for (i = 0; i < DIFF_KINDS; i++)
        inspect_json_set(&counts, diff_kind_name((enum diff_kind)i), count_json(d->count[i]));
    for (i = 0; i < 2; i++)
        inspect_json_push(&paths, text_json(d->side[i].target.path));
    return json_pack("{s:o, s:b, s:b, s:b, s:o, s:o, s:o, s:o}", "paths", paths, "same", diff_is_same(d), "read",
                     !d->same_shards, "pixels_compared", d->pixels, "in_both", count_json(d->both), "counts", counts,
                     "changes", inspect_rows_json(columns, put_rows, d), "faults",
                     count_json(d->side[0].faults + d->side[1].faults));
}

const struct inspect_result diff_result = {columns, put_rows, result_json, print_table};

void
inspect_report_difference(const struct inspect *in, const char *a, const char *b)
{
    if (in->common->quiet && inspect_format(in) == TABLE_TEXT)
        printable_line(stderr, "%s: '%s' and '%s' differ", in->program->name, a, b);
}
