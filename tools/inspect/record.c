/*
 * record.c - finds and reads one record by NAME or SHARD:INDEX; see inspect.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/inspect.h"

#include "base/ascii.h"

#include <string.h>

/* ---- which record ------------------------------------------------------------------------------------------------ */

struct record_place {
    const char *name; /* the name to find */
    bool found;
    unsigned shard;
    uint32_t index;
};

/* Parse text[0 .. length - 1] as a number of at most 99999. */
static bool
small_number(const char *text, size_t length, uint32_t *out)
{
    size_t i;

    *out = 0;
    if (length == 0 || length > 5)
        return false;
    for (i = 0; i < length; i++) {
        if (!ascii_is_digit(text[i]))
            return false;
        *out = *out * 10 + (uint32_t)(text[i] - '0');
    }
    return true;
}

/* Parse SHARD:INDEX; SHARD is a file name or a number over all splits.  Returns false for any other text. */
static bool
parse_place(const struct chex_dataset *ds, const char *text, struct record_place *p)
{
    const char *colon = strrchr(text, ':');
    uint32_t number;
    unsigned i;

    if (!colon || !small_number(colon + 1, strlen(colon + 1), &p->index))
        return false;
    if (small_number(text, (size_t)(colon - text), &number)) {
        p->shard = number;
        return true;
    }
    for (i = 0; i < ds->info.shard_count; i++) {
        if (strlen(ds->shard[i].name) == (size_t)(colon - text) &&
            strncmp(ds->shard[i].name, text, (size_t)(colon - text)) == 0) {
            p->shard = i;
            return true;
        }
    }
    return false;
}

static enum chex_status
on_record(void *context, const struct walk_record *r, struct chex_error *err)
{
    struct record_place *p = context;

    if (r->values->weight != 1 || r->values->name.size != strlen(p->name) ||
        memcmp(r->values->name.data, p->name, r->values->name.size) != 0)
        return CHEX_OK;
    p->found = true;
    p->shard = r->shard;
    p->index = r->index;
    return error_set(err, CHEX_ERR_STOPPED, "found");
}

static enum chex_status
find_place(struct inspect *in, struct record_place *p, const struct target *t, struct chex_error *err)
{
    struct walk w = {.in = in, .target = t, .record = on_record, .context = p, .threads = 1};
    const struct chex_shard_info *info;
    enum chex_status status;

    if (parse_place(t->dataset, p->name, p)) {
        info = chex_dataset_shard(t->dataset, p->shard);
        /* If PATH is one shard, only its records count. */
        if (!info || p->index >= info->record_count || p->shard - t->first >= t->count)
            return error_set(err, CHEX_ERR_MISSING, "'%s' has no record '%s'", t->path, p->name);
        return CHEX_OK;
    }
    status = walk_run(&w, err);
    if (p->found || (status != CHEX_OK && status != CHEX_ERR_STOPPED))
        return p->found ? CHEX_OK : status;
    return error_set(err, CHEX_ERR_MISSING, "'%s' has no image '%s'", t->path, p->name);
}

enum chex_status
inspect_find_record(struct inspect *in, const struct target *t, const char *which, unsigned *shard, uint32_t *index,
                    struct chex_error *err)
{
    struct record_place p = {.name = which};
    enum chex_status status = find_place(in, &p, t, err);

    *shard = p.shard;
    *index = p.index;
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

enum chex_status
inspect_read_record(const struct chex_dataset *ds, unsigned shard, uint32_t index, struct buffer *b, bool check,
                    struct chex_record *out, struct chex_error *err)
{
    struct chex_shard *file;
    enum chex_status status = buffer_reserve(b, ds->info.stride, err);

    if (status == CHEX_OK)
        status = chex_shard_open(ds, shard, &file, err);
    if (status != CHEX_OK)
        return status;
    status = chex_shard_read(file, index, 1, b->data, err);
    if (status == CHEX_OK) {
        status = chex_record_view(ds, shard, index, b->data, check, out, err);
        if (status != CHEX_OK) {
            /* A record from another place is a fault of the data, as for check --full. */
            status = CHEX_ERR_DAMAGED;
            error_context(err, status, "'%s' record %u", ds->shard[shard].name, index);
        }
    }
    chex_shard_close(file);
    return status;
}
