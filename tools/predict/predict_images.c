/*
 * predict_images.c - see predict_images.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_images.h"

#include "input/stored_scan.h"
#include "labels/synthetic_note.h"

#include <stdlib.h>
#include <string.h>

#define ANY_SPLIT UINT8_MAX

/* ---- data sets --------------------------------------------------------------------------------------------------- */

/* Check the images of a data set, and find its split: *split, or ANY_SPLIT. */
static enum chex_status
check_dataset(const struct chex_dataset *ds, const struct predict_options *o, unsigned size,
              enum resample_method resize, unsigned *split, struct chex_error *err)
{
    const struct chex_dataset_info *info = &ds->info;
    int found = o->split ? chex_dataset_find_split(ds, o->split) : ANY_SPLIT;

    if (found < 0)
        return error_set(err, CHEX_ERR_USAGE, "'%s' has no split '%s'", ds->folder.path, o->split);
    *split = (unsigned)found;
    if (info->width != info->height || info->channels != 1)
        return error_set(err, CHEX_ERR_INCOMPATIBLE,
                         "'%s' has images of %u x %u with %u channels, not square gray ones", ds->folder.path,
                         info->width, info->height, info->channels);
    if (info->width < size || (info->width > size && resize == RESAMPLE_NONE))
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' has images of %u x %u, and the model is for %u x %u",
                         ds->folder.path, info->width, info->height, size, size);
    return CHEX_OK;
}

/* Keep the records of the wanted split in the list of files. */
static enum chex_status
choose_records(struct images *images, const struct predict_options *o, unsigned size, enum resample_method resize,
               struct chex_error *err)
{
    struct source *s = &images->source;
    unsigned *split = calloc(s->dataset_count + 1, sizeof(*split));
    enum chex_status status = split ? CHEX_OK : error_memory(err);
    size_t i, kept = 0;

    if (status == CHEX_OK && o->split && s->dataset_count == 0)
        status = error_set(err, CHEX_ERR_USAGE, "--split is for data sets, and no PATH is one");
    for (i = 0; status == CHEX_OK && i < s->dataset_count; i++)
        status = check_dataset(s->dataset[i], o, size, resize, &split[i], err);
    for (i = 0; status == CHEX_OK && s->dataset_count > 0 && i < s->count; i++) {
        const struct source_file *file = &s->file[i];

        if (split[file->folder] == ANY_SPLIT || s->stored[file->stored].split == split[file->folder])
            s->file[kept++] = *file;
    }
    if (s->dataset_count > 0)
        s->count = kept;
    free(split);
    return status;
}

const char *
images_resize(const struct images *images, unsigned size, enum resample_method resize)
{
    const struct source *s = &images->source;
    const char *found = NULL;
    size_t i;

    for (i = 0; i < s->dataset_count; i++) {
        const struct chex_dataset *ds = s->dataset[i];
        const char *method = ds->info.width > size ? resample_names[resize] : ds->manifest.resize;

        if (found && strcmp(found, method) != 0)
            return "mixed";
        found = method;
    }
    return found ? found : resample_names[resize];
}

bool
images_are_shrunk(const struct images *images, unsigned size)
{
    bool shrunk = images->source.dataset_count == 0;
    size_t i;

    for (i = 0; i < images->source.dataset_count; i++)
        shrunk |= images->source.dataset[i]->info.width > size;
    return shrunk;
}

/* ---- archives ---------------------------------------------------------------------------------------------------- */

struct image_archive_options
images_archive_options(const struct images *images, const atomic_bool *stop)
{
    return (struct image_archive_options){.utf8 = images->utf8, .stop = stop, .name_parts = images->source.name_parts};
}

/* List the images of an archive, as far as it can be read. */
static enum chex_status
list_archive(void *context, void *worker, size_t item, struct chex_error *err)
{
    struct images *images = context;
    const struct image_archive_options options = images_archive_options(images, images->source.stop);
    struct image_archive *archive;
    enum chex_status status = image_archive_open(images->source.archive[item], &options, &archive, err);
    bool found = true;

    (void)worker;
    while (status == CHEX_OK && found) {
        struct image_member member;

        status = image_archive_next(archive, &member, &found, err);
        if (status == CHEX_OK && found)
            status = unlabeled_add(&images->member[item], member.name, err);
    }
    image_archive_close(archive);
    unlabeled_sort(&images->member[item]);
    if (status == CHEX_OK && images->member[item].capped)
        return error_set(err, CHEX_ERR_LIMIT, "'%s' has more than %d images", images->source.archive[item],
                         UNLABELED_MAX);
    return status == CHEX_OK || status == CHEX_ERR_STOPPED
               ? status
               : error_context(err, status, "'%s'", images->source.archive[item]);
}

static enum chex_status
list_archives(struct images *images, unsigned threads, struct chex_error *err)
{
    size_t count = images->source.archive_count;
    struct parallel p = {
        .count = count, .threads = threads, .work = list_archive, .context = images, .stop = images->source.stop};

    images->member = calloc(count + 1, sizeof(*images->member));
    images->content = calloc(count + 1, sizeof(*images->content));
    if (!images->member || !images->content)
        return error_memory(err);
    return count > 0 ? parallel_for(&p, err) : CHEX_OK;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static size_t
count_names(const struct images *images)
{
    size_t count = images->source.count, i;

    for (i = 0; i < images->source.archive_count; i++)
        count += images->member[i].count;
    return count;
}

static int
compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* Merge the names of files, records and members; an image of two places is one. */
static enum chex_status
merge_names(struct images *images, struct chex_error *err)
{
    const struct source *s = &images->source;
    size_t count = count_names(images), all = 0, i, k;
    struct entry *entry = calloc(count + 1, sizeof(*entry));

    if (!entry)
        return error_memory(err);
    images->names.entry = entry;
    for (i = 0; i < s->count; i++)
        entry[all++].name = s->file[i].name;
    for (i = 0; i < s->archive_count; i++)
        for (k = 0; k < images->member[i].count; k++)
            entry[all++].name = images->member[i].name[k];
    qsort(entry, all, sizeof(*entry), compare_entries);
    for (i = 0; i < all; i++)
        if (i == 0 || compare_entries(&entry[images->names.count - 1], &entry[i]) != 0)
            entry[images->names.count++] = entry[i];
    return CHEX_OK;
}

/* Keep the names of this part, and plan to read each. */
static enum chex_status
plan_names(struct images *images, struct part part, struct chex_error *err)
{
    struct labels *names = &images->names;
    size_t i, kept = 0;

    for (i = 0; i < names->count; i++)
        if (part_has(part, i))
            names->entry[kept++] = names->entry[i];
    names->count = images->count = kept;
    images->planned = calloc(kept + 1, sizeof(*images->planned));
    if (!images->planned)
        return error_memory(err);
    if (kept > UINT32_MAX - 1)
        return error_set(err, CHEX_ERR_LIMIT, "more than %u images", UINT32_MAX - 1);
    for (i = 0; i < kept; i++)
        images->planned[i] = (struct planned_image){.row = (uint32_t)i, .index = (uint32_t)i, .wanted = true};
    return CHEX_OK;
}

/* A damaged manifest does not fit; other damaged inputs are unreadable. */
static enum chex_status
scan_failed(const struct predict_options *o, enum chex_status status, struct chex_error *err)
{
    bool is_stored;
    size_t i;

    for (i = 0; chex_status_is_data(status) && i < o->paths; i++) {
        struct chex_error why = {.status = CHEX_OK};

        if (stored_probe(o->path[i], &is_stored, &why) == CHEX_OK && !is_stored && chex_status_is_data(why.status))
            status = err->status = CHEX_ERR_INCOMPATIBLE;
    }
    return status;
}

enum chex_status
images_list(const struct predict_options *o, unsigned size, enum resample_method resize, unsigned threads,
            const atomic_bool *stop, struct images *out, struct chex_error *err)
{
    enum chex_status status;
    size_t i;

    out->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    out->source.with_datasets = true;
    out->source.name_parts = o->name_parts;
    out->source.stop = stop;
    out->source.split = o->split;
    out->source.apart = "--name-parts 2 keeps images of different folders apart";
    out->source.datasets_apart = "score them in separate commands";
    for (i = 0; i < o->paths; i++)
        out->synthetic |= synthetic_note_at(o->path[i]);
    status = source_scan(o->path, o->paths, &out->source, err);
    if (status != CHEX_OK)
        return scan_failed(o, status, err);
    if (status == CHEX_OK)
        status = choose_records(out, o, size, resize, err);
    if (status == CHEX_OK)
        status = list_archives(out, threads, err);
    if (status == CHEX_OK)
        status = merge_names(out, err);
    if (status == CHEX_OK && out->names.count == 0)
        return error_set(err, CHEX_ERR_MISSING, "'%s'%s: no PNG or JPEG images (for DICOM files see chex-predict(1))",
                         o->path[0], o->paths > 1 ? " and the other paths" : "");
    return status == CHEX_OK ? plan_names(out, o->part, err) : status;
}

void
images_release(struct images *images)
{
    size_t i;

    for (i = 0; images->member && i < images->source.archive_count; i++)
        unlabeled_release(&images->member[i]);
    free(images->member);
    free(images->content);
    free(images->planned);
    labels_release(&images->names);
    unlabeled_release(&images->others);
    source_release(&images->source);
    if (images->utf8)
        freelocale(images->utf8);
    *images = (struct images){.count = 0};
}
