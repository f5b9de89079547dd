/*
 * store_resume.c - opens a store and resumes the work of earlier runs: finished shards, and full slots of other shards
 *
 * A shard is finished if every byte of it matches its line in the journal.  Any other file with a shard's name, or with
 * the name of its partial file, becomes the partial file, and its valid slots are kept.  So a kill between a rename and
 * the journal's line loses nothing.
 *
 * A repair resumes a complete data set: its manifest takes the place of the journal's lines.  If a shard does not
 * match, the data set becomes an unfinished one with a journal of its valid shards.  A kill at any moment leaves either
 * a complete or an unfinished data set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "store/store_private.h"

#include "base/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- scanning files ------------------------------------------------------------------------------------------- */

/* Scan the records of the file with this name.  CHEX_ERR_MISSING and CHEX_ERR_READ: the file cannot be opened. */
static enum chex_status
scan_name(const struct store *store, size_t shard, const char *name, struct store_found *out, struct chex_error *err)
{
    int fd;
    enum chex_status status = file_open(store->folder->fd, name, &fd, &out->result.size, err);

    if (status != CHEX_OK)
        return status;
    status = store_scan(store, shard, fd, NULL, out, err);
    out->unreadable = status == CHEX_ERR_READ;
    close(fd);
    /*
     * The records end at a bad block, as at the end of the file: records after it are written again from their images.
     */
    return status == CHEX_ERR_READ || status == CHEX_ERR_TRUNCATED ? CHEX_OK : status;
}

/* Returns whether the shard is complete, has all images of the plan, and matches the journal's line (NULL: no line). */
static bool
is_finished(const struct store *store, size_t shard, const struct store_found *found, const struct shard_result *line)
{
    const struct plan_shard *s = &store->plan->shard[shard];
    const struct shard_result *seen = &found->result;

    if (found->good != s->records || seen->images != s->images ||
        seen->size != (uint64_t)s->records * store->plan->layout.stride)
        return false;
    return !line ||
           (line->size == seen->size && line->images == seen->images && strcmp(line->sha256, seen->sha256) == 0 &&
            (!line->crc32c[0] || strcmp(line->crc32c, seen->crc32c) == 0));
}

/* ---- resume ---------------------------------------------------------------------------------------------------- */

/* A FIFO, folder or link with a shard's name is not ours: never read, rename or remove it. */
static enum chex_status
check_regular(const struct store *store, size_t shard, struct chex_error *err)
{
    const char *name = store->plan->shard[shard].name;
    struct stat st;

    if (file_fstatat(store->folder->fd, name, AT_SYMLINK_NOFOLLOW, &st) == 0 && !S_ISREG(st.st_mode))
        return error_set(err, CHEX_ERR_WRITE, "'%s/%s' is not a regular file: remove it", store->folder->path, name);
    return CHEX_OK;
}

/* Make a file with the shard's name the partial file.  Scan it unless that was done already. */
static enum chex_status
take_over(struct store *store, size_t shard, bool scanned, struct store_found *found, struct chex_error *err)
{
    const struct plan_shard *s = &store->plan->shard[shard];
    char partial[STORE_PARTIAL_NAME];
    enum chex_status status = check_regular(store, shard, err);

    if (status != CHEX_OK)
        return status;
    store_partial_name(store, shard, partial);
    if (renameat(store->folder->fd, s->name, store->folder->fd, partial) != 0 && errno != ENOENT)
        return error_system(err, CHEX_ERR_WRITE, errno, "cannot rename '%s/%s'", store->folder->path, s->name);
    status = folder_own(store->folder, partial, err);
    if (status != CHEX_OK || scanned)
        return status;
    status = scan_name(store, shard, partial, found, err);
    if (status == CHEX_OK || status == CHEX_ERR_MISSING)
        return CHEX_OK;
    return error_context(err, status == CHEX_ERR_MEMORY ? status : CHEX_ERR_WRITE, "'%s/%s'", store->folder->path,
                         partial);
}

/* Resume a shard: it is finished, or its valid slots are kept.  If all slots are full, finish it at once. */
static enum chex_status
resume_shard(void *context, void *worker, size_t i, struct chex_error *err)
{
    struct store *store = context;
    struct store_shard *s = &store->shard[i];
    struct shard_result *line = &store->result[i];
    struct store_found found = {.slot = s->slot, .sha256 = line->done};
    enum chex_status status;

    (void)worker;
    if (!s->ours)
        return CHEX_OK;
    status = scan_name(store, i, store->plan->shard[i].name, &found, err);
    if (status == CHEX_ERR_MEMORY)
        return status;
    /* A moment ago --repair found it whole, so the storage fails: another shard is not the remedy. */
    if (store->options.repair && line->done && line->size > 0 && (status == CHEX_ERR_READ || found.unreadable))
        return error_context(err, CHEX_ERR_READ, "'%s/%s'", store->folder->path, store->plan->shard[i].name);
    if (status == CHEX_OK && line->done && is_finished(store, i, &found, line)) {
        memcpy(s->was, line->was, sizeof(s->was));
        shard_result_release(line);
        *line = found.result;
        line->done = true;
        free(s->slot);
        s->slot = NULL;
        s->left = 0;
        return CHEX_OK;
    }
    if (line->done)
        memcpy(s->was, line->sha256, sizeof(s->was));
    shard_result_release(line);
    status = take_over(store, i, status == CHEX_OK, &found, err);
    s->left -= found.result.images;
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

/* Returns the number of partial files that may be open at once: the limit of the process, minus its other files. */
static unsigned
partials_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= 64)
        return 2;
    return limit.rlim_cur - 64 > 65536 ? 65536 : (unsigned)(limit.rlim_cur - 64);
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

static enum chex_status
make_store(const struct folder *folder, const struct slot_plan *plan, const struct store_options *options,
           struct store **out, struct chex_error *err)
{
    struct store *store = calloc(1, sizeof(*store));
    size_t i;

    *out = NULL;
    if (!store)
        return error_memory(err);
    store->folder = folder;
    store->plan = plan;
    store->options = *options;
    store->journal.fd = -1;
    store->max_open = partials_limit();
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
        return error_memory(err);
    }
    *out = store;
    return CHEX_OK;
}

/* Read the journals.  Lines of other parts' shards are discarded; those of this part are checked later. */
static enum chex_status
read_journals(struct store *store, struct chex_error *err)
{
    const struct slot_plan *plan = store->plan;
    char spec[SPEC_TEXT];
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
store_open(const struct folder *folder, const struct slot_plan *plan, const struct store_options *options,
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
    struct parallel parallel = {
        .count = count,
        .threads = store->options.threads ? store->options.threads : 1,
        .work = each_work,
        .tick = each_tick,
        .context = &each,
        .stop = store->options.stop,
    };

    return parallel_for(&parallel, err);
}

uint64_t
store_space_needed(const struct store *store)
{
    uint64_t needed = 0;
    size_t i;

    for (i = 0; i < store->plan->shard_count; i++) {
        const struct plan_shard *s = &store->plan->shard[i];
        uint64_t size = (uint64_t)s->records * store->plan->layout.stride, there = 0;
        char partial[STORE_PARTIAL_NAME];
        struct stat st;

        if (!store->shard[i].slot)
            continue;
        store_partial_name(store, i, partial);
        if (fstatat(store->folder->fd, partial, &st, 0) == 0)
            there = (uint64_t)st.st_blocks * 512;
        needed += there < size ? size - there : 0;
    }
    return needed;
}

/* ---- repair ---------------------------------------------------------------------------------------------------- */

struct repair {
    const struct store *store;
    const struct manifest *m;  /* NULL: damaged or missing */
    struct store_found *found; /* [shard_count]; result.done: the shard is finished */
};

/* Convert the manifest's entry of a shard to the form of a journal's line. */
static bool
line_of(const struct repair *r, size_t shard, struct shard_result *out)
{
    const struct manifest_shard *s = &r->m->shard[shard];

    if (shard >= r->m->shard_count)
        return false;
    *out = (struct shard_result){.size = s->size, .images = s->images};
    snprintf(out->sha256, sizeof(out->sha256), "%s", s->sha256);
    snprintf(out->crc32c, sizeof(out->crc32c), "%s", s->crc32c ? s->crc32c : "");
    return true;
}

static enum chex_status
check_shard(void *context, void *worker, size_t shard, struct chex_error *err)
{
    const struct repair *r = context;
    struct store_found *found = &r->found[shard];
    struct shard_result line;
    enum chex_status status = check_regular(r->store, shard, err);

    (void)worker;
    if (status != CHEX_OK)
        return status;
    found->sha256 = true;
    status = scan_name(r->store, shard, r->store->plan->shard[shard].name, found, err);
    if (status == CHEX_ERR_MEMORY)
        return status;
    found->result.done = status == CHEX_OK && (r->m ? line_of(r, shard, &line) : true) &&
                         is_finished(r->store, shard, found, r->m ? &line : NULL);
    return CHEX_OK;
}

/*
 * Write a journal with a line for each finished shard.  A shard to be rewritten gets a line with the hash from the
 * manifest but with size 0, which matches no file.  So a resume, also after a kill, can compare the new shard with the
 * old one.  A shard with rejects gets no line, because its bytes may change.
 */
static enum chex_status
write_journal(const struct repair *r, struct chex_error *err)
{
    const struct slot_plan *plan = r->store->plan;
    struct shard_result *before = calloc(plan->shard_count, sizeof(*before));
    struct journal journal = {.fd = -1};
    char spec[SPEC_TEXT];
    size_t i;
    enum chex_status status = before ? folder_remove(r->store->folder, JOURNAL_NAME, err) : error_memory(err);

    spec_format(&plan->spec, spec, sizeof(spec));
    if (status == CHEX_OK)
        status = journal_open(r->store->folder, (struct part){0}, plan->dataset_id, spec, before, plan->shard_count,
                              &journal, err);
    for (i = 0; status == CHEX_OK && i < plan->shard_count; i++) {
        struct shard_result line = r->found[i].result;

        if (!line.done) {
            if (!r->m || !line_of(r, i, &line) || line.images != plan->shard[i].images)
                continue;
            line.size = line.images = 0;
            if (!line.crc32c[0])
                snprintf(line.crc32c, sizeof(line.crc32c), "00000000");
        }
        status = journal_add(&journal, i, &line, err);
    }
    journal_close(&journal);
    free(before);
    return status;
}

/*
 * Without a manifest, padding records in slots of images show that images were rejected or withdrawn.  rejects.jsonl
 * lists the rejected ones.  A repair must not bring back the withdrawn ones.
 */
static enum chex_status
check_withdrawn(const struct store *store, uint64_t padding, struct chex_error *err)
{
    static const char image[] = "{\"kind\":\"image\",";
    const size_t length = sizeof(image) - 1;
    struct buffer b = {0};
    uint64_t rejects = 0;
    size_t i;
    enum chex_status status = CHEX_OK;

    if (padding > 0)
        status = file_read(store->folder->fd, STORE_REJECTS_NAME, UINT32_MAX, &b, err);
    for (i = 0; status == CHEX_OK && i + length <= b.size; i++)
        rejects += (i == 0 || b.data[i - 1] == '\n') && memcmp(b.data + i, image, length) == 0;
    buffer_release(&b);
    if (status == CHEX_ERR_MEMORY || status == CHEX_ERR_READ)
        return error_context(err, status, "'%s/%s'", store->folder->path, STORE_REJECTS_NAME);
    if (padding > rejects)
        return error_set(err, CHEX_ERR_INCOMPATIBLE,
                         "'%s' has no good manifest, and %llu slots without an image that " STORE_REJECTS_NAME
                         " does not list: patients may have been withdrawn (--force converts all images again)",
                         store->folder->path, (unsigned long long)(padding - rejects));
    return CHEX_OK;
}

enum chex_status
store_repair(const struct store *store, const struct manifest *m, bool *damaged, struct chex_error *err)
{
    size_t count = store->plan->shard_count, i;
    uint64_t good = 0, padding = 0;
    struct repair r = {store, m, calloc(count, sizeof(*r.found))};
    enum chex_status status = r.found ? store_each(store, count, check_shard, &r, err) : error_memory(err);

    *damaged = !m;
    for (i = 0; status == CHEX_OK && i < count; i++) {
        *damaged |= !r.found[i].result.done;
        good += r.found[i].good;
        padding += r.found[i].padding;
    }
    /*
     * Another data set must not be mistaken for a damaged one of ours.  Without a readable manifest only the records
     * show it.
     */
    if (status == CHEX_OK && good == 0 && !m)
        status = error_set(err, CHEX_ERR_INCOMPATIBLE,
                           "'%s' has no good manifest and no record of this data set (--force replaces it)",
                           store->folder->path);
    if (status == CHEX_OK && !m)
        status = check_withdrawn(store, padding, err);
    if (status == CHEX_OK && *damaged)
        status = write_journal(&r, err);
    if (status == CHEX_OK && *damaged)
        status = folder_remove(store->folder, MANIFEST_NAME, err);
    if (status == CHEX_OK && *damaged)
        status = folder_sync(store->folder, err);
    free(r.found);
    return status;
}
