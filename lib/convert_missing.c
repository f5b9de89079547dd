/*
 * convert_missing.c - when all inputs have been read: images that were in none of them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The damaged archive that comes first among the inputs. */
static size_t
first_damaged(const struct convert *c)
{
    size_t i = 0;

    while (i < c->source.archive_count && !c->archive[i].damaged)
        i++;
    return i;
}

/* c->absent, and how many there are. */
static enum chex_status
find_absent(struct convert *c, const struct store *store, size_t *count, struct chex_error *err)
{
    size_t item;

    *count = 0;
    c->absent = calloc(c->labels.count ? c->labels.count : 1, sizeof(*c->absent));
    if (!c->absent)
        return chex_fail_memory(err);
    for (item = 0; item < c->plan.image_count; item++) {
        size_t shard = convert_shard_of(&c->plan, item);

        if (store_wants(store, shard, (uint32_t)(item - c->plan.shard[shard].first))) {
            c->absent[c->plan.image[item]] = true;
            (*count)++;
        }
    }
    preflight_recount(&c->labels, c->skip, c->absent, &c->preflight);
    return CHEX_OK;
}

/* The whole list, a name a line, in the order of the names. */
static enum chex_status
write_list(const struct convert *c, const struct folder *folder, struct chex_error *err)
{
    struct buffer b = {0};
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; status == CHEX_OK && i < c->labels.count; i++) {
        const char *name = c->labels.entry[i].name;

        if (!c->absent[i])
            continue;
        status = buffer_append(&b, name, strlen(name), err);
        if (status == CHEX_OK)
            status = buffer_append(&b, "\n", 1, err);
    }
    if (status == CHEX_OK)
        status = safe_file_put(folder, STORE_MISSING_NAME, b.data, b.size, err);
    buffer_release(&b);
    return status;
}

static enum chex_status
fail_absent(const struct convert *c, const struct folder *folder, size_t count, struct chex_error *err)
{
    const struct preflight *p = &c->preflight;
    enum chex_status status = write_list(c, folder, err);

    if (status != CHEX_OK)
        return status;
    return chex_fail(err, CHEX_ERR_MISSING,
                     "%zu of %zu images are in none of the inputs, the first is '%s'; all are listed in '%s/%s'", count,
                     p->wanted, p->sample[0], folder->path, STORE_MISSING_NAME);
}

static enum chex_status
fail_damaged(const struct convert *c, const struct folder *folder, size_t count, struct chex_error *err)
{
    size_t first = first_damaged(c);
    const struct archive_fault *fault = &c->archive[first].fault;
    char more[64] = "", lost[128];
    enum chex_status status = count > 0 ? write_list(c, folder, err) : CHEX_OK;

    if (status != CHEX_OK)
        return status;
    if (c->archives_damaged > 1)
        snprintf(more, sizeof(more), " (and %zu more damaged)", c->archives_damaged - 1);
    if (count > 0)
        snprintf(lost, sizeof(lost), "%zu images are missing", count);
    else
        snprintf(lost, sizeof(lost), "%llu images were rejected", (unsigned long long)c->counts.rejects);
    return chex_fail(err, CHEX_ERR_DAMAGED, "'%s' is damaged at byte %llu: %s%s; %s%s%s%s%s", c->source.archive[first],
                     (unsigned long long)fault->offset, fault->error.text, more, lost,
                     count > 0 ? ", all are listed in '" : "", count > 0 ? folder->path : "",
                     count > 0 ? "/" STORE_MISSING_NAME "'" : "", " (fetch it again, then the same command)");
}

/* May so many more images be rejected? */
static bool
allowed(const struct convert *c, size_t count)
{
    const struct convert_options *o = c->options;
    uint64_t rejects = c->counts.rejects + count;

    return rejects <= o->allow_rejects || rejects * 100 <= (uint64_t)o->allow_reject_percent * c->counts.images;
}

static enum chex_status
reject_absent(struct convert *c, struct store *store, const struct convert_watch *watch, struct chex_error *err)
{
    struct chex_error why;
    enum chex_status status = CHEX_OK;
    size_t item;

    chex_fail(&why, CHEX_ERR_DAMAGED, "the archive that held it is damaged");
    for (item = 0; status == CHEX_OK && item < c->plan.image_count; item++) {
        size_t shard = convert_shard_of(&c->plan, item);

        if (!c->absent[c->plan.image[item]])
            continue;
        c->counts.rejects++;
        if (watch->reject)
            watch->reject(watch->context, c->labels.entry[c->plan.image[item]].name, &why);
        status = store_reject(store, shard, (uint32_t)(item - c->plan.shard[shard].first), &why, err);
    }
    return status;
}

enum chex_status
convert_settle(struct convert *c, struct store *store, const struct folder *folder, const struct convert_watch *watch,
               struct chex_error *err)
{
    enum chex_status status;
    size_t count;

    /* Folders were listed before: there nothing can be missing any more. */
    if (c->source.archive_count == 0)
        return folder_remove(folder, STORE_MISSING_NAME, err);
    status = find_absent(c, store, &count, err);
    if (status != CHEX_OK)
        return status;
    /*
     * Rejects beside a damaged archive are not final either: more often than not they are what was damaged in it.
     */
    if (c->archives_damaged > 0 && !allowed(c, count))
        return fail_damaged(c, folder, count, err);
    if (count > 0 && c->archives_damaged == 0)
        return fail_absent(c, folder, count, err);
    if (count > 0)
        status = reject_absent(c, store, watch, err);
    return status == CHEX_OK ? folder_remove(folder, STORE_MISSING_NAME, err) : status;
}
