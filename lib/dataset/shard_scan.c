/*
 * shard_scan.c - see shard_scan.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/shard_scan.h"

#include "base/number_format.h"
#include "dataset/tfrecord.h"

#include <stdlib.h>
#include <string.h>

#define PIECE       (1u << 19)
#define SMALL_IMAGE 4096 /* up to this pixel size, .texts reads whole records: skipping the pixels would save nothing */
#define MAX_RECORD  ((size_t)RECORD_MAX_SIDE * RECORD_MAX_SIDE * 4 + RECORD_MAX_TAIL)

/* ---- one record ------------------------------------------------------------------------------------------------ */

static enum record_fault
fail_place(const struct shard_identity *shard, uint32_t index, struct scanned_record *out)
{
    if (strcmp(out->values.dataset_id, shard->dataset_id) != 0)
        error_set(&out->why, CHEX_ERR_INCOMPATIBLE, "record of data set %s, not of %s", out->values.dataset_id,
                  shard->dataset_id);
    else if (out->values.shard != shard->number || out->values.index != index)
        error_set(&out->why, CHEX_ERR_INCOMPATIBLE, "record of shard %u, place %u, not of shard %u, place %u",
                  out->values.shard, out->values.index, shard->number, index);
    else
        return RECORD_GOOD;
    return RECORD_PLACE;
}

enum chex_status
record_check(const struct shard_identity *shard, uint32_t index, const uint8_t *record, bool checksums,
             struct scanned_record *out)
{
    size_t data_size = shard->layout->stride - TFRECORD_FRAME;
    uint64_t unused;

    out->index = index;
    out->bytes = record;
    out->size = shard->layout->stride;
    out->length = get_u64le(record);
    out->values = (struct record_values){.weight = 0};
    out->why.status = out->form.status = CHEX_OK;
    record_decode(shard->layout, record, &out->values, &out->form);
    if (checksums && tfrecord_length(record, UINT64_MAX, &unused, &out->why) == CHEX_ERR_CHECKSUM) {
        out->fault = RECORD_LENGTH_CHECKSUM;
    } else if (out->length != data_size) {
        out->fault = RECORD_LENGTH;
        out->why = out->form;
    } else if (checksums && tfrecord_check_data(record, data_size, &out->why) != CHEX_OK) {
        out->fault = RECORD_DATA_CHECKSUM;
    } else if (out->form.status != CHEX_OK) {
        out->fault = RECORD_FORM;
        out->why = out->form;
    } else {
        out->fault = fail_place(shard, index, out);
    }
    return out->why.status;
}

enum chex_status
record_fail(const struct scanned_record *record, struct chex_error *err)
{
    if (err)
        *err = record->why;
    return record->why.status;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Read and count bytes.  Returns CHEX_ERR_TRUNCATED or a read error if *got < size. */
static enum chex_status
read_at(struct shard_scan *scan, uint64_t offset, uint8_t *data, size_t size, size_t *got, struct chex_error *err)
{
    enum chex_status status = scan->partial ? safe_file_pread(scan->partial, offset, data, size, got, err)
                                            : file_pread(scan->fd, offset, data, size, got, err);

    scan->bytes_read += *got;
    if (scan->bytes)
        atomic_fetch_add(scan->bytes, *got);
    if (status == CHEX_OK && *got < size)
        status = error_set(err, CHEX_ERR_TRUNCATED, "file became shorter while it was read");
    return status;
}

/* Read the bytes of one record around its pixels: about 1 % of it at 256x256. */
static enum chex_status
read_texts(struct shard_scan *scan, uint32_t index, uint8_t *record, size_t *got, struct chex_error *err)
{
    const struct record_layout *l = scan->shard.layout;
    size_t tail = l->pixel_offset + l->pixel_size;
    enum chex_status status = read_at(scan, (uint64_t)index * l->stride, record, l->pixel_offset, got, err);

    if (status == CHEX_OK)
        status = read_at(scan, (uint64_t)index * l->stride + tail, record + tail, l->stride - tail, got, err);
    *got = status == CHEX_OK ? l->stride : 0;
    return status;
}

/* ---- a shard with a known layout ------------------------------------------------------------------------------- */

static enum chex_status
visit_piece(struct shard_scan *scan, uint8_t *piece, uint32_t count, struct chex_error *err)
{
    const struct record_layout *l = scan->shard.layout;
    struct scanned_record record;
    enum chex_status status = CHEX_OK;

    for (; count > 0; count--, piece += l->stride) {
        record.offset = scan->offset;
        record_check(&scan->shard, scan->next, piece, !scan->texts, &record);
        scan->crc32c = tfrecord_chain(scan->crc32c, piece, l->stride - TFRECORD_FRAME);
        if (record.fault == RECORD_LENGTH_CHECKSUM || record.fault == RECORD_LENGTH) {
            /* Insert the right length so that the values can be read, at least for the image's name. */
            put_u64le(piece, l->stride - TFRECORD_FRAME);
            record_decode(l, piece, &record.values, NULL);
        }
        status = scan->visit(scan->context, &record, err);
        if (status != CHEX_OK)
            break;
        scan->next++;
        scan->offset += l->stride;
    }
    return status;
}

/* Skip unwanted records.  Returns the number of records to read next, at most `most`. */
static uint32_t
next_piece(struct shard_scan *scan, uint32_t most)
{
    uint32_t left;

    while (scan->wants && scan->next < scan->records && !scan->wants(scan->context, scan->next))
        scan->next++;
    scan->offset = (uint64_t)scan->next * scan->shard.layout->stride;
    left = scan->records - scan->next;
    return left < most ? left : most;
}

static enum chex_status
scan_shard(struct shard_scan *scan, struct buffer *buffer, struct digest *digest, struct chex_error *err)
{
    const struct record_layout *l = scan->shard.layout;
    bool around = scan->texts && l->pixel_size > SMALL_IMAGE;
    uint32_t most = scan->wants || around || l->stride >= PIECE ? 1 : (uint32_t)(PIECE / l->stride), count;
    struct chex_error why;
    enum chex_status status = buffer_reserve(buffer, most * l->stride, err), read = CHEX_OK;

    while (status == CHEX_OK && read == CHEX_OK && (count = next_piece(scan, most)) > 0) {
        size_t got;

        if (scan->stop && atomic_load(scan->stop))
            return error_stopped(err);
        if (around)
            read = read_texts(scan, scan->next, buffer->data, &got, &why);
        else
            read = read_at(scan, scan->offset, buffer->data, count * l->stride, &got, &why);
        if (digest)
            digest_add(digest, buffer->data, got);
        /* Visit the whole records before the end of the file or before the read error. */
        status = visit_piece(scan, buffer->data, (uint32_t)(got / l->stride), err);
    }
    if (status == CHEX_OK && read != CHEX_OK && err)
        *err = why;
    return status == CHEX_OK ? read : status;
}

/* ---- any other file -------------------------------------------------------------------------------------------- */

/* Read the record at scan->offset.  *status is a read error or lack of memory; out->why is a fault of the record. */
static void
read_record(struct shard_scan *scan, struct buffer *buffer, struct scanned_record *out, enum chex_status *status,
            struct chex_error *err)
{
    uint64_t rest = scan->size - scan->offset;
    size_t got;

    *out = (struct scanned_record){.index = scan->next, .offset = scan->offset, .fault = RECORD_LENGTH};
    if (rest < TFRECORD_HEADER) {
        error_set(&out->why, CHEX_ERR_TRUNCATED, "file ends %s bytes inside the record", COUNT_TEXT(rest));
        return;
    }
    *status = buffer_reserve(buffer, TFRECORD_HEADER, err);
    if (*status == CHEX_OK)
        *status = read_at(scan, scan->offset, buffer->data, TFRECORD_HEADER, &got, err);
    if (*status != CHEX_OK)
        return;
    if (tfrecord_length(buffer->data, rest, &out->length, &out->why) == CHEX_OK && out->length > MAX_RECORD)
        error_set(&out->why, CHEX_ERR_LIMIT, "%s bytes of data: no image is that large", COUNT_TEXT(out->length));
    if (out->why.status != CHEX_OK)
        return;
    out->size = (size_t)out->length + TFRECORD_FRAME;
    buffer->size = TFRECORD_HEADER;
    *status = buffer_reserve(buffer, out->size, err);
    if (*status == CHEX_OK)
        *status = read_at(scan, scan->offset + TFRECORD_HEADER, buffer->data + TFRECORD_HEADER,
                          out->size - TFRECORD_HEADER, &got, err);
    out->bytes = buffer->data;
    if (*status == CHEX_OK && tfrecord_check_data(buffer->data, (size_t)out->length, &out->why) != CHEX_OK)
        out->fault = RECORD_DATA_CHECKSUM;
    else
        out->fault = RECORD_GOOD;
}

static enum chex_status
scan_file(struct shard_scan *scan, struct buffer *buffer, struct chex_error *err)
{
    uint64_t stride = 0;
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && scan->offset < scan->size) {
        struct scanned_record record;

        if (scan->stop && atomic_load(scan->stop))
            return error_stopped(err);
        read_record(scan, buffer, &record, &status, err);
        if (status == CHEX_OK)
            status = scan->visit(scan->context, &record, err);
        if (status != CHEX_OK)
            return status;
        stride = stride > 0 ? stride : record.size;
        scan->next++;
        if (record.bytes)
            scan->offset += record.size;
        else
            scan->offset = stride > 0 && scan->size % stride == 0 ? scan->offset + stride : scan->size;
    }
    return status;
}

enum chex_status
shard_scan(struct shard_scan *scan, struct chex_error *err)
{
    struct digest *digest = scan->sha256 ? digest_new() : NULL;
    struct buffer buffer = {0};
    uint8_t hash[DIGEST_SIZE];
    enum chex_status status;

    if (scan->sha256 && !digest)
        return error_memory(err);
    if (digest)
        digest_start(digest);
    status = scan->shard.layout ? scan_shard(scan, &buffer, digest, err) : scan_file(scan, &buffer, err);
    if (digest) {
        digest_finish(digest, hash);
        digest_hex(hash, DIGEST_SIZE, scan->sha256_hex);
    }
    digest_free(digest);
    buffer_release(&buffer);
    return status;
}
