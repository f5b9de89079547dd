/*
 * dataset_reader.c - reads the images of a split, batch by batch; see chex.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/dataset.h"

#include <stdlib.h>
#include <string.h>

/* Records per read: about 1 MiB at 256x256. */
#define RUN 16

struct chex_reader {
    const struct chex_dataset *dataset;
    const struct chex_split_info *split;
    unsigned shard;          /* the next record is in shard number `shard` of the data set ... */
    uint32_t record;         /* ... and has this index */
    struct chex_shard *file; /* the open shard, or NULL */
    uint8_t *buffer;         /* RUN strides: records first .. first + count - 1 of the open shard */
    uint32_t first, count;
};

enum chex_status
chex_reader_open(const struct chex_dataset *ds, const char *split, struct chex_reader **out, struct chex_error *err)
{
    int number = chex_dataset_find_split(ds, split);
    struct chex_reader *r;
    size_t size;

    *out = NULL;
    if (number < 0)
        return error_set(err, CHEX_ERR_USAGE, "there is no split '%s' in '%s'", split, ds->folder.path);
    r = calloc(1, sizeof(*r));
    if (r && size_mul(RUN, ds->info.stride, &size))
        r->buffer = malloc(size);
    if (!r || !r->buffer) {
        free(r);
        return error_memory(err);
    }
    r->dataset = ds;
    r->split = &ds->split[number];
    r->shard = r->split->first_shard;
    *out = r;
    return CHEX_OK;
}

void
chex_reader_close(struct chex_reader *reader)
{
    if (!reader)
        return;
    chex_shard_close(reader->file);
    free(reader->buffer);
    free(reader);
}

/* Find the next record.  Opens its shard and reads a run of records if necessary. */
static enum chex_status
find_record(struct chex_reader *r, const uint8_t **out, struct chex_error *err)
{
    uint32_t left = r->dataset->shard[r->shard].record_count - r->record;
    enum chex_status status = CHEX_OK;

    if (!r->file || r->file->number != r->shard) {
        chex_shard_close(r->file);
        r->count = 0;
        status = chex_shard_open(r->dataset, r->shard, &r->file, err);
    }
    if (status == CHEX_OK && (r->record < r->first || r->record - r->first >= r->count)) {
        r->first = r->record;
        r->count = 0;
        status = chex_shard_read(r->file, r->first, left < RUN ? left : RUN, r->buffer, err);
        if (status == CHEX_OK)
            r->count = left < RUN ? left : RUN;
    }
    *out = r->buffer + (r->record - r->first) * r->dataset->info.stride;
    return status;
}

/* Copy the next record into the batch, unless it is padding. */
static enum chex_status
take_record(struct chex_reader *r, struct chex_batch *batch, struct chex_error *err)
{
    const struct chex_shard_info *info = &r->dataset->shard[r->shard];
    size_t size = r->dataset->info.pixel_size;
    struct chex_record record;
    const uint8_t *bytes;
    enum chex_status status = find_record(r, &bytes, err);

    if (status != CHEX_OK)
        return status;
    status = chex_record_view(r->dataset, r->shard, r->record, bytes, true, &record, err);
    if (status != CHEX_OK)
        return error_context(err, status, "'%s/%s', record %u", r->dataset->folder.path, info->name, r->record);
    if (record.weight == 1) {
        if (batch->pixels)
            memcpy(batch->pixels + batch->count * size, record.pixels, size);
        if (batch->labels)
            memcpy(batch->labels + batch->count * record.finding_count, record.label, record.finding_count);
        batch->count++;
    }
    if (++r->record == info->record_count) {
        r->record = 0;
        r->shard++;
    }
    return CHEX_OK;
}

enum chex_status
chex_reader_next(struct chex_reader *reader, struct chex_batch *batch, struct chex_error *err)
{
    const struct chex_reader before = *reader;
    enum chex_status status = CHEX_OK;

    batch->count = 0;
    if (batch->capacity == 0)
        return error_set(err, CHEX_ERR_USAGE, "a batch has room for one image at least");
    while (status == CHEX_OK && batch->count < batch->capacity &&
           reader->shard < before.split->first_shard + before.split->shard_count)
        status = take_record(reader, batch, err);
    if (status != CHEX_OK) {
        reader->shard = before.shard;
        reader->record = before.record;
        batch->count = 0;
    }
    return status;
}
