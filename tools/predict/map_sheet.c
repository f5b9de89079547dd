/*
 * map_sheet.c - see map_sheet.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/map_sheet.h"

#include "input/stored_scan.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARGIN 12u
#define LINE   17u
#define LEAST  192u /* pixels of a tile */
#define INK    0xf2f4f6u
#define DIM    0xa9b2bcu
#define PAPER  0x15181cu

/* ---- labels ------------------------------------------------------------------------------------------------------ */

static unsigned
column_of(const struct chex_dataset *ds, const char *finding)
{
    unsigned count, i;
    const char *const *name = chex_dataset_findings(ds, &count);

    for (i = 0; i < count; i++)
        if (strcmp(name[i], finding) == 0)
            return i;
    return UINT_MAX;
}

static int
compare_names(const void *name, const void *entry)
{
    return strcmp(name, ((const struct entry *)entry)->name);
}

/* Set the labels of an image of a data set, if it is one of those that are scored. */
static bool
take_labels(struct map_sheets *s, const struct images *images, const struct findings *findings,
            const struct source_file *file)
{
    const struct entry *entry = bsearch(file->name, images->names.entry, images->count, sizeof(*entry), compare_names);
    size_t row;
    unsigned k;

    if (!entry)
        return false;
    row = (size_t)(entry - images->names.entry);
    s->label[row] = images->source.stored[file->stored].label;
    for (k = 0; k < s->outputs; k++)
        s->column[row * s->outputs + k] = column_of(images->source.dataset[file->folder], findings->name[k]);
    return true;
}

enum chex_status
sheets_begin(const struct images *images, const struct findings *findings, const struct flags *flags, size_t pixels,
             size_t cells, struct map_sheets *out, struct chex_error *err)
{
    size_t count = images->count ? images->count : 1, labelled = 0, i;

    *out = (struct map_sheets){.flags = flags, .outputs = findings->count, .pixels = pixels, .cells = cells};
    if (flags->findings == 0)
        return error_set(err, CHEX_ERR_USAGE, "--sheet needs thresholds, and the model has none: see --threshold FILE");
    out->label = calloc(count, sizeof(*out->label));
    out->column = calloc(count * out->outputs, sizeof(*out->column));
    out->sheet = calloc(out->outputs, sizeof(*out->sheet));
    if (!out->label || !out->column || !out->sheet)
        return error_memory(err);
    for (i = 0; images->source.dataset_count > 0 && i < images->source.count; i++)
        labelled += take_labels(out, images, findings, &images->source.file[i]);
    return labelled > 0
               ? CHEX_OK
               : error_set(err, CHEX_ERR_USAGE, "--sheet needs labels: give a data set of chex-convert, not images");
}

void
sheets_release(struct map_sheets *s)
{
    unsigned k, i;

    for (k = 0; s->sheet && k < s->outputs; k++)
        for (i = 0; i < SHEET_ROWS * SHEET_TILES; i++) {
            free(s->sheet[k].tile[i / SHEET_TILES][i % SHEET_TILES].pixels);
            free(s->sheet[k].tile[i / SHEET_TILES][i % SHEET_TILES].map);
        }
    free((void *)s->label);
    free(s->column);
    free(s->sheet);
}

/* ---- the choice -------------------------------------------------------------------------------------------------- */

/* Returns whether an image comes before another one in its row of a sheet. */
static bool
comes_before(enum sheet_row row, const struct sheet_tile *a, const struct sheet_tile *b)
{
    if (!b->pixels)
        return true;
    if (a->probability != b->probability)
        return (a->probability < b->probability) == (row == SHEET_MISS);
    return a->image < b->image;
}

static enum chex_status
keep_tile(struct map_sheets *s, struct sheet_tile *tiles, enum sheet_row row, struct sheet_tile made,
          const uint8_t *pixels, const float *map, struct chex_error *err)
{
    struct sheet_tile *last = &tiles[SHEET_TILES - 1];
    unsigned at = SHEET_TILES - 1;

    if (!comes_before(row, &made, last))
        return CHEX_OK;
    made.pixels = last->pixels ? last->pixels : malloc(s->pixels);
    made.map = last->map ? last->map : malloc(s->cells * sizeof(*map));
    if (!made.pixels || !made.map) {
        last->pixels = made.pixels; /* sheets_release() frees them */
        last->map = made.map;
        return error_memory(err);
    }
    memcpy(made.pixels, pixels, s->pixels);
    memcpy(made.map, map, s->cells * sizeof(*map));
    for (; at > 0 && comes_before(row, &made, &tiles[at - 1]); at--)
        tiles[at] = tiles[at - 1];
    tiles[at] = made;
    return CHEX_OK;
}

enum chex_status
sheets_add(struct map_sheets *s, uint32_t image, unsigned k, const char *name, double probability,
           const uint8_t *pixels, const float *map, struct chex_error *err)
{
    const struct sheet_tile made = {.image = image, .probability = probability, .name = name};
    unsigned column = s->column[(size_t)image * s->outputs + k];
    struct map_sheet *sheet = &s->sheet[k];
    enum sheet_row row;
    bool flag;
    uint8_t label;

    if (!s->label[image] || column == UINT_MAX || isnan(s->flags->threshold[k]))
        return CHEX_OK;
    label = s->label[image][column];
    if (label > 1) /* unknown */
        return CHEX_OK;
    sheet->labelled++;
    flag = flags_is_positive(s->flags, k, probability);
    if (!flag && label == 0)
        return CHEX_OK;
    row = !flag ? SHEET_MISS : label ? SHEET_HIT : SHEET_ALARM;
    sheet->count[row]++;
    return keep_tile(s, sheet->tile[row], row, made, pixels, map, err);
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static void
draw_text(struct canvas *canvas, unsigned x, unsigned y, picture_color color, const char *text)
{
    canvas_text(canvas, x, y, &font_large, false, color, text, strlen(text));
}

/* Draws the caption in the width of a tile: a longer name is cut. */
static void
draw_caption(const struct sheet_tile *t, struct canvas *canvas, unsigned x, unsigned y, unsigned width)
{
    size_t length = strlen(t->name);
    char text[32];

    while (length > 0 && font_width(&font_large, t->name, length) > width)
        length--;
    canvas_text(canvas, x, y, &font_large, false, DIM, t->name, length);
    snprintf(text, sizeof(text), "p %.2f", t->probability);
    draw_text(canvas, x, y + LINE, INK, text);
}

static enum chex_status
draw_row(const struct map_sheet *sheet, enum sheet_row row, const struct map_picture *base, struct canvas *canvas,
         unsigned top, unsigned side, struct chex_error *err)
{
    static const char *const titles[SHEET_ROWS] = {"hits", "false alarms", "misses"};
    enum chex_status status = CHEX_OK;
    char text[64];
    unsigned i;

    snprintf(text, sizeof(text), "%s: %" PRIu64, titles[row], sheet->count[row]);
    draw_text(canvas, MARGIN, top, INK, text);
    for (i = 0; status == CHEX_OK && i < SHEET_TILES && sheet->tile[row][i].pixels; i++) {
        const struct sheet_tile *t = &sheet->tile[row][i];
        struct map_picture p = *base;
        unsigned left = MARGIN + i * (side + MARGIN);

        p.pixels = t->pixels;
        p.map = t->map;
        status = map_picture_place(&p, canvas, left, top + LINE, side / p.size, err);
        draw_caption(t, canvas, left, top + LINE + side + 2, side);
    }
    return status;
}

enum chex_status
sheets_draw(const struct map_sheets *s, unsigned k, const struct map_picture *base, struct canvas *canvas,
            struct buffer *out, struct chex_error *err)
{
    const struct map_sheet *sheet = &s->sheet[k];
    unsigned side = base->size < LEAST ? base->size * (LEAST / base->size) : base->size, step = side + 4 * LINE, row;
    unsigned width = MARGIN + SHEET_TILES * (side + MARGIN), rows = MARGIN + 2 * LINE,
             height = rows + SHEET_ROWS * step + MAP_LEGEND_HEIGHT + 3 * LINE;
    enum chex_status status = canvas_start(canvas, width, height, PAPER, err);
    char text[256];

    if (status != CHEX_OK)
        return status;
    snprintf(text, sizeof(text), "%.64s: %" PRIu64 " images with a label, %.32s%sthreshold %.2f", base->finding,
             sheet->labelled, base->chosen_on ? base->chosen_on : "", base->chosen_on ? " " : "", base->threshold);
    draw_text(canvas, MARGIN, MARGIN, INK, text);
    for (row = 0; status == CHEX_OK && row < SHEET_ROWS; row++)
        status = draw_row(sheet, (enum sheet_row)row, base, canvas, rows + row * step, side, err);
    if (status != CHEX_OK)
        return status;
    map_picture_foot(base, canvas, MARGIN, rows + SHEET_ROWS * step, width - 2 * MARGIN);
    return map_picture_encode(base, canvas, out, err);
}
