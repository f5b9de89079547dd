/*
 * archive_fault.c - records the first fault of an archive and its byte offset; separates damage from a read error, from
 * lack of memory and from a stop request, which are not faults of the archive
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "input/archive_private.h"

#include "base/ascii.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

uint64_t
image_archive_offset(const struct image_archive *a)
{
    int64_t used;

    if (a->gunzip)
        return gunzip_offset(a->gunzip);
    if (a->unxz)
        return unxz_offset(a->unxz);
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
image_archive_note(struct image_archive *a, enum chex_status status, const char *text)
{
    char shown[IMAGE_ARCHIVE_TEXT_MAX];

    if (a->has_fault || a->failed != CHEX_OK)
        return;
    a->has_fault = true;
    /* An endless run of zeros: report its start.  The start is known only for uncompressed files. */
    a->fault.offset = a->endless && !a->gunzip && !a->unxz && !a->filter ? a->header : image_archive_offset(a);
    error_set(&a->fault.error, status == CHEX_ERR_LIMIT ? status : CHEX_ERR_DAMAGED, "%s%s",
              image_archive_line(text, shown),
              a->fault.offset >= a->size && !a->endless ? " (the file ends there)" : "");
}

void
image_archive_note_of(struct image_archive *a, struct archive *libarchive)
{
    if (a->stream_error.status != CHEX_OK)
        image_archive_note(a, a->stream_error.status, a->stream_error.text);
    else
        image_archive_note(a, CHEX_ERR_DAMAGED, archive_error_string(libarchive));
}

const struct archive_fault *
image_archive_fault(const struct image_archive *a)
{
    return a->has_fault ? &a->fault : NULL;
}

/* ---- failures that are not faults of the archive --------------------------------------------------------------- */

void
image_archive_call(void)
{
    errno = 0;
}

bool
image_archive_lost(struct image_archive *a, struct archive *libarchive, bool call_failed)
{
    if (call_failed && a->failed == CHEX_OK && (errno == ENOMEM || archive_errno(libarchive) == ENOMEM))
        a->failed = CHEX_ERR_MEMORY;
    a->ended |= a->failed != CHEX_OK;
    return a->failed != CHEX_OK;
}

enum chex_status
image_archive_fail(struct image_archive *a, struct chex_error *err)
{
    if (a->failed == CHEX_ERR_STOPPED)
        return error_stopped(err);
    if (a->failed == CHEX_ERR_MEMORY)
        return error_memory(err);
    if (err)
        *err = a->stream_error;
    return a->failed;
}

/* ---- the end marker, and the limit of memory ------------------------------------------------------------------- */

/*
 * If a stream ends between two members, libarchive reports the end of the tar even if the end marker (zero blocks) is
 * missing.  Its last call began at a->header, after the last member, and skipped only zeros.  So fewer than
 * IMAGE_ARCHIVE_END_LEAST bytes mean that the marker is missing.
 */
void
image_archive_check_end(struct image_archive *a)
{
    if (archive_filter_bytes(a->reader, 0) - (int64_t)a->header < IMAGE_ARCHIVE_END_LEAST)
        image_archive_note(a, CHEX_ERR_DAMAGED, "the archive has no end");
}

bool
image_archive_is_heavy(struct image_archive *a)
{
    /* Decoders without a limit in libarchive: the most memory that a member header can request, in MiB. */
    static const struct {
        const char *name;
        unsigned most;
    } methods[] = {{"(lzma)", 4160}, {"(xz)", 4160}, {"(ppmd-1)", 260}};
    const char *format = archive_format_name(a->reader); /* "ZIP 6.3 (lzma)" */
    char text[160];

    for (size_t i = 0; format && i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (!strstr(format, methods[i].name) || (uint64_t)methods[i].most << 20 <= a->options.max_memory)
            continue;
        snprintf(text, sizeof(text),
                 "a member of %s: to unpack it may take %u MiB of memory, --max-memory allows %llu MiB", format,
                 methods[i].most, (unsigned long long)(a->options.max_memory >> 20));
        image_archive_note(a, CHEX_ERR_LIMIT, text);
        return true;
    }
    return false;
}
