/*
 * archive_stream.c - reads and decompresses the file; see archive_private.h
 *
 * gunzip.h and unxz.h decompress gzip and xz.  Filters of libarchive decompress zstd and bzip2, in an archive object of
 * their own: the filter compares its checksum only at the end of the stream, so image_archive_drain() must be able to
 * read it to its end after the archive's last member.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "input/archive_private.h"

#include "io/file.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* ---- callbacks for libarchive ---------------------------------------------------------------------------------- */

/*
 * Let the stream fail.  If the status is not about data, it is not a fault of the archive: a system call failed, or the
 * user asked to stop.  libarchive gets no text: it would allocate memory for it, and it ends the process if that fails.
 */
static la_ssize_t
fail_stream(struct image_archive *a, const struct chex_error *why)
{
    if (!chex_status_is_data(why->status))
        a->failed = why->status;
    a->stream_error = *why;
    return ARCHIVE_FATAL;
}

static la_ssize_t
stop_stream(struct image_archive *a)
{
    struct chex_error why;

    error_stopped(&why);
    return fail_stream(a, &why);
}

static bool
stops(const struct image_archive *a)
{
    return a->options.stop && atomic_load(a->options.stop);
}

/*
 * Pass a block of the stream to the reader.  While libarchive searches for a tar header, zeros may follow to the end of
 * a disk, or a few compressed bytes may expand to an endless run of zeros.  So fail after IMAGE_ARCHIVE_END_MOST zeros.
 */
static la_ssize_t
deliver(struct image_archive *a, const uint8_t *data, size_t size)
{
    struct chex_error why;
    size_t used = size;

    while (used > 0 && data[used - 1] == 0)
        used--;
    if (used > 0)
        a->content = a->came + used;
    a->came += size;
    if (!a->in_header)
        return (la_ssize_t)size;
    a->endless = a->content <= a->header && a->came - a->header > IMAGE_ARCHIVE_END_MOST;
    if (a->endless)
        error_set(&why, CHEX_ERR_DAMAGED, "more than 1 MiB of zeros after its last member: download interrupted?");
    else if (a->came - a->header > IMAGE_ARCHIVE_HEADER_MOST)
        error_set(&why, CHEX_ERR_LIMIT, "the header of a member has more than 4 MiB");
    else
        return (la_ssize_t)size;
    return fail_stream(a, &why);
}

static la_ssize_t
read_file(struct archive *libarchive, void *context, const void **data)
{
    struct image_archive *a = context;
    struct chex_error err;
    size_t got;
    enum chex_status status;

    (void)libarchive;
    if (stops(a))
        return stop_stream(a);
    *data = a->block;
    status = file_pread(a->fd, a->at, a->block, a->block_size, &got, &err);
    if (status != CHEX_OK)
        return fail_stream(a, &err);
    a->at += got;
    return (la_ssize_t)got;
}

static la_ssize_t
read_plain(struct archive *libarchive, void *context, const void **data)
{
    struct image_archive *a = context;
    la_ssize_t got = read_file(libarchive, context, data);

    return got > 0 && !a->zip ? deliver(a, *data, (size_t)got) : got;
}

static la_int64_t
skip_file(struct archive *libarchive, void *context, la_int64_t request)
{
    struct image_archive *a = context;
    uint64_t left = a->at < a->size ? a->size - a->at : 0;

    (void)libarchive;
    /* Never skip past the end of the file: the next read must detect that the file is too short. */
    if (request < 0 || (uint64_t)request > left)
        request = (la_int64_t)left;
    a->at += (uint64_t)request;
    a->came += (uint64_t)request;
    return request;
}

static la_int64_t
seek_file(struct archive *libarchive, void *context, la_int64_t offset, int whence)
{
    struct image_archive *a = context;
    int64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? (int64_t)a->at : (int64_t)a->size;

    if (__builtin_add_overflow(base, offset, &base) || base < 0) {
        archive_set_error(libarchive, EINVAL, "a position outside the file");
        return ARCHIVE_FATAL;
    }
    a->at = (uint64_t)base;
    return base;
}

/* Read a block of a .gz or .xz file. */
static la_ssize_t
read_unpacked(struct archive *libarchive, void *context, const void **data)
{
    struct image_archive *a = context;
    struct chex_error err;
    const uint8_t *piece;
    size_t size;
    enum chex_status status;

    (void)libarchive;
    if (stops(a))
        return stop_stream(a);
    status = a->gunzip ? gunzip_read(a->gunzip, &piece, &size, &err) : unxz_read(a->unxz, &piece, &size, &err);
    if (status != CHEX_OK)
        return fail_stream(a, &err);
    *data = piece;
    return deliver(a, piece, size);
}

static la_ssize_t
read_filter(struct archive *libarchive, void *context, const void **data)
{
    struct image_archive *a = context;
    char shown[IMAGE_ARCHIVE_TEXT_MAX];
    struct chex_error why;
    la_int64_t offset;
    size_t size = 0;
    int code;

    (void)libarchive;
    if (stops(a))
        return stop_stream(a);
    code = archive_read_data_block(a->filter, data, &size, &offset);
    if (code == ARCHIVE_EOF)
        return 0;
    if (code == ARCHIVE_OK)
        return deliver(a, *data, size);
    /* If read_file() failed, it has already set the error. */
    if (a->stream_error.status != CHEX_OK)
        return ARCHIVE_FATAL;
    if (errno == ENOMEM || archive_errno(a->filter) == ENOMEM)
        error_memory(&why);
    else
        error_set(&why, CHEX_ERR_DAMAGED, "%s", image_archive_line(archive_error_string(a->filter), shown));
    return fail_stream(a, &why);
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

/* libarchive allocates memory for an error text, and ends the process if that fails.  So allocate it now. */
static void
keep_room_for_errors(struct archive *libarchive)
{
    char blank[IMAGE_ARCHIVE_TEXT_MAX];

    memset(blank, ' ', sizeof(blank) - 1);
    blank[sizeof(blank) - 1] = '\0';
    archive_set_error(libarchive, 0, "%s", blank);
    archive_clear_error(libarchive);
}

/* Like archive_read_open(), which does not check whether it got memory for the callback data, and then crashes. */
static int
open_on(struct archive *libarchive, struct image_archive *a, archive_read_callback *read)
{
    int code = archive_read_set_read_callback(libarchive, read);

    if (code == ARCHIVE_OK)
        code = archive_read_set_callback_data(libarchive, a);
    return code == ARCHIVE_OK ? archive_read_open1(libarchive) : code;
}

/* Open a decompressor of libarchive on the file.  ARCHIVE_WARN would mean that it runs an external program. */
static int
open_filter(struct image_archive *a, int (*support)(struct archive *))
{
    struct archive_entry *entry;
    int code = ARCHIVE_FATAL;

    a->filter = archive_read_new();
    entry = a->filter ? archive_entry_new2(a->filter) : NULL;
    if (!entry)
        return ARCHIVE_FATAL;
    keep_room_for_errors(a->filter);
    if (support(a->filter) == ARCHIVE_OK && archive_read_support_format_raw(a->filter) == ARCHIVE_OK &&
        open_on(a->filter, a, read_file) == ARCHIVE_OK)
        code = archive_read_next_header2(a->filter, entry);
    archive_entry_free(entry);
    return code;
}

static bool
begins_with(const uint8_t *data, size_t size, const char *magic, size_t length)
{
    return size >= length && memcmp(data, magic, length) == 0;
}

enum chex_status
image_archive_open_stream(struct image_archive *a, struct chex_error *err)
{
    int code = ARCHIVE_OK;
    size_t got;
    enum chex_status status = file_pread(a->fd, 0, a->block, 512, &got, err);

    if (status != CHEX_OK)
        return status;
    if (got == 0)
        return error_set(err, CHEX_ERR_EMPTY, "empty file (download interrupted?)");
    posix_fadvise(a->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    image_archive_call();
    if (gunzip_magic(a->block, got)) {
        a->gunzip = gunzip_new(a->fd, a->options.stop);
        return a->gunzip ? CHEX_OK : error_memory(err);
    }
    if (unxz_magic(a->block, got)) {
        a->unxz = unxz_new(a->fd, a->options.max_memory, a->options.stop);
        return a->unxz ? CHEX_OK : error_memory(err);
    }
    if (begins_with(a->block, got, "\x28\xb5\x2f\xfd", 4))
        code = open_filter(a, archive_read_support_filter_zstd);
    else if (begins_with(a->block, got, "BZh", 3))
        code = open_filter(a, archive_read_support_filter_bzip2);
    else
        a->zip = begins_with(a->block, got, "PK\3\4", 4) || begins_with(a->block, got, "PK\5\6", 4);
    if (code != ARCHIVE_OK && !a->filter)
        return error_memory(err);
    if (a->filter && image_archive_lost(a, a->filter, code != ARCHIVE_OK))
        return image_archive_fail(a, err);
    if (code != ARCHIVE_OK)
        image_archive_note_of(a, a->filter);
    return CHEX_OK;
}

int
image_archive_open_reader(struct image_archive *a)
{
    struct archive *r = a->reader;

    keep_room_for_errors(r);
    if ((a->zip ? archive_read_support_format_zip(r) : archive_read_support_format_tar(r)) != ARCHIVE_OK)
        return ARCHIVE_FATAL;
    /* Another tar may follow the end of a tar, if a user concatenated two files: read its images too. */
    if (!a->zip && archive_read_set_format_option(r, "tar", "read_concatenated_archives", "1") != ARCHIVE_OK)
        return ARCHIVE_FATAL;
    if (a->gunzip || a->unxz || a->filter)
        return open_on(r, a, a->filter ? read_filter : read_unpacked);
    archive_read_set_skip_callback(r, skip_file);
    archive_read_set_seek_callback(r, seek_file);
    return open_on(r, a, read_plain);
}

/* ---- the end of the stream ------------------------------------------------------------------------------------- */

/*
 * libarchive stops after a bzip2 stream if the next bytes do not begin another stream.  Allow only zeros; see gunzip.h.
 */
static void
check_padding(struct image_archive *a)
{
    uint64_t at = image_archive_offset(a);
    struct chex_error err;
    enum chex_status status;
    size_t got = 0, i;

    do {
        status = stops(a) ? error_stopped(&err) : file_pread(a->fd, at, a->block, a->block_size, &got, &err);
        if (status != CHEX_OK) {
            fail_stream(a, &err);
            return;
        }
        for (i = 0; i < got && a->block[i] == 0; i++)
            continue;
        if (i < got) {
            image_archive_note(a, CHEX_ERR_DAMAGED,
                               "what follows the compressed stream is neither another one nor zeros");
            return;
        }
        at += got;
    } while (got > 0);
}

void
image_archive_drain(struct image_archive *a)
{
    const void *data;
    la_ssize_t got = 1;

    while (got > 0 && (a->gunzip || a->unxz || a->filter)) {
        image_archive_call();
        got = a->filter ? read_filter(NULL, a, &data) : read_unpacked(NULL, a, &data);
    }
    if (got < 0)
        image_archive_note(a, a->stream_error.status, a->stream_error.text);
    else if (a->filter)
        check_padding(a);
}
