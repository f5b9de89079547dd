/*
 * sample_texts.c - see sample_texts.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "data/sample_texts.h"

#include "dataset/dataset.h"

struct sample_reading {
    const struct samples *samples;
    size_t next; /* the next sample, in the order of the shards */
    bool skip_bad;
    sample_fn *fn;
    void *context;
};

static enum chex_status
visit_record(void *context, const struct scanned_record *record, struct chex_error *err)
{
    struct sample_reading *r = context;
    bool good = record->fault == RECORD_GOOD;

    if (r->next == r->samples->count || r->samples->place[r->next].index != record->index)
        return CHEX_OK; /* padding */
    if (!good && !r->skip_bad)
        return record_fail(record, err);
    return r->fn(r->context, r->next++, good ? &record->values : NULL, err);
}

/* Read the records of one shard. */
static enum chex_status
read_shard(const struct chex_dataset *ds, unsigned number, struct sample_reading *r, struct chex_error *err)
{
    const struct chex_shard_info *info = chex_dataset_shard(ds, number);
    struct shard_scan scan = {.shard = dataset_shard_identity(ds, number),
                              .records = info->record_count,
                              .texts = true,
                              .visit = visit_record,
                              .context = r};
    struct chex_shard *file;
    enum chex_status status = chex_shard_open(ds, number, &file, err);

    if (status != CHEX_OK)
        return status;
    scan.fd = file->fd;
    status = shard_scan(&scan, err);
    chex_shard_close(file);
    return status == CHEX_OK ? status : error_context(err, status, "'%s' record %u", info->name, scan.next);
}

enum chex_status
samples_read_texts(const struct chex_dataset *ds, const struct samples *s, bool skip_bad, sample_fn *fn, void *context,
                   struct chex_error *err)
{
    struct sample_reading r = {.samples = s, .skip_bad = skip_bad, .fn = fn, .context = context};
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && r.next < s->count) {
        unsigned shard = s->place[r.next].shard;

        status = read_shard(ds, shard, &r, err);
        if (status == CHEX_OK && r.next < s->count && s->place[r.next].shard == shard)
            status = error_set(err, CHEX_ERR_DAMAGED, "'%s' has fewer records than the manifest says",
                               chex_dataset_shard(ds, shard)->name);
    }
    return status;
}
