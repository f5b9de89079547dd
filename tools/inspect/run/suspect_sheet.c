/*
 * suspect_sheet.c - the contact sheets of suspect labels, and the section about them; see suspects.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/suspects.h"

#include "draw/canvas.h"
#include "image/resample.h"
#include "inspect/run/tables.h"
#include "inspect/sheet/sheet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 3 /* fits on the page, also in print */

/* ---- where the images are ---------------------------------------------------------------------------------------- */

struct sought {
    const char *name;
    struct suspect *suspect;
};

struct seeking {
    struct sought *of; /* sorted by name */
    size_t count;
};

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct sought *)a)->name, ((const struct sought *)b)->name);
}

/* An image may be in several lists: set all of them. */
static enum chex_status
on_record(void *context, const struct walk_record *record, struct chex_error *err)
{
    struct seeking *s = context;
    char name[RECORD_MAX_TEXT + 1];
    struct sought key = {.name = name}, *found;

    (void)err;
    if (record->values->weight != 1)
        return CHEX_OK;
    snprintf(name, sizeof(name), "%.*s", (int)record->values->name.size, (const char *)record->values->name.data);
    found = bsearch(&key, s->of, s->count, sizeof(key), by_name);
    if (!found)
        return CHEX_OK;
    while (found > s->of && strcmp(found[-1].name, name) == 0)
        found--;
    for (; found < s->of + s->count && strcmp(found->name, name) == 0; found++) {
        found->suspect->found = true;
        found->suspect->shard = record->shard;
        found->suspect->index = record->index;
    }
    return CHEX_OK;
}

/* Find the images of all lists by one walk over the texts of the data set. */
static enum chex_status
find_images(const struct run_report *r, const struct target *t, struct chex_error *err)
{
    struct seeking s = {.of = calloc((size_t)r->p.outputs * 2 * SUSPECTS, sizeof(*s.of))};
    struct walk w = {.in = r->in, .target = t, .depth = WALK_TEXTS, .record = on_record, .context = &s, .threads = 1};
    enum chex_status status;
    unsigned k, label, i;

    if (!s.of)
        return error_memory(err);
    for (k = 0; k < r->p.outputs; k++) {
        struct suspect_list *list = &r->suspects->finding[k];

        for (label = 0; label < 2; label++)
            for (i = 0; i < list->count[label]; i++) {
                struct suspect *x = &list->of[label][i];

                s.of[s.count++] = (struct sought){r->suspects->p[x->run].image[x->row], x};
            }
    }
    qsort(s.of, s.count, sizeof(*s.of), by_name);
    status = walk_run(&w, err);
    free(s.of);
    return status;
}

/* ---- a sheet ----------------------------------------------------------------------------------------------------- */

/* Read the images of a list: positives first. */
static enum chex_status
read_items(const struct run_report *r, const struct chex_dataset *ds, const struct suspect_list *list, struct sheet *s,
           struct chex_error *err)
{
    struct resampler resampler = {.method = RESAMPLE_AREA};
    struct buffer b = {0};
    enum chex_status status = CHEX_OK;
    int code = EXIT_GOOD, label;
    unsigned i;

    for (label = 1; label >= 0; label--)
        for (i = 0; i < list->count[label] && status == CHEX_OK; i++) {
            const struct suspect *x = &list->of[label][i];
            struct sheet_item *item = &s->item[s->count];

            if (!x->found)
                continue;
            item->shard = x->shard;
            item->index = x->index;
            s->count++;
            status = sheet_read_item(r->in, ds, s, &resampler, &b, item, &code);
            snprintf(item->note, sizeof(item->note), "label %d, p %.3g, above %.1f %%", label, (double)x->p,
                     100 * x->lower);
        }
    resampler_release(&resampler);
    buffer_release(&b);
    return status == CHEX_OK ? CHEX_OK : error_memory(err);
}

static enum chex_status
put_sheet(struct html *h, const struct run_report *r, const struct chex_dataset *ds, unsigned k, struct chex_error *err)
{
    const struct suspect_list *list = &r->suspects->finding[k];
    struct picture_note notes[] = {{"Comment", PICTURE_RESEARCH}, {"Source", PICTURE_SYNTHETIC}};
    struct sheet s = {.id = ds->info.id, .synthetic = ds->manifest.synthetic, .findings = &ds->manifest.findings};
    struct picture_spec spec = {.channels = 3, .notes = notes, .note_count = s.synthetic ? 2 : 1, .row = sheet_row};
    struct buffer file = {0};
    char name[INSPECT_TEXT];
    enum chex_status status;

    s.item = calloc(2 * SUSPECTS, sizeof(*s.item));
    if (!s.item)
        return error_memory(err);
    sheet_fit(ds->info.width, ds->info.height, &s);
    snprintf(s.selection, sizeof(s.selection), "suspect labels of %.200s",
             inspect_text(inspect_bytes(r->p.finding[k]), name));
    snprintf(s.size, sizeof(s.size), "%ux%u pixels", ds->info.width, ds->info.height);
    status = read_items(r, ds, list, &s, err);
    s.selected = s.count;
    s.columns = s.count < COLUMNS ? s.count : COLUMNS;
    if (status == CHEX_OK && s.count > 0)
        status = sheet_layout(&s, err);
    if (status == CHEX_OK && s.count > 0) {
        spec.width = s.sheet_width;
        spec.height = s.sheet_height;
        spec.context = &s;
        status = picture_jpeg(&spec, &file, err);
    }
    if (status == CHEX_OK && s.count > 0) {
        html_raw(h, "<div class=\"wide\">");
        html_picture(h, HTML_JPEG, &file, s.sheet_width, s.sheet_height, "contact sheet of suspect labels");
        html_raw(h, "</div>\n");
    }
    buffer_release(&file);
    sheet_release(&s);
    return status;
}

/* ---- the section ------------------------------------------------------------------------------------------------- */

static void
put_list(struct html *h, const struct run_report *r, const struct suspect_list *list)
{
    static const char *const heading[] = {"<image", "<patient", "label", "p", "lower outputs", "<fold", NULL};
    const struct run_suspects *s = r->suspects;
    char lower[RUN_DIGITS];
    int label;
    unsigned i;

    run_table_begin(h, heading);
    for (label = 1; label >= 0; label--)
        for (i = 0; i < list->count[label]; i++) {
            const struct suspect *x = &list->of[label][i];

            run_table_row(h, s->p[x->run].image[x->row]);
            html_raw(h, "<td class=\"t\">");
            html_text(h, s->p[x->run].patient[x->row]);
            html_format(h, "</td><td>%d</td><td>%.3g</td><td>%s %%</td><td class=\"t\">%u/%u</td></tr>\n", label,
                        (double)x->p, run_number(100 * x->lower, 1, lower), s->fold[x->run], s->folds);
        }
    run_table_end(h);
}

/* Open the data set of the run; *why says why it cannot be read. */
static bool
open_dataset(const struct run_report *r, struct target *t, struct chex_error *why)
{
    const char *path = r->in->options->data ? r->in->options->data : r->data_path;

    if (!r->dataset_read || target_open(path, t, why) != CHEX_OK)
        return false;
    return t->kind == TARGET_DATASET && t->dataset->info.finding_count == r->p.outputs &&
           strcmp(t->dataset->info.id, r->dataset_id) == 0;
}

static enum chex_status
put_findings(struct html *h, const struct run_report *r, const struct chex_dataset *ds, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    char id[16], title[INSPECT_TEXT + 64], name[INSPECT_TEXT];
    unsigned k;

    for (k = 0; k < r->p.outputs && status == CHEX_OK; k++) {
        const struct suspect_list *list = &r->suspects->finding[k];

        snprintf(id, sizeof(id), "suspects%u", k);
        snprintf(title, sizeof(title), "%s: %u positive, %u negative",
                 inspect_text(inspect_bytes(r->p.finding[k]), name), list->count[1], list->count[0]);
        html_fold_begin(h, id, title, false);
        if (list->folds == 0) {
            html_raw(h, "<p class=\"dim\">n/a: no fold has enough patients and an AUROC above 0.5.</p>\n");
        } else {
            html_format(h, "<p>Mean AUROC of the %u fold%s that %s ranked: %s.</p>\n", list->folds,
                        list->folds == 1 ? "" : "s", list->folds == 1 ? "was" : "were",
                        run_number(list->auroc, 3, (char[RUN_DIGITS]){0}));
            put_list(h, r, list);
            if (ds)
                status = put_sheet(h, r, ds, k, err);
        }
        html_fold_end(h);
    }
    return status;
}

enum chex_status
run_put_suspects(struct html *h, const struct run_report *r, struct chex_error *err)
{
    const struct run_suspects *s = r->suspects;
    struct target t = {.path = NULL};
    struct chex_error why;
    enum chex_status status = CHEX_OK;
    bool images;

    if (!s)
        return CHEX_OK;
    if (s->missing[0]) {
        html_raw(h, "<p>n/a: ");
        html_text(h, s->missing);
        html_raw(h, ".</p>\n");
        return CHEX_OK;
    }
    images = open_dataset(r, &t, &why);
    if (images)
        status = find_images(r, &t, err);
    html_format(h, "<p>%s images of %u of %u folds", format_count(s->images, (char[FORMAT_TEXT]){0}), s->have,
                s->folds);
    if (s->each > 1)
        html_format(h, ", p is the mean of %u runs", s->each);
    html_format(h, ".%s%s</p>\n", s->have < s->folds ? " The images of the other folds were not examined." : "",
                images ? "" : " The data set was not read, so there are no contact sheets.");
    if (status == CHEX_OK)
        status = put_findings(h, r, images ? t.dataset : NULL, err);
    target_close(&t);
    return status;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *
list_json(const struct run_suspects *s, const struct suspect_list *list, unsigned label)
{
    json_t *array = json_array();
    unsigned i;

    for (i = 0; i < list->count[label]; i++) {
        const struct suspect *x = &list->of[label][i];

        inspect_json_push(&array, json_pack("{s:o,s:o,s:o,s:o}", "image", text_json(s->p[x->run].image[x->row]), "fold",
                                            count_json(s->fold[x->run]), "probability", real_json((double)x->p),
                                            "lower", real_json(x->lower)));
    }
    return array;
}

json_t *
run_suspects_json(const struct run_report *r)
{
    const struct run_suspects *s = r->suspects;
    json_t *findings;
    unsigned k;

    if (!s || s->missing[0])
        return json_null();
    findings = json_array();
    for (k = 0; k < r->p.outputs; k++)
        inspect_json_push(&findings,
                          json_pack("{s:o,s:o,s:o,s:o}", "name", text_json(r->p.finding[k]), "auroc",
                                    real_json(s->finding[k].auroc), "positives", list_json(s, &s->finding[k], 1),
                                    "negatives", list_json(s, &s->finding[k], 0)));
    return json_pack("{s:o,s:o,s:o,s:o}", "images", count_json(s->images), "folds", count_json(s->folds), "examined",
                     count_json(s->have), "findings", findings);
}
