/*
 * journal_line.c - formats and parses a shard as a line of JSON; see journal.h
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

enum chex_status
journal_format(size_t shard, const struct shard_result *result, struct buffer *b, struct chex_error *err)
{
    json_t *line = json_pack("{s:I,s:I,s:s,s:s,s:I,s:I,s:I,s:I}", "shard", (json_int_t)shard, "size",
                             (json_int_t)result->size, "sha256", result->sha256, "crc32c", result->crc32c, "images",
                             (json_int_t)result->images, "sum", (json_int_t)result->sum, "squares",
                             (json_int_t)result->squares, "rejects", (json_int_t)result->reject_count);
    enum chex_status status = append_json(line, JSON_COMPACT | JSON_ENSURE_ASCII, b, err);

    json_decref(line);
    return status;
}

/* Report why jansson could not unpack a value: it may be out of memory. */
static enum chex_status
fail_unpack(const json_error_t *e, struct chex_error *err)
{
    return json_error_code(e) == json_error_out_of_memory
               ? error_memory(err)
               : error_set(err, CHEX_ERR_DAMAGED, "%s", "no line of a shard");
}

static enum chex_status
parse_object(json_t *line, size_t shard_count, size_t *shard, struct shard_result *out, struct chex_error *err)
{
    json_int_t number, size, images, sum, squares, rejects;
    const char *sha256, *crc32c;
    json_error_t e;

    if (json_unpack_ex(line, &e, 0, "{s:I,s:I,s:s,s:s,s:I,s:I,s:I,s:I}", "shard", &number, "size", &size, "sha256",
                       &sha256, "crc32c", &crc32c, "images", &images, "sum", &sum, "squares", &squares, "rejects",
                       &rejects) != 0)
        return fail_unpack(&e, err);
    if (number < 0 || (size_t)number >= shard_count || size < 0 || images < 0 || images > UINT32_MAX || sum < 0 ||
        squares < 0 || rejects < 0)
        return error_set(err, CHEX_ERR_DAMAGED, "a number that cannot be");
    if (strlen(sha256) != DIGEST_HEX - 1 || strlen(crc32c) != CRC_HEX - 1)
        return error_set(err, CHEX_ERR_DAMAGED, "no checksum");
    *shard = (size_t)number;
    *out = (struct shard_result){
        .done = true,
        .size = (uint64_t)size,
        .images = (uint32_t)images,
        .sum = (uint64_t)sum,
        .squares = (uint64_t)squares,
        .reject_count = (size_t)rejects,
    };
    memcpy(out->sha256, sha256, strlen(sha256) + 1);
    memcpy(out->crc32c, crc32c, strlen(crc32c) + 1);
    return CHEX_OK;
}

enum chex_status
journal_parse(const char *line, size_t size, size_t shard_count, size_t *shard, struct shard_result *out,
              struct chex_error *err)
{
    static const struct parse_bounds bounds = {.size = 4096, .depth = 2, .values = 64};
    json_t *object;
    enum chex_status status = parse_json(line, size, &bounds, &object, err);

    *out = (struct shard_result){0};
    if (status == CHEX_OK)
        status = parse_object(object, shard_count, shard, out, err);
    else if (status != CHEX_ERR_MEMORY)
        status = error_context(err, CHEX_ERR_DAMAGED, "a line");
    json_decref(object);
    return status;
}
