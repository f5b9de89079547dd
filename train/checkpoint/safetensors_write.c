/*
 * safetensors_write.c - writes safetensors files; see safetensors.h
 *
 * The header is formatted by hand instead of by jansson, because the order of its keys is part of the bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/safetensors.h"

#include "base/json.h"
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN 64 /* alignment of the first value in the file */

/* Append a JSON string with quotes. */
static enum chex_status
append_string(struct buffer *b, const char *text, struct chex_error *err)
{
    json_t *value = json_string(text);
    enum chex_status status = append_json(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII, b, err);

    json_decref(value);
    if (status == CHEX_OK)
        b->size--; /* the newline */
    return status;
}

static enum chex_status
append_tensor(struct buffer *b, const struct tensor_entry *e, uint64_t first, uint64_t last, struct chex_error *err)
{
    enum chex_status status = append_string(b, e->name, err);
    unsigned i;

    if (status == CHEX_OK)
        status = buffer_printf(b, err, ":{\"dtype\":\"%s\",\"shape\":[", dtype_name(e->type));
    for (i = 0; status == CHEX_OK && i < e->rank; i++)
        status = buffer_printf(b, err, "%s%llu", i > 0 ? "," : "", (unsigned long long)e->shape[i]);
    return status == CHEX_OK ? buffer_printf(b, err, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)first,
                                             (unsigned long long)last)
                             : status;
}

static enum chex_status
append_metadata(struct buffer *b, const struct metadata *metadata, size_t count, struct chex_error *err)
{
    enum chex_status status = buffer_append(b, "\"__metadata__\":{", 16, err);
    size_t i;

    for (i = 0; status == CHEX_OK && i < count; i++) {
        if (i > 0)
            status = buffer_append(b, ",", 1, err);
        if (status == CHEX_OK)
            status = append_string(b, metadata[i].key, err);
        if (status == CHEX_OK)
            status = buffer_append(b, ":", 1, err);
        if (status == CHEX_OK)
            status = append_string(b, metadata[i].value, err);
    }
    return status == CHEX_OK ? buffer_append(b, "}", 1, err) : status;
}

/* Format length and header, padded with blanks. */
static enum chex_status
make_header(const struct tensor_source *tensor, size_t count, const struct metadata *metadata, size_t metadata_count,
            struct buffer *b, struct chex_error *err)
{
    static const uint8_t length_and_brace[9] = {0, 0, 0, 0, 0, 0, 0, 0, '{'};
    enum chex_status status = buffer_append(b, length_and_brace, sizeof(length_and_brace), err);
    uint64_t at = 0, length;
    size_t i;

    if (status == CHEX_OK && metadata_count > 0)
        status = append_metadata(b, metadata, metadata_count, err);
    for (i = 0; status == CHEX_OK && i < count; i++) {
        uint64_t bytes = tensor[i].entry.count * dtype_size(tensor[i].entry.type);

        if (i > 0 || metadata_count > 0)
            status = buffer_append(b, ",", 1, err);
        if (status == CHEX_OK)
            status = append_tensor(b, &tensor[i].entry, at, at + bytes, err);
        at += bytes;
    }
    if (status == CHEX_OK)
        status = buffer_append(b, "}", 1, err);
    while (status == CHEX_OK && b->size % ALIGN != 0)
        status = buffer_append(b, " ", 1, err);
    if (status != CHEX_OK)
        return status;
    length = b->size - 8;
    for (i = 0; i < 8; i++)
        b->data[i] = (uint8_t)(length >> (8 * i));
    return CHEX_OK;
}

enum chex_status
safetensors_write(const struct folder *folder, const char *name, const struct tensor_source *tensor, size_t count,
                  const struct metadata *metadata, size_t metadata_count, char *hex, struct chex_error *err)
{
    struct digest *digest = digest_new();
    struct safe_file *file = NULL;
    struct buffer header = {0};
    uint8_t hash[DIGEST_SIZE];
    enum chex_status status = digest ? make_header(tensor, count, metadata, metadata_count, &header, err)
                                     : error_memory(err);
    bool made = status == CHEX_OK;
    size_t i;

    if (made) {
        digest_start(digest);
        digest_add(digest, header.data, header.size);
        status = safe_file_create(folder, name, SAFE_FILE_NEW, 0, &file, err);
    }
    if (status == CHEX_OK)
        status = safe_file_write(file, header.data, header.size, err);
    for (i = 0; made && i < count; i++) {
        size_t bytes = tensor[i].entry.count * dtype_size(tensor[i].entry.type);

        digest_add(digest, tensor[i].data, bytes);
        if (status == CHEX_OK)
            status = safe_file_write(file, tensor[i].data, bytes, err);
    }
    if (status == CHEX_OK) {
        status = safe_file_commit(file, true, err);
        file = NULL;
    }
    if (made && hex) {
        digest_finish(digest, hash);
        digest_hex(hash, DIGEST_SIZE, hex);
    }
    safe_file_free(file);
    buffer_release(&header);
    digest_free(digest);
    return status;
}
