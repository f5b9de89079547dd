/*
 * store_finish.c - finishes a shard whose slots are all full or rejected
 *
 * The donor of an empty slot depends only on which images of the shard are usable: slot i gets a copy of usable image
 * number i modulo their count.  If a shard has no usable image, its donor is the first usable image of its split, after
 * all other shards are finished.  So the bytes depend only on the input.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "store/store_private.h"

#include "io/digest_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- padding records ------------------------------------------------------------------------------------------ */

/* Bytes of the records that are read or written at once, if they are more than one. */
#define PIECE (1u << 20)

/* Memory for copying records: the donors, and the padding records made of them, [room][stride] each. */
struct copies {
    uint8_t *donor, *padding;
    uint32_t room;
};

static enum chex_status
copies_init(struct copies *c, const struct store *store, struct chex_error *err)
{
    const size_t stride = store->plan->layout.stride;

    c->room = stride < PIECE ? (uint32_t)(PIECE / stride) : 1;
    c->donor = malloc(2 * c->room * stride);
    c->padding = c->donor ? c->donor + c->room * stride : NULL;
    return c->donor ? CHEX_OK : error_memory(err);
}

static void
copies_release(struct copies *c)
{
    free(c->donor);
}

/* Make a padding record for slot `index` of the shard: a copy of the record `from` (its values: v) with weight 0. */
static void
make_padding(const struct store *store, size_t shard, uint32_t index, const uint8_t *from, struct record_values v,
             uint8_t *out)
{
    const struct record_layout *l = &store->plan->layout;

    v.weight = 0;
    v.shard = (uint32_t)shard;
    v.index = index;
    memcpy(out + l->pixel_offset, from + l->pixel_offset, l->pixel_size);
    record_encode(l, &v, out);
    record_seal(l, out);
}

static enum chex_status
put_padding(struct store *store, size_t shard, uint32_t index, uint32_t count, const struct copies *c,
            struct chex_error *err)
{
    const size_t stride = store->plan->layout.stride;

    return safe_file_pwrite(store->shard[shard].partial, (uint64_t)index * stride, c->padding, count * stride, err);
}

static enum chex_status
fail_own_record(const struct store *store, size_t shard, uint32_t index, enum chex_status status,
                struct chex_error *err)
{
    /* The data just written was read back with errors: the disk is faulty, not the image. */
    if (status == CHEX_ERR_READ)
        return status;
    return error_context(err, CHEX_ERR_WRITE, "reading back record %u of '%s/%s'", index, store->folder->path,
                         store->plan->shard[shard].name);
}

/*
 * Write padding records to the empty slots index, index + 1, ...  Their donors are consecutive records of the shard as
 * well.  The data of a donor is not compared with its checksum here, because check_partial() does this for every slot.
 */
static enum chex_status
copy_records(struct store *store, size_t shard, uint32_t index, uint32_t count, uint32_t donor, const struct copies *c,
             struct chex_error *err)
{
    const struct shard_identity identity = store_shard_identity(store, shard);
    const size_t stride = store->plan->layout.stride;
    struct scanned_record found;
    size_t got;
    uint32_t i;
    enum chex_status status = safe_file_pread(store->shard[shard].partial, (uint64_t)donor * stride, c->donor,
                                              count * stride, &got, err);

    if (status == CHEX_OK && got < count * stride)
        status = error_set(err, CHEX_ERR_TRUNCATED, "file is too short");
    if (status != CHEX_OK)
        return fail_own_record(store, shard, donor, status, err);
    for (i = 0; i < count; i++) {
        const uint8_t *from = c->donor + i * stride;

        if (record_check(&identity, donor + i, from, false, &found) != CHEX_OK)
            return fail_own_record(store, shard, donor + i, record_fail(&found, err), err);
        make_padding(store, shard, index + i, from, found.values, c->padding + i * stride);
    }
    return put_padding(store, shard, index, count, c, err);
}

/* Write a padding record to every empty slot.  good[0 .. count - 1]: the slots with an image. */
static enum chex_status
fill_from_shard(struct store *store, size_t shard, const uint32_t *good, uint32_t count, const struct copies *c,
                struct chex_error *err)
{
    const struct plan_shard *s = &store->plan->shard[shard];
    const uint8_t *slot = store->shard[shard].slot;
    enum chex_status status = CHEX_OK;
    uint32_t i, run;

    for (i = 0; status == CHEX_OK && i < s->records; i += run) {
        const uint32_t donor = good[i % count];

        /* The empty slots from here whose donors are consecutive too. */
        for (run = 0; run < c->room && i + run < s->records; run++)
            if ((i + run < s->images && slot[i + run] == SLOT_FULL) || good[(i + run) % count] != donor + run)
                break;
        if (run > 0)
            status = copy_records(store, shard, i, run, donor, c, err);
        else
            run = 1;
    }
    return status;
}

/* List the slots with an image in good[records]; *count is their number. */
static void
list_good(const struct store *store, size_t shard, uint32_t *good, uint32_t *count)
{
    uint32_t i;

    *count = 0;
    for (i = 0; i < store->plan->shard[shard].images; i++)
        if (store->shard[shard].slot[i] == SLOT_FULL)
            good[(*count)++] = i;
}

/* ---- checking and hashing ------------------------------------------------------------------------------------- */

/* Report that the data read back differs from the data written. */
static enum chex_status
fail_read_back(const struct store *store, size_t shard, uint32_t index, struct chex_error *err)
{
    err->cause = EIO;
    return error_context(err, CHEX_ERR_WRITE, "reading back record %u of '%s/%s'", index, store->folder->path,
                         store->plan->shard[shard].name);
}

/* Read the whole partial file back: check each record, hash all bytes, and sum the pixels. */
static enum chex_status
check_partial(struct store *store, size_t shard, struct chex_error *err)
{
    const struct plan_shard *s = &store->plan->shard[shard];
    struct shard_result *r = &store->result[shard];
    struct store_found found = {.strict = true, .sha256 = true, .result = *r};
    enum chex_status status;

    found.result.images = 0;
    found.result.sum = found.result.squares = 0;
    found.result.size = (uint64_t)s->records * store->plan->layout.stride;
    status = store_scan(store, shard, -1, store->shard[shard].partial, &found, err);
    *r = found.result;
    if (status == CHEX_OK || status == CHEX_ERR_WRITE || status == CHEX_ERR_MEMORY)
        return status;
    return fail_read_back(store, shard, found.next, err);
}

enum chex_status
store_hash_file(const struct store *store, const char *name, char hex[DIGEST_HEX], struct chex_error *err)
{
    uint64_t size;
    int fd;
    enum chex_status status = file_open(store->folder->fd, name, &fd, &size, err);

    if (status == CHEX_OK) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        status = digest_file(fd, NULL, NULL, hex, err);
        close(fd);
    }
    return status == CHEX_OK ? status : error_context(err, status, "'%s/%s'", store->folder->path, name);
}

/* --verify: compare the content under the final name with the data written. */
static enum chex_status
verify_shard(const struct store *store, size_t shard, struct chex_error *err)
{
    const char *name = store->plan->shard[shard].name;
    char hex[DIGEST_HEX];
    enum chex_status status = store_hash_file(store, name, hex, err);

    if (status == CHEX_OK && strcmp(hex, store->result[shard].sha256) != 0)
        status = error_set(err, CHEX_ERR_WRITE, "'%s/%s': content differs from what was written", store->folder->path,
                           name);
    return status == CHEX_OK || status == CHEX_ERR_MEMORY ? status : error_context(err, CHEX_ERR_WRITE, "verifying");
}

/* ---- finishing ------------------------------------------------------------------------------------------------ */

/* Finish a shard with full slots: check it, rename it, add it to the journal. */
static enum chex_status
seal_shard(struct store *store, size_t shard, struct chex_error *err)
{
    struct store_shard *s = &store->shard[shard];
    struct shard_result *r = &store->result[shard];
    enum chex_status status;

    safe_file_begin_sync(s->partial); /* the disk writes while this thread hashes */
    status = check_partial(store, shard, err);
    if (status == CHEX_OK) {
        struct safe_file *partial = s->partial;

        s->partial = NULL;
        atomic_fetch_sub(&store->open_partials, 1);
        status = safe_file_commit(partial, true, err);
    }
    if (status == CHEX_OK && store->options.verify)
        status = verify_shard(store, shard, err);
    if (status != CHEX_OK)
        return status;
    pthread_mutex_lock(&store->journal_lock);
    status = journal_add(&store->journal, shard, r, err);
    pthread_mutex_unlock(&store->journal_lock);
    if (status != CHEX_OK)
        return status;
    pthread_mutex_lock(&s->lock);
    free(s->slot);
    s->slot = NULL;
    r->done = true;
    pthread_mutex_unlock(&s->lock);
    return CHEX_OK;
}

static enum chex_status
finish_by_itself(struct store *store, size_t shard, struct chex_error *err)
{
    uint32_t *good = malloc(store->plan->shard[shard].records * sizeof(*good)), count = 0;
    struct copies copies = {.donor = NULL};
    enum chex_status status = good ? copies_init(&copies, store, err) : error_memory(err);

    if (status == CHEX_OK)
        list_good(store, shard, good, &count);
    if (status == CHEX_OK && count == 0) {
        store->shard[shard].needs_donor = true;
    } else if (status == CHEX_OK) {
        /* The file is not open if an earlier run filled all slots but the last, and this run rejected that image. */
        status = store_open_partial(store, shard, err);
        if (status == CHEX_OK)
            status = fill_from_shard(store, shard, good, count, &copies, err);
        if (status == CHEX_OK)
            status = seal_shard(store, shard, err);
    }
    copies_release(&copies);
    free(good);
    return status;
}

/* Discard all data of the shard and empty its slots. */
static enum chex_status
rewrite_shard(struct store *store, size_t shard, struct chex_error *err)
{
    const struct plan_shard *p = &store->plan->shard[shard];
    struct store_shard *s = &store->shard[shard];
    char partial[STORE_PARTIAL_NAME];
    enum chex_status status;

    store_partial_name(store, shard, partial);
    store_close_partial(store, shard, NULL);
    status = folder_remove(store->folder, partial, err);
    /* If only syncing the folder failed, the file already has its final name. */
    if (status == CHEX_OK)
        status = folder_remove(store->folder, p->name, err);
    pthread_mutex_lock(&s->lock);
    s->rewrite = s->needs_donor = false;
    s->rewritten = s->rewrite_pending = true;
    s->left = p->images;
    memset(s->slot, SLOT_EMPTY, p->images);
    shard_result_release(&store->result[shard]);
    pthread_mutex_unlock(&s->lock);
    return status;
}

enum chex_status
store_finish_shard(struct store *store, size_t shard, struct chex_error *err)
{
    struct store_shard *s = &store->shard[shard];
    enum chex_status status = s->rewrite ? CHEX_OK : store_take_failure(s, finish_by_itself(store, shard, err), err);

    return s->rewrite ? rewrite_shard(store, shard, err) : status;
}

/* The donor of shards without a usable image: the first usable image of the split in a finished shard. */
struct donor {
    const struct record_layout *layout;
    uint8_t *record;
    struct record_values values; /* values of the record */
    bool found;
};

static bool
wants_record(void *context, uint32_t index)
{
    const struct donor *donor = context;

    (void)index;
    return !donor->found;
}

static enum chex_status
visit_record(void *context, const struct scanned_record *record, struct chex_error *err)
{
    struct donor *donor = context;

    if (record->fault != RECORD_GOOD)
        return record_fail(record, err);
    if (record->values.weight == 0)
        return CHEX_OK;
    donor->found = true;
    memcpy(donor->record, record->bytes, record->size);
    return record_decode(donor->layout, donor->record, &donor->values, err);
}

static enum chex_status
find_donor(struct store *store, unsigned split, struct donor *donor, struct chex_error *err)
{
    const struct slot_plan *plan = store->plan;
    struct shard_scan scan = {.wants = wants_record, .visit = visit_record, .context = donor};
    enum chex_status status;
    uint64_t size;
    size_t i = 0;

    while (i < plan->shard_count &&
           (plan->shard[i].split != split || !store->result[i].done || store->result[i].images == 0))
        i++;
    if (i == plan->shard_count)
        return error_set(err, CHEX_ERR_DAMAGED, "no image of split '%s' could be read", plan->splits.name[split]);
    scan.shard = store_shard_identity(store, i);
    scan.records = plan->shard[i].images;
    status = file_open(store->folder->fd, plan->shard[i].name, &scan.fd, &size, err);
    if (status == CHEX_OK) {
        status = shard_scan(&scan, err);
        close(scan.fd);
    }
    if (status == CHEX_OK && !donor->found)
        status = error_set(err, CHEX_ERR_DAMAGED, "no image in it");
    return status == CHEX_OK || status == CHEX_ERR_MEMORY
               ? status
               : error_context(err, CHEX_ERR_WRITE, "reading back '%s/%s'", store->folder->path, plan->shard[i].name);
}

static enum chex_status
write_padding(struct store *store, size_t shard, struct chex_error *err)
{
    const struct plan_shard *s = &store->plan->shard[shard];
    const size_t stride = store->plan->layout.stride;
    struct copies copies;
    enum chex_status status = copies_init(&copies, store, err);
    struct donor donor = {.layout = &store->plan->layout, .record = copies.donor};
    uint32_t i, k, count;

    if (status == CHEX_OK)
        status = find_donor(store, s->split, &donor, err);
    if (status == CHEX_OK)
        status = store_open_partial(store, shard, err);
    for (i = 0; status == CHEX_OK && i < s->records; i += count) {
        count = s->records - i < copies.room ? s->records - i : copies.room;
        for (k = 0; k < count; k++)
            make_padding(store, shard, i + k, donor.record, donor.values, copies.padding + k * stride);
        status = put_padding(store, shard, i, count, &copies, err);
    }
    if (status == CHEX_OK)
        status = seal_shard(store, shard, err);
    copies_release(&copies);
    return status;
}

static enum chex_status
finish_by_donor(struct store *store, size_t shard, struct chex_error *err)
{
    struct store_shard *s = &store->shard[shard];
    enum chex_status status = store_take_failure(s, write_padding(store, shard, err), err);

    if (!s->rewrite)
        return status;
    s->rewrite = false;
    s->rewritten = true;
    return write_padding(store, shard, err);
}

enum chex_status
store_finish(struct store *store, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; status == CHEX_OK && i < store->plan->shard_count; i++)
        if (store->shard[i].needs_donor && !store->result[i].done)
            status = finish_by_donor(store, i, err);
    for (i = 0; status == CHEX_OK && i < store->plan->shard_count; i++)
        if (!store->result[i].done)
            status = error_set(err, CHEX_ERR_BUG, "shard %zu is not finished", i);
    return status;
}
