/*
 * store_repair.c - from a complete data set with damage or rejects back to an unfinished one, which is then resumed
 *
 * Every shard is read.  Those that are whole get a line in a journal, as if they had been finished just now; then the
 * manifest goes away, and all else is what a run does that goes on: the others are parts whose good slots are kept, and
 * the manifest is written again.  A kill at any moment leaves a complete data set or an unfinished one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "store/store_private.h"

#include "dataset/tfrecord.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What was found of one shard. */
struct found {
    struct shard_result result; /* over the good records */
    uint32_t good;              /* records */
    bool whole;                 /* all of them, every image of the plan, and no other bytes than the manifest says */
};

struct search {
    const struct store *store;
    const struct manifest *m;
    struct found *found; /* [shard_count] */
};

/* A shard that is not there, or cannot be read to its end, is one without so many good records. */
static enum chex_status
look_at_records(const struct store *store, size_t shard, int fd, uint8_t *record, struct digest *digest,
                struct found *out, struct chex_error *err)
{
    const struct plan_shard *s = &store->plan->shard[shard];
    const struct layout *l = &store->plan->layout;
    uint8_t hash[DIGEST_SIZE];
    uint32_t i, crc = 0;

    digest_start(digest);
    for (i = 0; i < s->records; i++) {
        struct record_values values;
        size_t got;
        enum chex_status status = file_pread(fd, (uint64_t)i * l->stride, record, l->stride, &got, err);

        if (status == CHEX_ERR_MEMORY)
            return status;
        if (status != CHEX_OK || got < l->stride)
            break;
        digest_add(digest, record, l->stride);
        crc = tfrecord_chain(crc, record, l->stride - TFRECORD_FRAME);
        if (store_check_record(store, shard, i, record, &values, NULL) != CHEX_OK)
            continue;
        out->good++;
        if (values.weight == 1 && i < s->images) {
            out->result.images++;
            store_add_pixels(record + l->pixel_offset, l->pixel_size, &out->result);
        }
    }
    digest_finish(digest, hash);
    digest_hex(hash, DIGEST_SIZE, out->result.sha256);
    crc_hex(crc, out->result.crc32c);
    return CHEX_OK;
}

static enum chex_status
look_at_shard(void *context, void *worker, size_t shard, struct chex_error *err)
{
    const struct search *search = context;
    const struct store *store = search->store;
    const struct plan_shard *s = &store->plan->shard[shard];
    const struct manifest *m = search->m;
    struct found *out = &search->found[shard];
    uint8_t *record = malloc(store->plan->layout.stride);
    struct digest *digest = digest_new();
    uint64_t size = 0;
    int fd = -1;
    enum chex_status status = record && digest ? file_open(store->folder->fd, s->name, &fd, &size, err)
                                               : chex_fail_memory(err);

    (void)worker;
    if (status == CHEX_OK) {
        status = look_at_records(store, shard, fd, record, digest, out, err);
        close(fd);
        out->result.size = size;
        out->whole = out->good == s->records && size == s->records * store->plan->layout.stride &&
                     (!m || (shard < m->shard_count && strcmp(out->result.sha256, m->shard[shard].sha256) == 0)) &&
                     out->result.images == s->images;
    } else if (status != CHEX_ERR_MEMORY) {
        status = CHEX_OK;
    }
    digest_free(digest);
    free(record);
    return status;
}

/*
 * A shard to be made again, in words of the manifest.  The line fits nothing, having no sums, so the shard is not taken
 * for whole; but the run that goes on, be it after a kill, sees whether the same comes out.
 */
static enum chex_status
note_damaged_shard(const struct store *store, size_t i, const struct manifest *m, struct journal *journal,
                   struct chex_error *err)
{
    struct shard_result was = {.done = false};

    if (!m || i >= m->shard_count || m->shard[i].images != store->plan->shard[i].images)
        return CHEX_OK;
    snprintf(was.sha256, sizeof(was.sha256), "%s", m->shard[i].sha256);
    snprintf(was.crc32c, sizeof(was.crc32c), "%s", m->shard[i].crc32c ? m->shard[i].crc32c : "00000000");
    return journal_add(journal, i, &was, err);
}

static enum chex_status
note_shards(const struct store *store, const struct found *found, const struct manifest *m, struct chex_error *err)
{
    struct shard_result *before = calloc(store->plan->shard_count, sizeof(*before));
    struct journal journal = {.fd = -1};
    char spec[256];
    size_t i;
    enum chex_status status = before ? folder_remove(store->folder, JOURNAL_NAME, err) : chex_fail_memory(err);

    spec_format(&store->plan->spec, spec, sizeof(spec));
    if (status == CHEX_OK)
        status = journal_open(store->folder, (struct part){0}, store->plan->dataset_id, spec, before,
                              store->plan->shard_count, &journal, err);
    for (i = 0; status == CHEX_OK && i < store->plan->shard_count; i++)
        if (found[i].whole)
            status = journal_add(&journal, i, &found[i].result, err);
        else
            status = note_damaged_shard(store, i, m, &journal, err);
    journal_close(&journal);
    free(before);
    return status;
}

/* Another data set must not be taken for a damaged one of ours; a manifest that cannot be read does not tell. */
static enum chex_status
check_ours(const struct store *store, const struct found *found, const struct manifest *m, struct chex_error *err)
{
    uint64_t good = 0;
    size_t i;

    for (i = 0; i < store->plan->shard_count; i++)
        good += found[i].good;
    if (good == 0 && !m)
        return chex_fail(err, CHEX_ERR_INCOMPATIBLE,
                         "'%s' has no good manifest and no record of this data set (--force replaces it)",
                         store->folder->path);
    return CHEX_OK;
}

enum chex_status
store_repair(const struct store *store, const struct manifest *m, bool *damaged, struct chex_error *err)
{
    size_t count = store->plan->shard_count, i;
    struct found *found = calloc(count, sizeof(*found));
    struct search search = {store, m, found};
    enum chex_status status = found ? store_each(store, count, look_at_shard, &search, err) : chex_fail_memory(err);

    *damaged = !m;
    for (i = 0; status == CHEX_OK && i < count; i++)
        *damaged |= !found[i].whole;
    if (status == CHEX_OK)
        status = check_ours(store, found, m, err);
    if (status == CHEX_OK && *damaged)
        status = note_shards(store, found, m, err);
    if (status == CHEX_OK && *damaged)
        status = folder_remove(store->folder, MANIFEST_NAME, err);
    if (status == CHEX_OK && *damaged)
        status = folder_sync(store->folder, err);
    free(found);
    return status;
}
