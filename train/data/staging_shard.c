/*
 * staging_shard.c - checks and copies one shard; see staging.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "data/staging_private.h"

#include "dataset/dataset.h"
#include "io/digest_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct copy {
    struct staging *s;
    struct safe_file *to; /* NULL: compute only the SHA-256 */
    uint64_t done;
};

static enum chex_status
copy_piece(void *context, const uint8_t *data, size_t size, struct chex_error *err)
{
    struct copy *copy = context;

    copy->done += size;
    atomic_fetch_add(&copy->s->done, size);
    if (staging_is_stopped(copy->s))
        return staging_fail_stopped(err);
    return copy->to ? safe_file_write(copy->to, data, size, err) : CHEX_OK;
}

/* Compare the SHA-256 of a file with the manifest, and write the file to `to` unless NULL.  CHEX_ERR_CHECKSUM */
static enum chex_status
check_sha256(struct staging *s, int fd, const struct chex_shard_info *info, struct safe_file *to,
             struct chex_error *err)
{
    struct copy copy = {.s = s, .to = to};
    char hex[DIGEST_HEX];
    enum chex_status status = digest_file(fd, copy_piece, &copy, hex, err);

    if (status == CHEX_OK && strcmp(hex, info->sha256) != 0)
        status = error_set(err, CHEX_ERR_CHECKSUM, "its SHA-256 is not that of the manifest");
    if (status != CHEX_OK)
        atomic_fetch_sub(&s->done, copy.done); /* these bytes will be counted again */
    return status;
}

static enum chex_status
visit_record(void *context, const struct scanned_record *record, struct chex_error *err)
{
    if (staging_is_stopped(context))
        return staging_fail_stopped(err);
    /* A copy does not depend on the form and place of a record. */
    return record->fault == RECORD_GOOD || record->fault >= RECORD_FORM ? CHEX_OK : record_fail(record, err);
}

/*
 * Check an existing file by the checksums of its records and the manifest's checksum over these.  This takes a
 * twentieth of the time of a SHA-256.  It detects damage by a copy or a disk; other users cannot write to the folder.
 */
static enum chex_status
check_records(struct staging *s, int fd, unsigned shard, struct chex_error *err)
{
    struct shard_scan scan = {.shard = dataset_shard_identity(s->o.ds, shard),
                              .fd = fd,
                              .records = chex_dataset_shard(s->o.ds, shard)->record_count,
                              .visit = visit_record,
                              .context = s,
                              .bytes = &s->done};
    char hex[CRC_HEX];
    enum chex_status status = shard_scan(&scan, err);

    crc_hex(scan.crc32c, hex);
    if (status == CHEX_OK && strcmp(hex, s->o.ds->manifest.shard[shard].crc32c) != 0)
        status = error_set(err, CHEX_ERR_CHECKSUM, "its checksum is not that of the manifest");
    if (status != CHEX_OK)
        atomic_fetch_sub(&s->done, scan.bytes_read); /* these bytes will be counted again */
    return status;
}

/* Check the file that exists already. */
enum chex_status
staging_probe_shard(struct staging *s, unsigned shard, struct chex_error *err)
{
    const struct chex_shard_info *info = chex_dataset_shard(s->o.ds, shard);
    struct chex_error why;
    enum chex_status status;
    uint64_t size;
    int fd;

    if (file_open_own(&s->folder, info->name, &fd, &size, &why) != CHEX_OK)
        return CHEX_OK;
    if (size != info->size)
        status = CHEX_ERR_TRUNCATED;
    else if (s->o.ds->manifest.shard[shard].crc32c)
        status = check_records(s, fd, shard, &why);
    else
        status = check_sha256(s, fd, info, NULL, &why);
    close(fd);
    s->there[shard] = status == CHEX_OK;
    return status == CHEX_ERR_STOPPED ? error_set(err, status, "%s", why.text) : CHEX_OK;
}

/* Copy once; the caller closes the source. */
static enum chex_status
copy_from(struct staging *s, int fd, const struct chex_shard_info *info, struct chex_error *err)
{
    struct safe_file *f;
    enum chex_status status = safe_file_create(&s->folder, info->name, SAFE_FILE_NEW, info->size, &f, err);

    if (status != CHEX_OK)
        return status;
    status = check_sha256(s, fd, info, f, err);
    /* After a power loss the next run detects an incomplete file. */
    if (status == CHEX_OK)
        return safe_file_commit(f, false, err);
    safe_file_free(f);
    return status;
}

static enum chex_status
skip_shard(struct staging *s, const struct chex_shard_info *info, const struct chex_error *why)
{
    /* A file with this name has wrong content. */
    enum chex_status status = folder_remove(&s->folder, info->name, NULL);

    pthread_mutex_lock(&s->mutex);
    if (s->progress.left_out++ == 0)
        snprintf(s->progress.why, sizeof(s->progress.why), "'%.200s/%.100s': %.500s", s->o.ds->folder.path, info->name,
                 why->text);
    pthread_mutex_unlock(&s->mutex);
    return status;
}

enum chex_status
staging_copy_shard(struct staging *s, unsigned shard, struct chex_error *err)
{
    const struct chex_shard_info *info = chex_dataset_shard(s->o.ds, shard);
    enum chex_status status;
    uint64_t size;
    int fd;

    if (s->there[shard])
        return CHEX_OK;
    status = file_open(s->o.ds->folder.fd, info->name, &fd, &size, err);
    if (status == CHEX_ERR_MISSING)
        return error_context(err, status, "'%s/%s'", s->o.ds->folder.path, info->name);
    if (status == CHEX_OK) {
        status = copy_from(s, fd, info, err);
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* later reads use the copy */
        if (chex_status_is_data(status))
            status = copy_from(s, fd, info, err);
        close(fd);
    }
    if (status == CHEX_OK)
        atomic_fetch_add(&s->copied, info->size);
    if (chex_status_is_data(status) || status == CHEX_ERR_READ)
        return skip_shard(s, info, err);
    return status;
}
