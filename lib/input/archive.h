/*
 * archive.h - the image files in a tar or zip archive, one after the other, as they come
 *
 * An archive is read once from its beginning to its end; nothing is unpacked to the disk.  Formats: tar (ustar, pax,
 * GNU), plain or compressed with gzip, xz, zstd or bzip2, and zip: told by content, never by the name.  No program is
 * run.  Members that count are regular files (no links, no devices) named .png, .jpg or .jpeg that are not hidden;
 * all others are counted and passed over.  A member's path is never used as one: what is behind its last slash is its
 * name.
 *
 *     while ((status = image_archive_next(a, &member, &found, err)) == CHEX_OK && found)
 *         if (wanted(member.name))
 *             status = image_archive_read(a, max, &buffer, err);
 *     fault = image_archive_fault(a);
 *
 * A damaged archive is read as far as it can be; image_archive_fault() then says what was wrong first, and where.  One
 * that was cut between two members is damaged too: a tar ends with a block of 512 zeros at least, and with 1 MiB and
 * 1024 bytes of them at most, which is what a record of 1 MiB (tar -b 2048) can come to.
 * More zeros are not read to their end, nor is a header of a tar above 4 MiB.
 *
 * What a header says takes no more memory than allowed: an xz stream whose decoder would need more is refused like a
 * damaged one, with CHEX_ERR_LIMIT in its fault, and so is a zip member of a method that may need more (lzma, xz,
 * ppmd).  gzip takes less than 1 MiB, bzip2 5 MiB, zstd at most its window of 128 MiB, which libzstd holds to.
 *
 * A read error, a lack of memory and a request to stop are not faults of an archive: the functions return them as a
 * status.  Nothing more of the archive is read then, and it is unknown whether it is damaged.
 * Built without libarchive, image_archive_open() is a CHEX_ERR_USAGE that says so.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_IMAGE_ARCHIVE_H
#define CHEX_LIB_IMAGE_ARCHIVE_H

#include "base/memory.h"

#include <locale.h>
#include <stdatomic.h>

struct image_archive; /* used by one thread at a time */

struct image_member {
    const char *name; /* without folders; valid until the next call */
    bool size_known;  /* else it shows only when it is read */
    uint64_t size;
};

struct archive_fault {
    uint64_t offset; /* in the file */
    struct chex_error error;
};

/* What a reader may take to decompress, where nothing else is said. */
#define IMAGE_ARCHIVE_MEMORY (UINT64_C(128) << 20)

struct image_archive_options {
    /*
     * newlocale(LC_CTYPE_MASK, "C.UTF-8", 0), to outlive the archive and shared by all: libarchive turns the names in
     * pax headers, which are UTF-8, into the locale of the thread.  0: as the thread has it.
     */
    locale_t utf8;
    uint64_t max_memory;     /* bytes; 0: IMAGE_ARCHIVE_MEMORY */
    const atomic_bool *stop; /* or NULL; seen within a fraction of a second, wherever the archive is read */
};

/*
 * Open the archive and look at its beginning.  image_archive_close() frees it.  The options (NULL: all zero) are
 * copied.
 * CHEX_ERR_EMPTY       a file of no bytes
 * CHEX_ERR_NOT_IMAGE   not a regular file, or no archive of a kind that is known
 * CHEX_ERR_USAGE       built without libarchive; or the first file in it is encrypted
 * CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_MEMORY, CHEX_ERR_STOPPED;  no text of this interface names the file
 */
enum chex_status image_archive_open(const char *path, const struct image_archive_options *options,
                                    struct image_archive **out, struct chex_error *err);
void image_archive_close(struct image_archive *a); /* NULL is allowed */

/*
 * Go to the next image; *found false at the end, or where nothing behind the damage can be read.
 * CHEX_ERR_READ (after the tries of file.h), CHEX_ERR_MEMORY, CHEX_ERR_STOPPED: nothing more can be read
 */
enum chex_status image_archive_next(struct image_archive *a, struct image_member *member, bool *found,
                                    struct chex_error *err);

/*
 * The bytes of the image at hand into b; once for each.
 * CHEX_ERR_LIMIT    it is larger than max: the next one can be read all the same
 * CHEX_ERR_DAMAGED  it is lost, because the archive is damaged: see image_archive_fault()
 * CHEX_ERR_READ, CHEX_ERR_MEMORY, CHEX_ERR_STOPPED: nothing more can be read
 */
enum chex_status image_archive_read(struct image_archive *a, uint64_t max, struct buffer *b, struct chex_error *err);

/*
 * What was wrong first; NULL while nothing was.  CHEX_ERR_LIMIT: to read on would take more memory than allowed, or the
 * header of a member is too large; else CHEX_ERR_DAMAGED.  After the end that is final: a checksum of the stream is
 * there.
 */
const struct archive_fault *image_archive_fault(const struct image_archive *a);

/* Members so far that are no images (folders are not counted). */
uint64_t image_archive_others(const struct image_archive *a);

/* Bytes of the file that have been used so far, for progress. */
uint64_t image_archive_offset(const struct image_archive *a);

/* The versions of libarchive and liblzma, or NULL where this was built without. */
const char *image_archive_version(void);
const char *image_archive_xz_version(void);

#endif
