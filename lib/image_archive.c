/*
 * image_archive.c - see image_archive.h
 *
 * Three layers: the file, read in large pieces; a decompressor (gunzip.h, else a filter of libarchive of its own);
 * libarchive's tar or zip reader over that.  The decompressor is apart from the reader so that it can be read to its
 * end when the archive's last member is behind us: only there it compares its checksum.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "image_archive_private.h"

#include "file.h"
#include "progress.h"
#include "source.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file is read in pieces of this size; what is smaller, such as an archive of a test, as a whole. */
#define BLOCK_SIZE  (1u << 20)
#define BLOCK_LEAST (16u << 10)

/* Blocks of 512 bytes that are no header, one after the other, before a damaged tar is given up: a member's worth. */
#define MAX_RETRIES 1000000

/* ---- the file, and what decompresses it ----------------------------------------------------------------------- */

static la_ssize_t
fail_stream(struct image_archive *a, struct archive *libarchive, const char *text)
{
    a->stream_failed = true;
    archive_set_error(libarchive, EIO, "%s", text ? text : "not readable");
    return ARCHIVE_FATAL;
}

static la_ssize_t
read_file(struct archive *libarchive, void *context, const void **data)
{
    struct image_archive *a = context;
    struct chex_error err;
    size_t got;

    *data = a->block;
    if (file_pread(a->fd, a->at, a->block, a->block_size, &got, &err) != CHEX_OK) {
        return fail_stream(a, libarchive, err.text);
    }
    a->at += got;
    return (la_ssize_t)got;
}

static la_int64_t
skip_file(struct archive *libarchive, void *context, la_int64_t request)
{
    struct image_archive *a = context;
    uint64_t left = a->at < a->size ? a->size - a->at : 0;

    (void)libarchive;
    /* Never beyond the end: that the file is too short is seen by reading. */
    if (request < 0 || (uint64_t)request > left)
        request = (la_int64_t)left;
    a->at += (uint64_t)request;
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

static la_ssize_t
read_gunzip(struct archive *libarchive, void *context, const void **data)
{
    struct image_archive *a = context;
    struct chex_error err;
    const uint8_t *piece;
    size_t size;

    if (gunzip_read(a->gunzip, &piece, &size, &err) != CHEX_OK) {
        return fail_stream(a, libarchive, err.text);
    }
    *data = piece;
    return (la_ssize_t)size;
}

static la_ssize_t
read_filter(struct archive *libarchive, void *context, const void **data)
{
    struct image_archive *a = context;
    la_int64_t offset;
    size_t size = 0;
    int code = archive_read_data_block(a->filter, data, &size, &offset);

    if (code == ARCHIVE_EOF)
        return 0;
    if (code != ARCHIVE_OK) {
        return fail_stream(a, libarchive, archive_error_string(a->filter));
    }
    return (la_ssize_t)size;
}

/* ---- headers -------------------------------------------------------------------------------------------------- */

/* libarchive stops behind a bzip2 stream, whatever follows that does not begin like another one; see gunzip.h. */
static void
check_padding(struct image_archive *a)
{
    uint64_t at = image_archive_offset(a);
    struct chex_error err;
    size_t got, i;

    do {
        if (file_pread(a->fd, at, a->block, a->block_size, &got, &err) != CHEX_OK) {
            image_archive_note(a, err.text);
            return;
        }
        for (i = 0; i < got && a->block[i] == 0; i++)
            continue;
        if (i < got) {
            image_archive_note(a, "what follows the compressed stream is neither another one nor zeros");
            return;
        }
        at += got;
    } while (got > 0);
}

/* Read what is behind the last member, for the checksum at the end of the stream. */
static void
drain(struct image_archive *a)
{
    const void *data;
    la_ssize_t got = 1;

    while (got > 0 && (a->gunzip || a->filter))
        got = a->gunzip ? read_gunzip(a->reader, a, &data) : read_filter(a->reader, a, &data);
    if (got < 0)
        image_archive_note(a, archive_error_string(a->reader));
    else if (a->filter)
        check_padding(a);
}

/* The next header, whatever it is of; false at the end, which is drained, or where there is no going on. */
static bool
read_header(struct image_archive *a, struct archive_entry **entry)
{
    locale_t before = a->utf8 ? uselocale(a->utf8) : (locale_t)0;
    int code = archive_read_next_header(a->reader, entry);
    unsigned retries = 0;

    /* A damaged header of a tar: look for the next one. */
    while (code == ARCHIVE_RETRY && retries++ < MAX_RETRIES) {
        image_archive_note(a, archive_error_string(a->reader));
        code = archive_read_next_header(a->reader, entry);
    }
    if (a->utf8)
        uselocale(before);
    if (code == ARCHIVE_OK || code == ARCHIVE_WARN)
        return true;
    if (code != ARCHIVE_EOF) {
        image_archive_note(a, archive_error_string(a->reader));
        return false;
    }
    drain(a);
    if (!a->zip)
        image_archive_check_end(a);
    return false;
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

static bool
begins_with(const uint8_t *data, size_t size, const char *magic, size_t length)
{
    return size >= length && memcmp(data, magic, length) == 0;
}

/* A decompressor of libarchive over the file.  ARCHIVE_WARN would be one that runs a program. */
static int
open_filter(struct image_archive *a, int (*support)(struct archive *))
{
    struct archive_entry *entry;

    a->filter = archive_read_new();
    if (!a->filter)
        return ARCHIVE_FATAL;
    if (support(a->filter) != ARCHIVE_OK || archive_read_support_format_raw(a->filter) != ARCHIVE_OK ||
        archive_read_open2(a->filter, a, NULL, read_file, NULL, NULL) != ARCHIVE_OK)
        return ARCHIVE_FATAL;
    return archive_read_next_header(a->filter, &entry);
}

static int
open_reader(struct image_archive *a)
{
    struct archive *r = a->reader;

    if ((a->zip ? archive_read_support_format_zip(r) : archive_read_support_format_tar(r)) != ARCHIVE_OK)
        return ARCHIVE_FATAL;
    /* Behind the end of a tar another one may follow, where somebody put two files together: its images count too. */
    if (!a->zip && archive_read_set_format_option(r, "tar", "read_concatenated_archives", "1") != ARCHIVE_OK)
        return ARCHIVE_FATAL;
    if (a->gunzip)
        return archive_read_open2(r, a, NULL, read_gunzip, NULL, NULL);
    if (a->filter)
        return archive_read_open2(r, a, NULL, read_filter, NULL, NULL);
    archive_read_set_read_callback(r, read_file);
    archive_read_set_skip_callback(r, skip_file);
    archive_read_set_seek_callback(r, seek_file);
    archive_read_set_callback_data(r, a);
    return archive_read_open1(r);
}

/* Which decompressor, and whether it is a zip: by the first bytes.  What is nothing else may be tar. */
static enum chex_status
open_stream(struct image_archive *a, struct chex_error *err)
{
    int code = ARCHIVE_OK;
    size_t got;
    enum chex_status status = file_pread(a->fd, 0, a->block, 512, &got, err);

    if (status != CHEX_OK)
        return status;
    if (got == 0)
        return chex_fail(err, CHEX_ERR_EMPTY, "empty file (download interrupted?)");
    posix_fadvise(a->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    if (gunzip_magic(a->block, got)) {
        a->gunzip = gunzip_new(a->fd);
        if (!a->gunzip)
            return chex_fail_memory(err);
    } else if (begins_with(a->block, got,
                           "\xfd"
                           "7zXZ\0",
                           6)) {
        code = open_filter(a, archive_read_support_filter_xz);
    } else if (begins_with(a->block, got, "\x28\xb5\x2f\xfd", 4)) {
        code = open_filter(a, archive_read_support_filter_zstd);
    } else if (begins_with(a->block, got, "BZh", 3)) {
        code = open_filter(a, archive_read_support_filter_bzip2);
    } else {
        a->zip = begins_with(a->block, got, "PK\3\4", 4) || begins_with(a->block, got, "PK\5\6", 4);
    }
    if (code != ARCHIVE_OK && !a->filter)
        return chex_fail_memory(err);
    if (code != ARCHIVE_OK)
        image_archive_note(a, archive_error_string(a->filter));
    return CHEX_OK;
}

/* Open the stream and the reader, and look at the first header: what has none is no archive. */
static enum chex_status
open_by_content(struct image_archive *a, struct chex_error *err)
{
    enum chex_status status;

    a->block_size = a->size < BLOCK_LEAST ? BLOCK_LEAST : a->size < BLOCK_SIZE ? (size_t)a->size : BLOCK_SIZE;
    a->block = malloc(a->block_size);
    if (!a->block)
        return chex_fail_memory(err);
    status = open_stream(a, err);
    a->ended = a->has_fault;
    if (status != CHEX_OK || a->ended)
        return status;
    a->reader = archive_read_new();
    if (!a->reader)
        return chex_fail_memory(err);
    if (open_reader(a) == ARCHIVE_OK) {
        bool more = read_header(a, &a->peeked);

        /* Folders are not counted, and no password is known from one. */
        while (more && archive_entry_filetype(a->peeked) == AE_IFDIR)
            more = read_header(a, &a->peeked);
        if (more && archive_entry_is_data_encrypted(a->peeked))
            return chex_fail(err, CHEX_ERR_USAGE, "it is encrypted: unpack it by hand, and give the folder");
        if (more)
            return CHEX_OK;
        a->peeked = NULL;
    } else if (a->stream_failed) {
        image_archive_note(a, archive_error_string(a->reader));
    } else {
        return chex_fail(err, CHEX_ERR_NOT_IMAGE, "not a tar or zip archive");
    }
    a->ended = true;
    return CHEX_OK;
}

enum chex_status
image_archive_open(const char *path, locale_t utf8, struct image_archive **out, struct chex_error *err)
{
    struct image_archive *a = calloc(1, sizeof(*a));
    enum chex_status status;

    *out = NULL;
    if (!a)
        return chex_fail_memory(err);
    a->fd = -1;
    a->utf8 = utf8;
    status = file_open(AT_FDCWD, path, &a->fd, &a->size, err);
    if (status != CHEX_OK)
        a->fd = -1;
    else
        status = open_by_content(a, err);
    if (status != CHEX_OK) {
        image_archive_close(a);
        return status;
    }
    *out = a;
    return CHEX_OK;
}

void
image_archive_close(struct image_archive *a)
{
    if (!a)
        return;
    if (a->reader)
        archive_read_free(a->reader);
    if (a->filter)
        archive_read_free(a->filter);
    gunzip_free(a->gunzip);
    if (a->fd >= 0)
        close(a->fd);
    free(a->block);
    free(a);
}

/* ---- members -------------------------------------------------------------------------------------------------- */

/* Is a part of the path hidden?  "." and ".." are not. */
static bool
is_hidden(const char *path)
{
    while (*path) {
        size_t length = strcspn(path, "/");

        if (path[0] == '.' && !(length == 1 || (length == 2 && path[1] == '.')))
            return true;
        path += length + (path[length] == '/');
    }
    return false;
}

/* The name of an image, without folders, into a->name; false for what is none. */
static bool
take_name(struct image_archive *a, struct archive_entry *entry)
{
    const char *path, *slash;

    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
        return false;
    path = archive_entry_pathname(entry);
    if (!path || is_hidden(path))
        return false;
    slash = strrchr(path, '/');
    path = slash ? slash + 1 : path;
    if (strlen(path) > IMAGE_ARCHIVE_NAME_MAX || !source_is_image(path))
        return false;
    memcpy(a->name, path, strlen(path) + 1);
    return true;
}

bool
image_archive_next(struct image_archive *a, struct image_member *member)
{
    locale_t before = a->utf8 ? uselocale(a->utf8) : (locale_t)0;
    bool found = false;

    while (!found && !a->ended) {
        a->entry = a->peeked;
        a->peeked = NULL;
        a->ended = !a->entry && !read_header(a, &a->entry);
        if (a->ended)
            break;
        found = take_name(a, a->entry);
        a->others += !found && archive_entry_filetype(a->entry) != AE_IFDIR;
    }
    if (a->utf8)
        uselocale(before);
    if (found) {
        bool known = archive_entry_size_is_set(a->entry) && archive_entry_size(a->entry) >= 0;

        *member = (struct image_member){a->name, known, known ? (uint64_t)archive_entry_size(a->entry) : 0};
    }
    return found;
}

static enum chex_status
too_large(uint64_t size, uint64_t max, struct chex_error *err)
{
    return chex_fail(err, CHEX_ERR_LIMIT, "%s bytes are more than the %s allowed", COUNT_TEXT(size), COUNT_TEXT(max));
}

enum chex_status
image_archive_read(struct image_archive *a, uint64_t max, struct buffer *b, struct chex_error *err)
{
    bool known = archive_entry_size_is_set(a->entry) && archive_entry_size(a->entry) >= 0;
    uint64_t size = known ? (uint64_t)archive_entry_size(a->entry) : 65536;

    b->size = 0;
    if (known && size > max)
        return too_large(size, max, err);
    for (;;) {
        /* One byte more than it says: a member that is longer shows, and a zip compares its checksum there. */
        enum chex_status status = buffer_reserve(b, (b->size < size ? size : b->size) + 1, err);
        la_ssize_t got;

        if (status != CHEX_OK)
            return status;
        got = archive_read_data(a->reader, b->data + b->size,
                                known && b->size < size ? size - b->size : b->capacity - b->size);
        if (got < 0) {
            const char *text = archive_error_string(a->reader);
            char shown[IMAGE_ARCHIVE_TEXT_MAX];

            image_archive_note(a, text);
            a->ended |= got == ARCHIVE_FATAL;
            /* The padding behind it, in a tar; in a zip it is the checksum, which comes after the last byte too. */
            if (known && b->size == size &&
                (archive_format(a->reader) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR)
                return CHEX_OK;
            return chex_fail(err, CHEX_ERR_DAMAGED, "%s", image_archive_line(text, shown));
        }
        if (got == 0)
            break;
        b->size += (size_t)got;
        if (b->size > max)
            return too_large(b->size, max, err);
    }
    if (known && b->size != size) {
        const char *text = b->size < size ? "a member ends early" : "a member is longer than it says";

        image_archive_note(a, text);
        return chex_fail(err, CHEX_ERR_DAMAGED, "%s", text);
    }
    return CHEX_OK;
}

uint64_t
image_archive_others(const struct image_archive *a)
{
    return a->others;
}

const char *
image_archive_version(void)
{
    return archive_version_string();
}
