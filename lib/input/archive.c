/*
 * archive.c - see archive.h
 *
 * Reading has three layers.  The lowest one reads the file in large blocks.  The second decompresses it;
 * archive_stream.c contains both.  On top is libarchive's tar or zip reader, used here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "input/archive_private.h"

#include "base/ascii.h"
#include "base/number_format.h"
#include "input/image_name.h"
#include "io/content.h"
#include "io/file.h"

#include <archive_entry.h>
#include <fcntl.h>
#ifdef HAVE_MALLOC_TRIM
#include <malloc.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file is read in blocks of this size.  A smaller file, for example in a test, is read at once. */
#define BLOCK_SIZE  (1u << 20)
#define BLOCK_LEAST (16u << 10)

/*
 * The most 512-byte blocks that may follow each other without a valid header before a damaged tar is given up: the size
 * of a large member.
 */
#define MAX_RETRIES 1000000

/* ---- headers -------------------------------------------------------------------------------------------------- */

/*
 * Ask libarchive for the next header, once.  First skip the rest of the previous member, which does not count as
 * header.
 */
static int
ask_for_header(struct image_archive *a)
{
    int code = a->entry ? archive_read_data_skip(a->reader) : ARCHIVE_OK;

    a->entry = NULL;
    if (code < ARCHIVE_WARN)
        return ARCHIVE_FATAL;
    a->header = (uint64_t)archive_filter_bytes(a->reader, 0);
    a->in_header = !a->zip;
    code = archive_read_next_header2(a->reader, a->store);
    a->in_header = false;
    return code;
}

/*
 * Read the next header of any kind into a->entry.  Returns false at the end, after draining the stream, or if nothing
 * more can be read.
 */
static bool
read_header(struct image_archive *a)
{
    locale_t before = a->options.utf8 ? uselocale(a->options.utf8) : (locale_t)0;
    unsigned retries = 0;
    int code;

    for (;;) {
        image_archive_call();
        code = ask_for_header(a);
        if (image_archive_lost(a, a->reader, code != ARCHIVE_OK && code != ARCHIVE_EOF) || code != ARCHIVE_RETRY ||
            retries++ >= MAX_RETRIES)
            break;
        /* A damaged tar header: search for the next valid one. */
        image_archive_note_of(a, a->reader);
    }
    if (a->options.utf8)
        uselocale(before);
    if (a->failed != CHEX_OK)
        return false;
    if (code == ARCHIVE_OK || code == ARCHIVE_WARN) {
        a->entry = a->store;
        return !a->zip || !image_archive_is_heavy(a);
    }
    if (code != ARCHIVE_EOF) {
        image_archive_note_of(a, a->reader);
        return false;
    }
    image_archive_drain(a);
    if (!a->zip)
        image_archive_check_end(a);
    return false;
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

/* Find the first header that is not a folder's: folders are not counted, and their entries do not show encryption. */
static enum chex_status
look_at_first(struct image_archive *a, struct chex_error *err)
{
    bool more = read_header(a);

    while (more && archive_entry_filetype(a->entry) == AE_IFDIR)
        more = read_header(a);
    if (a->failed != CHEX_OK)
        return image_archive_fail(a, err);
    if (more && archive_entry_is_data_encrypted(a->entry))
        return error_set(err, CHEX_ERR_USAGE, "it is encrypted: unpack it by hand, and give the folder");
    a->peeked = more;
    a->ended = !more;
    return CHEX_OK;
}

/* Fail with "not a tar or zip archive" and a guess of the file's real format. */
static enum chex_status
refuse_content(const struct image_archive *a, struct chex_error *err)
{
    const char *look = NULL;
    uint8_t head[CONTENT_LOOK];
    size_t got;

    if (a->gunzip || a->unxz || a->filter)
        look = "it is compressed, but contains no tar";
    else if (file_pread(a->fd, 0, head, sizeof(head), &got, NULL) == CHEX_OK && got > 0)
        look = content_look(head, got);
    return error_set(err, CHEX_ERR_NOT_IMAGE, "not a tar or zip archive%s%s", look ? ": " : "", look ? look : "");
}

/* Open the stream and the reader, and read the first header.  Without a valid header the file is not an archive. */
static enum chex_status
open_by_content(struct image_archive *a, struct chex_error *err)
{
    enum chex_status status;
    int code;

    a->block_size = a->size < BLOCK_LEAST ? BLOCK_LEAST : a->size < BLOCK_SIZE ? (size_t)a->size : BLOCK_SIZE;
    a->block = malloc(a->block_size);
    if (!a->block)
        return error_memory(err);
    status = image_archive_open_stream(a, err);
    a->ended = a->has_fault;
    if (status != CHEX_OK || a->ended)
        return status;
    a->reader = archive_read_new();
    /* Use a separate entry: out of memory, archive_read_new() creates none, and libarchive does not check that. */
    a->store = a->reader ? archive_entry_new2(a->reader) : NULL;
    if (!a->store)
        return error_memory(err);
    image_archive_call();
    code = image_archive_open_reader(a);
    if (image_archive_lost(a, a->reader, code != ARCHIVE_OK))
        return image_archive_fail(a, err);
    if (code == ARCHIVE_OK)
        return look_at_first(a, err);
    if (a->stream_error.status == CHEX_OK)
        return refuse_content(a, err);
    image_archive_note_of(a, a->reader);
    a->ended = true;
    return CHEX_OK;
}

enum chex_status
image_archive_open(const char *path, const struct image_archive_options *options, struct image_archive **out,
                   struct chex_error *err)
{
    struct image_archive *a = calloc(1, sizeof(*a));
    enum chex_status status;

    *out = NULL;
    if (!a)
        return error_memory(err);
    a->fd = -1;
    if (options)
        a->options = *options;
    if (a->options.max_memory == 0)
        a->options.max_memory = IMAGE_ARCHIVE_MEMORY;
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

/*
 * libarchive stores a zip's list in one allocation of 160 bytes per member, even if the member takes only 46 bytes in
 * the file.  glibc keeps freed memory in the thread's arena.  The next thread that opens a zip has another arena, so
 * without this call the memory would hold two lists.
 */
static void
release_list(void)
{
#ifdef HAVE_MALLOC_TRIM
    malloc_trim(0);
#endif
}

void
image_archive_close(struct image_archive *a)
{
    bool zip;

    if (!a)
        return;
    zip = a->zip;
    archive_entry_free(a->store);
    if (a->reader)
        archive_read_free(a->reader);
    if (a->filter)
        archive_read_free(a->filter);
    gunzip_free(a->gunzip);
    unxz_free(a->unxz);
    if (a->fd >= 0)
        close(a->fd);
    free(a->block);
    free(a);
    if (zip)
        release_list();
}

/* ---- members -------------------------------------------------------------------------------------------------- */

/* Returns whether a component of the path is hidden; "." and ".." are not. */
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

/*
 * If the member is an image, write its name to a->name.  Returns false if it is not, or (ENOMEM) if
 * its name cannot be read.
 */
static bool
take_name(struct image_archive *a)
{
    const char *path;

    if (archive_entry_filetype(a->entry) != AE_IFREG || archive_entry_hardlink(a->entry))
        return false;
    path = archive_entry_pathname(a->entry);
    if (!path || is_hidden(path))
        return false;
    path = path_tail(path, strlen(path), a->options.name_parts > 1 ? a->options.name_parts : 1);
    if (strlen(path) > IMAGE_ARCHIVE_NAME_MAX || !image_name_is_known(path))
        return false;
    memcpy(a->name, path, strlen(path) + 1);
    return true;
}

/* Go to the next member; *image: it is an image.  Returns false at the end, or if nothing more can be read. */
static bool
next_member(struct image_archive *a, bool *image)
{
    bool peeked = a->peeked;

    a->peeked = false;
    if (a->options.stop && atomic_load(a->options.stop))
        a->failed = CHEX_ERR_STOPPED;
    a->ended |= a->failed != CHEX_OK || (!peeked && !read_header(a));
    if (a->ended)
        return false;
    image_archive_call();
    *image = take_name(a);
    a->others += !*image && archive_entry_filetype(a->entry) != AE_IFDIR;
    return !image_archive_lost(a, a->reader, !*image);
}

enum chex_status
image_archive_next(struct image_archive *a, struct image_member *member, bool *found, struct chex_error *err)
{
    locale_t before = a->options.utf8 ? uselocale(a->options.utf8) : (locale_t)0;
    bool image = false;

    while (!image && !a->ended && next_member(a, &image))
        continue;
    if (a->options.utf8)
        uselocale(before);
    *found = image && !a->ended;
    if (*found) {
        bool known = archive_entry_size_is_set(a->entry) && archive_entry_size(a->entry) >= 0;

        *member = (struct image_member){a->name, known, known ? (uint64_t)archive_entry_size(a->entry) : 0};
    }
    return a->failed == CHEX_OK ? CHEX_OK : image_archive_fail(a, err);
}

static enum chex_status
too_large(uint64_t size, uint64_t max, struct chex_error *err)
{
    return error_set(err, CHEX_ERR_LIMIT, "%s bytes are more than the %s allowed", COUNT_TEXT(size), COUNT_TEXT(max));
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
        /*
         * Read one byte more than the header says: this detects a longer member, and a zip's checksum is compared
         * there.
         */
        enum chex_status status = buffer_reserve(b, (b->size < size ? size : b->size) + 1, err);
        la_ssize_t got;

        image_archive_call();
        if (status != CHEX_OK)
            return status;
        got = archive_read_data(a->reader, b->data + b->size,
                                known && b->size < size ? size - b->size : b->capacity - b->size);
        if (image_archive_lost(a, a->reader, got < 0))
            return image_archive_fail(a, err);
        if (got < 0) {
            const char *text = a->stream_error.status ? a->stream_error.text : archive_error_string(a->reader);
            char shown[IMAGE_ARCHIVE_TEXT_MAX];

            image_archive_note_of(a, a->reader);
            a->ended |= got == ARCHIVE_FATAL;
            /*
             * In a tar, only the padding after the image is damaged.  In a zip this is the checksum, which follows the
             * last byte.
             */
            if (known && b->size == size &&
                (archive_format(a->reader) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR)
                return CHEX_OK;
            return error_set(err, CHEX_ERR_DAMAGED, "%s", image_archive_line(text, shown));
        }
        if (got == 0)
            break;
        b->size += (size_t)got;
        if (b->size > max)
            return too_large(b->size, max, err);
    }
    if (known && b->size != size) {
        const char *text = b->size < size ? "a member ends early" : "a member is longer than it says";

        image_archive_note(a, CHEX_ERR_DAMAGED, text);
        return error_set(err, CHEX_ERR_DAMAGED, "%s", text);
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

const char *
image_archive_xz_version(void)
{
    return unxz_version();
}
