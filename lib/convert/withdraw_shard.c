/*
 * withdraw_shard.c - writes a shard again with padding records in the withdrawn slots
 *
 * The new bytes depend only on the remaining images of the shard, so writing a shard twice gives the same bytes.  That
 * makes a repeated call safe: it need not know which shards an earlier call has written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/withdraw_private.h"

#include "base/threads.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct shard_writer {
    const struct folder *folder;
    const struct withdraw_options *o;
    struct withdraw_journal *j;
    size_t *shard; /* [count] the changed shards */
    size_t count;
    struct hashes {
        char sha256[DIGEST_HEX], crc32c[CRC_HEX];
    } * hashes; /* [count] */
    atomic_size_t linked;
};

/* The images of a shard that stay. */
struct kept {
    const struct withdrawn_slots *slots;
    uint32_t *index; /* [records] */
    uint32_t count;
};

bool
withdrawn_has(const struct withdrawn_slots *slots, uint32_t index)
{
    uint32_t low = 0, high = slots->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (slots->index[middle] == index)
            return true;
        if (slots->index[middle] < index)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static struct shard_identity
identity_of(const struct shard_writer *job, size_t shard)
{
    const struct manifest *m = &job->j->manifest;

    return (struct shard_identity){&m->layout, manifest_record_id(m), (uint32_t)shard};
}

/* A link is refused: the file that it points to would keep the images. */
static enum chex_status
open_shard(const struct shard_writer *job, size_t shard, int *fd, struct chex_error *err)
{
    const struct manifest_shard *s = &job->j->manifest.shard[shard];
    uint64_t size;
    enum chex_status status = file_open_own(job->folder, s->name, fd, &size, err);

    if (status == CHEX_OK && size != s->size) {
        close(*fd);
        status = error_set(err, CHEX_ERR_DAMAGED, "not of the size in the manifest");
    }
    return status == CHEX_OK ? status : error_context(err, status, "'%s/%s'", job->folder->path, s->name);
}

/* ---- images that stay -------------------------------------------------------------------------------------------- */

static enum chex_status
visit_kept(void *context, const struct scanned_record *record, struct chex_error *err)
{
    struct kept *kept = context;

    if (record->fault != RECORD_GOOD)
        return record_fail(record, err);
    if (record->values.weight == 1 && !withdrawn_has(kept->slots, record->index))
        kept->index[kept->count++] = record->index;
    return CHEX_OK;
}

/* List the images of a shard that stay.  Free out->index, also after a failure. */
static enum chex_status
list_kept(const struct shard_writer *job, size_t shard, int fd, struct kept *out, struct chex_error *err)
{
    const struct manifest_shard *s = &job->j->manifest.shard[shard];
    struct shard_scan scan = {.shard = identity_of(job, shard),
                              .fd = fd,
                              .records = s->records,
                              .texts = true,
                              .visit = visit_kept,
                              .context = out};
    enum chex_status status;

    *out = (struct kept){.slots = &job->j->shard[shard], .index = malloc(s->records * sizeof(*out->index))};
    if (!out->index)
        return error_memory(err);
    status = shard_scan(&scan, err);
    if (status == CHEX_OK && out->count != s->images)
        status = error_set(err, CHEX_ERR_DAMAGED, "%u images stay, the journal says %u", out->count, s->images);
    return status == CHEX_OK ? status : error_context(err, status, "'%s/%s'", job->folder->path, s->name);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* A shard that is written again. */
struct rewrite {
    const struct shard_writer *job;
    size_t shard;
    struct kept kept;
    size_t from; /* the shard of the donors: this one, or if no image of it stays, another one of the split */
    int from_fd;
    struct safe_file *out;
    uint8_t *donor, *record; /* [stride] */
};

/* Read and check the donor of slot `index`. */
static enum chex_status
read_donor(struct rewrite *r, uint32_t index, struct record_values *out, struct chex_error *err)
{
    const struct shard_identity identity = identity_of(r->job, r->from);
    const size_t stride = identity.layout->stride;
    const uint32_t number = r->kept.index[r->from == r->shard ? index % r->kept.count : 0];
    struct scanned_record record;
    size_t got;
    enum chex_status status = file_pread(r->from_fd, (uint64_t)number * stride, r->donor, stride, &got, err);

    if (status == CHEX_OK && got < stride)
        status = error_set(err, CHEX_ERR_TRUNCATED, "file is too short");
    if (status == CHEX_OK && record_check(&identity, number, r->donor, true, &record) != CHEX_OK)
        status = record_fail(&record, err);
    if (status == CHEX_OK)
        *out = record.values;
    return status == CHEX_OK ? status : error_context(err, status, "record %u", number);
}

static enum chex_status
visit_source(void *context, const struct scanned_record *record, struct chex_error *err)
{
    struct rewrite *r = context;
    const struct record_layout *l = &r->job->j->manifest.layout;
    struct record_values v = {.weight = 0};
    enum chex_status status;

    if (record->fault != RECORD_GOOD)
        return record_fail(record, err);
    if (!withdrawn_has(r->kept.slots, record->index))
        return safe_file_write(r->out, record->bytes, record->size, err);
    status = read_donor(r, record->index, &v, err);
    if (status != CHEX_OK)
        return status;
    v.weight = 0;
    v.shard = (uint32_t)r->shard;
    v.index = record->index;
    memcpy(r->record + l->pixel_offset, r->donor + l->pixel_offset, l->pixel_size);
    record_encode(l, &v, r->record);
    record_seal(l, r->record);
    return safe_file_write(r->out, r->record, l->stride, err);
}

static enum chex_status
visit_back(void *context, const struct scanned_record *record, struct chex_error *err)
{
    const struct rewrite *r = context;

    if (record->fault != RECORD_GOOD)
        return record_fail(record, err);
    if (record->values.weight == 1 && withdrawn_has(r->kept.slots, record->index))
        return error_set(err, CHEX_ERR_WRITE, "record %u is not a padding record", record->index);
    return CHEX_OK;
}

/* Copy the shard, read the copy back and hash it. */
static enum chex_status
write_copy(struct rewrite *r, int fd, struct hashes *hashes, struct chex_error *err)
{
    const struct manifest_shard *s = &r->job->j->manifest.shard[r->shard];
    struct shard_scan source = {.shard = identity_of(r->job, r->shard),
                                .fd = fd,
                                .records = s->records,
                                .visit = visit_source,
                                .context = r,
                                .stop = r->job->o->stop},
                      back = {.shard = source.shard,
                              .fd = -1,
                              .partial = r->out,
                              .records = s->records,
                              .sha256 = true,
                              .visit = visit_back,
                              .context = r};
    enum chex_status status = shard_scan(&source, err);

    if (status != CHEX_OK)
        return error_context(err, status, "'%s/%s'", r->job->folder->path, s->name);
    safe_file_begin_sync(r->out);
    status = shard_scan(&back, err);
    memcpy(hashes->sha256, back.sha256_hex, sizeof(hashes->sha256));
    crc_hex(back.crc32c, hashes->crc32c);
    if (status == CHEX_OK || status == CHEX_ERR_MEMORY)
        return status;
    return error_context(err, CHEX_ERR_WRITE, "reading back '%s/%s'", r->job->folder->path, s->name);
}

/* Choose where the donors come from.  If no image of the shard stays, take the first image of the split that stays. */
static enum chex_status
find_donors(struct rewrite *r, int fd, struct chex_error *err)
{
    const struct manifest *m = &r->job->j->manifest;
    const struct manifest_split *split = &m->split[m->shard[r->shard].split];
    const struct withdrawn_slots *slots;
    enum chex_status status = list_kept(r->job, r->shard, fd, &r->kept, err);

    r->from = r->shard;
    r->from_fd = fd;
    if (status != CHEX_OK || r->kept.count > 0)
        return status;
    slots = r->kept.slots;
    free(r->kept.index);
    r->kept.index = NULL;
    for (r->from = split->first_shard; r->from < split->first_shard + split->shard_count; r->from++)
        if (m->shard[r->from].images > 0)
            break;
    if (r->from == split->first_shard + split->shard_count)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "split '%s' has no image left", split->name);
    r->from_fd = -1;
    status = open_shard(r->job, r->from, &r->from_fd, err);
    if (status == CHEX_OK)
        status = list_kept(r->job, r->from, r->from_fd, &r->kept, err);
    r->kept.slots = slots;
    return status;
}

static enum chex_status
rewrite_shard(void *context, void *worker, size_t item, struct chex_error *err)
{
    struct shard_writer *job = context;
    struct rewrite r = {.job = job, .shard = job->shard[item], .from_fd = -1};
    const struct manifest *m = &job->j->manifest;
    struct stat st;
    int fd = -1;
    enum chex_status status;

    (void)worker;
    r.donor = malloc(m->layout.stride);
    r.record = malloc(m->layout.stride);
    status = r.donor && r.record ? open_shard(job, r.shard, &fd, err) : error_memory(err);
    if (status == CHEX_OK && fstat(fd, &st) == 0 && st.st_nlink > 1)
        job->linked++;
    if (status == CHEX_OK)
        status = find_donors(&r, fd, err);
    if (status == CHEX_OK)
        status = safe_file_create(job->folder, m->shard[r.shard].name, SAFE_FILE_NEW, 0, &r.out, err);
    if (status == CHEX_OK)
        status = write_copy(&r, fd, &job->hashes[item], err);
    if (status == CHEX_OK) {
        struct safe_file *out = r.out;

        r.out = NULL;
        status = safe_file_commit(out, true, err);
    }
    safe_file_free(r.out);
    if (r.from_fd >= 0 && r.from_fd != fd)
        close(r.from_fd);
    if (fd >= 0)
        close(fd);
    free(r.kept.index);
    free(r.donor);
    free(r.record);
    return status;
}

static void
tick(void *context, size_t done)
{
    const struct shard_writer *job = context;

    if (job->o->tick)
        job->o->tick(job->o->context, "writing", done, job->count);
}

/* Set the hashes of the changed shards in the manifest, whose arena owns them. */
static enum chex_status
set_hashes(struct shard_writer *job, struct chex_error *err)
{
    struct manifest *m = &job->j->manifest;
    size_t i;

    for (i = 0; i < job->count; i++) {
        struct manifest_shard *s = &m->shard[job->shard[i]];

        s->sha256 = arena_copy(&m->strings, job->hashes[i].sha256, DIGEST_HEX - 1);
        s->crc32c = arena_copy(&m->strings, job->hashes[i].crc32c, CRC_HEX - 1);
        if (!s->sha256 || !s->crc32c)
            return error_memory(err);
    }
    return CHEX_OK;
}

enum chex_status
withdraw_shards(const struct folder *folder, const struct withdraw_options *o, struct withdraw_journal *j,
                size_t *linked, struct chex_error *err)
{
    struct shard_writer job = {.folder = folder, .o = o, .j = j};
    struct parallel parallel = {
        .threads = o->threads ? o->threads : 1, .work = rewrite_shard, .tick = tick, .context = &job, .stop = o->stop};
    enum chex_status status;
    size_t i;

    job.shard = calloc(j->manifest.shard_count, sizeof(*job.shard));
    job.hashes = calloc(j->manifest.shard_count, sizeof(*job.hashes));
    for (i = 0; job.shard && i < j->manifest.shard_count; i++)
        if (j->shard[i].count > 0)
            job.shard[job.count++] = i;
    parallel.count = job.count;
    status = job.shard && job.hashes ? parallel_for(&parallel, err) : error_memory(err);
    if (status == CHEX_OK)
        status = set_hashes(&job, err);
    *linked = job.linked;
    free(job.shard);
    free(job.hashes);
    return status;
}
