/*
 * limit.c - see limit.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "data/limit.h"

#include "base/sha256.h"
#include "dataset/dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_READABLE UINT64_MAX

enum chex_status
limit_parse(const char *text, struct sample_limit *out, struct chex_error *err)
{
    size_t digits = strspn(text, "0123456789"), length = strlen(text);
    bool percent = length > 1 && text[length - 1] == '%', good = length > 0 && length <= LIMIT_TEXT;
    char *end;

    *out = (struct sample_limit){.images = 0};
    if (good && percent && strspn(text, "0123456789.") == length - 1) {
        out->percent = strtod(text, &end);
        good = end == text + length - 1 && out->percent > 0 && out->percent <= 100;
    } else {
        out->images = good && digits == length ? strtoull(text, NULL, 10) : 0;
        good = out->images > 0;
    }
    if (!good)
        return error_set(err, CHEX_ERR_USAGE, "takes a number of images or a percentage such as 10%%, not '%s'", text);
    return CHEX_OK;
}

/* ---- the patients ------------------------------------------------------------------------------------------------ */

struct keys {
    const struct samples *samples;
    uint64_t *key; /* [samples->count]: the hash of its patient */
    size_t next;   /* the next sample, in the order of the shards */
    struct digest *digest;
    char prefix[40];
    bool skip_bad;
};

static uint64_t
hash_patient(const struct keys *k, struct chex_bytes patient)
{
    uint8_t sum[DIGEST_SIZE];
    uint64_t key = 0;
    int i;

    digest_start(k->digest);
    digest_add(k->digest, (const uint8_t *)k->prefix, strlen(k->prefix));
    digest_add(k->digest, patient.data, patient.size);
    digest_finish(k->digest, sum);
    for (i = 0; i < 8; i++)
        key = key << 8 | sum[i];
    return key == NOT_READABLE ? key - 1 : key;
}

static enum chex_status
visit_record(void *context, const struct scanned_record *record, struct chex_error *err)
{
    struct keys *k = context;

    if (k->next == k->samples->count || k->samples->place[k->next].index != record->index)
        return CHEX_OK; /* padding */
    if (record->fault != RECORD_GOOD && !k->skip_bad)
        return record_fail(record, err);
    k->key[k->next++] = record->fault == RECORD_GOOD ? hash_patient(k, record->values.patient) : NOT_READABLE;
    return CHEX_OK;
}

/* Read the records of one shard. */
static enum chex_status
read_shard(const struct chex_dataset *ds, unsigned number, struct keys *k, struct chex_error *err)
{
    const struct chex_shard_info *info = chex_dataset_shard(ds, number);
    struct shard_scan scan = {.shard = dataset_shard_identity(ds, number),
                              .records = info->record_count,
                              .texts = true,
                              .visit = visit_record,
                              .context = k};
    struct chex_shard *file;
    enum chex_status status = chex_shard_open(ds, number, &file, err);

    if (status != CHEX_OK)
        return status;
    scan.fd = file->fd;
    status = shard_scan(&scan, err);
    chex_shard_close(file);
    return status == CHEX_OK ? status : error_context(err, status, "'%s' record %u", info->name, scan.next);
}

static enum chex_status
read_keys(const struct chex_dataset *ds, struct keys *k, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && k->next < k->samples->count) {
        unsigned shard = k->samples->place[k->next].shard;

        status = read_shard(ds, shard, k, err);
        if (status == CHEX_OK && k->next < k->samples->count && k->samples->place[k->next].shard == shard)
            status = error_set(err, CHEX_ERR_DAMAGED, "'%s' has fewer records than the manifest says",
                               chex_dataset_shard(ds, shard)->name);
    }
    return status;
}

/* ---- the choice -------------------------------------------------------------------------------------------------- */

static int
by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Returns the largest key that is taken. */
static uint64_t
last_key(uint64_t *sorted, size_t count, const struct sample_limit *limit)
{
    double share = ceil((double)count * limit->percent / 100);
    uint64_t wanted = limit->images > 0 ? limit->images : (uint64_t)share;

    qsort(sorted, count, sizeof(*sorted), by_key);
    wanted = wanted > count ? count : wanted;
    while (wanted > 0 && sorted[wanted - 1] == NOT_READABLE)
        wanted--;
    return wanted > 0 ? sorted[wanted - 1] : 0;
}

enum chex_status
samples_limit(const struct chex_dataset *ds, const struct sample_limit *limit, uint64_t seed, bool skip_bad,
              struct samples *s, struct chex_error *err)
{
    struct keys k = {.samples = s, .skip_bad = skip_bad};
    size_t bytes = (s->count > 0 ? s->count : 1) * sizeof(*k.key), kept = 0, i;
    uint64_t *sorted = malloc(bytes), last;
    enum chex_status status = CHEX_OK;

    k.key = malloc(bytes);
    k.digest = digest_new();
    snprintf(k.prefix, sizeof(k.prefix), "chex-limit:%llu:", (unsigned long long)seed);
    if (!sorted || !k.key || !k.digest)
        status = error_memory(err);
    if (status == CHEX_OK)
        status = read_keys(ds, &k, err);
    if (status == CHEX_OK) {
        memcpy(sorted, k.key, s->count * sizeof(*sorted));
        last = last_key(sorted, s->count, limit);
        for (i = 0; i < s->count; i++)
            if (k.key[i] <= last)
                s->place[kept++] = s->place[i];
        s->count = kept;
    }
    digest_free(k.digest);
    free(k.key);
    free(sorted);
    return status;
}
