/*
 * image_archive_private.h - what image_archive.c and image_archive_fault.c share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_IMAGE_ARCHIVE_PRIVATE_H
#define CHEX_LIB_IMAGE_ARCHIVE_PRIVATE_H

#include "gunzip.h"
#include "image_archive.h"

#include <archive.h>

/* Names are in no file system yet: longer ones are no file names. */
#define IMAGE_ARCHIVE_NAME_MAX 255
#define IMAGE_ARCHIVE_TEXT_MAX 400 /* of a message */

struct image_archive {
    int fd;
    uint64_t size, at; /* of the file; where the next piece begins */
    struct gunzip *gunzip;
    struct archive *filter; /* xz, zstd, bzip2 */
    struct archive *reader;
    bool zip;      /* else tar */
    locale_t utf8; /* the caller's, for names */
    uint64_t others;
    bool has_fault, ended;
    bool stream_failed; /* the file or its decompressor, and not the archive in it */
    struct archive_fault fault;
    char name[IMAGE_ARCHIVE_NAME_MAX + 1];
    struct archive_entry *entry;  /* the member at hand */
    struct archive_entry *peeked; /* the first one, seen when opening, until it is taken */
    uint8_t *block;
    size_t block_size;
};

/* What libarchive says, in one line: it puts in what it found, and ends some of its texts with a LF. */
const char *image_archive_line(const char *text, char out[IMAGE_ARCHIVE_TEXT_MAX]);

/* Something is wrong where the file is read now; only the first fault is kept. */
void image_archive_note(struct image_archive *a, const char *text);

/* The reader of a tar is at the end of its stream: note a fault if an end that was written does not look like that. */
void image_archive_check_end(struct image_archive *a);

#endif
