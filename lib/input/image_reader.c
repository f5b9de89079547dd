/*
 * image_reader.c - see image_reader.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "input/image_reader.h"

#include "input/stored_reader.h"
#include "io/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Files up to this size are read without asking for their size first. */
#define USUAL_FILE (1u << 20)

/* The most threads that begin with loose files: more threads would only wait for the same disk. */
#define MAX_FILES_FIRST    16
#define MAX_ARCHIVES_FIRST 8

#define NOT_PLANNED UINT32_MAX

/* The item numbers of archives, for the order of errors: after all images, in the order of the archives (threads.h). */
#define FIRST_ARCHIVE_ITEM (UINT64_C(1) << 63)

/* The first image that an archive contained for a row. */
struct arrival {
    uint64_t hash;    /* 0: none yet */
    uint32_t archive; /* the archive that contained it */
};

/* ---- initialisation ------------------------------------------------------------------------------------------- */

static unsigned
at_most(size_t n, size_t limit)
{
    return (unsigned)(n < limit ? n : limit);
}

static enum chex_status
map_rows(struct image_reader *r, struct chex_error *err)
{
    size_t i, rows = r->labels->count ? r->labels->count : 1;

    r->planned_of = malloc(rows * sizeof(*r->planned_of));
    r->arrival = calloc(rows, sizeof(*r->arrival));
    if (!r->planned_of || !r->arrival)
        return error_memory(err);
    for (i = 0; i < r->labels->count; i++)
        r->planned_of[i] = NOT_PLANNED;
    for (i = 0; i < r->planned_count; i++)
        r->planned_of[r->planned[i].row] = (uint32_t)i;
    return CHEX_OK;
}

enum chex_status
image_reader_init(struct image_reader *r, unsigned threads, struct chex_error *err)
{
    /*
     * Compared with decoding, decompressing an archive takes at most a sixth of the time, and opening a file over a
     * network takes about the same time.
     */
    unsigned files_first = r->source->count > 0 ? at_most(1 + threads / 2, MAX_FILES_FIRST) : 0;

    r->archives_first = at_most(r->source->archive_count, at_most(1 + threads / 4, MAX_ARCHIVES_FIRST));
    r->wanted = r->archives_first + files_first > 0 ? r->archives_first + files_first : 1;
    hash_key_make(&r->key);
    pthread_mutex_init(&r->lock, NULL);
    if (r->source->dataset_count > 0)
        return stored_reader_new(r, threads, &r->stored, err);
    return r->source->archive_count > 0 ? map_rows(r, err) : CHEX_OK;
}

void
image_reader_release(struct image_reader *r)
{
    stored_reader_free(r->stored);
    free(r->planned_of);
    free(r->arrival);
    pthread_mutex_destroy(&r->lock);
}

/* ---- loose files ---------------------------------------------------------------------------------------------- */

/* Read a loose file and push it.  Returns false if the run is ending. */
static bool
read_file(struct image_reader *r, const struct planned_image *image, const struct source_file *file)
{
    uint64_t room = USUAL_FILE, max_size = USUAL_FILE;
    struct queue_entry *e;

    while ((e = planned_image_reserve(r->queue, image, room)) != NULL) {
        struct stat st;

        if (source_path(r->source, file, e->path, sizeof(e->path), &e->reason) == CHEX_OK)
            file_read(AT_FDCWD, e->path, max_size, &e->bytes, &e->reason);
        if (e->reason.status != CHEX_ERR_LIMIT || max_size > USUAL_FILE)
            break;
        /* A large file: read it again with enough room. */
        max_size = r->max_size;
        if (stat(e->path, &st) == 0 && st.st_size > USUAL_FILE && (uint64_t)st.st_size <= r->max_size)
            room = max_size = (uint64_t)st.st_size;
        queue_return(r->queue, e);
    }
    if (!e)
        return false;
    if (e->reason.status != CHEX_OK)
        e->bytes.size = 0;
    queue_push(r->queue, e);
    return true;
}

static void
read_files(struct image_reader *r)
{
    size_t i;

    while ((i = atomic_fetch_add(&r->next_file, 1)) < r->planned_count) {
        const struct planned_image *image = &r->planned[i];
        const struct source_file *file = NULL;

        if (image->wanted)
            file = source_find(r->source, r->labels->entry[image->row].name);
        if (file && !read_file(r, image, file))
            return;
    }
}

/* ---- two images with the same name ---------------------------------------------------------------------------- */

static enum chex_status
fail_twice(const struct source *source, const char *name, const char *a, const char *b, struct chex_error *err)
{
    return error_set(err, CHEX_ERR_USAGE, "'%s' found twice with different content: '%s' and '%s' (%s)", name, a, b,
                     source->apart ? source->apart : "leave one out, and start again with --force");
}

/* Hash an image.  The result is never 0.  For an image that is too large to be read, only the size is hashed. */
static uint64_t
hash_of(const struct hash_key *key, const struct queue_entry *e, uint64_t size)
{
    uint64_t sum = e->bytes.size > 0 ? keyed_hash(key, e->bytes.data, e->bytes.size) : 0;

    return (sum ^ size << 1) | UINT64_C(1) << 63;
}

/* Set *same if the loose file at `path` has the same content.  A missing or irregular file differs. */
static enum chex_status
compare_with_file(const struct image_reader *r, const struct queue_entry *e, uint64_t size, const char *path,
                  bool *same, struct chex_error *err)
{
    struct buffer b = {0};
    struct stat st;
    enum chex_status status;

    if (e->reason.status != CHEX_OK) {
        int error = file_fstatat(AT_FDCWD, path, 0, &st);

        *same = error == 0 && (uint64_t)st.st_size == size;
        status = error == 0 ? CHEX_OK : error_read(err, error, "cannot stat");
    } else {
        status = file_read(AT_FDCWD, path, r->max_size, &b, err);
        *same = status == CHEX_OK && b.size == size && (size == 0 || memcmp(b.data, e->bytes.data, size) == 0);
        buffer_release(&b);
    }
    if (status == CHEX_ERR_READ)
        return error_context(err, status, "'%s', to be compared with the image of this name in an archive", path);
    return status == CHEX_ERR_MEMORY ? status : CHEX_OK;
}

/*
 * Compare an image of an archive with the loose file of the same name, and with the first image of this name in any
 * archive.  *first is set if there is neither.
 */
static enum chex_status
compare_with_others(struct image_reader *r, size_t archive, const struct queue_entry *e, uint64_t size, bool *first,
                    struct chex_error *err)
{
    const char *name = r->labels->entry[e->row].name;
    const struct source_file *file = source_find(r->source, name);
    struct arrival *a = &r->arrival[e->row], before;
    uint64_t hash = hash_of(&r->key, e, size);
    char path[QUEUE_PATH];

    if (file && source_path(r->source, file, path, sizeof(path), NULL) == CHEX_OK) {
        bool same;
        enum chex_status status = compare_with_file(r, e, size, path, &same, err);

        if (status != CHEX_OK)
            return status;
        if (!same)
            return fail_twice(r->source, name, path, e->path, err);
    }
    pthread_mutex_lock(&r->lock);
    before = *a;
    if (before.hash == 0)
        *a = (struct arrival){hash, (uint32_t)archive};
    r->repeated += before.hash == hash || file;
    pthread_mutex_unlock(&r->lock);
    if (before.hash != 0 && before.hash != hash) {
        bool later = before.archive > archive;
        const char *other = r->source->archive[before.archive];

        return fail_twice(r->source, name, later ? e->path : other, later ? other : e->path, err);
    }
    *first = before.hash == 0 && !file;
    return CHEX_OK;
}

/* ---- archives ------------------------------------------------------------------------------------------------- */

/* Read the current member, an image of the plan. */
static enum chex_status
read_member(struct image_reader *r, struct image_archive *a, size_t archive, const struct image_member *m,
            const struct planned_image *image, struct chex_error *err)
{
    /* An image above the limit is not read, so it needs no room. */
    uint64_t size = m->size, room = !m->size_known ? r->max_size : size > r->max_size ? 0 : size;
    struct queue_entry *e = planned_image_reserve(r->queue, image, room);
    enum chex_status status;
    bool first = false;

    if (!e)
        return CHEX_OK;
    snprintf(e->path, sizeof(e->path), "%s", r->source->archive[archive]);
    status = image_archive_read(a, r->max_size, &e->bytes, &e->reason);
    if (status == CHEX_OK || status == CHEX_ERR_LIMIT) {
        if (status == CHEX_OK)
            size = e->bytes.size;
        else
            e->bytes.size = 0;
        status = compare_with_others(r, archive, e, size, &first, err);
    } else if (status == CHEX_ERR_DAMAGED) {
        /* The image is lost.  After all inputs were read, the caller finds out whether its slot is still empty. */
        status = CHEX_OK;
    } else {
        *err = e->reason;
    }
    if (status == CHEX_OK && first && image->wanted)
        queue_push(r->queue, e);
    else
        queue_return(r->queue, e);
    return status;
}

/* Handle a member that is named like an image. */
static enum chex_status
take_member(struct image_reader *r, struct image_archive *a, size_t archive, const struct image_member *m,
            struct chex_error *err)
{
    const struct entry *entry = labels_find(r->labels, m->name);
    enum chex_status status = CHEX_OK;

    r->content[archive].images++;
    if (!entry) {
        pthread_mutex_lock(&r->lock);
        status = unlabeled_add(r->unlabeled, m->name, err);
        pthread_mutex_unlock(&r->lock);
    } else if (r->planned_of[entry - r->labels->entry] != NOT_PLANNED) {
        const struct planned_image *image = &r->planned[r->planned_of[entry - r->labels->entry]];

        status = read_member(r, a, archive, m, image, err);
    }
    return status;
}

/* Store the results of an archive that was read to its end, or as far as possible. */
static void
note_content(struct image_reader *r, size_t archive, const struct image_archive *a)
{
    const struct archive_fault *fault = image_archive_fault(a);

    r->content[archive].others = image_archive_others(a);
    if (!fault)
        return;
    r->content[archive].damaged = true;
    r->content[archive].fault = *fault;
    r->damaged(r->context, r->source->archive[archive], fault);
}

static enum chex_status
read_archive(struct image_reader *r, size_t archive, struct chex_error *err)
{
    const char *path = r->source->archive[archive];
    struct image_archive *a;
    enum chex_status status = image_archive_open(path, &r->archive_options, &a, err);
    bool found = true;

    if (status == CHEX_ERR_STOPPED)
        return status;
    /* The scan opened this archive when the run began.  If it is not an archive now, the input is missing. */
    if (status != CHEX_OK)
        return error_context(err, status == CHEX_ERR_MEMORY || status == CHEX_ERR_READ ? status : CHEX_ERR_MISSING,
                             "'%s'", path);
    while (status == CHEX_OK && found && threads_running(r->threads)) {
        struct image_member member;

        status = image_archive_next(a, &member, &found, err);
        if (status == CHEX_OK && found)
            status = take_member(r, a, archive, &member, err);
    }
    if (status == CHEX_OK && !found)
        note_content(r, archive, a);
    image_archive_close(a);
    return status == CHEX_ERR_READ ? error_context(err, status, "'%s'", path) : status;
}

static enum chex_status
read_archives(struct image_reader *r, uint64_t *item, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t i;

    while (status == CHEX_OK && threads_running(r->threads) &&
           (i = atomic_fetch_add(&r->next_archive, 1)) < r->source->archive_count) {
        *item = FIRST_ARCHIVE_ITEM + i;
        status = read_archive(r, i, err);
    }
    return status;
}

/* ---- loose files and archives --------------------------------------------------------------------------------- */

enum chex_status
image_reader_run(void *reader, uint64_t *item, struct chex_error *err)
{
    struct image_reader *r = reader;
    bool archives_first = atomic_fetch_add(&r->started, 1) < r->archives_first;
    enum chex_status status;

    atomic_fetch_add(&r->active, 1);
    if (r->stored) {
        status = stored_reader_run(r, r->stored, item, err);
    } else {
        if (!archives_first)
            read_files(r);
        status = read_archives(r, item, err);
        if (status == CHEX_OK)
            read_files(r);
    }
    /*
     * A thread ends only when no file or archive is left.  So a thread that starts after the last active thread has
     * ended finds nothing to read.
     */
    if (atomic_fetch_sub(&r->active, 1) == 1 && status == CHEX_OK && threads_running(r->threads))
        queue_close(r->queue);
    return status;
}
