/*
 * journal_line.c - one shard as a line of JSON, in the journal and between processes; see journal.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "store/journal.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

void
shard_result_release(struct shard_result *r)
{
    while (r->reject && r->reject_count > 0)
        free(r->reject[--r->reject_count].text);
    free(r->reject);
    *r = (struct shard_result){0};
}

/* [[index, status, text], ...]; NULL when out of memory or where a text is no text. */
static json_t *
rejects_json(const struct shard_result *r)
{
    json_t *list = json_array();
    size_t i;

    for (i = 0; list && i < r->reject_count; i++) {
        if (json_array_append_new(list, json_pack("[I,i,s]", (json_int_t)r->reject[i].index, (int)r->reject[i].status,
                                                  r->reject[i].text)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

enum chex_status
journal_format(size_t shard, const struct shard_result *result, bool with_rejects, struct buffer *b,
               struct chex_error *err)
{
    bool hashed = result->done || !with_rejects;
    json_t *line = json_pack("{s:I,s:I,s:s,s:s,s:I,s:I,s:I,s:I}", "shard", (json_int_t)shard, "size",
                             (json_int_t)result->size, "sha256", hashed ? result->sha256 : "", "crc32c",
                             hashed ? result->crc32c : "", "images", (json_int_t)result->images, "sum",
                             (json_int_t)result->sum, "squares", (json_int_t)result->squares, "rejects",
                             (json_int_t)result->reject_count);
    enum chex_status status;

    if (line && with_rejects && json_object_set_new(line, "list", rejects_json(result)) != 0) {
        json_decref(line);
        line = NULL;
    }
    status = json_append(line, JSON_COMPACT | JSON_ENSURE_ASCII, b, err);
    json_decref(line);
    return status;
}

/* Why a value could not be unpacked: jansson allocates for that. */
static enum chex_status
fail_unpack(const json_error_t *e, struct chex_error *err)
{
    return json_error_code(e) == json_error_out_of_memory
               ? chex_fail_memory(err)
               : chex_fail(err, CHEX_ERR_DAMAGED, "%s", "no line of a shard");
}

static enum chex_status
parse_reject(json_t *value, struct reject *r, struct chex_error *err)
{
    json_int_t index;
    json_error_t e;
    const char *text;
    int status;

    if (json_unpack_ex(value, &e, 0, "[I,i,s]", &index, &status, &text) != 0)
        return fail_unpack(&e, err);
    if (index < 0 || index > UINT32_MAX || status <= CHEX_OK || status >= CHEX_ERR_BUG)
        return chex_fail(err, CHEX_ERR_DAMAGED, "no reject of a shard");
    *r = (struct reject){(uint32_t)index, (enum chex_status)status, strdup(text)};
    return r->text ? CHEX_OK : chex_fail_memory(err);
}

/* The rejects of a line into out, whose reject_count says how many there must be. */
static enum chex_status
parse_rejects(const json_t *list, struct shard_result *out, struct chex_error *err)
{
    size_t wanted = out->reject_count;
    enum chex_status status = CHEX_OK;

    out->reject_count = 0;
    if (json_array_size(list) != wanted)
        status = chex_fail(err, CHEX_ERR_DAMAGED, "another number of rejects");
    else if (!(out->reject = calloc(wanted > 0 ? wanted : 1, sizeof(*out->reject))))
        status = chex_fail_memory(err);
    while (status == CHEX_OK && out->reject_count < wanted) {
        status = parse_reject(json_array_get(list, out->reject_count), &out->reject[out->reject_count], err);
        out->reject_count += status == CHEX_OK;
    }
    if (status != CHEX_OK)
        shard_result_release(out);
    return status;
}

static enum chex_status
parse_object(json_t *line, size_t shard_count, size_t *shard, struct shard_result *out, struct chex_error *err)
{
    json_int_t number, size, images, sum, squares, rejects;
    json_t *list = json_object_get(line, "list");
    const char *sha256, *crc32c;
    json_error_t e;

    if (json_unpack_ex(line, &e, 0, "{s:I,s:I,s:s,s:s,s:I,s:I,s:I,s:I}", "shard", &number, "size", &size, "sha256",
                       &sha256, "crc32c", &crc32c, "images", &images, "sum", &sum, "squares", &squares, "rejects",
                       &rejects) != 0)
        return fail_unpack(&e, err);
    if (number < 0 || (size_t)number >= shard_count || size < 0 || images < 0 || images > UINT32_MAX || sum < 0 ||
        squares < 0 || rejects < 0)
        return chex_fail(err, CHEX_ERR_DAMAGED, "a number that cannot be");
    /* Both hashes, or, between processes, none. */
    if ((strlen(sha256) != DIGEST_HEX - 1 || strlen(crc32c) != CRC_HEX - 1) &&
        !(list && sha256[0] == '\0' && crc32c[0] == '\0'))
        return chex_fail(err, CHEX_ERR_DAMAGED, "no checksum");
    *shard = (size_t)number;
    *out = (struct shard_result){
        .done = sha256[0] != '\0',
        .size = (uint64_t)size,
        .images = (uint32_t)images,
        .sum = (uint64_t)sum,
        .squares = (uint64_t)squares,
        .reject_count = (size_t)rejects,
    };
    memcpy(out->sha256, sha256, strlen(sha256) + 1);
    memcpy(out->crc32c, crc32c, strlen(crc32c) + 1);
    return list ? parse_rejects(list, out, err) : CHEX_OK;
}

enum chex_status
journal_parse(const char *line, size_t size, size_t shard_count, size_t *shard, struct shard_result *out,
              struct chex_error *err)
{
    /* A shard has at most 65,536 rejects, of five values each. */
    static const struct json_bounds bounds = {.size = 64u << 20, .depth = 4, .values = 500000};
    json_t *object;
    enum chex_status status = json_read(line, size, &bounds, &object, err);

    *out = (struct shard_result){0};
    if (status == CHEX_OK)
        status = parse_object(object, shard_count, shard, out, err);
    else if (status != CHEX_ERR_MEMORY)
        status = chex_context(err, CHEX_ERR_DAMAGED, "a line");
    json_decref(object);
    return status;
}
