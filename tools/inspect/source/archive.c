/*
 * archive.c - reads one archive from start to end; see source.h
 *
 * The reader reads every member whole, even if another image has the same name: the checksums of an archive follow its
 * data.  It computes a keyed hash of each member, and source_sum() compares members of one name by hash, as
 * chex-convert does.  It compares a member with the loose file of that name byte by byte.  Memory holds one member per
 * thread, at most CONVERT_MAX_FILE bytes, and a source_item per image.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert.h"
#include "inspect/source/source.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Maximum number of images per archive; the largest public data sets have a few hundred thousand in all. */
#define MAX_IMAGES 2000000

/* ---- one member -------------------------------------------------------------------------------------------------- */

/* Add an item; its name is that of its row, or a copy. */
static enum chex_status
add_item(struct source_check *c, struct source_archive *a, uint32_t place, const char *name, struct source_item **out,
         struct chex_error *err)
{
    struct source_item *grown = array_grow(a->item, &a->capacity, a->count, sizeof(*a->item));
    const struct entry *entry = labels_find(&c->labels, name);

    if (!grown)
        return error_memory(err);
    a->item = grown;
    *out = &a->item[a->count];
    **out = (struct source_item){.name = entry ? entry->name : arena_copy(&a->strings, name, strlen(name)),
                                 .place = place};
    if (!(*out)->name)
        return error_memory(err);
    a->count++;
    return CHEX_OK;
}

/* Set item->differs if a loose file of this name has different content.  CHEX_ERR_READ, CHEX_ERR_MEMORY */
static enum chex_status
compare_with_loose(const struct source_check *c, struct source_item *item, struct source_reader *r,
                   struct chex_error *err)
{
    const struct source_file *file = source_find(&c->source, item->name);
    enum chex_status status;
    char path[4096];
    struct stat st;
    int error;

    if (!file || source_path(&c->source, file, path, sizeof(path), NULL) != CHEX_OK)
        return CHEX_OK;
    error = file_fstatat(AT_FDCWD, path, 0, &st);
    status = error == 0 ? CHEX_OK : error_read(err, error, "cannot stat");
    if (status == CHEX_OK)
        item->differs = (uint64_t)st.st_size != item->size;
    if (status == CHEX_OK && !item->differs && item->fault != SOURCE_LARGE) {
        status = file_read(AT_FDCWD, path, CONVERT_MAX_FILE, &r->loose, err);
        item->differs = status == CHEX_OK &&
                        (r->loose.size != item->size ||
                         (item->size > 0 && memcmp(r->loose.data, r->member.data, r->loose.size) != 0));
    }
    /* Other unreadable loose files are reported by source_probe_file(). */
    return status == CHEX_ERR_READ || status == CHEX_ERR_MEMORY ? error_context(err, status, "'%s'", path) : CHEX_OK;
}

static enum chex_status
read_member(struct source_check *c, struct image_archive *archive, const struct image_member *member,
            struct source_item *item, struct source_reader *r, struct chex_error *err)
{
    struct buffer *b = &r->member;
    enum chex_status status = image_archive_read(archive, CONVERT_MAX_FILE, b, err);

    item->size = status == CHEX_OK ? b->size : member->size_known ? member->size : 0;
    if (status == CHEX_OK)
        source_probe(c, item, b->data, b->data + b->size - (b->size < SOURCE_TAIL ? b->size : SOURCE_TAIL));
    else if (status == CHEX_ERR_LIMIT)
        item->fault = SOURCE_LARGE;
    else if (status == CHEX_ERR_DAMAGED)
        item->fault = SOURCE_LOST;
    else
        return status;
    if (item->fault != SOURCE_LOST) {
        uint64_t sum = status == CHEX_OK ? keyed_hash(&c->key, b->data, b->size) : 0;

        item->hash = sum ^ item->size << 1;
        return compare_with_loose(c, item, r, err);
    }
    return CHEX_OK;
}

/* ---- the archive ------------------------------------------------------------------------------------------------- */

/* Every reader thread calls this. */
static void
tick(struct source_check *c)
{
    char text[160], left[FORMAT_TEXT];
    double seconds;

    if (!progress_line_due(&c->in->line))
        return;
    pthread_mutex_lock(&c->lock);
    progress_update(&c->progress, atomic_load(&c->archive_bytes));
    seconds = progress_left(&c->progress);
    snprintf(text, sizeof(text), "looking  %3u %%  %s of %s  %s images  %s/s  %s left",
             (unsigned)(c->progress.total ? 100 * c->progress.done / c->progress.total : 100),
             format_bytes(c->progress.done, (char[FORMAT_TEXT]){0}),
             format_bytes(c->progress.total, (char[FORMAT_TEXT]){0}),
             format_count(atomic_load(&c->images_read), (char[FORMAT_TEXT]){0}),
             format_bytes((uint64_t)c->progress.rate, (char[FORMAT_TEXT]){0}),
             seconds < 0 ? "?" : format_seconds(seconds, left));
    pthread_mutex_unlock(&c->lock);
    progress_line_update(&c->in->line, text);
}

static void
note_progress(struct source_check *c, const struct image_archive *archive, uint64_t *counted)
{
    uint64_t now = image_archive_offset(archive);

    atomic_fetch_add(&c->archive_bytes, now - *counted);
    *counted = now;
    atomic_fetch_add(&c->images_read, 1);
    tick(c);
}

static enum chex_status
read_members(struct source_check *c, struct image_archive *archive, struct source_archive *a,
             struct source_place *place, struct source_reader *r, struct chex_error *err)
{
    struct image_member member;
    struct source_item *item = NULL;
    uint64_t counted = 0;
    bool found = true;
    enum chex_status status = image_archive_next(archive, &member, &found, err);

    while (status == CHEX_OK && found) {
        if (a->count == MAX_IMAGES) {
            place->offset = image_archive_offset(archive);
            error_set(&place->error, CHEX_ERR_LIMIT, "more than 2,000,000 images: the others are not examined");
            return CHEX_OK;
        }
        status = add_item(c, a, (uint32_t)(place - c->place), member.name, &item, err);
        if (status == CHEX_OK)
            status = read_member(c, archive, &member, item, r, err);
        if (status == CHEX_OK && item->fault != SOURCE_LOST) {
            bool damaged = image_archive_fault(archive) != NULL;

            place->before += !damaged;
            place->after += damaged;
            if (!damaged)
                place->last = item->name;
        }
        note_progress(c, archive, &counted);
        if (status == CHEX_OK)
            status = image_archive_next(archive, &member, &found, err);
    }
    return status;
}

enum chex_status
source_read_archive(struct source_check *c, size_t index, struct source_reader *r, struct chex_error *err)
{
    struct source_place *place = &c->place[c->source.folder_count + index];
    const struct archive_fault *fault;
    struct image_archive *archive;
    const struct image_archive_options options = {
        .utf8 = c->utf8,
        .max_memory = c->in->options->max_memory,
        .name_parts = labels_name_parts(&c->labels),
    };
    struct stat st;
    enum chex_status status = image_archive_open(place->path, &options, &archive, &place->error);

    if (stat(place->path, &st) == 0)
        place->size = (uint64_t)st.st_size;
    if (status != CHEX_OK) {
        *err = place->error;
        return chex_status_is_data(status) ? CHEX_OK : error_context(err, status, "'%s'", place->path);
    }
    place->error.status = CHEX_OK;
    place->opened = true;
    status = read_members(c, archive, &c->archive[index], place, r, err);
    fault = image_archive_fault(archive);
    if (fault) {
        place->error = fault->error;
        place->offset = fault->offset;
    }
    place->others = image_archive_others(archive);
    image_archive_close(archive);
    return status == CHEX_ERR_READ ? error_context(err, status, "'%s'", place->path) : status;
}
