/*
 * predict_boxes.c - see predict_boxes.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_boxes.h"

#include "base/ascii.h"
#include "common/printable.h"
#include "labels/patient_ids.h"
#include "labels/synthetic_note.h"
#include "predict/predict_images.h"
#include "predict/predict_maps.h"
#include "predict/predict_model.h"

#include <stdlib.h>
#include <string.h>

#define NIH_DIGITS 8
#define ROUNDING   0.001 /* pixels outside of its image that a box may have */

enum chex_status
boxes_check_options(const struct predict_options *o, struct chex_error *err)
{
    if (!o->boxes && o->box_size > 0)
        return error_set(err, CHEX_ERR_USAGE, "--box-size is for --boxes");
    return o->boxes ? maps_check_option("--boxes", o, err) : CHEX_OK;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static enum chex_status
check_inside(const struct box_run *b, const struct listed_box *box, uint32_t width, uint32_t height,
             struct chex_error *err)
{
    char shown[64];

    if (box->x + box->width <= width + ROUNDING && box->y + box->height <= height + ROUNDING)
        return CHEX_OK;
    return error_set(err, CHEX_ERR_USAGE,
                     "%s:%lu: the box reaches beyond the %u x %u pixels of '%s'; --box-size N gives the side of the "
                     "images of the list",
                     b->options->boxes, box->line, width, height,
                     ascii_escape(box->image, strlen(box->image), shown, sizeof(shown)));
}

uint32_t
boxes_common_side(const struct box_run *b)
{
    if (b->options->box_size > 0)
        return b->options->box_size;
    return b->images->source.dataset_count > 0 ? BOX_SIDE : 0;
}

/* Keep the boxes whose images are among the images.  Both lists are sorted by name. */
static enum chex_status
match_images(struct box_run *b, struct chex_error *err)
{
    const struct labels *names = &b->images->names;
    uint32_t side = boxes_common_side(b);
    size_t row = 0, i;
    char shown[64];

    b->box = calloc(b->list.count + 1, sizeof(*b->box));
    if (!b->box)
        return error_memory(err);
    for (i = 0; i < b->list.count; i++) {
        const struct listed_box *listed = &b->list.box[i];

        while (row < names->count && strcmp(names->entry[row].name, listed->image) < 0)
            row++;
        if (row == names->count || strcmp(names->entry[row].name, listed->image) != 0)
            continue;
        b->box[b->count++] = (struct kept_box){listed, (uint32_t)row};
        if (side > 0 && check_inside(b, listed, side, side, err) != CHEX_OK)
            return CHEX_ERR_USAGE;
    }
    if (b->list.count == 0)
        return error_set(err, CHEX_ERR_USAGE, "%s: no box of a finding of the model", b->options->boxes);
    if (b->count == 0)
        return error_set(err, CHEX_ERR_USAGE, "%s: no image of the list is among the images; the first is '%s'",
                         b->options->boxes,
                         ascii_escape(b->list.box[0].image, strlen(b->list.box[0].image), shown, sizeof(shown)));
    return CHEX_OK;
}

enum chex_status
boxes_begin(const struct predict_options *o, const struct models *models, const struct images *images, bool synthetic,
            struct box_run *out, struct chex_error *err)
{
    const struct predict_model *model = &models->model[0];
    struct crop view[EVALUATE_VIEWS];
    enum chex_status status = map_grid_of(model->graph, &out->grid, err);

    out->options = o;
    out->models = models;
    out->images = images;
    out->synthetic = synthetic || synthetic_note_beside(o->boxes);
    evaluate_views(TTA_NONE, model->state.side, models->size, view);
    out->crop = view[0];
    (void)graph_find_head(model->graph, &out->head); /* map_grid_of() has found it */
    if (status == CHEX_OK)
        status = box_list_read(o->boxes, &model->findings, o->name_parts, &out->list, err);
    if (status == CHEX_OK)
        status = match_images(out, err);
    if (status == CHEX_OK && out->synthetic && boxes_common_side(out) == BOX_SIDE && o->box_size == 0)
        status = error_set(err, CHEX_ERR_USAGE,
                           "a data set does not say how large its images were, and synthetic ones may have any size: "
                           "--box-size N, as in chex-synth --size N");
    if (status != CHEX_OK)
        return status;
    out->cells = calloc(out->count, out->head.pixels * sizeof(float));
    return out->cells ? CHEX_OK : error_memory(err);
}

void
boxes_end(struct box_run *b)
{
    box_list_release(&b->list);
    localization_release(&b->found);
    free(b->box);
    free(b->cells);
}

/* Returns the first box of an image, or of the next one that has any. */
static size_t
first_of(const struct box_run *b, uint32_t row)
{
    size_t low = 0, high = b->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (b->box[middle].row < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void
boxes_keep(struct box_run *b, uint32_t row, const float *map)
{
    for (size_t i = first_of(b, row); i < b->count && b->box[i].row == row; i++)
        memcpy(b->cells + i * b->head.pixels, map + b->box[i].listed->finding * b->head.pixels,
               b->head.pixels * sizeof(float));
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

struct box_comparison {
    const struct box_run *run;
    struct located_box *located;
    size_t *kept; /* index into run->box of each located box */
    size_t count;
    struct patients patients;
    struct arena strings;
};

static void
spread_cells(void *context, size_t i, const float *cells, float *out)
{
    const struct box_comparison *c = context;
    const struct located_box *l = &c->located[i];
    struct map_place place = map_place_of(l->height, l->width, c->run->models->size, c->run->crop.y, c->run->crop.x);

    map_spread(&c->run->grid, cells, &place, l->height, l->width, out);
}

static enum chex_status
spread_map(void *context, size_t i, float *out, struct chex_error *err)
{
    const struct box_comparison *c = context;

    (void)err;
    spread_cells(context, i, c->run->cells + c->kept[i] * c->run->head.pixels, out);
    return CHEX_OK;
}

/* Find the patient that the name gives. */
static enum chex_status
find_patient(struct box_comparison *c, const char *name, uint32_t *patient, struct chex_error *err)
{
    size_t length = strspn(name, "0123456789");
    char *id;

    if (length != NIH_DIGITS || name[length] != '_')
        length = strchr(name, '/') ? strcspn(name, "/") : strlen(name);
    id = arena_copy(&c->strings, name, length);
    return id ? patients_add(&c->patients, id, &c->strings, patient, err) : error_memory(err);
}

static uint32_t
width_of(const struct box_run *b, const struct image_result *image)
{
    uint32_t side = boxes_common_side(b);

    return side > 0 ? side : image->width;
}

static uint32_t
height_of(const struct box_run *b, const struct image_result *image)
{
    uint32_t side = boxes_common_side(b);

    return side > 0 ? side : image->height;
}

bool
boxes_given(const struct box_run *b, uint32_t row, const struct image_result *image, unsigned size, struct map_box *box)
{
    uint32_t width = width_of(b, image), height = height_of(b, image);
    bool any = false;

    memset(box, 0, b->models->outputs * sizeof(*box));
    for (size_t i = first_of(b, row); i < b->count && b->box[i].row == row; i++) {
        const struct listed_box *l = b->box[i].listed;
        double across = (double)size / width, down = (double)size / height;

        if (check_inside(b, l, width, height, NULL) != CHEX_OK)
            continue;
        box[l->finding] = (struct map_box){l->x * across, l->y * down, (l->x + l->width) * across,
                                           (l->y + l->height) * down};
        any = true;
    }
    return any;
}

/* Count a box that reaches beyond its image; the error of the first one is kept. */
static bool
is_outside(struct box_run *b, const struct listed_box *box, const struct image_result *image)
{
    if (check_inside(b, box, width_of(b, image), height_of(b, image), b->outside == 0 ? &b->first_outside : NULL) ==
        CHEX_OK)
        return false;
    b->outside++;
    return true;
}

/* Locate a box in the pixels on which its map is compared. */
static enum chex_status
locate_box(struct box_comparison *c, const struct kept_box *kept, const struct image_result *image,
           struct chex_error *err)
{
    const struct listed_box *b = kept->listed;
    struct located_box *l = &c->located[c->count];
    uint32_t width = width_of(c->run, image), height = height_of(c->run, image);
    double across, down;

    l->width = width < BOX_RASTER ? width : BOX_RASTER;
    l->height = height < BOX_RASTER ? height : BOX_RASTER;
    across = (double)l->width / width;
    down = (double)l->height / height;
    l->box = (struct map_box){b->x * across, b->y * down, (b->x + b->width) * across, (b->y + b->height) * down};
    l->finding = b->finding;
    return find_patient(c, b->image, &l->patient, err);
}

static enum chex_status
locate_all(struct box_comparison *c, struct box_run *run, const struct results *results, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    uint32_t last = UINT32_MAX;

    for (size_t i = 0; status == CHEX_OK && i < run->count; i++) {
        const struct image_result *image = &results->image[run->box[i].row];

        if (image->refused != CHEX_OK) {
            run->refused++;
            continue;
        }
        if (is_outside(run, run->box[i].listed, image))
            continue;
        status = locate_box(c, &run->box[i], image, err);
        c->kept[c->count++] = i;
        run->scored += run->box[i].row != last;
        last = run->box[i].row;
    }
    run->measured = c->count;
    return status;
}

enum chex_status
boxes_measure(struct box_run *b, const struct results *results, unsigned threads, const atomic_bool *stop,
              struct chex_error *err)
{
    struct box_comparison c = {.run = b};
    struct localization_input in = {.findings = b->models->outputs,
                                    .cells_high = b->grid.height,
                                    .cells_wide = b->grid.width,
                                    .map = spread_map,
                                    .spread = spread_cells,
                                    .context = &c,
                                    .replicates = BOX_REPLICATES,
                                    .seed = BOX_SEED,
                                    .threads = threads,
                                    .stop = stop};
    enum chex_status status;

    c.located = calloc(b->count, sizeof(*c.located));
    c.kept = calloc(b->count, sizeof(*c.kept));
    status = c.located && c.kept ? locate_all(&c, b, results, err) : error_memory(err);
    if (status == CHEX_OK && c.count > 0) {
        in.count = c.count;
        in.box = c.located;
        in.patients = (uint32_t)c.patients.count;
        status = localization_measure(&in, &b->found, err);
    }
    free(c.located);
    free(c.kept);
    patients_release(&c.patients);
    arena_release(&c.strings);
    return status;
}
