/*
 * map_file.c - see map_file.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/map_file.h"

#include "inspect/run/image_file.h"
#include "inspect/run/json_file.h"
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER_LONGEST 3000
#define FILE_PATH      4096
#define SHEET_NAME     256
#define SHEET_SIDE     65535 /* pixels */

const struct map_file_measure map_file_measures[MAP_FILE_MEASURES] = {
    {"pointing game", "pointing_game", (double)NAN},
    {"IoU > 0.1", "iou", 0.1},
    {"IoU > 0.3", "iou", 0.3},
    {"IoU > 0.5", "iou", 0.5},
};

/* ---- values ------------------------------------------------------------------------------------------------------ */

static double
take_correlation(const json_t *object)
{
    return json_take_real(object, "rank_correlation", -1.000001, 1.000001);
}

/* Returns the object of a list whose member has this value, or NULL. */
static const json_t *
find_named(const json_t *list, const char *key, const char *name)
{
    const json_t *object;
    size_t i;

    json_array_foreach (list, i, object) {
        const char *text = json_string_value(json_object_get(object, key));

        if (text && strcmp(text, name) == 0)
            return object;
    }
    return NULL;
}

static struct measured
take_measured(const json_t *object)
{
    return (struct measured){json_take_real(object, "value", 0, 1), json_take_real(object, "low", 0, 1),
                             json_take_real(object, "high", 0, 1)};
}

/* A measure with thresholds is a list of objects. */
static struct measured
take_measure(const json_t *method, const struct map_file_measure *m)
{
    const json_t *value = json_object_get(method, m->key), *step;
    size_t i;

    if (isnan(m->threshold))
        return take_measured(value);
    json_array_foreach (value, i, step)
        if (!isnan(json_take_real(step, "threshold", m->threshold, m->threshold)))
            return take_measured(step);
    return take_measured(NULL);
}

static void
take_boxes(const json_t *object, struct map_boxes *b)
{
    unsigned i, m;

    b->boxes = json_take_count(object, "boxes");
    for (i = 0; i < MAP_FILE_MEASURES; i++)
        for (m = 0; m < BOX_METHODS; m++)
            b->value[i][m] = take_measure(json_object_get(object, box_method_names[m]), &map_file_measures[i]);
    b->enough = json_is_false(json_object_get(object, "too_few")) && !isnan(b->value[0][BOX_MAP].value);
}

/* ---- contact sheets ---------------------------------------------------------------------------------------------- */

static uint32_t
big_endian(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* The file goes into the page as it is: a browser decodes it. */
static enum chex_status
take_size(struct map_finding *f, const char *path, struct chex_error *err)
{
    const uint8_t *b = f->sheet.data;

    if (f->sheet.size < 33 || memcmp(b, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16) != 0 || big_endian(b + 16) == 0 ||
        big_endian(b + 16) > SHEET_SIDE || big_endian(b + 20) == 0 || big_endian(b + 20) > SHEET_SIDE)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' is no contact sheet of chex-predict", path);
    f->width = big_endian(b + 16);
    f->height = big_endian(b + 20);
    return CHEX_OK;
}

/* Read the sheet of a finding, if all sheets so far and this one are small enough for a page. */
static enum chex_status
read_sheet(const char *folder, const json_t *object, struct map_file *out, struct map_finding *f, uint64_t *left,
           struct chex_error *err)
{
    char name[SHEET_NAME], path[FILE_PATH];
    enum chex_status status;

    f->hits = json_take_count(object, "hits");
    f->false_alarms = json_take_count(object, "false_alarms");
    f->misses = json_take_count(object, "misses");
    JSON_TAKE(object, "file", name);
    if (!name[0])
        return CHEX_OK;
    snprintf(path, sizeof(path), "%.3000s/maps/%.255s", folder, name);
    if (strchr(name, '/'))
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' is no file of a folder of maps", path);
    status = file_read(AT_FDCWD, path, *left, &f->sheet, err);
    if (status == CHEX_ERR_LIMIT) {
        buffer_release(&f->sheet);
        out->sheets_left++;
        return CHEX_OK;
    }
    if (status != CHEX_OK)
        return json_file_unread(err, status, path);
    *left -= f->sheet.size;
    return take_size(f, path, err);
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

/* Are the maps of this folder those of these weights? */
static enum chex_status
check_model(const json_t *top, const char *file, const char *sha256, struct chex_error *err)
{
    const json_t *models = json_object_get(top, "models");
    const char *tool = json_string_value(json_object_get(top, "tool"));
    char found[80];

    if (!tool || strcmp(tool, "chex-predict") != 0 || json_array_size(models) == 0)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' is not a file of chex-predict", file);
    if (!json_is_object(json_object_get(top, "maps")))
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' has no maps: give chex-predict --maps", file);
    if (json_array_size(models) != 1)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' has results of several models", file);
    JSON_TAKE(json_array_get(models, 0), "sha256", found);
    if (strcmp(found, sha256) != 0)
        return error_set(err, CHEX_ERR_INCOMPATIBLE,
                         "'%s' has maps of other weights than the predictions of the run: SHA-256 %.64s, not %.64s",
                         file, found, sha256);
    return CHEX_OK;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

struct map_images {
    struct map_file *out;
    int status; /* column of predictions.csv */
};

static enum chex_status
on_header(void *context, const struct table_row *row, size_t image, struct chex_error *err)
{
    static const char *const names[] = {"status", NULL};
    struct map_images *m = context;

    (void)image;
    m->status = table_column(row, names);
    return m->status >= 0 ? CHEX_OK : table_fail(row, err, "no column 'status'");
}

/* A refused image has no map. */
static enum chex_status
on_image(void *context, const struct table_row *row, size_t at, struct chex_error *err)
{
    struct map_images *m = context;

    (void)at;
    if ((size_t)m->status >= row->count)
        return table_fail(row, err, "no status");
    m->out->covered += strcmp(row->field[m->status], "refused") != 0;
    return CHEX_OK;
}

/* Count the images of the report that have a map. */
static enum chex_status
count_images(const char *folder, const struct predictions *p, struct map_file *out, struct chex_error *err)
{
    char file[FILE_PATH];
    struct map_images m = {.out = out};
    struct image_table t = {.p = p, .header = on_header, .image = on_image, .context = &m};
    enum chex_status status;

    snprintf(file, sizeof(file), "%.3000s/predictions.csv", folder);
    status = image_file_read(file, &t, err);
    if ((status == CHEX_OK && out->covered == 0 && out->images > 0) ||
        (status == CHEX_ERR_INCOMPATIBLE && t.found == 0 && t.others > 0))
        return error_set(err, CHEX_ERR_INCOMPATIBLE,
                         "'%s' has maps of other images than the report%s%s%s: names must be equal, such as '%.80s'; "
                         "--split names the split of the report, and of chex-predict",
                         folder, out->split[0] ? ", of the split '" : "", out->split, out->split[0] ? "'" : "",
                         p->image[0]);
    if (status == CHEX_OK && (out->covered > out->images || out->images > t.found + t.others))
        return error_set(err, CHEX_ERR_INCOMPATIBLE,
                         "'%s' does not belong to predictions.json: it has %zu images, and maps of %llu are counted",
                         file, t.found + t.others, (unsigned long long)out->images);
    return status;
}

/* The mean of predictions.json counts the boxes of all findings, also of those that it leaves out. */
static void
count_measured(unsigned outputs, struct map_file *out)
{
    uint64_t boxes = 0;
    unsigned k;

    for (k = 0; k < outputs; k++)
        if (out->finding[k].boxes.enough) {
            boxes += out->finding[k].boxes.boxes;
            out->measured++;
        }
    out->mean.boxes = out->measured > 1 && out->mean.boxes > 0 ? boxes : 0;
}

static enum chex_status
take_findings(const json_t *top, const char *folder, const char *const *name, unsigned outputs, struct map_file *out,
              struct chex_error *err)
{
    const json_t *maps = json_object_get(top, "maps"), *boxes = json_object_get(top, "boxes");
    const json_t *each = json_object_get(json_object_get(maps, "random_weights"), "findings");
    uint64_t left = MAP_FILE_SHEETS;
    enum chex_status status = CHEX_OK;
    unsigned k;

    for (k = 0; status == CHEX_OK && k < outputs; k++) {
        struct map_finding *f = &out->finding[k];

        f->correlation = take_correlation(find_named(each, "name", name[k]));
        take_boxes(find_named(json_object_get(boxes, "findings"), "name", name[k]), &f->boxes);
        status = read_sheet(folder, find_named(json_object_get(maps, "sheets"), "finding", name[k]), out, f, &left,
                            err);
    }
    count_measured(outputs, out);
    return status;
}

static void
take_result(const json_t *top, struct map_file *out)
{
    const json_t *maps = json_object_get(top, "maps"), *boxes = json_object_get(top, "boxes");
    const json_t *random = json_object_get(maps, "random_weights");

    out->images = json_take_count(maps, "images");
    JSON_TAKE(top, "split", out->split);
    out->part = json_take_count(top, "part");
    out->parts = json_take_count(top, "parts");
    out->compared = json_take_count(random, "images");
    out->correlation = take_correlation(random);
    out->synthetic = json_is_true(json_object_get(top, "synthetic"));
    out->box_images = json_take_count(json_object_get(boxes, "list"), "images");
    out->box_synthetic = json_is_true(json_object_get(boxes, "synthetic"));
    take_boxes(json_object_get(boxes, "mean"), &out->mean);
}

enum chex_status
map_file_read(const char *folder, const struct predictions *p, const char *sha256, struct map_file *out,
              struct chex_error *err)
{
    char file[FILE_PATH];
    json_t *top = NULL;
    enum chex_status status;

    if (strlen(folder) > FOLDER_LONGEST)
        return error_set(err, CHEX_ERR_USAGE, "the path of --maps is too long");
    snprintf(file, sizeof(file), "%s/predictions.json", folder);
    status = json_file_read(file, "chex-predict", &top, err);
    if (status == CHEX_ERR_MISSING && (err->cause == ENOENT || err->cause == ENOTDIR))
        status = error_set(err, status,
                           "'%s' has no predictions.json: --maps takes the folder -o of chex-predict --maps", folder);
    if (status == CHEX_OK)
        status = check_model(top, file, sha256, err);
    if (status == CHEX_OK) {
        take_result(top, out);
        status = count_images(folder, p, out, err);
    }
    if (status == CHEX_OK)
        status = take_findings(top, folder, (const char *const *)p->finding, p->outputs, out, err);
    json_decref(top);
    return status;
}

void
map_file_release(struct map_file *m)
{
    unsigned k;

    for (k = 0; k < METRICS_OUTPUTS; k++)
        buffer_release(&m->finding[k].sheet);
}
