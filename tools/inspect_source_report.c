/*
 * inspect_source_report.c - the words, rows and JSON of --source; see inspect_source.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect_source.h"

#include "progress.h"
#include "rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN   5
#define FOLDERS 40

#define TEXT(number) format_count(number, (char[PROGRESS_TEXT]){0})

static const char *
shown(const char *text, char out[INSPECT_TEXT])
{
    return inspect_text((struct chex_bytes){text, strnlen(text, LAYOUT_MAX_TEXT)}, out);
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

static void
print_labels(const struct source_check *c)
{
    const struct labels *l = &c->labels;
    size_t i;
    char name[INSPECT_TEXT];

    if (c->labels_err.status != CHEX_OK) {
        printf("labels   %s%s%s\n", c->in->color.red, c->labels_err.text, c->in->color.off);
        return;
    }
    printf("labels   %s rows, %s images of %s patients", TEXT(l->row_count), TEXT(l->count), TEXT(l->patient_count));
    if (!isnan(l->age_min))
        printf(", ages %g-%g", (double)l->age_min, (double)l->age_max);
    printf("\n");
    if (l->duplicate_rows > 0)
        printf("         note: %s rows stand twice\n", TEXT(l->duplicate_rows));
    if (l->unknown_ages > 0)
        printf("         note: %s ages unknown, %s of them impossible\n", TEXT(l->unknown_ages),
               TEXT(l->impossible_ages));
    for (i = 0; i < l->reject_count && i < SHOWN; i++)
        printf("         %sline %u: %s: %s%s\n", c->in->color.red, l->reject[i].line, shown(l->reject[i].name, name),
               l->reject[i].reason, c->in->color.off);
    if (l->reject_count > SHOWN)
        printf("         %sand %s more rows that cannot be used%s\n", c->in->color.red, TEXT(l->reject_count - SHOWN),
               c->in->color.off);
}

static void
print_files(const struct source_check *c, enum source_fault fault, const char *what)
{
    char name[INSPECT_TEXT];
    size_t i, told = 0;

    if (c->count[fault] == 0)
        return;
    printf("%-8s %s%s %s%s\n", source_fault_name(fault), fault == SOURCE_EXTRA ? "" : c->in->color.red,
           TEXT(c->count[fault]), what, fault == SOURCE_EXTRA ? "" : c->in->color.off);
    for (i = 0; i < c->source.count && told < SHOWN; i++) {
        const struct source_look *look = &c->look[i];
        bool extra = fault == SOURCE_EXTRA && !labels_find(&c->labels, c->source.file[i].name);

        if (look->fault != fault && !extra)
            continue;
        printf("         %s", shown(c->source.file[i].name, name));
        printf("  in %s%s%s\n", shown(c->source.folder[c->source.file[i].folder], name), look->detail ? ": " : "",
               look->detail ? look->detail : "");
        told++;
    }
    if (c->count[fault] > told)
        printf("         and %s more: --format csv names all\n", TEXT(c->count[fault] - told));
}

static void
print_missing(const struct source_check *c)
{
    char name[INSPECT_TEXT];
    size_t i;

    if (c->preflight.missing == 0)
        return;
    printf("missing  %s%s rows have no image%s\n", c->in->color.red, TEXT(c->preflight.missing), c->in->color.off);
    for (i = 0; i < SHOWN && i < PREFLIGHT_SAMPLES && i < c->preflight.missing; i++)
        printf("         %s\n", shown(c->preflight.sample[i], name));
    if (c->preflight.missing > i)
        printf("         and %s more: --format csv names all\n", TEXT(c->preflight.missing - i));
}

/* NIH's archives, told by the order of the names. */
static void
print_archives(const struct source_check *c)
{
    const struct preflight *p = &c->preflight;
    unsigned i;

    printf("%sarchive              images     found   missing%s\n", c->in->color.dim, c->in->color.off);
    for (i = 0; i < PREFLIGHT_ARCHIVES; i++) {
        size_t missing = p->archive[i].wanted - p->archive[i].found;

        printf("images_%03u.tar.gz %8s  %8s  %s%8s%s\n", i + 1, TEXT(p->archive[i].wanted), TEXT(p->archive[i].found),
               missing ? c->in->color.red : "", missing ? TEXT(missing) : "-", missing ? c->in->color.off : "");
    }
}

/* Files by folder, with what is wrong in each. */
static void
print_folders(const struct source_check *c)
{
    size_t(*n)[2] = calloc(c->source.folder_count ? c->source.folder_count : 1, sizeof(*n)), i;
    char name[INSPECT_TEXT];

    if (!n)
        return;
    for (i = 0; i < c->source.count; i++) {
        n[c->source.file[i].folder][0]++;
        n[c->source.file[i].folder][1] += c->look[i].fault != SOURCE_GOOD;
    }
    printf("%s         images    faulty  folder%s\n", c->in->color.dim, c->in->color.off);
    for (i = 0; i < c->source.folder_count && i < FOLDERS; i++)
        printf("%15s  %s%8s%s  %s\n", TEXT(n[i][0]), n[i][1] ? c->in->color.red : "", n[i][1] ? TEXT(n[i][1]) : "-",
               n[i][1] ? c->in->color.off : "", shown(c->source.folder[i], name));
    if (c->source.folder_count > FOLDERS)
        printf("and %s more folders\n", TEXT(c->source.folder_count - FOLDERS));
    free(n);
}

static void
print_command(const struct source_check *c, const char *option)
{
    const struct inspect_options *o = c->in->options;
    size_t i;

    printf("next     chex-convert%s", option);
    for (i = 0; i < o->input_count; i++)
        printf(" -i %s", o->input[i]);
    printf(" -l %s -o shards\n", o->labels);
}

static void
print_next(const struct source_check *c)
{
    const struct preflight *p = &c->preflight;
    unsigned i, named = 0;

    if (c->labels_err.status != CHEX_OK || c->source_err.status != CHEX_OK) {
        printf("next     mend this first, then look again\n");
        return;
    }
    if (p->found == 0) {
        printf("next     no image has a row: is this the right folder, and the right label file?\n");
        return;
    }
    for (i = 0; p->whole && i < PREFLIGHT_ARCHIVES; i++)
        if (p->archive[i].found < p->archive[i].wanted)
            printf("%s%03u", named++ ? ", " : "next     get and unpack again: images_NNN.tar.gz with NNN = ", i + 1);
    if (named > 0)
        printf("\n         or use what is here:\n");
    if (c->count[SOURCE_EMPTY] + c->count[SOURCE_SHORT] + c->count[SOURCE_TYPE] + c->count[SOURCE_UNREADABLE] > 0)
        printf("%s the files named above must come again, or are rejected at conversion\n",
               named ? "        " : "next    ");
    if (source_check_good(c))
        print_command(c, " -n");
    else
        print_command(c, p->missing ? " -n --allow-missing" : " -n");
}

static void
print_table(const struct source_check *c)
{
    const struct source *s = &c->source;
    char bytes[PROGRESS_TEXT];

    print_labels(c);
    if (c->source_err.status != CHEX_OK) {
        printf("images   %s%s%s\n", c->in->color.red, c->source_err.text, c->in->color.off);
        print_next(c);
        return;
    }
    printf("images   %s files in %s folder%s, %s", TEXT(s->count), TEXT(s->folder_count),
           s->folder_count == 1 ? "" : "s", format_bytes(c->bytes, bytes));
    if (c->labels_err.status == CHEX_OK)
        printf("; %s of %s rows have one", TEXT(c->preflight.found), TEXT(c->preflight.wanted));
    printf("\n");
    if (s->repeated > 0)
        printf("         note: %s files stand twice, with the same content\n", TEXT(s->repeated));
    if (s->unreadable > 0)
        printf("         %s%s folders may not be listed%s\n", c->in->color.red, TEXT(s->unreadable), c->in->color.off);
    if (c->misnamed > 0)
        printf("         note: %s files are JPEG named .png, or the other way round: that does no harm\n",
               TEXT(c->misnamed));
    if (c->preflight.whole)
        print_archives(c);
    if (!c->preflight.whole || s->folder_count > 1)
        print_folders(c);
    print_missing(c);
    print_files(c, SOURCE_EMPTY, "files of no bytes");
    print_files(c, SOURCE_SHORT, "files without their end: the download was cut");
    print_files(c, SOURCE_TYPE, "files that are no images");
    print_files(c, SOURCE_UNREADABLE, "files that cannot be read");
    if (c->labels_err.status == CHEX_OK)
        print_files(c, SOURCE_EXTRA, "images without a row: left out");
    if (source_check_good(c))
        printf("%sgood%s     every row has an image that begins and ends as it should\n", c->in->color.green,
               c->in->color.off);
    print_next(c);
}

/* ---- for programs ---------------------------------------------------------------------------------------------- */

/* Called for everything that is not good. */
typedef void fault_fn(void *context, enum source_fault fault, const char *name, const char *folder, const char *detail);

static void
each_fault(const struct source_check *c, fault_fn *fn, void *context)
{
    bool both = c->labels_err.status == CHEX_OK && c->source_err.status == CHEX_OK;
    size_t i;

    for (i = 0; i < c->labels.reject_count; i++)
        fn(context, SOURCE_ROW, c->labels.reject[i].name, "", c->labels.reject[i].reason);
    for (i = 0; both && i < c->labels.count; i++)
        if (c->missing[i])
            fn(context, SOURCE_MISSING, c->labels.entry[i].name, "", "");
    for (i = 0; c->look && i < c->source.count; i++) {
        const struct source_file *file = &c->source.file[i];
        const struct source_look *look = &c->look[i];

        if (look->fault != SOURCE_GOOD)
            fn(context, (enum source_fault)look->fault, file->name, c->source.folder[file->folder],
               look->detail ? look->detail : "");
        if (both && !labels_find(&c->labels, file->name))
            fn(context, SOURCE_EXTRA, file->name, c->source.folder[file->folder], "");
    }
}

static void
on_row(void *context, enum source_fault fault, const char *name, const char *folder, const char *detail)
{
    struct rows *r = context;
    char text[INSPECT_TEXT];

    rows_text(r, source_fault_name(fault));
    rows_text(r, shown(name, text));
    rows_text(r, shown(folder, text));
    rows_text(r, detail);
    rows_next(r);
}

static void
on_json(void *context, enum source_fault fault, const char *name, const char *folder, const char *detail)
{
    inspect_json_push(context,
                      json_pack("{s:s, s:o, s:o, s:s}", "kind", source_fault_name(fault), "name",
                                inspect_json_text((struct chex_bytes){name, strlen(name)}), "folder",
                                inspect_json_text((struct chex_bytes){folder, strlen(folder)}), "detail", detail));
}

static json_t *
error_json(const struct chex_error *err)
{
    return err->status == CHEX_OK ? json_null() : inspect_json_text((struct chex_bytes){err->text, strlen(err->text)});
}

static json_t *
result_json(const struct source_check *c)
{
    json_t *counts = json_object(), *faults = json_array(), *archives = json_array(), *inputs = json_array();
    const struct inspect_options *o = c->in->options;
    size_t i;

    for (i = SOURCE_GOOD; i < SOURCE_FAULTS; i++)
        inspect_json_set(&counts, source_fault_name((enum source_fault)i), inspect_number(c->count[i]));
    for (i = 0; c->preflight.whole && i < PREFLIGHT_ARCHIVES; i++)
        inspect_json_push(&archives, json_pack("{s:o, s:o}", "images", inspect_number(c->preflight.archive[i].wanted),
                                               "found", inspect_number(c->preflight.archive[i].found)));
    for (i = 0; i < o->input_count; i++)
        inspect_json_push(&inputs, inspect_json_text((struct chex_bytes){o->input[i], strlen(o->input[i])}));
    each_fault(c, on_json, &faults);
    return json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "inputs", inputs, "labels",
                     inspect_json_text((struct chex_bytes){o->labels, strlen(o->labels)}), "good", source_check_good(c),
                     "labels_error", error_json(&c->labels_err), "images_error", error_json(&c->source_err), "rows",
                     inspect_number(c->labels.row_count), "files", inspect_number(c->source.count), "bytes",
                     inspect_number(c->bytes), "found", inspect_number(c->preflight.found), "repeated",
                     inspect_number(c->source.repeated), "counts", counts, "archives", archives, "faults", faults);
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
        print_table(c);
    }
}
