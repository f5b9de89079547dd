/*
 * dataset.c - data sets, shards and records for chex.h
 *
 * All data is read with positioned reads into the caller's memory.  mmap would be dangerous: if a file becomes shorter,
 * for example on a network file system, it raises SIGBUS in the middle of a training run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/dataset.h"

#include "base/number_format.h"
#include "dataset/format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- data set -------------------------------------------------------------------------------------------------- */

static enum chex_status
read_manifest(struct chex_dataset *ds, struct chex_error *err)
{
    struct buffer text = {0};
    struct chex_error why;
    enum chex_status status = file_read(ds->folder.fd, MANIFEST_NAME, MANIFEST_MAX, &text, &why);

    if (status == CHEX_ERR_NOT_IMAGE)
        status = error_set(&why, CHEX_ERR_DAMAGED, "not a regular file");
    if (status == CHEX_OK)
        status = manifest_parse(text.data, text.size, &ds->manifest, &why);
    buffer_release(&text);
    if (status == CHEX_ERR_MISSING && why.cause == ENOENT && withdrawal_is_unfinished(ds->folder.fd))
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s': " WITHDRAWAL_UNFINISHED, ds->folder.path);
    if (status == CHEX_ERR_MISSING && why.cause == ENOENT)
        return error_set(err, status,
                         "no data set in '%s': it has no %s (images before conversion: chex-convert, or chex-inspect "
                         "source)",
                         ds->folder.path, MANIFEST_NAME);
    if (status != CHEX_OK && err)
        *err = why;
    return status == CHEX_OK ? status : error_context(err, status, "'%s/%s'", ds->folder.path, MANIFEST_NAME);
}

static void
fill_info(struct chex_dataset *ds)
{
    const struct manifest *m = &ds->manifest;
    unsigned i, f;

    ds->info = (struct chex_dataset_info){
        .format_version = MANIFEST_FORMAT,
        .height = m->layout.height,
        .width = m->layout.width,
        .channels = m->layout.channels,
        .stride = m->layout.stride,
        .pixel_offset = m->layout.pixel_offset,
        .shard_size = m->shard_size,
        .split_count = m->split_count,
        .shard_count = m->shard_count,
        .pixel_mean = m->pixel_mean,
        .pixel_deviation = m->pixel_deviation,
        .pixel_size = m->layout.pixel_size,
        .finding_count = m->findings.count,
        .unknown_labels = m->layout.labels.unknown,
        .leaky_patients = m->leaks.patients,
    };
    memcpy(ds->info.id, m->dataset_id, sizeof(ds->info.id));
    for (i = 0; i < m->split_count; i++) {
        struct manifest_split *from = &m->split[i];

        for (f = 0; f < m->findings.count && !m->layout.labels.unknown; f++)
            from->known[f] = from->images;
        ds->split[i] = (struct chex_split_info){from->name,        from->members_sha256, from->first_shard,
                                                from->shard_count, from->images,         from->patients,
                                                from->positives,   from->known};
        ds->info.image_count += from->images;
    }
    for (i = 0; i < m->shard_count; i++) {
        const struct manifest_shard *from = &m->shard[i];

        ds->shard[i] = (struct chex_shard_info){from->name,    from->sha256, from->split,
                                                from->records, from->images, from->size};
    }
}

bool
withdrawal_is_unfinished(int folder_fd)
{
    struct stat st;

    return file_fstatat(folder_fd, WITHDRAWAL_NAME, AT_SYMLINK_NOFOLLOW, &st) == 0;
}

enum chex_status
dataset_open_in(struct folder *folder, struct chex_dataset **out, struct chex_error *err)
{
    struct chex_dataset *ds = calloc(1, sizeof(*ds));
    enum chex_status status;

    *out = NULL;
    if (!ds) {
        folder_close(folder);
        return error_memory(err);
    }
    ds->folder = *folder;
    *folder = (struct folder){.fd = -1};
    status = read_manifest(ds, err);
    if (status == CHEX_OK) {
        ds->split = calloc(ds->manifest.split_count, sizeof(*ds->split));
        ds->shard = calloc(ds->manifest.shard_count, sizeof(*ds->shard));
        status = ds->split && ds->shard ? CHEX_OK : error_memory(err);
    }
    if (status != CHEX_OK) {
        chex_dataset_close(ds);
        return status;
    }
    fill_info(ds);
    *out = ds;
    return CHEX_OK;
}

enum chex_status
chex_dataset_open(const char *path, struct chex_dataset **out, struct chex_error *err)
{
    struct folder folder;
    enum chex_status status = folder_open(path, false, &folder, err);

    *out = NULL;
    return status == CHEX_OK ? dataset_open_in(&folder, out, err) : status;
}

void
chex_dataset_close(struct chex_dataset *ds)
{
    if (!ds)
        return;
    folder_close(&ds->folder);
    manifest_release(&ds->manifest);
    free(ds->split);
    free(ds->shard);
    free(ds);
}

const struct chex_dataset_info *
chex_dataset_info(const struct chex_dataset *ds)
{
    return &ds->info;
}

const struct chex_split_info *
chex_dataset_split(const struct chex_dataset *ds, unsigned split)
{
    return split < ds->info.split_count ? &ds->split[split] : NULL;
}

const struct chex_shard_info *
chex_dataset_shard(const struct chex_dataset *ds, unsigned shard)
{
    return shard < ds->info.shard_count ? &ds->shard[shard] : NULL;
}

const char *const *
chex_dataset_findings(const struct chex_dataset *ds, unsigned *count)
{
    if (count)
        *count = ds->manifest.findings.count;
    return ds->manifest.findings.name;
}

int
chex_dataset_find_split(const struct chex_dataset *ds, const char *name)
{
    unsigned i;

    for (i = 0; i < ds->info.split_count; i++)
        if (strcmp(ds->split[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* ---- shard ----------------------------------------------------------------------------------------------------- */

enum chex_status
chex_shard_open(const struct chex_dataset *ds, unsigned shard, struct chex_shard **out, struct chex_error *err)
{
    const struct chex_shard_info *info = chex_dataset_shard(ds, shard);
    struct chex_shard *s;
    uint64_t size;
    enum chex_status status;

    *out = NULL;
    if (!info)
        return error_set(err, CHEX_ERR_USAGE, "shard %u: there are %u", shard, ds->info.shard_count);
    s = malloc(sizeof(*s));
    if (!s)
        return error_memory(err);
    *s = (struct chex_shard){.dataset = ds, .number = shard, .fd = -1};
    status = file_open(ds->folder.fd, info->name, &s->fd, &size, err);
    if (status != CHEX_OK) {
        s->fd = -1;
        if (status == CHEX_ERR_NOT_IMAGE)
            status = CHEX_ERR_DAMAGED;
    } else if (size != info->size) {
        status = error_set(err, size < info->size ? CHEX_ERR_TRUNCATED : CHEX_ERR_DAMAGED, "%s bytes, manifest says %s",
                           COUNT_TEXT(size), COUNT_TEXT(info->size));
    }
    if (status != CHEX_OK) {
        chex_shard_close(s);
        return error_context(err, status, "'%s/%s'", ds->folder.path, info->name);
    }
    *out = s;
    return CHEX_OK;
}

void
chex_shard_close(struct chex_shard *shard)
{
    if (!shard)
        return;
    if (shard->fd >= 0)
        close(shard->fd);
    free(shard);
}

enum chex_status
chex_shard_read(const struct chex_shard *shard, uint32_t first, uint32_t count, void *buffer, struct chex_error *err)
{
    const struct chex_dataset *ds = shard->dataset;
    const struct chex_shard_info *info = &ds->shard[shard->number];
    size_t size, got;
    enum chex_status status;

    if (first > info->record_count || count > info->record_count - first)
        return error_set(err, CHEX_ERR_USAGE, "records %u + %u of a shard of %u", first, count, info->record_count);
    if (!size_mul(count, ds->info.stride, &size))
        return error_set(err, CHEX_ERR_USAGE, "%u records at once do not fit into memory", count);
    status = file_pread(shard->fd, (uint64_t)first * ds->info.stride, buffer, size, &got, err);
    if (status == CHEX_OK && got < size)
        status = error_set(err, CHEX_ERR_TRUNCATED, "file ends %s bytes inside record %zu",
                           COUNT_TEXT(got % ds->info.stride), first + got / ds->info.stride);
    if (status != CHEX_OK)
        error_context(err, status, "'%s/%s'", ds->folder.path, info->name);
    return status;
}

/* ---- record ---------------------------------------------------------------------------------------------------- */

struct shard_identity
dataset_shard_identity(const struct chex_dataset *ds, unsigned shard)
{
    return (struct shard_identity){&ds->manifest.layout, manifest_record_id(&ds->manifest), shard};
}

void
record_view(const struct record_layout *layout, const struct record_values *values, const uint8_t *record,
            struct chex_record *out)
{
    *out = (struct chex_record){
        .pixels = record + layout->pixel_offset,
        .height = layout->height,
        .width = layout->width,
        .channels = layout->channels,
        .finding_count = layout->labels.count,
        .label = values->label,
        .weight = values->weight,
        .age = values->age,
        .sex = values->sex,
        .view = values->view,
        .name = values->name,
        .patient = values->patient,
        .shard = values->shard,
        .index = values->index,
    };
    memcpy(out->dataset_id, values->dataset_id, sizeof(out->dataset_id));
}

enum chex_status
chex_record_view(const struct chex_dataset *ds, unsigned shard, uint32_t index, const void *record, bool check_crc,
                 struct chex_record *out, struct chex_error *err)
{
    const struct shard_identity identity = dataset_shard_identity(ds, shard);
    struct scanned_record checked;

    if (record_check(&identity, index, record, check_crc, &checked) != CHEX_OK)
        return record_fail(&checked, err);
    record_view(identity.layout, &checked.values, record, out);
    return CHEX_OK;
}

/* ---- identity of a shard --------------------------------------------------------------------------------------- */

static enum chex_status
check_first(void *context, const struct scanned_record *record, struct chex_error *err)
{
    const struct chex_shard *s = context;
    const struct record_values *v = &record->values;

    if (record->fault != RECORD_PLACE ||
        (v->shard == s->number &&
         strcmp(v->dataset_id, manifest_record_id(&s->dataset->manifest)) == 0)) /* right shard, wrong index */
        return CHEX_OK;
    return record_fail(record, err);
}

enum chex_status
dataset_check_shard(const struct chex_dataset *ds, unsigned shard, struct chex_error *err)
{
    struct chex_shard *s = NULL;
    struct shard_scan scan = {.shard = dataset_shard_identity(ds, shard), .texts = true, .visit = check_first};
    enum chex_status status = chex_shard_open(ds, shard, &s, err);

    if (status != CHEX_OK || !s) /* no shard only with an error; analyzers do not know it */
        return status;
    scan.fd = s->fd;
    scan.records = ds->shard[shard].record_count > 0;
    scan.context = s;
    status = shard_scan(&scan, err);
    chex_shard_close(s);
    return status == CHEX_OK || status == CHEX_ERR_MEMORY
               ? status
               : error_context(err, status, "'%s/%s'", ds->folder.path, ds->shard[shard].name);
}
