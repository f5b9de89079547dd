/*
 * order.c - see order.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "data/order.h"

#include "base/sha256.h"
#include "dataset/dataset.h"
#include "math/random.h"

#include <stdlib.h>
#include <string.h>

/* ---- samples --------------------------------------------------------------------------------------------------- */

enum record_kind { KIND_IMAGE, KIND_PADDING, KIND_DAMAGED };

static enum chex_status
visit_record(void *context, const struct scanned_record *record, struct chex_error *err)
{
    uint8_t *kind = context;

    if (record->fault == RECORD_PLACE)
        return record_fail(record, err);
    if (record->fault == RECORD_GOOD)
        kind[record->index] = record->values.weight ? KIND_IMAGE : KIND_PADDING;
    return CHEX_OK;
}

/* Classify each record of a shard. */
static enum chex_status
list_kinds(const struct chex_dataset *ds, unsigned shard, const struct chex_shard_info *info, uint8_t *kind,
           struct chex_error *err)
{
    struct shard_scan scan = {.shard = dataset_shard_identity(ds, shard),
                              .records = info->record_count,
                              .texts = true,
                              .visit = visit_record,
                              .context = kind};
    struct chex_shard *file;
    enum chex_status status = chex_shard_open(ds, shard, &file, err);

    if (status != CHEX_OK)
        return status;
    memset(kind, KIND_DAMAGED, info->record_count);
    scan.fd = file->fd;
    status = shard_scan(&scan, err);
    chex_shard_close(file);
    return status == CHEX_OK || status == CHEX_ERR_TRUNCATED
               ? CHEX_OK
               : error_context(err, status, "'%s' record %u", info->name, scan.next);
}

/*
 * List a shard with padding records.  A damaged record counts as an image if the manifest's count requires one more.
 * So the other samples keep their positions, and the reader of that record reports it, or skips it on request.
 */
static enum chex_status
list_mixed_shard(const struct chex_dataset *ds, unsigned shard, const struct chex_shard_info *info, struct samples *out,
                 struct chex_error *err)
{
    uint8_t *kind = calloc(info->record_count ? info->record_count : 1, 1);
    enum chex_status status = kind ? list_kinds(ds, shard, info, kind, err) : error_memory(err);
    uint32_t i, found = 0, missing;

    for (i = 0; status == CHEX_OK && i < info->record_count; i++)
        found += kind[i] == KIND_IMAGE;
    missing = found < info->image_count ? info->image_count - found : 0;
    for (i = 0; status == CHEX_OK && found <= info->image_count && i < info->record_count; i++) {
        if (kind[i] == KIND_DAMAGED && missing > 0)
            missing--;
        else if (kind[i] != KIND_IMAGE)
            continue;
        out->place[out->count++] = (struct sample_place){shard, i};
    }
    free(kind);
    if (status == CHEX_OK && (found > info->image_count || missing > 0))
        return error_set(err, CHEX_ERR_DAMAGED, "shard '%s' holds %u images, the manifest says %u", info->name, found,
                         info->image_count);
    return status;
}

enum chex_status
samples_list(const struct chex_dataset *ds, unsigned split, struct samples *out, struct chex_error *err)
{
    const struct chex_split_info *info = chex_dataset_split(ds, split);
    enum chex_status status = CHEX_OK;
    unsigned i;

    *out = (struct samples){.count = 0};
    out->place = malloc((info->image_count ? info->image_count : 1) * sizeof(*out->place));
    if (!out->place)
        return error_memory(err);
    for (i = info->first_shard; status == CHEX_OK && i < info->first_shard + info->shard_count; i++) {
        const struct chex_shard_info *shard = chex_dataset_shard(ds, i);
        uint32_t k;

        if (shard->image_count < shard->record_count)
            status = list_mixed_shard(ds, i, shard, out, err);
        for (k = 0; shard->image_count == shard->record_count && k < shard->record_count; k++)
            out->place[out->count++] = (struct sample_place){i, k};
    }
    return status;
}

void
samples_release(struct samples *s)
{
    free(s->place);
    *s = (struct samples){.count = 0};
}

/* ---- order ----------------------------------------------------------------------------------------------------- */

/* Fisher-Yates; uses the numbers of the stream from *next on. */
static void
shuffle(uint32_t *item, size_t count, const struct random_stream *stream, uint32_t *next)
{
    size_t i;

    for (i = count; i > 1; i--) {
        size_t k = (size_t)random_below(stream, (*next)++, i);
        uint32_t swap = item[i - 1];

        item[i - 1] = item[k];
        item[k] = swap;
    }
}

/* Set first[shard - lowest] to the first sample of each shard; returns the number of shards; first[shards] = count. */
static uint32_t
find_shards(const struct samples *s, uint32_t *first)
{
    uint32_t shards = 0;
    size_t i;

    for (i = 0; i < s->count; i++)
        if (i == 0 || s->place[i].shard != s->place[i - 1].shard)
            first[shards++] = (uint32_t)i;
    first[shards] = (uint32_t)s->count;
    return shards;
}

static void
order_by_windows(const struct samples *s, const struct random_stream *stream, unsigned window, uint32_t *first,
                 uint32_t *shard, uint32_t *out)
{
    uint32_t shards = find_shards(s, first), next = 0, i, k;
    size_t at = 0, begin = 0;

    for (i = 0; i < shards; i++)
        shard[i] = i;
    shuffle(shard, shards, stream, &next);
    for (i = 0; i < shards; i++) {
        for (k = first[shard[i]]; k < first[shard[i] + 1]; k++)
            out[at++] = k;
        if ((i + 1) % window == 0 || i + 1 == shards) {
            shuffle(out + begin, at - begin, stream, &next);
            begin = at;
        }
    }
}

enum chex_status
order_epoch(const struct samples *s, uint64_t seed, uint32_t epoch, unsigned window, uint32_t *out,
            struct chex_error *err)
{
    struct random_stream stream = {.seed = seed, .purpose = RANDOM_ORDER, .a = epoch};
    uint32_t *scratch, next = 0;
    size_t i;

    if (s->count >= UINT32_MAX / 2)
        return error_set(err, CHEX_ERR_LIMIT, "%zu samples are too many", s->count);
    if (window == 0) {
        for (i = 0; i < s->count; i++)
            out[i] = (uint32_t)i;
        shuffle(out, s->count, &stream, &next);
        return CHEX_OK;
    }
    scratch = calloc(2 * (s->count + 1), sizeof(*scratch));
    if (!scratch)
        return error_memory(err);
    order_by_windows(s, &stream, window, scratch, scratch + s->count + 1, out);
    free(scratch);
    return CHEX_OK;
}

unsigned
order_choose_window(uint64_t bytes, unsigned shards, uint64_t memory)
{
    uint64_t each = shards > 0 ? (bytes + shards - 1) / shards : 0;
    unsigned window = 1;

    if (bytes <= memory)
        return 0;
    while (window < shards / 2 && each * 4 * window <= memory)
        window *= 2;
    return window;
}

enum chex_status
order_hash(const struct samples *s, const uint32_t *order, char out[ORDER_HASH], struct chex_error *err)
{
    struct digest *digest = digest_new();
    uint8_t hash[DIGEST_SIZE];
    size_t i;
    int k;

    if (!digest)
        return error_memory(err);
    digest_start(digest);
    for (i = 0; i < s->count; i++) {
        const struct sample_place *p = &s->place[order[i]];
        uint8_t id[8];

        for (k = 0; k < 4; k++) {
            id[k] = (uint8_t)(p->shard >> (8 * k));
            id[4 + k] = (uint8_t)(p->index >> (8 * k));
        }
        digest_add(digest, id, sizeof(id));
    }
    digest_finish(digest, hash);
    digest_free(digest);
    digest_hex(hash, (ORDER_HASH - 1) / 2, out);
    return CHEX_OK;
}

uint64_t
order_steps(size_t samples, uint64_t global_batch)
{
    return samples / global_batch + (samples % global_batch != 0);
}
