/*
 * predict_maps.c - see predict_maps.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_maps.h"

#include "base/ascii.h"
#include "base/sha256.h"
#include "io/file.h"
#include "predict/predict_write.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_LEFT 80 /* bytes of a long name that stay, of an image and of a finding */

/* ---- options ----------------------------------------------------------------------------------------------------- */

enum chex_status
maps_check_option(const char *option, const struct predict_options *o, struct chex_error *err)
{
    if (!o->out)
        return error_set(err, CHEX_ERR_USAGE, "%s writes files: name a folder with -o", option);
    if (o->runs > 1)
        return error_set(err, CHEX_ERR_USAGE, "%s takes one RUN: a mean of probabilities has no map in logits", option);
    if (o->tta != TTA_NONE)
        return error_set(err, CHEX_ERR_USAGE, "%s takes no --tta: each view has a map of its own", option);
    return CHEX_OK;
}

enum chex_status
maps_check_options(const struct predict_options *o, struct chex_error *err)
{
    if (!o->maps && (o->map_findings || o->map_scale > 0 || o->map_sheet))
        return error_set(err, CHEX_ERR_USAGE, "%s is for the pictures of --maps",
                         o->map_findings ? "--finding"
                         : o->map_sheet  ? "--sheet"
                                         : "--map-scale");
    return o->maps ? maps_check_option("--maps", o, err) : CHEX_OK;
}

static enum chex_status
choose_findings(const char *list, const struct findings *known, bool *drawn, struct chex_error *err)
{
    const char *at = list;

    while (true) {
        size_t length = strcspn(at, ",");
        unsigned k = 0;

        while (k < known->count && (strlen(known->name[k]) != length || memcmp(known->name[k], at, length) != 0))
            k++;
        if (k == known->count)
            return error_set(err, CHEX_ERR_USAGE, "--finding: the model has no finding '%.*s'", (int)length, at);
        drawn[k] = true;
        if (at[length] == '\0')
            return CHEX_OK;
        at += length + 1;
    }
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool
is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || strchr("-_.", c) != NULL;
}

/*
 * Append the name with other bytes as %XX, as far as it fits.  Returns whether all of it fits.  A name of an image may
 * contain dots, but not begin with one; a finding may not, so that it begins at the last dot but one of a file name.
 */
static bool
append_name(const char *name, bool dots, size_t most, char *out)
{
    size_t used = strlen(out), i;

    for (i = 0, most += used; name[i]; i++) {
        bool plain = is_plain(name[i]) && !(name[i] == '.' && (i == 0 || !dots));

        if (used + (plain ? 1 : 3) > most)
            return false;
        used += (size_t)snprintf(out + used, 4, plain ? "%c" : "%%%02X", (unsigned char)name[i]);
    }
    return true;
}

/*
 * Make the name of a file in the folder.  A long name is cut, and a part of the SHA-256 of the whole name follows.
 * Without an image: the name of a contact sheet; the plus is in no name of an image.
 */
static enum chex_status
make_name(const char *image, const char *finding, const char *suffix, char out[MAP_FILE_NAME], struct chex_error *err)
{
    bool fits;

    snprintf(out, MAP_FILE_NAME, "%s", image ? "" : "sheet");
    fits = !image || append_name(image, true, NAME_LEFT, out);
    if (finding) {
        strcat(out, image ? "." : "+"); /* NAME_LEFT leaves room for all of this */
        fits &= append_name(finding, false, NAME_LEFT, out);
    }
    if (!fits) {
        struct digest *digest = digest_new();
        uint8_t hash[DIGEST_SIZE];
        char hex[DIGEST_HEX];

        if (!digest)
            return error_memory(err);
        digest_start(digest);
        if (image)
            digest_add(digest, image, strlen(image) + 1);
        digest_add(digest, finding ? finding : "", finding ? strlen(finding) : 0);
        digest_finish(digest, hash);
        digest_free(digest);
        digest_hex(hash, sizeof(hash), hex);
        snprintf(out + strlen(out), 34, "~%.32s", hex);
    }
    strcat(out, suffix);
    return CHEX_OK;
}

enum chex_status
maps_sheet_name(const char *finding, char out[MAP_FILE_NAME], struct chex_error *err)
{
    return make_name(NULL, finding, ".png", out, err);
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

/* Remove the files of an earlier result. */
static enum chex_status
remove_old(const struct folder *folder, struct chex_error *err)
{
    int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    enum chex_status status = CHEX_OK;
    const struct dirent *entry;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return error_set(err, CHEX_ERR_WRITE, "cannot list '%s'", folder->path);
    }
    while (status == CHEX_OK && (entry = readdir(dir)) != NULL)
        if (picture_name_ends(entry->d_name, ".png") || picture_name_ends(entry->d_name, ".npy"))
            status = folder_remove(folder, entry->d_name, err);
    closedir(dir);
    return status;
}

/* Open the folder of the maps in that of the results. */
static enum chex_status
open_maps(const char *out, bool create, struct folder *folder, struct chex_error *err)
{
    struct buffer path = {0};
    enum chex_status status = buffer_printf(&path, err, "%s/" PREDICT_MAPS, out);

    if (status == CHEX_OK)
        status = buffer_append(&path, "", 1, err);
    if (status == CHEX_OK)
        status = folder_open((const char *)path.data, create, folder, err);
    buffer_release(&path);
    return status;
}

enum chex_status
maps_remove(const struct folder *result, struct chex_error *err)
{
    struct folder folder = {.fd = -1};
    enum chex_status status;
    struct stat st;

    if (fstatat(result->fd, PREDICT_MAPS, &st, 0) != 0 || !S_ISDIR(st.st_mode))
        return CHEX_OK;
    status = open_maps(result->path, false, &folder, err);
    if (status != CHEX_OK)
        return status == CHEX_ERR_MEMORY ? status : error_context(err, CHEX_ERR_WRITE, "old maps");
    status = remove_old(&folder, err);
    folder_close(&folder);
    (void)unlinkat(result->fd, PREDICT_MAPS, AT_REMOVEDIR); /* fails if it has another file */
    return status;
}

static enum chex_status
open_folder(struct map_writer *w, struct chex_error *err)
{
    struct folder above = {.fd = -1};
    enum chex_status status = folder_open(w->options->out, true, &above, err);

    if (status == CHEX_OK)
        status = folder_remove(&above, PREDICT_JSON, err); /* the result is not complete until this run is */
    folder_close(&above);
    if (status == CHEX_OK)
        status = open_maps(w->options->out, true, &w->folder, err);
    return status == CHEX_OK ? remove_old(&w->folder, err) : status;
}

static enum chex_status
start_check(struct map_writer *w, struct chex_error *err)
{
    size_t pixels = (size_t)w->models->size * w->models->size;

    w->check.correlation = (double)NAN;
    w->check.pixels = calloc(MAP_CHECK_IMAGES, pixels);
    w->check.map = calloc(MAP_CHECK_IMAGES * w->head.map_floats, sizeof(float));
    return w->check.pixels && w->check.map ? CHEX_OK : error_memory(err);
}

enum chex_status
maps_begin(const struct predict_options *o, const struct models *models, const struct flags *flags,
           const struct images *images, bool synthetic, struct map_writer *out, struct chex_error *err)
{
    const struct predict_model *model = &models->model[0];
    struct crop view[EVALUATE_VIEWS];
    enum chex_status status = map_grid_of(model->graph, &out->grid, err);
    unsigned k;

    out->options = o;
    out->models = models;
    out->flags = flags;
    out->count = images->count;
    out->synthetic = synthetic;
    out->folder.fd = -1;
    evaluate_views(TTA_NONE, model->state.side, models->size, view);
    out->crop = view[0];
    (void)graph_find_head(model->graph, &out->head); /* map_grid_of() has found it */
    if (status == CHEX_OK && o->map_findings)
        status = choose_findings(o->map_findings, &model->findings, out->drawn, err);
    for (k = 0; status == CHEX_OK && o->map_sheet && flags->findings > 0 && k < model->findings.count; k++)
        if (out->drawn[k] && isnan(flags->threshold[k]))
            status = error_set(err, CHEX_ERR_USAGE, "--sheet: the model has no threshold for %s: see --threshold FILE",
                               model->findings.name[k]);
    if (status == CHEX_OK && o->map_sheet)
        status = sheets_begin(images, &model->findings, flags, (size_t)models->size * models->size, out->head.pixels,
                              &out->sheets, err);
    if (status == CHEX_OK)
        status = start_check(out, err);
    return status == CHEX_OK ? open_folder(out, err) : status;
}

void
maps_end(struct map_writer *w)
{
    folder_close(&w->folder);
    canvas_release(&w->canvas);
    sheets_release(&w->sheets);
    buffer_release(&w->file);
    free(w->check.pixels);
    free(w->check.map);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static enum chex_status
put_file(struct map_writer *w, const char *image, const char *finding, const char *suffix, struct chex_error *err)
{
    char name[MAP_FILE_NAME];
    enum chex_status status = make_name(image, finding, suffix, name, err);

    return status == CHEX_OK ? safe_file_put(&w->folder, name, w->file.data, w->file.size, err) : status;
}

#define NPY_HEADER 128

uint64_t
maps_file_bytes(const struct graph_head *head)
{
    return NPY_HEADER + (uint64_t)head->map_floats * sizeof(float);
}

/* NumPy's format 1.0: the header is padded to a multiple of 64 bytes; numbers are little-endian. */
static enum chex_status
write_numbers(struct map_writer *w, const char *image, const float *map, struct chex_error *err)
{
    char header[NPY_HEADER - 10], text[NPY_HEADER - 10];
    int used = snprintf(text, sizeof(text), "{'descr': '<f4', 'fortran_order': False, 'shape': (%u, %u, %u), }",
                        w->head.outputs, w->head.height, w->head.width);
    enum chex_status status;
    size_t i;

    memset(header, ' ', sizeof(header));
    memcpy(header, text, (size_t)used);
    header[sizeof(header) - 1] = '\n';
    w->file.size = 0;
    status = buffer_append(&w->file, "\x93NUMPY\x01\x00\x76\x00", 10, err); /* 0x76: 118 */
    if (status == CHEX_OK)
        status = buffer_append(&w->file, header, sizeof(header), err);
    for (i = 0; status == CHEX_OK && i < w->head.map_floats; i++) {
        uint8_t bytes[4];
        uint32_t bits;

        memcpy(&bits, &map[i], sizeof(bits));
        bytes[0] = (uint8_t)bits;
        bytes[1] = (uint8_t)(bits >> 8);
        bytes[2] = (uint8_t)(bits >> 16);
        bytes[3] = (uint8_t)(bits >> 24);
        status = buffer_append(&w->file, bytes, sizeof(bytes), err);
    }
    return status == CHEX_OK ? put_file(w, image, NULL, ".npy", err) : status;
}

/* What all pictures of a finding have in common. */
static struct map_picture
picture_of(const struct map_writer *w, unsigned k)
{
    const struct predict_model *m = &w->models->model[0];
    const struct flags *f = w->flags;
    bool from_model = f->rule && strcmp(f->rule, "file") != 0 && f->calibration;

    return (struct map_picture){
        .grid = &w->grid,
        .size = w->models->size,
        .crop = w->crop,
        .side = m->state.side,
        .scale = w->options->map_scale > 0 ? w->options->map_scale : MAP_SCALE,
        .synthetic = w->synthetic,
        .finding = m->findings.name[k],
        .threshold = f->threshold[k],
        .chosen_on = from_model ? f->calibration->split : NULL,
        .bias = (double)m->params[m->graph->param[w->head.linear->bias].offset + k],
    };
}

static enum chex_status
write_picture(struct map_writer *w, const char *image, unsigned k, const uint8_t *pixels, float logit,
              float probability, const float *map, const struct map_box *box, struct chex_error *err)
{
    struct map_picture p = picture_of(w, k);
    enum chex_status status;

    p.image = image;
    p.pixels = pixels;
    p.map = map + k * w->head.pixels;
    p.logit = (double)logit;
    p.probability = (double)probability;
    p.box = box && box[k].right > box[k].left ? &box[k] : NULL;
    w->file.size = 0;
    status = map_picture_draw(&p, &w->canvas, &w->file, err);
    if (status == CHEX_OK)
        status = put_file(w, image, p.finding, ".png", err);
    w->pictures += status == CHEX_OK;
    return status;
}

bool
maps_has_sheet(const struct map_writer *w, unsigned finding)
{
    return w->options->map_sheet && !isnan(w->flags->threshold[finding]) &&
           (!w->options->map_findings || w->drawn[finding]);
}

enum chex_status
maps_write_sheets(struct map_writer *w, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    unsigned k;

    for (k = 0; status == CHEX_OK && k < w->head.outputs; k++) {
        const struct map_picture base = picture_of(w, k);

        if (!maps_has_sheet(w, k))
            continue;
        w->file.size = 0;
        status = sheets_draw(&w->sheets, k, &base, &w->canvas, &w->file, err);
        if (status == CHEX_OK)
            status = put_file(w, NULL, base.finding, ".png", err);
    }
    return status;
}

/* Keep an image for the check, if it is one of those that were chosen by their numbers. */
static void
keep_for_check(struct map_writer *w, uint32_t row, const uint8_t *pixels, const float *map)
{
    size_t images = w->count < MAP_CHECK_IMAGES ? w->count : MAP_CHECK_IMAGES, i;
    size_t bytes = (size_t)w->models->size * w->models->size;

    for (i = 0; i < images; i++) {
        if (i * w->count / images != row)
            continue;
        memcpy(w->check.pixels + i * bytes, pixels, bytes);
        memcpy(w->check.map + i * w->head.map_floats, map, w->head.map_floats * sizeof(*map));
        w->check.taken[i] = true;
    }
}

static bool
is_drawn(const struct map_writer *w, unsigned k, double probability)
{
    if (w->options->map_findings)
        return w->drawn[k];
    return !isnan(w->flags->threshold[k]) && flags_is_positive(w->flags, k, probability);
}

enum chex_status
maps_write(struct map_writer *w, uint32_t row, const char *name, const uint8_t *pixels, const float *logit,
           const float *probability, const float *map, const struct map_box *box, struct chex_error *err)
{
    enum chex_status status = write_numbers(w, name, map, err);
    unsigned k;

    for (k = 0; status == CHEX_OK && k < w->head.outputs; k++)
        if (is_drawn(w, k, (double)probability[k]))
            status = write_picture(w, name, k, pixels, logit[k], probability[k], map, box, err);
    for (k = 0; w->options->map_sheet && status == CHEX_OK && k < w->head.outputs; k++)
        status = sheets_add(&w->sheets, row, k, name, (double)probability[k], pixels, map + k * w->head.pixels, err);
    keep_for_check(w, row, pixels, map);
    w->images++;
    return status;
}
