/*
 * dali_index.c - see dali_index.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/dali_index.h"

#include <stdio.h>
#include <string.h>

enum chex_status
dali_index_format(uint32_t records, size_t stride, struct buffer *text, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    uint32_t i;

    text->size = 0;
    for (i = 0; status == CHEX_OK && i < records; i++) {
        char line[64];
        int length = snprintf(line, sizeof(line), "%llu %zu\n", (unsigned long long)i * stride, stride);

        status = buffer_append(text, line, (size_t)length, err);
    }
    return status;
}

enum chex_status
dali_index_write(const struct folder *folder, const char *shard, uint32_t records, size_t stride,
                 struct chex_error *err)
{
    struct buffer text = {0}, there = {0};
    enum chex_status status = dali_index_format(records, stride, &text, err);
    char name[SHARD_NAME_MAX + sizeof(DALI_INDEX_SUFFIX)];

    snprintf(name, sizeof(name), "%s%s", shard, DALI_INDEX_SUFFIX);
    if (status == CHEX_OK && (file_read(folder->fd, name, text.size, &there, NULL) != CHEX_OK ||
                              there.size != text.size || memcmp(there.data, text.data, text.size) != 0))
        status = safe_file_put(folder, name, text.data, text.size, err);
    buffer_release(&there);
    buffer_release(&text);
    return status;
}
