/*
 * archive_fixture.c - see archive_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "archive_fixture.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include <zlib.h>

void
archive_gzip(const void *data, size_t size, struct buffer *out)
{
    z_stream z = {0};

    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(buffer_reserve(out, out->size + deflateBound(&z, size), NULL), CHEX_OK);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = out->data + out->size;
    z.avail_out = (uInt)(out->capacity - out->size);
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->size += z.total_out;
    deflateEnd(&z);
}

void
archive_add_bytes(struct buffer *b, const char *name, char type, const void *data, size_t length)
{
    char head[512] = {0};
    size_t i;
    unsigned sum = 0;
    static const char zeros[512];

    snprintf(head, 100, "%s", name);
    snprintf(head + 100, 8, "%07o", 0644);
    snprintf(head + 124, 12, "%011o", (unsigned)length);
    memcpy(head + 257, "ustar\00000", 8);
    head[156] = type;
    memset(head + 148, ' ', 8);
    for (i = 0; i < sizeof(head); i++)
        sum += (unsigned char)head[i];
    snprintf(head + 148, 8, "%06o", sum);
    buffer_append(b, head, sizeof(head), NULL);
    buffer_append(b, data, length, NULL);
    if (length % 512)
        buffer_append(b, zeros, 512 - length % 512, NULL);
}

void
archive_add(struct buffer *b, const char *name, char type, const char *text)
{
    archive_add_bytes(b, name, type, text, strlen(text));
}
