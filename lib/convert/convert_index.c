/*
 * convert_index.c - finds out which images are in the archives, without decoding them
 *
 * Only --allow-missing needs this.  It removes missing images from the plan, and the data set must have the same bytes
 * as one converted from loose files.  A plain tar is searched by seeking; a compressed tar is decompressed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_private.h"

#include "base/number_format.h"
#include "base/threads.h"

#include <stdlib.h>

struct index {
    const struct convert *convert;
    atomic_bool *there; /* [labels.count] */
};

static enum chex_status
index_archive(void *context, void *worker, size_t item, struct chex_error *err)
{
    const struct index *index = context;
    const struct labels *labels = &index->convert->labels;
    const char *path = index->convert->source.archive[item];
    const struct archive_fault *fault;
    struct image_archive *archive;
    const struct convert_options *o = index->convert->options;
    const struct image_archive_options options = {index->convert->utf8, o->max_memory, o->stop,
                                                  labels_name_parts(&index->convert->labels)};
    struct image_member member;
    enum chex_status status = image_archive_open(path, &options, &archive, err);
    bool found = true;

    (void)worker;
    if (status == CHEX_ERR_STOPPED)
        return status;
    if (status != CHEX_OK)
        return error_context(err, status == CHEX_ERR_MEMORY || status == CHEX_ERR_READ ? status : CHEX_ERR_MISSING,
                             "'%s'", path);
    while ((status = image_archive_next(archive, &member, &found, err)) == CHEX_OK && found) {
        const struct entry *entry = labels_find(labels, member.name);

        if (entry)
            atomic_store(&index->there[entry - labels->entry], true);
    }
    fault = image_archive_fault(archive);
    if (status == CHEX_ERR_READ)
        error_context(err, status, "'%s'", path);
    else if (status == CHEX_OK && fault && fault->error.status == CHEX_ERR_LIMIT)
        status = error_set(err, CHEX_ERR_LIMIT, "'%s' at byte %s: %s", path, COUNT_TEXT(fault->offset),
                           fault->error.text);
    else if (status == CHEX_OK && fault)
        status = error_set(err, CHEX_ERR_DAMAGED,
                           "'%s' is damaged at byte %s: %s; its content is unknown, so --allow-missing cannot "
                           "leave it out: fetch it again, or give only the other archives",
                           path, COUNT_TEXT(fault->offset), fault->error.text);
    image_archive_close(archive);
    return status;
}

enum chex_status
convert_index(struct convert *c, bool *missing, struct chex_error *err)
{
    struct index index = {.convert = c, .there = calloc(c->labels.count ? c->labels.count : 1, sizeof(atomic_bool))};
    struct parallel parallel = {
        .count = c->source.archive_count,
        .threads = c->options->threads,
        .work = index_archive,
        .context = &index,
        .stop = c->options->stop,
    };
    enum chex_status status;
    size_t i;

    if (!index.there)
        return error_memory(err);
    status = parallel_for(&parallel, err);
    for (i = 0; i < c->labels.count; i++)
        missing[i] = missing[i] && !atomic_load(&index.there[i]);
    free(index.there);
    return status;
}
