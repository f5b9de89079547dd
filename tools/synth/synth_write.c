/*
 * synth_write.c - see synth_write.h
 *
 * Each thread takes the next image number from a counter, and paints, encodes and writes that image.  The threads share
 * only that counter and the sums, and no image depends on another one.
 *
 * The folder might contain the real data set, which must not be overwritten.  So this program writes to a folder only
 * if it has none of these files, or if its lists and its CSV, as far as they exist, are exactly those that this run
 * would write.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "synth/synth_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number_format.h"
#include "base/progress.h"
#include "base/threads.h"
#include "io/file.h"
#include "labels/synthetic_note.h"
#include "plan/split.h"
#include "synth/synth_boxes.h"
#include "synth/synth_png.h"
#include "synth/synth_scene.h"

enum { FOR_FILTERS = 61 };

enum { TEXT_NOTE, TEXT_TRAIN, TEXT_TEST, TEXT_CSV, TEXTS };

/* Returns the file name of a text. */
static const char *
text_name(const struct population *p, int k)
{
    static const char *const names[] = {SYNTHETIC_NOTE, SPLIT_LIST_TRAIN, SPLIT_LIST_TEST};

    return k == TEXT_CSV ? population_csv_name(p) : names[k];
}

static const char note[] =
    "The images and labels in this folder are SYNTHETIC: chex-synth drew them.  The people do not\n"
    "exist, and the images show nothing about any disease.  chex-convert looks for this file next\n"
    "to the label file and the images, and the manifest of the shards says so then.\n";

/* What the threads share. */
struct work {
    struct synth_job *job;
    struct folder images;
    struct progress progress; /* of the calling thread */
    atomic_uint_fast64_t bytes;
    pthread_mutex_t lock; /* protects `boxes` */
    struct synth_boxes boxes;
};

/* The memory of one thread. */
struct studio {
    struct film_canvas canvas;
    struct finding_boxes boxes;
    struct buffer png;
    uint8_t pixels[];
};

static enum chex_status
write_file(const struct folder *folder, const char *name, const struct buffer *data, struct chex_error *err)
{
    struct safe_file *file;
    enum chex_status status = safe_file_create(folder, name, SAFE_FILE_NEW, 0, &file, err);

    if (status != CHEX_OK)
        return status;
    status = safe_file_write(file, data->data, data->size, err);
    if (status != CHEX_OK) {
        safe_file_free(file);
        return status;
    }
    return safe_file_commit(file, false, err);
}

/* Write an image into w->images, or into a folder there that belongs to its name. */
static enum chex_status
write_image(const struct work *w, const struct study *study, const struct buffer *png, struct chex_error *err)
{
    char name[STUDY_NAME], *slash, path[PATH_MAX];
    struct folder folder;
    enum chex_status status;

    study_name(w->job->population, study, name);
    slash = strrchr(name, '/');
    if (!slash)
        return write_file(&w->images, name, png, err);
    *slash = '\0';
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", w->images.path, name) >= sizeof(path))
        return error_set(err, CHEX_ERR_USAGE, "the path of '%s' is too long", name);
    status = folder_open(path, true, &folder, err);
    if (status != CHEX_OK)
        return status;
    status = write_file(&folder, slash + 1, png, err);
    folder_close(&folder);
    return status;
}

static enum chex_status
keep_boxes(struct work *w, const struct finding_boxes *boxes, const struct scene *scene, uint32_t study,
           struct chex_error *err)
{
    enum chex_status status;

    pthread_mutex_lock(&w->lock);
    status = boxes_add(&w->boxes, boxes, scene, study, w->job->size, err);
    pthread_mutex_unlock(&w->lock);
    return status;
}

static enum chex_status
make_image(struct work *w, struct studio *studio, uint32_t item, struct chex_error *err)
{
    const struct synth_job *job = w->job;
    const struct study *study = &job->population->study[item];
    bool test = job->population->person[study->person].test;
    struct scene scene;
    enum chex_status status;

    scene_make(job->population, study, &scene);
    body_draw(&studio->canvas, &scene);
    studio->boxes.findings = 0;
    findings_draw(&studio->canvas, &scene, test ? &studio->boxes : NULL);
    bones_draw(&studio->canvas, &scene);
    film_expose(&studio->canvas, &scene, job->size, studio->pixels);
    status = test ? keep_boxes(w, &studio->boxes, &scene, item, err) : CHEX_OK;
    if (status == CHEX_OK)
        status = synth_png(studio->pixels, job->size, study->form, random_hash(scene.study_key, FOR_FILTERS),
                           &studio->png, err);
    if (status != CHEX_OK)
        return status;
    atomic_fetch_add(&w->bytes, studio->png.size);
    return write_image(w, study, &studio->png, err);
}

static enum chex_status
work(void *context, void *studio, size_t item, struct chex_error *err)
{
    struct work *w = context;

    return make_image(w, studio, (uint32_t)item, err);
}

static void *
studio_new(void *context)
{
    const struct work *w = context;

    return calloc(1, sizeof(struct studio) + (size_t)w->job->size * w->job->size);
}

static void
studio_free(void *worker)
{
    struct studio *studio = worker;

    buffer_release(&studio->png);
    free(studio);
}

static void
show_progress(void *context, size_t images)
{
    struct work *w = context;
    struct progress *p = &w->progress;
    char done[FORMAT_TEXT], total[FORMAT_TEXT], rate[FORMAT_TEXT], left[FORMAT_TEXT];
    char text[256];

    if (!progress_line_due(w->job->line))
        return;
    progress_update(p, images);
    snprintf(text, sizeof(text), "synth    %3u %%  %s/%s  %s img/s  %s left", (unsigned)(100 * p->done / p->total),
             format_count(p->done, done), format_count(p->total, total), format_count((uint64_t)p->rate, rate),
             progress_left(p) < 0 ? "?" : format_seconds(progress_left(p), left));
    progress_line_update(w->job->line, text);
}

static enum chex_status
make_images(struct work *w, struct chex_error *err)
{
    struct parallel parallel = {
        .count = w->job->population->study_count,
        .threads = w->job->threads,
        .work = work,
        .worker_new = studio_new,
        .worker_free = studio_free,
        .context = w,
        .tick = show_progress,
    };
    enum chex_status status;

    progress_start(&w->progress, w->job->population->study_count);
    status = parallel_for(&parallel, err);
    w->job->bytes = atomic_load(&w->bytes);
    return status;
}

/* ---- is this folder ours? -------------------------------------------------------------------------------------- */

/* Sets *found if the file exists; other content is an error. */
static enum chex_status
compare_text(const struct folder *folder, const char *name, const struct buffer *text, bool *found,
             struct chex_error *err)
{
    struct buffer there = {0};
    enum chex_status status = file_read(folder->fd, name, text->size, &there, err);

    *found = status != CHEX_ERR_MISSING;
    /* a longer file, or another kind of file, differs too */
    if (chex_status_is_data(status) ||
        (status == CHEX_OK && (there.size != text->size || memcmp(there.data, text->data, text->size) != 0)))
        status = error_set(err, CHEX_ERR_INCOMPATIBLE,
                           "'%s' holds another data set (its %s differs); choose another folder, or remove that one",
                           folder->path, name);
    else if (status == CHEX_ERR_MISSING)
        status = CHEX_OK;
    else if (status != CHEX_OK)
        error_context(err, status, "%s/%s", folder->path, name);
    buffer_release(&there);
    return status;
}

/* Fails if the folder "images" contains an entry that is not hidden. */
static enum chex_status
refuse_unknown_images(const struct folder *folder, struct chex_error *err)
{
    int fd = openat(folder->fd, SYNTH_IMAGES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    bool empty = true;

    if (fd < 0 && errno == ENOENT)
        return CHEX_OK;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return error_system(err, CHEX_ERR_WRITE, errno, "cannot open the folder '%s/%s'", folder->path, SYNTH_IMAGES);
    }
    while ((entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            empty = false;
    closedir(dir);
    if (!empty)
        return error_set(err, CHEX_ERR_INCOMPATIBLE,
                         "'%s/%s' holds files and no list says that they were made by this command; "
                         "choose another folder, or remove them",
                         folder->path, SYNTH_IMAGES);
    return CHEX_OK;
}

static enum chex_status
check_folder(const struct population *p, const struct folder *folder, const struct buffer text[TEXTS],
             struct chex_error *err)
{
    bool found[TEXTS];
    enum chex_status status;
    int k;

    for (k = 0; k < TEXTS; k++) {
        status = compare_text(folder, text_name(p, k), &text[k], &found[k], err);
        if (status != CHEX_OK)
            return status;
    }
    if (found[TEXT_TRAIN])
        return CHEX_OK;
    if (faccessat(folder->fd, SYNTH_BOXES, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return error_set(err, CHEX_ERR_INCOMPATIBLE,
                         "'%s' holds a " SYNTH_BOXES " of another data set; choose another folder, or remove that file",
                         folder->path);
    return refuse_unknown_images(folder, err);
}

/* Returns true for a name that is neither hidden nor written by this program; the label file is not looked at. */
static bool
is_foreign(const char *name)
{
    int k;

    for (k = 0; k < TEXT_CSV && strcmp(name, text_name(NULL, k)) != 0; k++)
        ;
    return k == TEXT_CSV && name[0] != '.' && strcmp(name, SYNTH_IMAGES) != 0 && strcmp(name, SYNTH_BOXES) != 0;
}

static void
note_foreign(const struct synth_job *job, const struct folder *folder)
{
    struct folder_names names = {.count = 0};
    const char *first = NULL;
    size_t count = 0;
    char n[FORMAT_THINGS];

    if (!job->quiet && folder_list(folder, is_foreign, &names, NULL) == CHEX_OK)
        for (size_t i = 0; i < names.count; i++)
            if (strcmp(names.name[i], population_csv_name(job->population)) != 0) {
                first = first ? first : names.name[i];
                count++;
            }
    if (first)
        progress_line_print(job->line, "note     '%s' holds %s, such as '%s'", folder->path,
                            format_things(count, "other file", n), first);
    folder_names_release(&names);
}

/* ---- all together --------------------------------------------------------------------------------------------- */

/* Say which labels no image shows. */
static enum chex_status
make_note(const struct population *p, struct buffer *out, struct chex_error *err)
{
    const struct findings *list = &p->labels.findings;
    enum chex_status status = buffer_append(out, note, strlen(note), err);
    bool any = false;

    for (unsigned k = 0; k < list->count && status == CHEX_OK; k++)
        if (p->drawing[k] == NOT_DRAWN) {
            status = buffer_printf(out, err, "%s%s",
                                   any ? ", "
                                       : "No image shows these findings; their labels are "
                                         "random: ",
                                   list->name[k]);
            any = true;
        }
    if (status == CHEX_OK && any)
        status = buffer_printf(out, err, ".\n");
    if (status == CHEX_OK && p->labels.kind == SYNTH_CHEXPERT)
        status = buffer_printf(out, err,
                               "Labels that are unknown (-1) or not mentioned (empty) were chosen at random.\n");
    return status;
}

static enum chex_status
make_texts(const struct population *p, struct buffer text[TEXTS], struct chex_error *err)
{
    enum chex_status status = make_note(p, &text[TEXT_NOTE], err);

    if (status == CHEX_OK)
        status = population_list(p, false, &text[TEXT_TRAIN], err);
    if (status == CHEX_OK)
        status = population_list(p, true, &text[TEXT_TEST], err);
    return status == CHEX_OK ? population_csv(p, &text[TEXT_CSV], err) : status;
}

static enum chex_status
open_images(const struct folder *folder, struct folder *out, struct chex_error *err)
{
    size_t length = strlen(folder->path) + sizeof("/" SYNTH_IMAGES);
    char *path = malloc(length);
    enum chex_status status;

    if (!path)
        return error_memory(err);
    snprintf(path, length, "%s/%s", folder->path, SYNTH_IMAGES);
    status = folder_open(path, true, out, err);
    free(path);
    return status;
}

static enum chex_status
write_boxes(struct work *w, const struct folder *folder, struct chex_error *err)
{
    struct buffer text = {0};
    enum chex_status status = boxes_csv(&w->boxes, w->job->population, &text, err);

    if (status == CHEX_OK)
        status = safe_file_put(folder, SYNTH_BOXES, text.data, text.size, err);
    buffer_release(&text);
    return status;
}

static enum chex_status
write_all(struct synth_job *job, struct folder *folder, const struct buffer text[TEXTS], struct chex_error *err)
{
    struct work w = {.job = job, .lock = PTHREAD_MUTEX_INITIALIZER};
    enum chex_status status = folder_remove(folder, population_csv_name(job->population), err);
    int k;

    for (k = TEXT_NOTE; k <= TEXT_TEST && status == CHEX_OK; k++)
        status = safe_file_put(folder, text_name(job->population, k), text[k].data, text[k].size, err);
    if (status == CHEX_OK)
        status = open_images(folder, &w.images, err);
    if (status != CHEX_OK)
        return status;
    status = make_images(&w, err);
    folder_close(&w.images);
    if (status == CHEX_OK)
        status = write_boxes(&w, folder, err);
    boxes_release(&w.boxes);
    pthread_mutex_destroy(&w.lock);
    if (status == CHEX_OK)
        status = safe_file_put(folder, population_csv_name(job->population), text[TEXT_CSV].data, text[TEXT_CSV].size,
                               err);
    return status;
}

enum chex_status
synth_write(struct synth_job *job, struct chex_error *err)
{
    struct buffer text[TEXTS] = {0};
    struct folder folder = {.fd = -1};
    enum chex_status status = make_texts(job->population, text, err);
    int k;

    if (status == CHEX_OK)
        status = folder_open(job->folder, true, &folder, err);
    if (status == CHEX_OK)
        status = check_folder(job->population, &folder, text, err);
    if (status == CHEX_OK)
        note_foreign(job, &folder);
    if (status == CHEX_OK)
        status = write_all(job, &folder, text, err);
    folder_close(&folder);
    for (k = 0; k < TEXTS; k++)
        buffer_release(&text[k]);
    return status;
}
