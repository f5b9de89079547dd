/*
 * staging_shard.c - one shard of a copy: is it there, and how it gets there; see staging.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "data/staging_private.h"

#include "dataset/dataset.h"
#include "dataset/tfrecord.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* SHA-256 of a file of this size, written to `to` where that is given.  CHEX_ERR_CHECKSUM: it is another one. */
static enum chex_status
hash_file(struct staging *s, int fd, const struct chex_shard_info *info, struct safe_file *to, uint8_t *chunk,
          struct digest *digest, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    uint8_t hash[DIGEST_SIZE];
    char hex[DIGEST_HEX];
    uint64_t at = 0;
    size_t got = 0;

    digest_start(digest);
    while (status == CHEX_OK && at < info->size && !staging_is_stopped(s)) {
        size_t size = info->size - at < STAGING_CHUNK ? (size_t)(info->size - at) : STAGING_CHUNK;

        status = file_pread(fd, at, chunk, size, &got, err);
        if (status == CHEX_OK && got < size)
            status = chex_fail(err, CHEX_ERR_TRUNCATED, "became shorter");
        digest_add(digest, chunk, got);
        if (status == CHEX_OK && to)
            status = safe_file_write(to, chunk, got, err);
        at += got;
        atomic_fetch_add(&s->done, got);
    }
    digest_finish(digest, hash);
    digest_hex(hash, DIGEST_SIZE, hex);
    if (status == CHEX_OK && at < info->size)
        status = chex_fail(err, CHEX_ERR_STOPPED, "stopped while copying the data set");
    if (status == CHEX_OK && strcmp(hex, info->sha256) != 0)
        status = chex_fail(err, CHEX_ERR_CHECKSUM, "its SHA-256 is not that of the manifest");
    if (status != CHEX_OK)
        atomic_fetch_sub(&s->done, at); /* it comes again */
    return status;
}

/*
 * The same for a file that lies there, by the checksums of its records and the manifest's over these, which takes a
 * twentieth of the time: what a copy or a disk does to a file is noticed, and nobody else may write there.
 */
static enum chex_status
check_records(struct staging *s, int fd, unsigned shard, uint8_t *chunk, struct chex_error *err)
{
    const struct chex_shard_info *info = chex_dataset_shard(s->o.ds, shard);
    size_t stride = chex_dataset_info(s->o.ds)->stride, got = 0, i;
    uint32_t most = stride < STAGING_CHUNK ? (uint32_t)(STAGING_CHUNK / stride) : 1, at, count, chain = 0;
    enum chex_status status = CHEX_OK;
    uint64_t read = 0;
    char hex[CRC_HEX];

    for (at = 0; status == CHEX_OK && at < info->record_count && !staging_is_stopped(s); at += count) {
        uint64_t length = 0;

        count = info->record_count - at < most ? info->record_count - at : most;
        status = file_pread(fd, (uint64_t)at * stride, chunk, count * stride, &got, err);
        if (status == CHEX_OK && got < count * stride)
            status = chex_fail(err, CHEX_ERR_TRUNCATED, "became shorter");
        for (i = 0; status == CHEX_OK && i < count; i++) {
            status = tfrecord_length(chunk + i * stride, stride, &length, err);
            if (status == CHEX_OK && length != stride - TFRECORD_FRAME)
                status = chex_fail(err, CHEX_ERR_DAMAGED, "a record of another length");
            if (status == CHEX_OK)
                status = tfrecord_check_data(chunk + i * stride, (size_t)length, err);
            if (status == CHEX_OK)
                chain = tfrecord_chain(chain, chunk + i * stride, (size_t)length);
        }
        atomic_fetch_add(&s->done, got);
        read += got;
    }
    crc_hex(chain, hex);
    if (status == CHEX_OK && at < info->record_count)
        status = chex_fail(err, CHEX_ERR_STOPPED, "stopped while copying the data set");
    if (status == CHEX_OK && strcmp(hex, s->o.ds->manifest.shard[shard].crc32c) != 0)
        status = chex_fail(err, CHEX_ERR_CHECKSUM, "its checksum is not that of the manifest");
    if (status != CHEX_OK)
        atomic_fetch_sub(&s->done, read); /* it comes again */
    return status;
}

/* What lies there already. */
enum chex_status
staging_look_at_shard(struct staging *s, unsigned shard, uint8_t *chunk, struct digest *digest, struct chex_error *err)
{
    const struct chex_shard_info *info = chex_dataset_shard(s->o.ds, shard);
    struct chex_error why;
    enum chex_status status;
    uint64_t size;
    int fd;

    if (file_open(s->folder.fd, info->name, &fd, &size, &why) != CHEX_OK)
        return CHEX_OK;
    if (size != info->size)
        status = CHEX_ERR_TRUNCATED;
    else if (s->o.ds->manifest.shard[shard].crc32c)
        status = check_records(s, fd, shard, chunk, &why);
    else
        status = hash_file(s, fd, info, NULL, chunk, digest, &why);
    close(fd);
    s->there[shard] = status == CHEX_OK;
    return status == CHEX_ERR_STOPPED ? chex_fail(err, status, "%s", why.text) : CHEX_OK;
}

/* One attempt; the source is closed by the caller. */
static enum chex_status
copy_from(struct staging *s, int fd, const struct chex_shard_info *info, uint8_t *chunk, struct digest *digest,
          struct chex_error *err)
{
    struct safe_file *f;
    enum chex_status status = safe_file_create(&s->folder, info->name, SAFE_FILE_NEW, info->size, &f, err);

    if (status != CHEX_OK)
        return status;
    status = hash_file(s, fd, info, f, chunk, digest, err);
    /* What a power loss takes of it is missed by the next run. */
    if (status == CHEX_OK)
        return safe_file_commit(f, false, err);
    safe_file_free(f);
    return status;
}

static enum chex_status
leave_out(struct staging *s, const struct chex_shard_info *info, const struct chex_error *why)
{
    /* What lies there under its name has not its content. */
    enum chex_status status = folder_remove(&s->folder, info->name, NULL);

    pthread_mutex_lock(&s->mutex);
    if (s->told.left_out++ == 0)
        snprintf(s->told.why, sizeof(s->told.why), "'%.200s/%.100s': %.500s", s->o.ds->folder.path, info->name,
                 why->text);
    pthread_mutex_unlock(&s->mutex);
    return status;
}

enum chex_status
staging_copy_shard(struct staging *s, unsigned shard, uint8_t *chunk, struct digest *digest, struct chex_error *err)
{
    const struct chex_shard_info *info = chex_dataset_shard(s->o.ds, shard);
    enum chex_status status;
    uint64_t size;
    int fd;

    if (s->there[shard])
        return CHEX_OK;
    status = file_open(s->o.ds->folder.fd, info->name, &fd, &size, err);
    if (status == CHEX_ERR_MISSING)
        return chex_context(err, status, "'%s/%s'", s->o.ds->folder.path, info->name);
    if (status == CHEX_OK) {
        status = copy_from(s, fd, info, chunk, digest, err);
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* it is read from the copy from here on */
        if (chex_status_is_data(status))
            status = copy_from(s, fd, info, chunk, digest, err);
        close(fd);
    }
    if (status == CHEX_OK)
        atomic_fetch_add(&s->copied, info->size);
    if (chex_status_is_data(status) || status == CHEX_ERR_READ)
        return leave_out(s, info, err);
    return status;
}
