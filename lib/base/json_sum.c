/*
 * json_sum.c - see json_sum.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/json_sum.h"

#include "base/error.h"
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

#define SUM_ROOM 160

/* Write the last two lines of a document that begins with this text. */
static enum chex_status
format_sum(const void *text, size_t size, const char *key, char out[SUM_ROOM], struct chex_error *err)
{
    char hex[DIGEST_HEX];

    if (!digest_data(text, size, hex))
        return error_memory(err);
    snprintf(out, SUM_ROOM, "  \"%s\": \"%s\"\n}\n", key, hex);
    return CHEX_OK;
}

enum chex_status
json_sum_add(struct buffer *text, const char *key, struct chex_error *err)
{
    char sum[SUM_ROOM];
    enum chex_status status;

    text->size -= strlen("\n}\n");
    status = buffer_append(text, ",\n", 2, err);
    if (status == CHEX_OK)
        status = format_sum(text->data, text->size, key, sum, err);
    return status == CHEX_OK ? buffer_append(text, sum, strlen(sum), err) : status;
}

enum chex_status
json_sum_check(const json_t *top, const char *key, const void *text, size_t size, struct chex_error *err)
{
    size_t end = strlen("  \"\": \"\"\n}\n") + strlen(key) + DIGEST_HEX - 1;
    char sum[SUM_ROOM];
    enum chex_status status;

    if (!json_object_get(top, key))
        return CHEX_OK;
    if (size < end)
        return error_set(err, CHEX_ERR_DAMAGED, "%s: not a line of its own at the end", key);
    status = format_sum(text, size - end, key, sum, err);
    if (status == CHEX_OK && memcmp(sum, (const char *)text + size - end, end) != 0)
        status = error_set(err, CHEX_ERR_DAMAGED, "%s: not that of the text, which is damaged or was edited", key);
    return status;
}
