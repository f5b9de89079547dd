/*
 * rows.c - writes the result of `source` as CSV, JSON lines or JSON; see source.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/source/source.h"

#include "base/ascii.h"
#include "base/json.h"

#include <string.h>

/* ---- all faults -------------------------------------------------------------------------------------------------- */

typedef void fault_fn(void *context, enum source_fault fault, const char *name, const char *folder, const char *detail);

static void
each_item(const struct source_check *c, fault_fn *fn, void *context)
{
    bool both = c->labels_err.status == CHEX_OK && c->source_err.status == CHEX_OK;
    size_t i;

    for (i = 0; i < c->count; i++) {
        const struct source_item *item = &c->item[i];
        const char *place = c->place[item->place].path;

        if (item->fault != SOURCE_GOOD)
            fn(context, (enum source_fault)item->fault, item->name, place, item->detail ? item->detail : "");
        if (both && item->extra)
            fn(context, SOURCE_EXTRA, item->name, place, "");
    }
}

static void
each_fault(const struct source_check *c, fault_fn *fn, void *context)
{
    char text[SOURCE_TEXT];
    size_t i;

    for (i = 0; i < c->labels.reject_count; i++)
        fn(context, SOURCE_ROW, c->labels.reject[i].name, "", c->labels.reject[i].reason);
    for (i = 0; i < c->place_count; i++)
        if (c->place[i].error.status != CHEX_OK)
            fn(context, SOURCE_ARCHIVE, "", c->place[i].path, source_archive_text(&c->place[i], text));
    for (i = 0; c->preflight.missing > 0 && i < c->labels.count; i++)
        if (c->missing[i])
            fn(context, SOURCE_MISSING, c->labels.entry[i].name, "", "");
    each_item(c, fn, context);
    for (i = 0; i < c->count_of[SOURCE_CONFLICT]; i++) {
        const struct source_conflict *conflict = &c->conflict[i];

        fn(context, SOURCE_CONFLICT, conflict->name, c->place[conflict->other].path, c->place[conflict->place].path);
    }
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Size of a path or name with every byte escaped. */
#define ESCAPED (4 * 4096 + 1)

static void
on_row(void *context, enum source_fault fault, const char *name, const char *folder, const char *detail)
{
    const struct table_writer *t = context;
    char a[ESCAPED], b[ESCAPED], c[ESCAPED];
    bool path = fault == SOURCE_CONFLICT || t->list; /* otherwise the detail is this program's own text */

    table_row(context, (struct cell[]){cell_text(source_fault_name(fault)), inspect_name(t, name, a, ESCAPED),
                                       inspect_name(t, folder, b, ESCAPED),
                                       path ? inspect_name(t, detail, c, ESCAPED) : cell_text(detail)});
}

static void
put_rows(struct table_writer *t, void *result)
{
    each_fault(result, on_row, t);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *
error_json(const struct chex_error *err)
{
    return err->status == CHEX_OK ? json_null() : text_json(err->text);
}

/* Returns the fault of an archive; null for a complete archive or a folder. */
static json_t *
damage_json(const struct source_place *p)
{
    if (p->error.status == CHEX_OK)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "text", text_json(p->error.text), "offset",
                     p->opened ? count_json(p->offset) : json_null(), "images_before", count_json(p->before),
                     "images_after", count_json(p->after), "last_before", p->last ? text_json(p->last) : json_null());
}

static json_t *
places_json(const struct source_check *c)
{
    json_t *list = json_array();
    size_t i;

    for (i = 0; i < c->place_count; i++) {
        const struct source_place *p = &c->place[i];

        inspect_json_push(&list, json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "path",
                                           text_json(p->path), "kind", p->archive ? "archive" : "folder", "images",
                                           count_json(p->images), "missing", count_json(p->missing), "short",
                                           count_json(p->brief), "damaged", count_json(p->damaged), "extra",
                                           count_json(p->extra), "bytes", count_json(p->bytes), "size",
                                           p->archive ? count_json(p->size) : json_null(), "damage", damage_json(p)));
    }
    return list;
}

static const struct table_column columns[] = {
    {.name = "kind"}, {.name = "name"}, {.name = "folder"}, {.name = "detail"}, {.name = NULL}};

static json_t *
result_json(void *result)
{
    const struct source_check *c = result;
    json_t *counts = json_object(), *archives = json_array(), *inputs = json_array();
    const struct inspect_options *o = c->in->options;
    size_t i;

    for (i = SOURCE_GOOD; i < SOURCE_FAULTS; i++)
        inspect_json_set(&counts, source_fault_name((enum source_fault)i), count_json(c->count_of[i]));
    for (i = 0; c->preflight.whole && i < PREFLIGHT_ARCHIVES; i++)
        inspect_json_push(&archives, json_pack("{s:o, s:o}", "images", count_json(c->preflight.archive[i].wanted),
                                               "found", count_json(c->preflight.archive[i].found)));
    for (i = 0; i < o->input_count + o->path_count; i++)
        inspect_json_push(&inputs, text_json(i < o->input_count ? o->input[i] : o->path[i - o->input_count]));
    return json_pack(
        "{s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "inputs", inputs, "labels",
        text_json(o->labels), "good", source_check_good(c), "labels_error", error_json(&c->labels_err), "images_error",
        error_json(&c->source_err), "rows", count_json(c->labels.row_count), "files", count_json(c->count), "bytes",
        count_json(c->bytes), "found", count_json(c->preflight.found), "repeated", count_json(c->repeated), "counts",
        counts, "places", places_json(c), "archives", archives, "faults", inspect_rows_json(columns, put_rows, result));
}

const struct inspect_result source_result = {columns, put_rows, result_json, source_print_table};
