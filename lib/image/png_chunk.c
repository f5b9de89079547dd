/*
 * png_chunk.c - see png_chunk.h
 *
 * PNG specification, third edition, chapter 5: a chunk has length, type, data, and the CRC of type and data.  It is
 * critical if the first letter of its type is a capital.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "image/png_chunk.h"

#include <string.h>
#include <zlib.h>

#define FRAME 12 /* length, type and CRC around the data */

uint32_t
get_u32be(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

bool
chunk_next(const uint8_t *data, size_t size, size_t *position, struct chunk *chunk)
{
    const uint8_t *p;

    if (*position > size || size - *position < FRAME)
        return false;
    p = data + *position;
    chunk->length = get_u32be(p);
    if (chunk->length > size - *position - FRAME)
        return false;
    memcpy(chunk->type, p + 4, 4);
    chunk->type[4] = '\0';
    for (int i = 0; i < 4; i++) {
        int lower = chunk->type[i] | 0x20;

        if (lower < 'a' || lower > 'z')
            return false;
    }
    chunk->body = p + 4;
    *position += FRAME + (size_t)chunk->length;
    return true;
}

bool
chunk_is_animated(const uint8_t *data, size_t size)
{
    size_t position = CHUNK_FIRST;
    struct chunk chunk;

    while (chunk_next(data, size, &position, &chunk) && strcmp(chunk.type, "IDAT") != 0)
        if (strcmp(chunk.type, "acTL") == 0)
            return true;
    return false;
}

bool
chunk_is_image_data(const uint8_t *data, size_t size, size_t position)
{
    struct chunk chunk;

    return chunk_next(data, size, &position, &chunk) && strcmp(chunk.type, "IDAT") == 0 && chunk.length > 0;
}

void
chunk_check(const uint8_t *data, size_t size, struct chunk_checks *out)
{
    size_t position = CHUNK_FIRST;
    struct chunk chunk;

    *out = (struct chunk_checks){.bad = ""};
    while (!out->ended && chunk_next(data, size, &position, &chunk)) {
        bool critical = !(chunk.type[0] & 0x20);
        size_t covered = (size_t)chunk.length + 4;

        out->ended = strcmp(chunk.type, "IEND") == 0;
        if (crc32_z(0, chunk.body, covered) == get_u32be(chunk.body + covered))
            continue;
        if (!critical)
            out->bad_other++;
        else if (!out->bad[0])
            memcpy(out->bad, chunk.type, sizeof(out->bad));
    }
}

enum chex_status
chunk_measure(const uint8_t *data, size_t size, uint64_t most, bool *small, struct chex_error *err)
{
    size_t position = CHUNK_FIRST;
    struct chunk chunk;
    z_stream z = {0};
    uint8_t out[16384];
    uint64_t made = 0;
    int code = inflateInit(&z);

    while (code == Z_OK && made <= most && chunk_next(data, size, &position, &chunk)) {
        if (strcmp(chunk.type, "IDAT") != 0)
            continue;
        z.next_in = (Bytef *)(uintptr_t)(chunk.body + 4);
        z.avail_in = chunk.length;
        do {
            z.next_out = out;
            z.avail_out = sizeof(out);
            code = inflate(&z, Z_NO_FLUSH);
            made += sizeof(out) - z.avail_out;
        } while (code == Z_OK && z.avail_out == 0 && made <= most);
        if (code == Z_BUF_ERROR) /* it needs more input */
            code = Z_OK;
    }
    inflateEnd(&z);
    *small = made <= most;
    return code == Z_MEM_ERROR ? error_memory(err) : CHEX_OK;
}
