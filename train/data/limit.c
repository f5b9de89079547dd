/*
 * limit.c - see limit.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "data/limit.h"

#include "base/sha256.h"
#include "data/sample_texts.h"

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
    uint64_t *key; /* the hash of each sample's patient */
    struct digest *digest;
    char prefix[40];
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
take_key(void *context, size_t i, const struct record_values *values, struct chex_error *err)
{
    struct keys *k = context;

    (void)err;
    k->key[i] = values ? hash_patient(k, values->patient) : NOT_READABLE;
    return CHEX_OK;
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
    struct keys k = {.key = NULL};
    size_t bytes = (s->count > 0 ? s->count : 1) * sizeof(*k.key), kept = 0, i;
    uint64_t *sorted = malloc(bytes), last;
    enum chex_status status = CHEX_OK;

    k.key = malloc(bytes);
    k.digest = digest_new();
    snprintf(k.prefix, sizeof(k.prefix), "chex-limit:%llu:", (unsigned long long)seed);
    if (!sorted || !k.key || !k.digest)
        status = error_memory(err);
    if (status == CHEX_OK)
        status = samples_read_texts(ds, s, skip_bad, take_key, &k, err);
    if (status == CHEX_OK) {
        memcpy(sorted, k.key, s->count * sizeof(*sorted));
        last = last_key(sorted, s->count, limit);
        for (i = 0; i < s->count; i++)
            if (k.key[i] <= last || k.key[i] == NOT_READABLE)
                s->place[kept++] = s->place[i];
        s->count = kept;
    }
    digest_free(k.digest);
    free(k.key);
    free(sorted);
    return status;
}
