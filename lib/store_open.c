/*
 * store_open.c - what lies in the folder already: another data set, a finished one, or the slots of a run that ended
 *
 * A finished shard is trusted where its journal line, its size and every record's checksums agree.  Any other file
 * under a shard's name or part name is a part: its good slots are taken over, so that a kill between a rename and the
 * journal's line costs nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "store_private.h"

#include "dali_index.h"
#include "manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define REJECTS_NAME "rejects.jsonl"

/* ---- files of ours -------------------------------------------------------------------------------------------- */

enum file_kind { FILE_FOREIGN, FILE_SHARD, FILE_PART, FILE_LEFTOVER };

/* What is behind chestxray14-SPLIT.tfrecord-NNNNN-of-NNNNN, as plan.c makes names; NULL where it is another name. */
static const char *
behind_shard_name(const char *p)
{
    static const char infix[] = ".tfrecord-", digits[] = "0123456789";

    if (strncmp(p, PLAN_PREFIX "-", strlen(PLAN_PREFIX "-")) != 0)
        return NULL;
    p += strlen(PLAN_PREFIX "-");
    p += strspn(p, "abcdefghijklmnopqrstuvwxyz_0123456789");
    if (strncmp(p, infix, strlen(infix)) != 0)
        return NULL;
    p += strlen(infix);
    if (strspn(p, digits) != 5 || strncmp(p + 5, "-of-", 4) != 0 || strspn(p + 9, digits) != 5)
        return NULL;
    return p + 14;
}

/* ".tmp.PID", as file.c makes names. */
static bool
is_temporary(const char *p)
{
    static const char infix[] = ".tmp.";
    size_t digits;

    if (strncmp(p, infix, strlen(infix)) != 0)
        return false;
    digits = strspn(p + strlen(infix), "0123456789");
    return digits > 0 && p[strlen(infix) + digits] == '\0';
}

/* Names are ours only where they match to the last character: under force, files are removed by them. */
static enum file_kind
kind_of(const char *name)
{
    static const char *const small[] = {MANIFEST_NAME, REJECTS_NAME, STORE_MISSING_NAME};
    bool hidden = name[0] == '.';
    const char *base = hidden ? name + 1 : name;
    const char *rest = behind_shard_name(base);
    size_t i;

    for (i = 0; hidden && i < sizeof(small) / sizeof(small[0]); i++)
        if (strncmp(base, small[i], strlen(small[i])) == 0 && is_temporary(base + strlen(small[i])))
            return FILE_LEFTOVER;
    if (!rest)
        return FILE_FOREIGN;
    if (hidden && strcmp(rest, ".part") == 0)
        return FILE_PART;
    if (strncmp(rest, DALI_INDEX_SUFFIX, strlen(DALI_INDEX_SUFFIX)) == 0)
        rest += strlen(DALI_INDEX_SUFFIX);
    if (hidden)
        return is_temporary(rest) ? FILE_LEFTOVER : FILE_FOREIGN;
    return rest[0] == '\0' ? FILE_SHARD : FILE_FOREIGN;
}

/*
 * Go through the folder.  remove[kind]: remove files of that kind; count[kind] says how many there were.
 */
static enum chex_status
sweep(const struct folder *folder, const bool *remove, size_t *count, struct chex_error *err)
{
    int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    enum chex_status status = CHEX_OK;
    struct dirent *d;

    if (!dir) {
        status = chex_fail(err, CHEX_ERR_READ, "cannot list the folder '%s': %s", folder->path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    while (status == CHEX_OK && (errno = 0, d = readdir(dir)) != NULL) {
        enum file_kind kind = kind_of(d->d_name);

        count[kind]++;
        if (remove[kind])
            status = folder_remove(folder, d->d_name, err);
    }
    if (status == CHEX_OK && errno != 0)
        status = chex_fail(err, CHEX_ERR_READ, "cannot list the folder '%s': %s", folder->path, strerror(errno));
    closedir(dir);
    return status;
}

/* Remove the data set in the folder: its mark of completion first. */
static enum chex_status
clear(const struct folder *folder, struct chex_error *err)
{
    const bool remove[] = {[FILE_SHARD] = true, [FILE_PART] = true, [FILE_LEFTOVER] = true, [FILE_FOREIGN] = false};
    size_t count[FILE_LEFTOVER + 1] = {0};
    enum chex_status status = folder_remove(folder, MANIFEST_NAME, err);

    if (status == CHEX_OK)
        status = folder_sync(folder, err);
    if (status == CHEX_OK)
        status = sweep(folder, remove, count, err);
    if (status == CHEX_OK)
        status = folder_remove(folder, REJECTS_NAME, err);
    if (status == CHEX_OK)
        status = folder_remove(folder, STORE_MISSING_NAME, err);
    return status == CHEX_OK ? folder_remove(folder, JOURNAL_NAME, err) : status;
}

/* ---- a complete data set -------------------------------------------------------------------------------------- */

/* A manifest of this data set: are its shards there?  With --verify also: have they the content that it says? */
static enum chex_status
check_complete(const struct store *store, const struct manifest *m, struct chex_error *err)
{
    unsigned i;

    for (i = 0; i < m->shard_count; i++) {
        const char *name = m->shard[i].name;
        char hex[DIGEST_HEX];
        struct stat st;
        enum chex_status status = CHEX_OK;

        if (fstatat(store->folder->fd, name, &st, 0) != 0 || (uint64_t)st.st_size != m->shard[i].size)
            return chex_fail(
                err, CHEX_ERR_DAMAGED,
                "'%s' has a manifest, but shard '%s' is missing or of another size (--force converts anew)",
                store->folder->path, name);
        if (store->options.verify)
            status = store_hash_file(store, name, hex, err);
        if (status == CHEX_OK && store->options.verify && strcmp(hex, m->shard[i].sha256) != 0)
            status = chex_fail(err, CHEX_ERR_DAMAGED,
                               "'%s/%s' differs from what the manifest says (--force converts anew)",
                               store->folder->path, name);
        if (status != CHEX_OK)
            return status;
    }
    return CHEX_OK;
}

/* state->complete: a manifest with the plan's id.  Another one is CHEX_ERR_INCOMPATIBLE; none is CHEX_OK. */
static enum chex_status
look_at_manifest(const struct store *store, struct store_state *state, struct chex_error *err)
{
    const struct folder *folder = store->folder;
    struct manifest m = {0};
    struct buffer b = {0};
    char asked[256];
    enum chex_status status = file_read(folder->fd, MANIFEST_NAME, MANIFEST_MAX, &b, err);

    if (status == CHEX_ERR_MISSING) {
        buffer_release(&b);
        return CHEX_OK;
    }
    if (status == CHEX_OK)
        status = manifest_parse(b.data, b.size, &m, err);
    spec_format(&store->plan->spec, asked, sizeof(asked));
    if (status != CHEX_OK)
        status = chex_context(err, status == CHEX_ERR_MEMORY ? status : CHEX_ERR_INCOMPATIBLE,
                              "'%s/%s' (--force replaces the data set)", folder->path, MANIFEST_NAME);
    else if (strcmp(m.dataset_id, store->plan->dataset_id) != 0)
        status = chex_fail(err, CHEX_ERR_INCOMPATIBLE,
                           "'%s' holds another data set (--force replaces it): there %.8s, %ux%u %s, %u a shard, "
                           "tail %s, align %u, split %s, seed %llu, at most %llu pixels, sides from %u%s; "
                           "asked for %.8s, %s",
                           folder->path, m.dataset_id, m.layout.width, m.layout.height, m.resize, m.shard_size, m.tail,
                           m.layout.align, m.split_rule, (unsigned long long)m.seed, (unsigned long long)m.max_pixels,
                           m.min_side, m.lenient ? ", lenient" : "", store->plan->dataset_id, asked);
    else
        status = check_complete(store, &m, err);
    if (status == CHEX_OK)
        *state = (struct store_state){.complete = true, .rejects = m.rejects};
    manifest_release(&m);
    buffer_release(&b);
    return status;
}

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
    uint32_t i;

    *full = *good = 0;
    for (i = 0; status == CHEX_OK && i < s->records; i++) {
        struct record_values values;

        status = file_pread(fd, (uint64_t)i * stride, record, stride, &got, err);
        if (status != CHEX_OK || got < stride)
            break;
        if (store_check_record(store, shard, i, record, &values, NULL) != CHEX_OK)
            continue;
        (*good)++;
        if (seen)
            digest_add(digest, record, stride);
        if (seen && values.weight)
            store_add_pixels(record + store->plan->layout.pixel_offset, store->plan->layout.pixel_size, seen);
        if (i < s->images && values.weight == 1) {
            slot[i] = SLOT_FULL;
            (*full)++;
        }
    }
    free(record);
    return status;
}

/* Does the journal's line say what was seen in the file?  It decides about the manifest, so all of it must. */
static bool
line_fits(const struct plan_shard *s, const struct shard_result *line, const struct shard_result *seen, uint32_t full)
{
    return line->images == full && full == s->images && line->sum == seen->sum && line->squares == seen->squares &&
           strcmp(line->sha256, seen->sha256) == 0;
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
    char part[PLAN_SHARD_NAME + 8];
    uint32_t full, good;
    uint64_t size;
    int fd;
    enum chex_status status;

    snprintf(part, sizeof(part), ".%s.part", s->name);
    if (renameat(store->folder->fd, s->name, store->folder->fd, part) != 0 && errno != ENOENT)
        return chex_fail(err, CHEX_ERR_WRITE, "cannot rename '%s/%s': %s", store->folder->path, s->name,
                         strerror(errno));
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

static enum chex_status
resume_shards(struct store *store, struct store_state *state, struct chex_error *err)
{
    size_t i;

    for (i = 0; i < store->plan->shard_count; i++) {
        const struct plan_shard *s = &store->plan->shard[i];
        enum chex_status status = CHEX_OK;
        bool finished = false;

        if (store->result[i].done)
            status = check_finished(store, i, &finished, err);
        if (status == CHEX_OK && !finished) {
            shard_result_release(&store->result[i]);
            status = take_over(store, i, err);
        }
        if (status != CHEX_OK)
            return status;
        if (finished) {
            free(store->shard[i].slot);
            store->shard[i].slot = NULL;
            store->shard[i].left = 0;
            state->shards_done++;
        }
        state->slots_full += finished ? 0 : s->images - store->shard[i].left;
    }
    return CHEX_OK;
}

/* Shards whose images are all there already, but that were not finished. */
static enum chex_status
finish_full_shards(struct store *store, struct store_state *state, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; status == CHEX_OK && i < store->plan->shard_count; i++) {
        if (!store->shard[i].slot || store->shard[i].left > 0)
            continue;
        status = store_finish_shard(store, i, err); /* opens the part */
        if (status == CHEX_OK) {
            state->shards_done++;
            state->slots_full -= store->plan->shard[i].images;
        }
    }
    return status;
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

/* The folder is fit for this plan: empty, or of the same data set; under force it is emptied. */
static enum chex_status
prepare_folder(struct store *store, struct store_state *state, struct chex_error *err)
{
    const bool remove[FILE_LEFTOVER + 1] = {[FILE_LEFTOVER] = true}, none[FILE_LEFTOVER + 1] = {false};
    size_t count[FILE_LEFTOVER + 1] = {0};
    char spec[256];
    enum chex_status status = store->options.force ? clear(store->folder, err) : CHEX_OK;

    if (status == CHEX_OK)
        status = look_at_manifest(store, state, err);
    /* Nothing is removed before it is known that the folder is this data set's. */
    if (status == CHEX_OK)
        status = sweep(store->folder, state->complete ? remove : none, count, err);
    if (status != CHEX_OK)
        return status;
    if (state->complete)
        return folder_remove(store->folder, JOURNAL_NAME, err);
    if (count[FILE_SHARD] + count[FILE_PART] > 0 && faccessat(store->folder->fd, JOURNAL_NAME, F_OK, 0) != 0)
        return chex_fail(err, CHEX_ERR_INCOMPATIBLE,
                         "'%s' holds %zu files of shards, but neither a manifest nor a journal (--force replaces them)",
                         store->folder->path, count[FILE_SHARD] + count[FILE_PART]);
    spec_format(&store->plan->spec, spec, sizeof(spec));
    status = journal_open(store->folder, store->plan->dataset_id, spec, store->result, store->plan->shard_count,
                          &store->journal, err);
    return status == CHEX_OK ? sweep(store->folder, remove, count, err) : status;
}

enum chex_status
store_open(const struct folder *folder, const struct plan *plan, const struct store_options *options,
           struct store **out, struct store_state *state, struct chex_error *err)
{
    enum chex_status status = make_store(folder, plan, options, out, err);

    *state = (struct store_state){0};
    if (status == CHEX_OK)
        status = prepare_folder(*out, state, err);
    if (status == CHEX_OK && !state->complete)
        status = resume_shards(*out, state, err);
    if (status == CHEX_OK && !state->complete)
        status = finish_full_shards(*out, state, err);
    if (status != CHEX_OK) {
        store_free(*out);
        *out = NULL;
    }
    return status;
}

uint64_t
store_space_needed(const struct store *store)
{
    uint64_t needed = 0;
    size_t i;

    for (i = 0; i < store->plan->shard_count; i++) {
        const struct plan_shard *s = &store->plan->shard[i];
        uint64_t size = (uint64_t)s->records * store->plan->layout.stride, there = 0;
        char part[PLAN_SHARD_NAME + 8];
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

enum chex_status
store_publish(struct store *store, const void *rejects, size_t rejects_size, const void *manifest, size_t manifest_size,
              struct chex_error *err)
{
    const struct folder *folder = store->folder;
    enum chex_status status;

    if (rejects_size > 0)
        status = safe_file_put(folder, REJECTS_NAME, rejects, rejects_size, err);
    else
        status = folder_remove(folder, REJECTS_NAME, err);
    if (status == CHEX_OK)
        status = safe_file_put(folder, MANIFEST_NAME, manifest, manifest_size, err);
    if (status != CHEX_OK)
        return status;
    journal_close(&store->journal);
    status = folder_remove(folder, JOURNAL_NAME, err);
    return status == CHEX_OK ? folder_sync(folder, err) : status;
}
