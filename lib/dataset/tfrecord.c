/*
 * tfrecord.c - see tfrecord.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/tfrecord.h"

#include "base/number_format.h"

uint32_t
get_u32le(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t
get_u64le(const uint8_t *p)
{
    return (uint64_t)get_u32le(p) | (uint64_t)get_u32le(p + 4) << 32;
}

void
put_u32le(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
}

void
put_u64le(uint8_t *p, uint64_t v)
{
    put_u32le(p, (uint32_t)v);
    put_u32le(p + 4, (uint32_t)(v >> 32));
}

static uint32_t
masked_crc(const uint8_t *data, size_t size)
{
    return chex_crc32c_mask(chex_crc32c(0, data, size));
}

void
tfrecord_frame(uint8_t *record, size_t data_size)
{
    put_u64le(record, data_size);
    put_u32le(record + 8, masked_crc(record, 8));
    put_u32le(record + TFRECORD_HEADER + data_size, masked_crc(record + TFRECORD_HEADER, data_size));
}

enum chex_status
tfrecord_length(const uint8_t *record, uint64_t rest, uint64_t *data_size, struct chex_error *err)
{
    uint64_t size = get_u64le(record);

    if (get_u32le(record + 8) != masked_crc(record, 8))
        return error_set(err, CHEX_ERR_CHECKSUM, "length checksum mismatch");
    if (rest < TFRECORD_FRAME || size > rest - TFRECORD_FRAME)
        return error_set(err, CHEX_ERR_TRUNCATED, "file ends %s bytes inside the record", COUNT_TEXT(rest));
    *data_size = size;
    return CHEX_OK;
}

uint32_t
tfrecord_chain(uint32_t crc, const uint8_t *record, size_t data_size)
{
    return chex_crc32c(crc, record + TFRECORD_HEADER + data_size, TFRECORD_FOOTER);
}

enum chex_status
tfrecord_check_data(const uint8_t *record, size_t data_size, struct chex_error *err)
{
    const uint8_t *data = record + TFRECORD_HEADER;

    if (get_u32le(data + data_size) != masked_crc(data, data_size))
        return error_set(err, CHEX_ERR_CHECKSUM, "data checksum mismatch");
    return CHEX_OK;
}
