/*
 * convert_missing.c - handles images that are still missing after all inputs were read
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_private.h"

#include "base/number_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the first damaged archive in the order of the inputs. */
static size_t
first_damaged(const struct convert *c)
{
    size_t i = 0;

    while (i < c->source.archive_count && !c->archive[i].damaged)
        i++;
    return i;
}

void
convert_find_missing(struct convert *c, const struct store *store)
{
    size_t item;

    memset(c->missing, 0, c->labels.count * sizeof(*c->missing));
    c->inputs_read = true;
    for (item = 0; item < c->plan.image_count; item++) {
        size_t shard = plan_shard_of(&c->plan, item);

        if (store_wants(store, shard, (uint32_t)(item - c->plan.shard[shard].first)))
            c->missing[c->plan.image[item]] = true;
    }
}

/* Write the list of all missing images, one name per line, sorted by name. */
static enum chex_status
write_list(const struct convert *c, const struct folder *folder, struct chex_error *err)
{
    struct buffer b = {0};
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; status == CHEX_OK && i < c->labels.count; i++) {
        const char *name = c->labels.entry[i].name;

        if (!c->missing[i])
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
fail_missing(const struct convert *c, const struct folder *folder, bool lists, size_t count, struct chex_error *err)
{
    const struct preflight *p = &c->preflight;
    enum chex_status status = lists ? write_list(c, folder, err) : CHEX_OK;
    char hint[PREFLIGHT_HINT];

    if (status != CHEX_OK)
        return status;
    preflight_endings(&c->labels, c->missing, &c->unlabeled, hint);
    return error_set(err, CHEX_ERR_MISSING, "%s of %s images %s in none of the inputs, the first is '%s'%s%s%s%s",
                     COUNT_TEXT(count), COUNT_TEXT(p->wanted), count == 1 ? "is" : "are", p->sample[0], hint,
                     lists ? "; all are listed in '" : "", lists ? folder->path : "",
                     lists ? "/" STORE_MISSING_NAME "'" : "");
}

static enum chex_status
fail_damaged(const struct convert *c, const struct folder *folder, bool lists, size_t count, uint64_t rejects,
             struct chex_error *err)
{
    size_t first = first_damaged(c);
    const struct archive_fault *fault = &c->archive[first].fault;
    bool refused = fault->error.status == CHEX_ERR_LIMIT; /* the archive may be intact */
    char more[64] = "", lost[128];
    enum chex_status status = count > 0 && lists ? write_list(c, folder, err) : CHEX_OK;

    if (status != CHEX_OK)
        return status;
    if (c->archives_damaged > 1)
        snprintf(more, sizeof(more), " (and %zu more damaged)", c->archives_damaged - 1);
    if (count > 0)
        snprintf(lost, sizeof(lost), "%s image%s missing", COUNT_TEXT(count), count == 1 ? " is" : "s are");
    else
        snprintf(lost, sizeof(lost), "%s image%s rejected", COUNT_TEXT(rejects), rejects == 1 ? " was" : "s were");
    lists = lists && count > 0;
    return error_set(
        err, CHEX_ERR_DAMAGED, "'%s' is %s at byte %llu: %s%s; %s%s%s%s%s", c->source.archive[first],
        refused ? "refused" : "damaged", (unsigned long long)fault->offset, fault->error.text, more, lost,
        lists ? ", all are listed in '" : "", lists ? folder->path : "", lists ? "/" STORE_MISSING_NAME "'" : "",
        refused ? " (allow it, or pack it again, then the same command)" : " (fetch it again, then the same command)");
}

/* Returns whether the options allow this number of rejects. */
static bool
allowed(const struct convert *c, uint64_t rejects)
{
    const struct convert_options *o = c->options;

    return rejects <= o->allow_rejects || rejects * 100 <= (uint64_t)o->allow_reject_percent * c->counts.images;
}

enum chex_status
convert_reject_missing(struct convert *c, struct store *store, const struct convert_watch *watch,
                       struct chex_error *err)
{
    struct chex_error why;
    enum chex_status status = CHEX_OK;
    size_t item;

    error_set(&why, CHEX_ERR_DAMAGED, "the archive that held it is damaged");
    for (item = 0; status == CHEX_OK && item < c->plan.image_count; item++) {
        size_t shard = plan_shard_of(&c->plan, item);
        uint32_t index = (uint32_t)(item - c->plan.shard[shard].first);

        if (!c->missing[c->plan.image[item]] || !store_wants(store, shard, index))
            continue;
        c->counts.rejects++;
        if (watch->reject)
            watch->reject(watch->context, c->labels.entry[c->plan.image[item]].name, &why);
        status = store_reject(store, shard, index, &why, err);
    }
    return status;
}

enum chex_status
convert_evaluate_missing(struct convert *c, const struct folder *folder, bool lists, uint64_t rejects,
                         struct chex_error *err)
{
    size_t count = 0, i;

    for (i = 0; i < c->labels.count; i++)
        count += c->missing[i];
    preflight_recount(&c->labels, c->skip, c->missing, &c->preflight);
    /* If an archive is damaged, rejects are not final either: most of them are images that the damage affected. */
    if (c->archives_damaged > 0 && !allowed(c, rejects + count))
        return fail_damaged(c, folder, lists, count, rejects, err);
    if (count > 0 && c->archives_damaged == 0)
        return fail_missing(c, folder, lists, count, err);
    return lists ? folder_remove(folder, STORE_MISSING_NAME, err) : CHEX_OK;
}
