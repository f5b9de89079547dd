/*
 * archive_none.c - implements archive.h without libarchive: image_archive_open() always fails
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "input/archive.h"

enum chex_status
image_archive_open(const char *path, const struct image_archive_options *options, struct image_archive **out,
                   struct chex_error *err)
{
    (void)path;
    (void)options;
    *out = NULL;
    return error_set(err, CHEX_ERR_MISSING,
                     "neither a folder nor a .png or .jpg file; archives are not read: built without libarchive");
}

void
image_archive_close(struct image_archive *a)
{
    (void)a;
}

enum chex_status
image_archive_next(struct image_archive *a, struct image_member *member, bool *found, struct chex_error *err)
{
    (void)a;
    (void)member;
    *found = false;
    return error_set(err, CHEX_ERR_BUG, "no archive is open");
}

enum chex_status
image_archive_read(struct image_archive *a, uint64_t max, struct buffer *b, struct chex_error *err)
{
    (void)a;
    (void)max;
    (void)b;
    return error_set(err, CHEX_ERR_BUG, "no archive is open");
}

const struct archive_fault *
image_archive_fault(const struct image_archive *a)
{
    (void)a;
    return NULL;
}

uint64_t
image_archive_others(const struct image_archive *a)
{
    (void)a;
    return 0;
}

uint64_t
image_archive_offset(const struct image_archive *a)
{
    (void)a;
    return 0;
}

const char *
image_archive_version(void)
{
    return NULL;
}

const char *
image_archive_xz_version(void)
{
    return NULL;
}
