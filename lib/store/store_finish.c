/*
 * store_finish.c - from a part whose images are all decided to a finished shard
 *
 * Which image fills a slot depends on nothing but which images of the shard are usable: slot i gets a copy of usable
 * image number i modulo their count.  A shard without any borrows the first usable image of its split, once all others
 * are finished.  So the bytes depend on the input alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "store/store_private.h"

#include "dataset/tfrecord.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Records read at once: about a megabyte at 256x256. */
#define READ_RECORDS 16

/* ---- filling -------------------------------------------------------------------------------------------------- */

/* Put a copy of the record `from` (its values: v) into slot `index` of the shard, with weight 0. */
static enum chex_status
put_filling(struct store *store, size_t shard, uint32_t index, const uint8_t *from, struct record_values v,
            uint8_t *scratch, struct chex_error *err)
{
    const struct layout *l = &store->plan->layout;

    v.weight = 0;
    v.shard = (uint32_t)shard;
    v.index = index;
    memcpy(scratch + l->pixel_offset, from + l->pixel_offset, l->pixel_size);
    layout_encode(l, &v, scratch);
    layout_seal(l, scratch);
    return safe_file_pwrite(store->shard[shard].part, (uint64_t)index * l->stride, scratch, l->stride, err);
}

static enum chex_status
read_own_record(struct store *store, size_t shard, uint32_t index, uint8_t *record, struct record_values *v,
                struct chex_error *err)
{
    const struct plan_shard *s = &store->plan->shard[shard];
    size_t stride = store->plan->layout.stride, got;
    enum chex_status status = safe_file_pread(store->shard[shard].part, (uint64_t)index * stride, record, stride, &got,
                                              err);

    if (status == CHEX_OK && got < stride)
        status = chex_fail(err, CHEX_ERR_TRUNCATED, "file is too short");
    if (status == CHEX_OK)
        status = store_check_record(store, shard, index, record, v, err);
    /* What was just written came back otherwise: the disk, not the data. */
    if (status != CHEX_OK && status != CHEX_ERR_READ)
        status = chex_context(err, CHEX_ERR_WRITE, "reading back record %u of '%s/%s'", index, store->folder->path,
                              s->name);
    return status;
}

/* Fill every slot without an image.  good[0 .. count - 1] are the slots with one; buffers of a stride each. */
static enum chex_status
fill_from_shard(struct store *store, size_t shard, const uint32_t *good, uint32_t count, uint8_t *record,
                uint8_t *scratch, struct chex_error *err)
{
    const struct plan_shard *s = &store->plan->shard[shard];
    const uint8_t *slot = store->shard[shard].slot;
    enum chex_status status = CHEX_OK;
    struct record_values v;
    uint32_t i;

    for (i = 0; status == CHEX_OK && i < s->records; i++) {
        if (i < s->images && slot[i] == SLOT_FULL)
            continue;
        status = read_own_record(store, shard, good[i % count], record, &v, err);
        if (status == CHEX_OK)
            status = put_filling(store, shard, i, record, v, scratch, err);
    }
    return status;
}

/* The slots with an image; *count of them in good[records]. */
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

/* What comes back is not what was written. */
static enum chex_status
fail_read_back(const struct store *store, size_t shard, uint32_t index, struct chex_error *err)
{
    errno = EIO;
    return chex_context(err, CHEX_ERR_WRITE, "reading back record %u of '%s/%s'", index, store->folder->path,
                        store->plan->shard[shard].name);
}

/* Read the part back from end to end: each record is checked, all are hashed and summed up. */
static enum chex_status
check_part(struct store *store, size_t shard, uint8_t *buffer, struct digest *digest, struct chex_error *err)
{
    const struct plan_shard *s = &store->plan->shard[shard];
    const struct layout *l = &store->plan->layout;
    struct shard_result *r = &store->result[shard];
    uint8_t hash[DIGEST_SIZE];
    uint32_t at, i, crc = 0;

    r->images = 0;
    r->sum = r->squares = 0;
    digest_start(digest);
    for (at = 0; at < s->records; at += READ_RECORDS) {
        uint32_t count = s->records - at < READ_RECORDS ? s->records - at : READ_RECORDS;
        size_t got;
        enum chex_status status = safe_file_pread(store->shard[shard].part, (uint64_t)at * l->stride, buffer,
                                                  count * l->stride, &got, err);

        if (status == CHEX_OK && got < count * l->stride)
            status = chex_fail(err, CHEX_ERR_WRITE, "reading back '%s/%s': it is too short", store->folder->path,
                               s->name);
        for (i = 0; status == CHEX_OK && i < count; i++) {
            const uint8_t *record = buffer + i * l->stride;
            struct record_values v;

            status = store_check_record(store, shard, at + i, record, &v, err);
            if (status != CHEX_OK)
                return fail_read_back(store, shard, at + i, err);
            crc = tfrecord_chain(crc, record, l->stride - TFRECORD_FRAME);
            r->images += v.weight;
            if (v.weight)
                store_add_pixels(record + l->pixel_offset, l->pixel_size, r);
        }
        if (status != CHEX_OK)
            return status;
        digest_add(digest, buffer, count * l->stride);
    }
    digest_finish(digest, hash);
    digest_hex(hash, DIGEST_SIZE, r->sha256);
    crc_hex(crc, r->crc32c);
    r->size = (uint64_t)s->records * l->stride;
    return CHEX_OK;
}

enum chex_status
store_hash_file(const struct store *store, const char *name, char hex[DIGEST_HEX], struct chex_error *err)
{
    size_t room = READ_RECORDS * store->plan->layout.stride, got;
    uint8_t *buffer = malloc(room), hash[DIGEST_SIZE];
    struct digest *digest = digest_new();
    uint64_t size, at = 0;
    int fd = -1;
    enum chex_status status = buffer && digest ? file_open(store->folder->fd, name, &fd, &size, err)
                                               : chex_fail_memory(err);

    if (status == CHEX_OK) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        digest_start(digest);
        do {
            status = file_pread(fd, at, buffer, room, &got, err);
            if (status == CHEX_OK)
                digest_add(digest, buffer, got);
            at += got;
        } while (status == CHEX_OK && got > 0);
        close(fd);
        digest_finish(digest, hash);
        digest_hex(hash, DIGEST_SIZE, hex);
    }
    digest_free(digest);
    free(buffer);
    return status == CHEX_OK ? status : chex_context(err, status, "'%s/%s'", store->folder->path, name);
}

/* --verify: is under its final name what was written? */
static enum chex_status
verify_shard(const struct store *store, size_t shard, struct chex_error *err)
{
    const char *name = store->plan->shard[shard].name;
    char hex[DIGEST_HEX];
    enum chex_status status = store_hash_file(store, name, hex, err);

    if (status == CHEX_OK && strcmp(hex, store->result[shard].sha256) != 0)
        status = chex_fail(err, CHEX_ERR_WRITE, "'%s/%s': content differs from what was written", store->folder->path,
                           name);
    return status == CHEX_OK || status == CHEX_ERR_MEMORY ? status : chex_context(err, CHEX_ERR_WRITE, "verifying");
}

/* ---- finishing ------------------------------------------------------------------------------------------------ */

/* What a finishing needs; its owner frees it with scratch_release(). */
struct scratch {
    uint8_t *buffer; /* READ_RECORDS strides */
    uint32_t *good;
    struct digest *digest;
};

static void
scratch_release(struct scratch *s)
{
    free(s->buffer);
    free(s->good);
    digest_free(s->digest);
    *s = (struct scratch){0};
}

static enum chex_status
scratch_init(const struct store *store, size_t shard, struct scratch *s, struct chex_error *err)
{
    s->buffer = malloc(READ_RECORDS * store->plan->layout.stride);
    s->good = malloc(store->plan->shard[shard].records * sizeof(*s->good));
    s->digest = digest_new();
    if (s->buffer && s->good && s->digest)
        return CHEX_OK;
    scratch_release(s);
    return chex_fail_memory(err);
}

/* Every slot is filled: check, name, note. */
static enum chex_status
seal_shard(struct store *store, size_t shard, struct scratch *scratch, struct chex_error *err)
{
    struct store_shard *s = &store->shard[shard];
    struct shard_result *r = &store->result[shard];
    enum chex_status status;

    safe_file_begin_sync(s->part); /* the disk writes while this thread hashes */
    status = check_part(store, shard, scratch->buffer, scratch->digest, err);
    if (status == CHEX_OK) {
        struct safe_file *part = s->part;

        s->part = NULL;
        atomic_fetch_sub(&store->open_parts, 1);
        status = safe_file_commit(part, true, err);
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
    size_t stride = store->plan->layout.stride;
    struct scratch scratch = {0};
    uint32_t count;
    enum chex_status status = scratch_init(store, shard, &scratch, err);

    if (status != CHEX_OK)
        return status;
    list_good(store, shard, scratch.good, &count);
    if (count == 0) {
        store->shard[shard].borrows = true;
    } else {
        /* Not open yet where all images were there from an earlier run and the last one was rejected now. */
        status = store_open_part(store, shard, err);
        if (status == CHEX_OK)
            status = fill_from_shard(store, shard, scratch.good, count, scratch.buffer, scratch.buffer + stride, err);
        if (status == CHEX_OK)
            status = seal_shard(store, shard, &scratch, err);
    }
    scratch_release(&scratch);
    return status;
}

/* Nothing of the shard is believed any more: its slots are wanted again. */
static enum chex_status
begin_anew(struct store *store, size_t shard, struct chex_error *err)
{
    const struct plan_shard *p = &store->plan->shard[shard];
    struct store_shard *s = &store->shard[shard];
    char part[SHARD_NAME_MAX + 8];
    enum chex_status status;

    snprintf(part, sizeof(part), ".%s.part", p->name);
    store_close_part(store, shard, NULL);
    status = folder_remove(store->folder, part, err);
    /* It has its name already where only the folder could not be synced. */
    if (status == CHEX_OK)
        status = folder_remove(store->folder, p->name, err);
    pthread_mutex_lock(&s->lock);
    s->again = s->borrows = false;
    s->begun_anew = s->waits = true;
    s->left = p->images;
    memset(s->slot, SLOT_EMPTY, p->images);
    shard_result_release(&store->result[shard]);
    pthread_mutex_unlock(&s->lock);
    return status;
}

enum chex_status
store_finish_shard(struct store *store, size_t shard, struct chex_error *err)
{
    enum chex_status status = store->shard[shard].again ? CHEX_OK : finish_by_itself(store, shard, err);

    if (store->shard[shard].again || store_may_begin_anew(store, shard, status))
        return begin_anew(store, shard, err);
    return status;
}

/* The first usable image of a split that is in a finished shard, into record. */
static enum chex_status
find_lender(struct store *store, unsigned split, uint8_t *record, struct record_values *v, struct chex_error *err)
{
    const struct plan *plan = store->plan;
    size_t stride = plan->layout.stride, i, got;

    for (i = 0; i < plan->shard_count; i++) {
        enum chex_status status;
        uint64_t size;
        uint32_t index;
        bool found = false;
        int fd;

        if (plan->shard[i].split != split || !store->result[i].done || store->result[i].images == 0)
            continue;
        status = file_open(store->folder->fd, plan->shard[i].name, &fd, &size, err);
        if (status == CHEX_OK) {
            for (index = 0; status == CHEX_OK && !found && index < plan->shard[i].images; index++) {
                status = file_pread(fd, (uint64_t)index * stride, record, stride, &got, err);
                if (status == CHEX_OK)
                    status = got == stride ? store_check_record(store, i, index, record, v, err)
                                           : chex_fail(err, CHEX_ERR_TRUNCATED, "file is too short");
                found = status == CHEX_OK && v->weight == 1;
            }
            close(fd);
        }
        if (found)
            return CHEX_OK;
        return chex_context(err, CHEX_ERR_WRITE, "reading back '%s/%s'", store->folder->path, plan->shard[i].name);
    }
    return chex_fail(err, CHEX_ERR_DAMAGED, "no image of split '%s' could be read", plan->splits.name[split]);
}

static enum chex_status
borrow_all(struct store *store, size_t shard, struct chex_error *err)
{
    const struct plan_shard *s = &store->plan->shard[shard];
    size_t stride = store->plan->layout.stride;
    struct scratch scratch = {0};
    struct record_values v;
    uint32_t i;
    enum chex_status status = scratch_init(store, shard, &scratch, err);

    if (status == CHEX_OK)
        status = find_lender(store, s->split, scratch.buffer, &v, err);
    if (status == CHEX_OK)
        status = store_open_part(store, shard, err);
    for (i = 0; status == CHEX_OK && i < s->records; i++)
        status = put_filling(store, shard, i, scratch.buffer, v, scratch.buffer + stride, err);
    if (status == CHEX_OK)
        status = seal_shard(store, shard, &scratch, err);
    scratch_release(&scratch);
    return status;
}

static enum chex_status
finish_by_borrowing(struct store *store, size_t shard, struct chex_error *err)
{
    enum chex_status status = borrow_all(store, shard, err);

    if (!store_may_begin_anew(store, shard, status))
        return status;
    store->shard[shard].begun_anew = true;
    return borrow_all(store, shard, err);
}

enum chex_status
store_finish(struct store *store, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; status == CHEX_OK && i < store->plan->shard_count; i++)
        if (store->shard[i].borrows && !store->result[i].done)
            status = finish_by_borrowing(store, i, err);
    for (i = 0; status == CHEX_OK && i < store->plan->shard_count; i++)
        if (!store->result[i].done)
            status = chex_fail(err, CHEX_ERR_BUG, "shard %zu is not finished", i);
    return status;
}
