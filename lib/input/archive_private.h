/*
 * archive_private.h - what the files archive*.c share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_IMAGE_ARCHIVE_PRIVATE_H
#define CHEX_LIB_IMAGE_ARCHIVE_PRIVATE_H

#include "input/archive.h"
#include "io/gunzip.h"
#include "io/unxz.h"

#include <archive.h>

/* Names are in no file system yet: longer ones are no file names. */
#define IMAGE_ARCHIVE_NAME_MAX 255
#define IMAGE_ARCHIVE_TEXT_MAX 400 /* of a message */

/*
 * Zeros behind the last member of a tar: one block of them at least.  Writers pad them to a whole record, and records
 * have up to 1 MiB (tar -b 2048); where the first of the two blocks that they put there fills one, a whole one follows.
 */
#define IMAGE_ARCHIVE_END_LEAST 512
#define IMAGE_ARCHIVE_END_MOST  ((1u << 20) + 1024)

/*
 * What stands before the data of one member of a tar.  libarchive takes names and extended attributes up to 1 MiB
 * each, but lists of the pieces of a sparse file without a limit, at 18 bytes of memory for each of theirs.
 */
#define IMAGE_ARCHIVE_HEADER_MOST (4u << 20)

struct image_archive {
    int fd;
    uint64_t size, at; /* of the file; where the next piece begins */
    struct image_archive_options options;
    struct gunzip *gunzip;
    struct unxz *unxz;
    struct archive *filter; /* zstd, bzip2 */
    struct archive *reader;
    struct archive_entry *store; /* for the member at hand */
    bool zip;                    /* else tar */
    uint64_t others;
    bool has_fault, ended;
    /* CHEX_ERR_READ, CHEX_ERR_MEMORY, CHEX_ERR_STOPPED: not a fault of the archive; nothing more is read */
    enum chex_status failed;
    struct archive_fault fault;
    char name[IMAGE_ARCHIVE_NAME_MAX + 1];
    struct archive_entry *entry; /* the same, once there is one */
    bool peeked;                 /* it is the first one, seen when opening and not yet taken */
    uint8_t *block;
    size_t block_size;

    /* of the stream that the reader gets, in bytes from its beginning: */
    struct chex_error stream_error; /* why reading it failed; CHEX_OK: it did not */
    uint64_t came;                  /* bytes so far, skipped ones too */
    uint64_t content;               /* behind the last one that is not zero */
    uint64_t header;                /* where the header of a tar began that is being read ... */
    bool in_header;                 /* ... if one is */
    bool endless;                   /* nothing but zeros followed it */
};

/* ---- archive_stream.c: the file, and what decompresses it ------------------------------------------------ */

/* Which decompressor, and whether it is a zip: by the first bytes.  What is nothing else may be tar. */
enum chex_status image_archive_open_stream(struct image_archive *a, struct chex_error *err);
/* Set a->reader on it; a code of libarchive. */
int image_archive_open_reader(struct image_archive *a);
/* Read what is behind the last member, for the checksum at the end of the stream. */
void image_archive_drain(struct image_archive *a);

/* ---- archive_fault.c: what is wrong ---------------------------------------------------------------------- */

/* What libarchive says, in one line: it puts in what it found, and ends some of its texts with a LF. */
const char *image_archive_line(const char *text, char out[IMAGE_ARCHIVE_TEXT_MAX]);

/* Something is wrong where the file is read now; only the first fault is kept. */
void image_archive_note(struct image_archive *a, enum chex_status status, const char *text);
/* The same, as libarchive or the stream below it says. */
void image_archive_note_of(struct image_archive *a, struct archive *libarchive);

/*
 * Before a call of libarchive, and after one that failed or went on without something.  It reports a lack of memory
 * in many ways, as damage in some; so does what it calls.  But all of them leave ENOMEM in errno.  After one that
 * succeeded that says nothing: malloc() itself tries elsewhere.
 */
void image_archive_call(void);
/* True if a->failed is set: a read error, a stop request, or the lack of memory that this function detects. */
bool image_archive_lost(struct image_archive *a, struct archive *libarchive, bool call_failed);
/* The error for a->failed; that of a read error is a->stream_error. */
enum chex_status image_archive_fail(struct image_archive *a, struct chex_error *err);

/* The reader of a tar is at the end of its stream: note a fault if an end that was written does not look like that. */
void image_archive_check_end(struct image_archive *a);

/* Note a fault, and say so, where what unpacks this member of a zip may take more memory than is allowed. */
bool image_archive_is_heavy(struct image_archive *a);

#endif
