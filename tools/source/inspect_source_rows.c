/*
 * inspect_source_rows.c - --source for programs: CSV, JSON lines, JSON; see inspect_source.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "source/inspect_source.h"

#include "base/ascii.h"
#include "base/json.h"
#include "common/rows.h"

#include <string.h>

/* ---- everything that is not good ------------------------------------------------------------------------------- */

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

/* ---- CSV and JSON lines ---------------------------------------------------------------------------------------- */

/* Room for any path or name with each byte escaped. */
#define ESCAPED (4 * 4096 + 1)

static void
on_row(void *context, enum source_fault fault, const char *name, const char *folder, const char *detail)
{
    struct rows *r = context;
    char text[ESCAPED];

    rows_text(r, source_fault_name(fault));
    rows_text(r, ascii_escape(name, strlen(name), text, sizeof(text)));
    rows_text(r, ascii_escape(folder, strlen(folder), text, sizeof(text)));
    /* Of a conflict it is a path, else a text of ours. */
    rows_text(r, fault == SOURCE_CONFLICT ? ascii_escape(detail, strlen(detail), text, sizeof(text)) : detail);
    rows_next(r);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static void
on_json(void *context, enum source_fault fault, const char *name, const char *folder, const char *detail)
{
    inspect_json_push(context, json_pack("{s:s, s:o, s:o, s:o}", "kind", source_fault_name(fault), "name",
                                         json_text(name), "folder", json_text(folder), "detail", json_text(detail)));
}

static json_t *
error_json(const struct chex_error *err)
{
    return err->status == CHEX_OK ? json_null() : json_text(err->text);
}

/* What is wrong with an archive; null for a whole one, and for a folder. */
static json_t *
damage_json(const struct source_place *p)
{
    if (p->error.status == CHEX_OK)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "text", json_text(p->error.text), "offset",
                     p->opened ? inspect_number(p->offset) : json_null(), "images_before", inspect_number(p->before),
                     "images_after", inspect_number(p->after), "last_before",
                     p->last ? json_text(p->last) : json_null());
}

static json_t *
places_json(const struct source_check *c)
{
    json_t *list = json_array();
    size_t i;

    for (i = 0; i < c->place_count; i++) {
        const struct source_place *p = &c->place[i];

        inspect_json_push(&list,
                          json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "path", json_text(p->path),
                                    "kind", p->archive ? "archive" : "folder", "images", inspect_number(p->images),
                                    "missing", inspect_number(p->missing), "short", inspect_number(p->brief), "damaged",
                                    inspect_number(p->damaged), "extra", inspect_number(p->extra), "bytes",
                                    inspect_number(p->bytes), "size",
                                    p->archive ? inspect_number(p->size) : json_null(), "damage", damage_json(p)));
    }
    return list;
}

static json_t *
result_json(const struct source_check *c)
{
    json_t *counts = json_object(), *faults = json_array(), *archives = json_array(), *inputs = json_array();
    const struct inspect_options *o = c->in->options;
    size_t i;

    for (i = SOURCE_GOOD; i < SOURCE_FAULTS; i++)
        inspect_json_set(&counts, source_fault_name((enum source_fault)i), inspect_number(c->count_of[i]));
    for (i = 0; c->preflight.whole && i < PREFLIGHT_ARCHIVES; i++)
        inspect_json_push(&archives, json_pack("{s:o, s:o}", "images", inspect_number(c->preflight.archive[i].wanted),
                                               "found", inspect_number(c->preflight.archive[i].found)));
    for (i = 0; i < o->input_count + o->path_count; i++)
        inspect_json_push(&inputs, json_text(i < o->input_count ? o->input[i] : o->path[i - o->input_count]));
    each_fault(c, on_json, &faults);
    return json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "inputs", inputs,
                     "labels", json_text(o->labels), "good", source_check_good(c), "labels_error",
                     error_json(&c->labels_err), "images_error", error_json(&c->source_err), "rows",
                     inspect_number(c->labels.row_count), "files", inspect_number(c->count), "bytes",
                     inspect_number(c->bytes), "found", inspect_number(c->preflight.found), "repeated",
                     inspect_number(c->repeated), "counts", counts, "places", places_json(c), "archives", archives,
                     "faults", faults);
}

void
source_report(struct source_check *c)
{
    static const char *const columns[] = {"kind", "name", "folder", "detail", NULL};
    enum rows_format format = c->in->options->format;
    struct rows r;

    if (c->in->common->json) {
        inspect_json_add(c->in, result_json(c));
    } else if (format == ROWS_CSV || format == ROWS_JSONL) {
        rows_begin(&r, format, columns);
        each_fault(c, on_row, &r);
        c->in->json_failed |= r.failed;
    } else if (!c->in->common->quiet || !source_check_good(c)) {
        source_print_table(c);
    }
}
