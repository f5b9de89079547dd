/*
 * image_archive_fault.c - what is wrong with an archive: see image_archive.h and image_archive_private.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "image_archive_private.h"

#include "ascii.h"

#include <string.h>

/*
 * Zeros behind the last member of a tar: one block of them at least.  Writers pad them to a whole record, and records
 * have up to 1 MiB (tar -b 2048); where the first of the two blocks that they put there fills one, a whole one follows.
 */
#define END_LEAST 512
#define END_MOST  ((1u << 20) + 1024)

uint64_t
image_archive_offset(const struct image_archive *a)
{
    int64_t used;

    if (a->gunzip)
        return gunzip_offset(a->gunzip);
    used = archive_filter_bytes(a->filter ? a->filter : a->reader, -1);
    return used > 0 ? (uint64_t)used : 0;
}

const char *
image_archive_line(const char *text, char out[IMAGE_ARCHIVE_TEXT_MAX])
{
    size_t length = text ? strlen(text) : 0;

    while (length > 0 && text[length - 1] == '\n')
        length--;
    return length > 0 ? ascii_escape(text, length, out, IMAGE_ARCHIVE_TEXT_MAX) : "not readable";
}

void
image_archive_note(struct image_archive *a, const char *text)
{
    char shown[IMAGE_ARCHIVE_TEXT_MAX];

    if (a->has_fault)
        return;
    a->has_fault = true;
    a->fault.offset = image_archive_offset(a);
    chex_fail(&a->fault.error, CHEX_ERR_DAMAGED, "%s%s", image_archive_line(text, shown),
              a->fault.offset >= a->size ? " (the file ends there)" : "");
}

const struct archive_fault *
image_archive_fault(const struct image_archive *a)
{
    return a->has_fault ? &a->fault : NULL;
}

/*
 * libarchive takes the end of a stream between two members for the end of the tar, whether or not there is a mark.  The
 * call that found it began at the "header position", behind the last member, and passed over nothing but zeros.
 */
void
image_archive_check_end(struct image_archive *a)
{
    int64_t begin = archive_read_header_position(a->reader), zeros = archive_filter_bytes(a->reader, 0) - begin;

    if (zeros < END_LEAST) {
        image_archive_note(a, "the archive has no end");
    } else if (zeros > END_MOST && !a->has_fault) {
        a->has_fault = true;
        a->fault.offset = a->gunzip || a->filter ? image_archive_offset(a) : (uint64_t)begin;
        chex_fail(&a->fault.error, CHEX_ERR_DAMAGED,
                  "%lld bytes of zeros behind its last member: download interrupted?", (long long)zeros);
    }
}
