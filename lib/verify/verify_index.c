/*
 * verify_index.c - checks the DALI index of a shard, if it exists; see verify.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "verify/verify_private.h"

#include "base/number_format.h"
#include "dataset/dali_index.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Returns the number of the line that contains byte `at`, counted from 0. */
static unsigned
line_of(const struct buffer *b, size_t at)
{
    unsigned line = 0;
    size_t i;

    for (i = 0; i < at; i++)
        line += b->data[i] == '\n';
    return line;
}

static void
compare(const struct buffer *there, const struct buffer *wanted, struct report *r)
{
    size_t size = there->size < wanted->size ? there->size : wanted->size, at;

    for (at = 0; at < size && there->data[at] == wanted->data[at]; at++)
        continue;
    if (at < size)
        report_fault(r, CHEX_ERR_DAMAGED, -1, 0, NULL, "index: line %u is not the place of record %u",
                     line_of(wanted, at) + 1, line_of(wanted, at));
    else if (there->size != wanted->size)
        report_fault(r, there->size < wanted->size ? CHEX_ERR_TRUNCATED : CHEX_ERR_DAMAGED, -1, 0, NULL,
                     "index: %s bytes, should be %s", COUNT_TEXT(there->size), COUNT_TEXT(wanted->size));
}

enum chex_status
verify_index(struct verify *v, unsigned shard, struct chex_error *err)
{
    const struct chex_dataset *ds = v->dataset;
    const struct chex_shard_info *info = &ds->shard[shard];
    char name[SHARD_NAME_MAX + sizeof(DALI_INDEX_SUFFIX)];
    struct buffer there = {0}, wanted = {0};
    struct report r = {0};
    struct chex_error why;
    struct stat st;
    enum chex_status status = dali_index_format(info->record_count, ds->info.stride, &wanted, err), found;

    if (status != CHEX_OK) {
        buffer_release(&wanted);
        return status;
    }
    snprintf(name, sizeof(name), "%s%s", info->name, DALI_INDEX_SUFFIX);
    found = file_read(ds->folder.fd, name, 2 * wanted.size, &there, &why);
    if (found != CHEX_OK && error_is_denied(&why))
        found = CHEX_ERR_READ;
    if (found == CHEX_ERR_MEMORY)
        status = error_memory(err);
    else if (found == CHEX_OK)
        compare(&there, &wanted, &r);
    else if (found != CHEX_ERR_MISSING || fstatat(ds->folder.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        report_fault(&r, found, -1, 0, NULL, "index: %s", why.text);
    if (r.out_of_memory)
        status = error_memory(err);
    else
        report_pass_on(&r, v, name);
    if (status == CHEX_OK && r.read_failed)
        status = error_set(err, CHEX_ERR_READ, "'%s/%s' could not be read", ds->folder.path, name);
    report_release(&r);
    buffer_release(&wanted);
    buffer_release(&there);
    return status;
}
