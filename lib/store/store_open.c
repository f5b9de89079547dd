/*
 * store_open.c - going on where earlier processes ended: finished shards, and the slots of those that are not
 *
 * A finished shard is trusted where its journal line, its size and every record's checksums agree.  Any other file
 * under a shard's name or part name is a part: its good slots are taken over, so that a kill between a rename and the
 * journal's line costs nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "store/store_private.h"

#include "base/pipeline.h"
#include "dataset/tfrecord.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- parts ---------------------------------------------------------------------------------------------------- */

/*
 * Look at every record of an open file: slot[i] becomes SLOT_FULL for images that are there; *good counts all records.
 * seen, if not NULL, gets hash and sums of the good ones, by a digest of its own.
 */
static enum chex_status
scan_records(struct store *store, size_t shard, int fd, uint8_t *slot, uint32_t *full, uint32_t *good,
             struct shard_result *seen, struct digest *digest, struct chex_error *err)
{
    const struct plan_shard *s = &store->plan->shard[shard];
    size_t stride = store->plan->layout.stride, got;
    uint8_t *record = malloc(stride);
    enum chex_status status = record ? CHEX_OK : chex_fail_memory(err);
    uint32_t crc = 0, i;

    *full = *good = 0;
    for (i = 0; status == CHEX_OK && i < s->records; i++) {
        struct record_values values;

        status = file_pread(fd, (uint64_t)i * stride, record, stride, &got, err);
        if (status == CHEX_ERR_READ || (status == CHEX_OK && got < stride)) {
            status = CHEX_OK; /* a bad block: what is behind it is made anew, as if the file ended there */
            break;
        }
        if (status != CHEX_OK)
            break;
        if (store_check_record(store, shard, i, record, &values, NULL) != CHEX_OK)
            continue;
        (*good)++;
        crc = tfrecord_chain(crc, record, stride - TFRECORD_FRAME);
        if (seen)
            digest_add(digest, record, stride);
        if (seen && values.weight)
            store_add_pixels(record + store->plan->layout.pixel_offset, store->plan->layout.pixel_size, seen);
        if (i < s->images && values.weight == 1) {
            slot[i] = SLOT_FULL;
            (*full)++;
        }
    }
    if (seen)
        crc_hex(crc, seen->crc32c);
    free(record);
    return status;
}

/* Does the journal's line say what was seen in the file?  It decides about the manifest, so all of it must. */
static bool
line_fits(const struct plan_shard *s, const struct shard_result *line, const struct shard_result *seen, uint32_t full)
{
    return line->images == full && full == s->images && line->sum == seen->sum && line->squares == seen->squares &&
           strcmp(line->sha256, seen->sha256) == 0 && strcmp(line->crc32c, seen->crc32c) == 0;
}

/* A shard that its journal line calls finished: is it?  False leaves it to be taken over as a part. */
static enum chex_status
check_finished(struct store *store, size_t shard, bool *finished, struct chex_error *err)
{
    const struct plan_shard *s = &store->plan->shard[shard];
    uint8_t *slot = store->shard[shard].slot, hash[DIGEST_SIZE];
    struct shard_result seen = {.done = false};
    struct digest *digest;
    uint32_t full, good;
    uint64_t size;
    int fd;
    enum chex_status status = file_open(store->folder->fd, s->name, &fd, &size, NULL);

    *finished = false;
    if (status != CHEX_OK || size != store->result[shard].size || size != s->records * store->plan->layout.stride) {
        if (status == CHEX_OK)
            close(fd);
        return CHEX_OK;
    }
    digest = digest_new();
    if (digest) {
        digest_start(digest);
        status = scan_records(store, shard, fd, slot, &full, &good, &seen, digest, err);
        digest_finish(digest, hash);
        digest_hex(hash, DIGEST_SIZE, seen.sha256);
        *finished = status == CHEX_OK && good == s->records && line_fits(s, &store->result[shard], &seen, full);
    } else {
        status = chex_fail_memory(err);
    }
    digest_free(digest);
    close(fd);
    memset(slot, SLOT_EMPTY, s->images);
    return status;
}

/* Take over what is in the shard's part, or under its name. */
static enum chex_status
take_over(struct store *store, size_t shard, struct chex_error *err)
{
    const struct plan_shard *s = &store->plan->shard[shard];
    char part[SHARD_NAME_MAX + 8];
    uint32_t full, good;
    uint64_t size;
    int fd;
    enum chex_status status;

    snprintf(part, sizeof(part), ".%s.part", s->name);
    if (renameat(store->folder->fd, s->name, store->folder->fd, part) != 0 && errno != ENOENT)
        return chex_fail(err, CHEX_ERR_WRITE, "cannot rename '%s/%s': %s", store->folder->path, s->name,
                         chex_errno_text(errno));
    status = folder_own(store->folder, part, err);
    if (status != CHEX_OK)
        return status;
    status = file_open(store->folder->fd, part, &fd, &size, err);
    if (status == CHEX_ERR_MISSING)
        return CHEX_OK;
    if (status != CHEX_OK)
        return chex_context(err, CHEX_ERR_WRITE, "'%s/%s'", store->folder->path, part);
    status = scan_records(store, shard, fd, store->shard[shard].slot, &full, &good, NULL, NULL, err);
    close(fd);
    if (status != CHEX_OK)
        return chex_context(err, status, "'%s/%s'", store->folder->path, part);
    store->shard[shard].left -= full;
    return CHEX_OK;
}

/* One shard: trusted, or taken over; finished at once where all its images are there. */
static enum chex_status
resume_shard(void *context, void *worker, size_t i, struct chex_error *err)
{
    struct store *store = context;
    struct store_shard *s = &store->shard[i];
    enum chex_status status = CHEX_OK;
    bool finished = false;

    (void)worker;
    if (!s->ours)
        return CHEX_OK;
    if (store->result[i].done)
        status = check_finished(store, i, &finished, err);
    if (status == CHEX_OK && finished) {
        memcpy(s->was, store->result[i].was, sizeof(s->was));
        free(s->slot);
        s->slot = NULL;
        s->left = 0;
        return CHEX_OK;
    }
    if (status == CHEX_OK) {
        if (store->result[i].done)
            memcpy(s->was, store->result[i].sha256, sizeof(s->was));
        shard_result_release(&store->result[i]);
        status = take_over(store, i, err);
    }
    return status == CHEX_OK && s->left == 0 ? store_finish_shard(store, i, err) : status;
}

static void
count_state(const struct store *store, struct store_state *state)
{
    size_t i;

    for (i = 0; i < store->plan->shard_count; i++) {
        const struct store_shard *s = &store->shard[i];

        if (!s->ours)
            continue;
        state->shards++;
        state->images += store->plan->shard[i].images;
        state->shards_done += s->slot == NULL;
        state->slots_full += s->slot ? store->plan->shard[i].images - s->left : 0;
        state->images_done += s->slot ? 0 : store->plan->shard[i].images;
    }
}

/* Parts that may be open at once: what the process may open, less what else it has open. */
static unsigned
parts_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= 64)
        return 2;
    return limit.rlim_cur - 64 > 65536 ? 65536 : (unsigned)(limit.rlim_cur - 64);
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

static enum chex_status
make_store(const struct folder *folder, const struct plan *plan, const struct store_options *options,
           struct store **out, struct chex_error *err)
{
    struct store *store = calloc(1, sizeof(*store));
    size_t i;

    *out = NULL;
    if (!store)
        return chex_fail_memory(err);
    store->folder = folder;
    store->plan = plan;
    store->options = *options;
    store->journal.fd = -1;
    store->max_open = parts_limit();
    pthread_mutex_init(&store->journal_lock, NULL);
    store->result = calloc(plan->shard_count, sizeof(*store->result));
    store->shard = calloc(plan->shard_count, sizeof(*store->shard));
    for (i = 0; store->shard && i < plan->shard_count; i++)
        pthread_mutex_init(&store->shard[i].lock, NULL);
    for (i = 0; store->shard && store->result && i < plan->shard_count; i++) {
        store->shard[i].ours = part_has(options->part, i);
        if (!store->shard[i].ours)
            continue;
        store->shard[i].left = plan->shard[i].images;
        store->shard[i].slot = calloc(plan->shard[i].images, 1);
        if (!store->shard[i].slot)
            break;
    }
    if (i < plan->shard_count || !store->result) {
        store_free(store);
        return chex_fail_memory(err);
    }
    *out = store;
    return CHEX_OK;
}

/* What its journals call finished is not of this part, or is looked at: nothing else is believed. */
static enum chex_status
read_journals(struct store *store, struct chex_error *err)
{
    const struct plan *plan = store->plan;
    char spec[256];
    size_t i;
    enum chex_status status;

    spec_format(&plan->spec, spec, sizeof(spec));
    status = journal_open(store->folder, store->options.part, plan->dataset_id, spec, store->result, plan->shard_count,
                          &store->journal, err);
    for (i = 0; i < plan->shard_count; i++)
        if (!store->shard[i].ours)
            shard_result_release(&store->result[i]);
    return status;
}

enum chex_status
store_open(const struct folder *folder, const struct plan *plan, const struct store_options *options,
           struct store **out, struct store_state *state, struct chex_error *err)
{
    enum chex_status status = make_store(folder, plan, options, out, err);

    if (status == CHEX_OK)
        status = read_journals(*out, err);
    *state = (struct store_state){0};
    if (status == CHEX_OK)
        status = store_each(*out, plan->shard_count, resume_shard, *out, err);
    if (status == CHEX_OK)
        count_state(*out, state);
    if (status != CHEX_OK) {
        store_free(*out);
        *out = NULL;
    }
    return status;
}

struct each {
    const struct store_options *options;
    store_work *work;
    void *context;
};

static enum chex_status
each_work(void *context, void *worker, size_t item, struct chex_error *err)
{
    struct each *each = context;

    return each->work(each->context, worker, item, err);
}

static void
each_tick(void *context, size_t done)
{
    struct each *each = context;

    (void)done;
    if (each->options->tick)
        each->options->tick(each->options->context);
}

enum chex_status
store_each(const struct store *store, size_t count, store_work *work, void *context, struct chex_error *err)
{
    struct each each = {&store->options, work, context};
    struct pipeline pipeline = {
        .count = count,
        .threads = store->options.threads ? store->options.threads : 1,
        .work = each_work,
        .tick = each_tick,
        .context = &each,
        .stop = store->options.stop,
    };

    return pipeline_run(&pipeline, err);
}

uint64_t
store_space_needed(const struct store *store)
{
    uint64_t needed = 0;
    size_t i;

    for (i = 0; i < store->plan->shard_count; i++) {
        const struct plan_shard *s = &store->plan->shard[i];
        uint64_t size = (uint64_t)s->records * store->plan->layout.stride, there = 0;
        char part[SHARD_NAME_MAX + 8];
        struct stat st;

        if (!store->shard[i].slot)
            continue;
        snprintf(part, sizeof(part), ".%s.part", s->name);
        if (fstatat(store->folder->fd, part, &st, 0) == 0)
            there = (uint64_t)st.st_blocks * 512;
        needed += there < size ? size - there : 0;
    }
    return needed;
}
