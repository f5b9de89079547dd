/*
 * stored_scan.c - see stored_scan.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "input/stored_scan.h"

#include "dataset/format.h"
#include "labels/label_file.h"
#include "labels/patient_ids.h"

#include <stdlib.h>
#include <string.h>

static bool
is_shard(const char *name)
{
    const char *end = shard_name_end(name + (name[0] == '.'));

    return end && (end[0] == '\0' || strcmp(end, ".part") == 0);
}

/* Returns whether the folder contains a shard, finished or not. */
static enum chex_status
has_shards(const char *path, bool *out, struct chex_error *err)
{
    struct folder_names names = {0};
    struct folder folder;
    enum chex_status status = folder_open(path, false, &folder, err);

    if (status == CHEX_OK) {
        status = folder_list(&folder, is_shard, &names, err);
        *out = names.count > 0;
        folder_names_release(&names);
        folder_close(&folder);
    }
    return status;
}

/* Add to a fault of a data set how to repair it.  Returns status. */
static enum chex_status
ask_for_repair(const char *path, enum chex_status status, struct chex_error *err)
{
    return error_context(err, status, "repair '%s' first (chex-inspect check names the command)", path);
}

enum chex_status
stored_probe(const char *path, bool *is_stored, struct chex_error *why)
{
    struct chex_dataset *ds = NULL;
    enum chex_status status = chex_dataset_open(path, &ds, why);

    chex_dataset_close(ds);
    *is_stored = status == CHEX_OK;
    return status == CHEX_ERR_MEMORY ? status : CHEX_OK;
}

enum chex_status
stored_explain(const char *path, const struct chex_error *why, struct chex_error *err)
{
    bool shards = false;
    enum chex_status status = has_shards(path, &shards, err);

    if (status != CHEX_OK || !shards)
        return status;
    if (why->status == CHEX_ERR_MISSING)
        return error_set(err, CHEX_ERR_MISSING,
                         "'%s' holds an unfinished conversion: first finish it, with the command that began it", path);
    if (err)
        *err = *why;
    return why->status == CHEX_ERR_DAMAGED ? ask_for_repair(path, why->status, err) : why->status;
}

/* ---- records -------------------------------------------------------------------------------------------------- */

struct stored_work {
    struct source *source;
    const struct chex_dataset *dataset;
    uint32_t number; /* of the data set */
    unsigned shard;
};

static enum chex_status
add_image(const struct stored_work *w, const struct scanned_record *record, struct chex_error *err)
{
    const struct record_values *v = &record->values;
    struct source *s = w->source;
    struct stored_image *stored = array_grow(s->stored, &s->stored_capacity, s->stored_count, sizeof(*stored));
    struct source_file *file = array_grow(s->file, &s->file_capacity, s->count, sizeof(*file));
    struct stored_image image = {
        .name = arena_copy(&s->strings, v->name.data, v->name.size),
        .patient = arena_copy(&s->strings, v->patient.data, v->patient.size),
        .label = (const uint8_t *)arena_copy(&s->strings, (const char *)v->label, w->dataset->manifest.findings.count),
        .age = v->age,
        .sex = v->sex,
        .shard = w->shard,
        .index = record->index,
        .split = (uint8_t)w->dataset->shard[w->shard].split,
    };

    if (stored)
        s->stored = stored;
    if (file)
        s->file = file;
    if (!stored || !file || !image.name || !image.patient || !image.label)
        return error_memory(err);
    memcpy(image.view, v->view.data, v->view.size);
    s->file[s->count++] = (struct source_file){image.name, w->number, (uint32_t)s->stored_count};
    s->stored[s->stored_count++] = image;
    return CHEX_OK;
}

static enum chex_status
visit(void *context, const struct scanned_record *record, struct chex_error *err)
{
    const struct stored_work *w = context;
    const struct record_values *v = &record->values;

    if (record->fault != RECORD_GOOD) {
        record_fail(record, err);
        return error_context(err, CHEX_ERR_DAMAGED, "record %u", record->index);
    }
    if (v->weight == 0)
        return CHEX_OK;
    if (v->view.size >= sizeof(((struct stored_image *)0)->view) || v->patient.size > PATIENT_MAX)
        return error_set(err, CHEX_ERR_DAMAGED, "record %u: a text is too long", record->index);
    return add_image(w, record, err);
}

static enum chex_status
scan_shard(struct stored_work *w, struct chex_error *err)
{
    const struct chex_dataset *ds = w->dataset;
    struct shard_scan scan = {
        .shard = dataset_shard_identity(ds, w->shard),
        .records = ds->shard[w->shard].record_count,
        .texts = true,
        .visit = visit,
        .context = w,
        .stop = w->source->stop,
    };
    struct chex_shard *shard;
    enum chex_status status = chex_shard_open(ds, w->shard, &shard, err);

    if (status == CHEX_OK) {
        scan.fd = shard->fd;
        status = shard_scan(&scan, err);
        chex_shard_close(shard);
        if (status != CHEX_OK && status != CHEX_ERR_STOPPED && status != CHEX_ERR_MEMORY)
            error_context(err, status, "'%s/%s'", ds->folder.path, ds->shard[w->shard].name);
    }
    if (status == CHEX_ERR_MISSING || chex_status_is_data(status))
        ask_for_repair(ds->folder.path, status, err);
    return status;
}

enum chex_status
stored_scan(struct source *source, const char *path, struct chex_error *err)
{
    struct stored_work w = {.source = source};
    struct chex_dataset **grown = array_grow(source->dataset, &source->dataset_capacity, source->dataset_count,
                                             sizeof(struct chex_dataset *));
    struct chex_dataset *ds;
    enum chex_status status;

    if (!grown)
        return error_memory(err);
    source->dataset = grown;
    status = chex_dataset_open(path, &ds, err);
    if (status != CHEX_OK)
        return status;
    w.dataset = ds;
    w.number = (uint32_t)source->dataset_count;
    source->dataset[source->dataset_count++] = ds;
    for (w.shard = 0; status == CHEX_OK && w.shard < ds->info.shard_count; w.shard++)
        status = scan_shard(&w, err);
    return status;
}

/* ---- rows ----------------------------------------------------------------------------------------------------- */

enum chex_status
stored_rows(const struct source *source, struct labels *out, struct chex_error *err)
{
    struct patients patients = {0};
    enum chex_status status = CHEX_OK;
    size_t i;

    out->findings = source->dataset[0]->manifest.findings;
    memcpy(out->sha256, source->dataset[0]->manifest.labels_sha256, sizeof(out->sha256));
    out->empty_labels = source->dataset[0]->manifest.empty_labels;
    out->entry = calloc(source->count ? source->count : 1, sizeof(*out->entry));
    if (!out->entry)
        return error_memory(err);
    for (i = 0; status == CHEX_OK && i < source->count; i++) {
        const struct stored_image *image = &source->stored[source->file[i].stored];
        struct entry *e = &out->entry[i];

        *e = (struct entry){.name = image->name, .label = image->label, .age = image->age, .sex = image->sex};
        memcpy(e->view, image->view, sizeof(e->view));
        status = patients_add(&patients, image->patient, &out->strings, &e->patient_no, err);
        if (status == CHEX_OK)
            e->patient = patients.id[e->patient_no];
    }
    out->count = out->row_count = status == CHEX_OK ? source->count : 0;
    out->patient = patients.id;
    out->patient_count = patients.count;
    patients.id = NULL;
    patients_release(&patients);
    labels_count_ages(out);
    return status;
}
