/*
 * archive.h - reads the image files of a tar or zip archive in the order of the archive
 *
 * The functions read an archive once, from the beginning to the end, and unpack nothing to disk.  Formats: tar (ustar,
 * pax, GNU), plain or compressed with gzip, xz, zstd or bzip2; and zip.  The content decides the format, never the
 * name.  No external program runs.  Images are regular files (no links, no devices) that are not hidden and are named
 * .png, .jpg or .jpeg.  All other members are counted and skipped.  A member's path is never used as a path: the part
 * after the last slash is the member's name.
 *
 *     while ((status = image_archive_next(a, &member, &found, err)) == CHEX_OK && found)
 *         if (wanted(member.name))
 *             status = image_archive_read(a, max, &buffer, err);
 *     fault = image_archive_fault(a);
 *
 * A damaged archive is read as far as possible.  image_archive_fault() then returns the first fault and its byte
 * offset.  A tar that was truncated between two members is damaged too, because it has no end.  The end of a tar is at
 * least one block of 512 zeros, and at most 1 MiB + 1024 bytes of zeros: the most that a writer pads with records of
 * 1 MiB (tar -b 2048).  More zeros are a fault, and so is a tar header above 4 MiB; reading stops there.
 *
 * A header cannot make a decoder use more memory than options.max_memory.  An xz stream whose decoder would need more
 * is a fault with CHEX_ERR_LIMIT.  So is a zip member with a method that may need more (lzma, xz, ppmd).  gzip needs
 * less than 1 MiB, bzip2 5 MiB, zstd at most its window of 128 MiB, a limit of libzstd.
 *
 * A read error, lack of memory and a stop request are not faults of the archive: the functions return them as a status.
 * After that, nothing more can be read, and it is unknown whether the archive is damaged.  In a build without
 * libarchive, image_archive_open() always fails with CHEX_ERR_MISSING; the text gives the reason.
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
    const char *name; /* the last name_parts components of its path; valid until the next call */
    bool size_known;  /* if false, the size is known only after image_archive_read() */
    uint64_t size;
};

struct archive_fault {
    uint64_t offset; /* byte offset in the file */
    struct chex_error error;
};

/* The default of options.max_memory: the memory that a decoder may use. */
#define IMAGE_ARCHIVE_MEMORY (UINT64_C(128) << 20)

struct image_archive_options {
    /*
     * newlocale(LC_CTYPE_MASK, "C.UTF-8", 0), shared by all archives; it must outlive them.  libarchive converts the
     * UTF-8 names of pax headers to the thread's locale.  0: keep the thread's locale.
     */
    locale_t utf8;
    uint64_t max_memory;     /* bytes; 0: IMAGE_ARCHIVE_MEMORY */
    const atomic_bool *stop; /* or NULL; all functions that read poll it, at least every fraction of a second */
    unsigned name_parts;     /* components of a member's name; 0 or 1: without folders */
};

/*
 * Open the archive and read its first header.  Free it with image_archive_close().  The options (NULL: all zero) are
 * copied.  Error texts do not contain the path.
 * CHEX_ERR_EMPTY       the file has no bytes
 * CHEX_ERR_NOT_IMAGE   not a regular file, or not an archive of a known format
 * CHEX_ERR_USAGE       the first file in the archive is encrypted
 * CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_MEMORY, CHEX_ERR_STOPPED
 */
enum chex_status image_archive_open(const char *path, const struct image_archive_options *options,
                                    struct image_archive **out, struct chex_error *err);
void image_archive_close(struct image_archive *a); /* NULL is allowed */

/*
 * Go to the next image.  *found is false at the end, or if nothing after the damage can be read.
 * CHEX_ERR_READ (after the retries of file.h), CHEX_ERR_MEMORY, CHEX_ERR_STOPPED: nothing more can be read
 */
enum chex_status image_archive_next(struct image_archive *a, struct image_member *member, bool *found,
                                    struct chex_error *err);

/*
 * Read the current image into b; call it once per image.
 * CHEX_ERR_LIMIT    the image is larger than max; the next image can still be read
 * CHEX_ERR_DAMAGED  the image is lost because the archive is damaged: see image_archive_fault()
 * CHEX_ERR_READ, CHEX_ERR_MEMORY, CHEX_ERR_STOPPED: nothing more can be read
 */
enum chex_status image_archive_read(struct image_archive *a, uint64_t max, struct buffer *b, struct chex_error *err);

/*
 * Returns the first fault so far, or NULL.  Its status is CHEX_ERR_LIMIT if reading on would need more memory than
 * allowed, or if a member's header is too large.  All other faults are CHEX_ERR_DAMAGED.  The answer is final only
 * after the end, because the stream's checksum is at the end.
 */
const struct archive_fault *image_archive_fault(const struct image_archive *a);

/* Returns the number of members so far that are not images; folders are not counted. */
uint64_t image_archive_others(const struct image_archive *a);

/* Returns the bytes of the file that were used so far, for progress. */
uint64_t image_archive_offset(const struct image_archive *a);

/* Return the versions of libarchive and liblzma, or NULL in a build without them. */
const char *image_archive_version(void);
const char *image_archive_xz_version(void);

#endif
