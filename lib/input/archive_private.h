/*
 * archive_private.h - declarations shared by archive*.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_IMAGE_ARCHIVE_PRIVATE_H
#define CHEX_LIB_IMAGE_ARCHIVE_PRIVATE_H

#include "input/archive.h"
#include "io/gunzip.h"
#include "io/unxz.h"

#include <archive.h>

/* The names do not come from a file system: a longer name is not a valid file name. */
#define IMAGE_ARCHIVE_NAME_MAX 255
#define IMAGE_ARCHIVE_TEXT_MAX 400 /* of an error message */

/*
 * Zeros after the last member of a tar.  At least one block of 512 bytes is needed.  Writers append two blocks and pad
 * them to a whole record; a record has up to 1 MiB (tar -b 2048).  If the first block fills up a record, a whole record
 * follows.
 */
#define IMAGE_ARCHIVE_END_LEAST 512
#define IMAGE_ARCHIVE_END_MOST  ((1u << 20) + 1024)

/*
 * The most bytes of headers before the data of one tar member.  libarchive limits names and extended attributes to
 * 1 MiB each.  It does not limit the segment list of a sparse file, and needs 18 bytes of memory for each byte of the
 * list.
 */
#define IMAGE_ARCHIVE_HEADER_MOST (4u << 20)

struct image_archive {
    int fd;
    uint64_t size, at; /* size of the file; offset of the next read */
    struct image_archive_options options;
    struct gunzip *gunzip;
    struct unxz *unxz;
    struct archive *filter; /* decompresses zstd and bzip2 */
    struct archive *reader;
    struct archive_entry *store; /* memory of the current entry */
    bool zip;                    /* if false, it is a tar */
    uint64_t others;
    bool has_fault, ended;
    /* CHEX_ERR_READ, CHEX_ERR_MEMORY or CHEX_ERR_STOPPED: not a fault of the archive; nothing more is read */
    enum chex_status failed;
    struct archive_fault fault;
    char name[IMAGE_ARCHIVE_NAME_MAX + 1];
    struct archive_entry *entry; /* NULL without a current member, otherwise == store */
    bool peeked;                 /* the first header was read, but next() has not returned it yet */
    uint8_t *block;
    size_t block_size;

    /* The stream that libarchive's reader gets.  Offsets are bytes from its beginning. */
    struct chex_error stream_error; /* why reading the stream failed; CHEX_OK: no failure */
    uint64_t came;                  /* bytes so far, with skipped bytes */
    uint64_t content;               /* offset after the last byte that is not zero */
    uint64_t header;                /* offset of the tar header that is being read ... */
    bool in_header;                 /* ... if this is true */
    bool endless;                   /* more than IMAGE_ARCHIVE_END_MOST zeros follow it */
};

/* ---- archive_stream.c: reads and decompresses the file --------------------------------------------------- */

/* Choose the decompressor, and zip or tar, by the first bytes of the file.  Every unknown content may be a tar. */
enum chex_status image_archive_open_stream(struct image_archive *a, struct chex_error *err);
/* Open a->reader on the stream; returns a code of libarchive. */
int image_archive_open_reader(struct image_archive *a);
/* Read the rest of the stream after the last member: decoders compare the checksum only at its end. */
void image_archive_drain(struct image_archive *a);

/* ---- archive_fault.c: records faults --------------------------------------------------------------------- */

/* Format a message of libarchive as one line: it may contain bytes of the archive, and some messages end with a LF. */
const char *image_archive_line(const char *text, char out[IMAGE_ARCHIVE_TEXT_MAX]);

/* Record a fault at the current offset in the file.  Only the first fault is kept. */
void image_archive_note(struct image_archive *a, enum chex_status status, const char *text);
/* Record a fault with the text of the stream below libarchive, or else of libarchive. */
void image_archive_note_of(struct image_archive *a, struct archive *libarchive);

/*
 * Detect lack of memory.  libarchive and its decoders report it in many ways, some of them as damage, but they all
 * leave ENOMEM in errno.  So call image_archive_call() before a call of libarchive, and image_archive_lost() after it.
 * Pass call_failed if the call failed or skipped something.  After a successful call ENOMEM means nothing: malloc() may
 * set it and then find memory elsewhere.
 */
void image_archive_call(void);
/* Returns true if a->failed is set: by a read error, a stop request, or lack of memory, which this function detects. */
bool image_archive_lost(struct image_archive *a, struct archive *libarchive, bool call_failed);
/* Set *err for a->failed and return it.  The error of a failed read is a->stream_error. */
enum chex_status image_archive_fail(struct image_archive *a, struct chex_error *err);

/* Call this at the end of a tar's stream: records a fault if the end marker is missing. */
void image_archive_check_end(struct image_archive *a);

/* If this zip member's decoder may use more memory than allowed, record a fault and return true. */
bool image_archive_is_heavy(struct image_archive *a);

#endif
