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
dali_index_write(const struct folder *folder, const struct plan *plan, void (*tick)(void *context), void *context,
                 struct chex_error *err)
{
    struct buffer text = {0}, there = {0};
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; status == CHEX_OK && i < plan->shard_count; i++) {
        char name[PLAN_SHARD_NAME + sizeof(DALI_INDEX_SUFFIX)];

        status = dali_index_format(plan->shard[i].records, plan->layout.stride, &text, err);
        snprintf(name, sizeof(name), "%s%s", plan->shard[i].name, DALI_INDEX_SUFFIX);
        if (status == CHEX_OK && (file_read(folder->fd, name, text.size, &there, NULL) != CHEX_OK ||
                                  there.size != text.size || memcmp(there.data, text.data, text.size) != 0))
            status = safe_file_put(folder, name, text.data, text.size, err);
        if (tick)
            tick(context);
    }
    buffer_release(&there);
    buffer_release(&text);
    return status;
}
