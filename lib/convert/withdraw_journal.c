/*
 * withdraw_journal.c - the journal of a withdrawal: a line of JSON, then the text of the new manifest
 *
 * The file appears by rename, so it is complete or missing.  The manifest has its own checksum.  Its id depends on the
 * slots, so it also protects them: a damaged journal never replaces a slot.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/withdraw_private.h"

#include "base/json.h"
#include "dataset/format.h"

#include <stdlib.h>
#include <string.h>

#define LINE_MAX_SIZE (1024u << 20)

/* [[shard, slot, slot, ...], ...] */
static json_t *
slots_json(const struct withdraw_journal *j, size_t shard_count)
{
    json_t *list = json_array();
    size_t i;
    uint32_t k;
    bool failed = list == NULL;

    for (i = 0; i < shard_count && !failed; i++) {
        json_t *shard = json_array();

        if (j->shard[i].count == 0) {
            json_decref(shard);
            continue;
        }
        failed = json_array_append_new(shard, json_integer((json_int_t)i)) != 0;
        for (k = 0; k < j->shard[i].count && !failed; k++)
            failed = json_array_append_new(shard, json_integer(j->shard[i].index[k])) != 0;
        failed |= json_array_append_new(list, shard) != 0;
    }
    if (!failed)
        return list;
    json_decref(list);
    return NULL;
}

enum chex_status
withdraw_journal_write(const struct folder *folder, const struct withdraw_journal *j, size_t shard_count,
                       const struct buffer *text, struct chex_error *err)
{
    json_t *slots = slots_json(j, shard_count);
    const char *text_of_rejects = j->rejects.size > 0 ? (const char *)j->rejects.data : "";
    json_t *rejects = j->has_rejects ? json_stringn(text_of_rejects, j->rejects.size) : json_null();
    json_t *line = slots && rejects ? json_object() : NULL;
    struct buffer b = {0};
    enum chex_status status = CHEX_OK;

    if (!line || json_object_set_new_nocheck(line, "request", json_string(j->request)) != 0 ||
        json_object_set_nocheck(line, "slots", slots) != 0 || json_object_set_nocheck(line, "rejects", rejects) != 0)
        status = error_memory(err);
    if (status == CHEX_OK)
        status = append_json(line, JSON_COMPACT | JSON_ENSURE_ASCII, &b, err);
    if (status == CHEX_OK)
        status = buffer_append(&b, text->data, text->size, err);
    if (status == CHEX_OK)
        status = safe_file_put(folder, WITHDRAWAL_NAME, b.data, b.size, err);
    json_decref(line);
    json_decref(slots);
    json_decref(rejects);
    buffer_release(&b);
    return status;
}

/* Read the slots of one shard.  Returns false if they are not ascending slots of a shard of the manifest. */
static bool
read_slots(const json_t *list, struct withdraw_journal *j, struct chex_error *err)
{
    size_t count = json_array_size(list), i;
    const json_t *first = json_array_get(list, 0);
    json_int_t shard = json_integer_value(first);
    struct withdrawn_slots *out;

    if (!json_is_integer(first) || shard < 0 || shard >= j->manifest.shard_count || count < 2 ||
        count - 1 > j->manifest.shard[shard].records || j->shard[shard].count > 0)
        return false;
    out = &j->shard[shard];
    out->index = malloc((count - 1) * sizeof(*out->index));
    if (!out->index) {
        error_memory(err);
        return false;
    }
    for (i = 1; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        json_int_t index = json_integer_value(item);

        if (!json_is_integer(item) || index < 0 || index >= j->manifest.shard[shard].records ||
            (i > 1 && index <= (json_int_t)out->index[i - 2]))
            return false;
        out->index[i - 1] = (uint32_t)index;
    }
    out->count = (uint32_t)(count - 1);
    return true;
}

static enum chex_status
read_line(const json_t *line, struct withdraw_journal *j, struct chex_error *err)
{
    const json_t *slots = json_object_get(line, "slots"), *rejects = json_object_get(line, "rejects");
    const char *request = json_string_value(json_object_get(line, "request"));
    const struct manifest *m = &j->manifest;
    char id[CHEX_ID_LENGTH + 1];
    struct chex_error why = {.status = CHEX_OK};
    enum chex_status status;
    size_t i;

    j->shard = calloc(m->shard_count, sizeof(*j->shard));
    if (!j->shard)
        return error_memory(err);
    if (!request || strlen(request) != DIGEST_HEX - 1 || !json_is_array(slots) || m->withdrawal_count == 0 ||
        !(json_is_null(rejects) || json_is_string(rejects)))
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "not the journal of a withdrawal");
    memcpy(j->request, request, DIGEST_HEX);
    for (i = 0; i < json_array_size(slots); i++)
        if (!read_slots(json_array_get(slots, i), j, &why))
            return why.status == CHEX_ERR_MEMORY ? error_memory(err)
                                                 : error_set(err, CHEX_ERR_INCOMPATIBLE, "slots: not those of shards");
    j->has_rejects = json_is_string(rejects);
    status = withdraw_identify(m->withdrawal[m->withdrawal_count - 1].dataset_id, j->shard, m->shard_count, id, err);
    if (status == CHEX_OK && strcmp(id, m->dataset_id) != 0)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "the slots do not give the id of the manifest");
    return status == CHEX_OK && j->has_rejects
               ? buffer_append(&j->rejects, json_string_value(rejects), json_string_length(rejects), err)
               : status;
}

enum chex_status
withdraw_journal_read(const struct folder *folder, struct withdraw_journal *j, struct chex_error *err)
{
    static const struct parse_bounds bounds = {.size = LINE_MAX_SIZE, .depth = 4, .values = 1u << 27};
    struct buffer b = {0};
    json_t *line = NULL;
    const uint8_t *end = NULL;
    enum chex_status status = file_read(folder->fd, WITHDRAWAL_NAME, LINE_MAX_SIZE + (uint64_t)MANIFEST_MAX, &b, err);

    if (status == CHEX_OK) {
        end = memchr(b.data, '\n', b.size);
        status = end ? parse_json(b.data, (size_t)(end - b.data), &bounds, &line, err)
                     : error_set(err, CHEX_ERR_INCOMPATIBLE, "not the journal of a withdrawal");
    }
    if (status == CHEX_OK)
        status = manifest_parse(end + 1, b.size - (size_t)(end + 1 - b.data), &j->manifest, err);
    if (status == CHEX_OK)
        status = read_line(line, j, err);
    json_decref(line);
    buffer_release(&b);
    if (status == CHEX_OK)
        return status;
    if (status != CHEX_ERR_MEMORY && status != CHEX_ERR_READ && status != CHEX_ERR_MISSING)
        status = CHEX_ERR_INCOMPATIBLE;
    return error_context(err, status, "'%s/%s'", folder->path, WITHDRAWAL_NAME);
}

void
withdraw_journal_release(struct withdraw_journal *j)
{
    size_t i;

    for (i = 0; j->shard && i < j->manifest.shard_count; i++)
        free(j->shard[i].index);
    free(j->shard);
    buffer_release(&j->rejects);
    manifest_release(&j->manifest);
    *j = (struct withdraw_journal){.has_rejects = false};
}
