/*
 * map_report.c - the section about maps (--maps) in the report of a run, and its JSON; see run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/tables.h"

#include <math.h>
#include <stdlib.h>

#define COUNT(n) format_count(n, (char[FORMAT_TEXT]){0})

enum chex_status
run_report_maps(struct run_report *r, struct chex_error *err)
{
    const char *folder = r->in->options->maps;

    if (!folder)
        return CHEX_OK;
    r->maps = calloc(1, sizeof(*r->maps));
    if (!r->maps)
        return error_memory(err);
    return map_file_read(folder, &r->p, r->checkpoint_sha256, r->maps, err);
}

void
run_maps_free(struct map_file *m)
{
    if (m)
        map_file_release(m);
    free(m);
}

const char *
run_maps_options(const struct map_file *m, char out[RUN_MAPS_OPTIONS])
{
    char part[48] = "";

    if (m->parts > 1)
        snprintf(part, sizeof(part), " --part %llu/%llu", (unsigned long long)m->part, (unsigned long long)m->parts);
    snprintf(out, RUN_MAPS_OPTIONS, "%s%s%s", m->split[0] ? " --split " : "", m->split, part);
    return out;
}

/* ---- page -------------------------------------------------------------------------------------------------------- */

static void
put_correlations(struct html *h, const struct run_report *r)
{
    static const char *const heading[] = {"finding", "rank correlation with random weights", NULL};
    unsigned k;

    run_table_begin(h, heading);
    for (k = 0; k <= r->p.outputs; k++) {
        run_table_row(h, k < r->p.outputs ? r->finding[k].name : "mean");
        run_cell_number(h, k < r->p.outputs ? r->maps->finding[k].correlation : r->maps->correlation);
        html_raw(h, "</tr>\n");
    }
    run_table_end(h);
}

/* A row for each measure. */
static void
put_box_rows(struct html *h, const char *name, const struct map_boxes *b)
{
    unsigned i, m;

    for (i = 0; i < MAP_FILE_MEASURES; i++) {
        run_table_row(h, i == 0 ? name : "");
        html_format(h, "<td>%s</td>", i == 0 ? COUNT(b->boxes) : "");
        if (!b->enough) {
            run_cell_note(h, 1 + BOX_METHODS, "too few");
            html_raw(h, "</tr>\n");
            return;
        }
        html_format(h, "<td class=\"t w\">%s</td>", map_file_measures[i].name);
        for (m = 0; m < BOX_METHODS; m++)
            run_cell_measured(h, &b->value[i][m]);
        html_raw(h, "</tr>\n");
    }
}

static void
put_boxes(struct html *h, const struct run_report *r)
{
    static const char *const heading[] = {"finding",      "boxes", "<measure", "maps",
                                          "constant box", "gauss", "chance",   NULL};
    const struct map_file *m = r->maps;
    char mean[40];
    unsigned k;

    snprintf(mean, sizeof(mean), "mean of %u findings", m->measured);
    html_format(h, "<h3>Boxes of %s images%s</h3>\n", COUNT(m->box_images),
                m->box_synthetic ? ", which are synthetic" : "");
    html_raw(
        h, "<p>Pointing game: the share of boxes with the hottest pixel of their map. IoU: the share whose overlap "
           "with a region of the map is above the threshold. A number says something only next to those of the "
           "controls: one constant box for all images, a map with its maximum in the middle (gauss), and random cells "
           "(chance).</p>\n");
    run_table_begin(h, heading);
    for (k = 0; k < r->p.outputs; k++)
        if (m->finding[k].boxes.boxes > 0)
            put_box_rows(h, r->finding[k].name, &m->finding[k].boxes);
    if (m->mean.boxes > 0)
        put_box_rows(h, mean, &m->mean);
    run_table_end(h);
}

static void
put_sheets(struct html *h, const struct run_report *r)
{
    char id[16], title[INSPECT_TEXT + 96], name[INSPECT_TEXT];
    unsigned k;

    for (k = 0; k < r->p.outputs; k++) {
        const struct map_finding *f = &r->maps->finding[k];

        if (f->sheet.size == 0)
            continue;
        snprintf(id, sizeof(id), "maps%u", k);
        snprintf(title, sizeof(title), "Sheet of %s: %s hits, %s false alarms, %s misses",
                 inspect_text(inspect_bytes(r->p.finding[k]), name), COUNT(f->hits), COUNT(f->false_alarms),
                 COUNT(f->misses));
        html_fold_begin(h, id, title, false);
        html_raw(h, "<div class=\"wide\">");
        html_picture(h, HTML_PNG, &f->sheet, f->width, f->height, "contact sheet of maps");
        html_raw(h, "</div>\n");
        html_fold_end(h);
    }
    if (r->maps->sheets_left > 0)
        html_format(h, "<p class=\"dim\">%u contact sheet%s too large for this page.</p>\n", r->maps->sheets_left,
                    r->maps->sheets_left == 1 ? " is" : "s are");
}

void
run_tables_maps(struct html *h, const struct run_report *r)
{
    if (!r->maps)
        return;
    put_correlations(h, r);
    if (r->maps->box_images > 0)
        put_boxes(h, r);
    put_sheets(h, r);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *
boxes_json(const struct map_boxes *b)
{
    json_t *list;
    unsigned i, m;

    if (b->boxes == 0)
        return json_null();
    list = json_array();
    for (i = 0; b->enough && i < MAP_FILE_MEASURES; i++) {
        json_t *object = json_pack("{s:s,s:o}", "measure", map_file_measures[i].key, "threshold",
                                   real_json(map_file_measures[i].threshold));

        for (m = 0; m < BOX_METHODS; m++)
            inspect_json_set(&object, box_method_names[m], run_measured_json(&b->value[i][m]));
        inspect_json_push(&list, object);
    }
    return json_pack("{s:o,s:o}", "boxes", count_json(b->boxes), "measures", list);
}

json_t *
run_maps_json(const struct run_report *r)
{
    const struct map_file *m = r->maps;
    json_t *list;
    unsigned k;

    if (!m)
        return json_null();
    list = json_array();
    for (k = 0; k < r->p.outputs; k++)
        inspect_json_push(&list, json_pack("{s:o,s:o,s:o,s:b}", "name", text_json(r->finding[k].name),
                                           "rank_correlation", real_json(m->finding[k].correlation), "boxes",
                                           boxes_json(&m->finding[k].boxes), "sheet", m->finding[k].sheet.size > 0));
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:o,s:o}", "split", text_json(m->split[0] ? m->split : NULL),
                     "part", count_json(m->part), "parts", count_json(m->parts), "covered", count_json(m->covered),
                     "images", count_json(m->images), "compared", count_json(m->compared), "rank_correlation",
                     real_json(m->correlation), "synthetic", m->synthetic || m->box_synthetic, "findings", list,
                     "mean_boxes", boxes_json(&m->mean));
}
