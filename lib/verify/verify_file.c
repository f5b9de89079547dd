/*
 * verify_file.c - a TFRecord file that no manifest describes; see verify.h
 *
 * The first record says what the others must be like.  Where a length cannot be believed the next record is looked for
 * one stride on, if the file consists of whole strides; otherwise the rest of the file is out of reach.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "verify/verify_private.h"

#include "base/progress.h"
#include "dataset/example.h"
#include "dataset/tfrecord.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MAX_RECORD ((size_t)LAYOUT_MAX_SIDE * LAYOUT_MAX_SIDE * 4 + LAYOUT_MAX_TAIL)

struct check {
    struct verify *v;
    int fd;
    uint64_t size;   /* of the file */
    uint64_t offset; /* of the record at hand */
    int64_t index;   /* of the record at hand */
    uint64_t stride; /* of the first record; 0 until one was read */
    bool placed;     /* a first good record has said where it belongs: */
    char id[CHEX_ID_LENGTH + 1];
    uint32_t shard;
    struct buffer buffer;
    struct report r;
};

static void
check_place(struct check *c, const struct chex_record *record)
{
    if (!c->placed) {
        c->placed = true;
        memcpy(c->id, record->dataset_id, sizeof(c->id));
        c->shard = record->shard;
    }
    if (strcmp(record->dataset_id, c->id) != 0)
        report_fault(&c->r, CHEX_ERR_INCOMPATIBLE, c->index, c->offset, &record->name,
                     "of data set '%.16s', those before it are of '%s'", record->dataset_id, c->id);
    else if (record->shard != c->shard)
        report_fault(&c->r, CHEX_ERR_INCOMPATIBLE, c->index, c->offset, &record->name,
                     "of shard %u, those before it are of shard %u", record->shard, c->shard);
    else if (record->index != c->index)
        report_fault(&c->r, CHEX_ERR_INCOMPATIBLE, c->index, c->offset, &record->name, "holds the record of slot %u",
                     record->index);
}

/* The whole record is in the buffer.  CHEX_ERR_MEMORY */
static enum chex_status
check_content(struct check *c, uint64_t data_size, struct chex_error *err)
{
    struct chex_record record;
    struct example *example = NULL;
    struct chex_error why = {.status = CHEX_OK};

    c->r.records++;
    c->r.bytes += data_size + TFRECORD_FRAME;
    if (c->stride == 0)
        c->stride = data_size + TFRECORD_FRAME;
    if (tfrecord_check_data(c->buffer.data, (size_t)data_size, &why) != CHEX_OK ||
        example_parse(c->buffer.data + TFRECORD_HEADER, (size_t)data_size, &example, &record, &why) != CHEX_OK) {
        if (why.status == CHEX_ERR_MEMORY)
            return chex_fail_memory(err);
        report_fault(&c->r, why.status, c->index, c->offset, NULL, "%s", why.text);
    } else if (data_size + TFRECORD_FRAME != c->stride) {
        report_fault(&c->r, CHEX_ERR_DAMAGED, c->index, c->offset, &record.name,
                     "%s bytes long, the first record has %s", COUNT_TEXT(data_size + TFRECORD_FRAME),
                     COUNT_TEXT(c->stride));
    } else {
        check_place(c, &record);
        c->r.images += record.weight == 1;
        c->r.notes += record.weight == 1 && verify_is_constant(record.pixels, (size_t)record.height * record.width);
    }
    example_free(example);
    return CHEX_OK;
}

/* Read what begins at c->offset; false where the file became shorter or cannot be read. */
static bool
read_at(struct check *c, size_t size)
{
    struct chex_error why;
    size_t got;

    if (file_pread(c->fd, c->offset, c->buffer.data, size, &got, &why) != CHEX_OK) {
        report_fault(&c->r, CHEX_ERR_READ, c->index, c->offset, NULL, "%s", why.text);
        return false;
    }
    if (got < size)
        report_fault(&c->r, CHEX_ERR_TRUNCATED, c->index, c->offset, NULL, "file became shorter while it was read");
    return got == size;
}

/* The record at c->offset, and on to the next one.  Sets c->offset to the end where nothing more can be found. */
static enum chex_status
check_record(struct check *c, struct chex_error *err)
{
    uint64_t rest = c->size - c->offset, data_size = 0;
    struct chex_error why = {.status = CHEX_OK};
    enum chex_status status;

    if (rest < TFRECORD_HEADER) {
        report_fault(&c->r, CHEX_ERR_TRUNCATED, c->index, c->offset, NULL, "file ends %s bytes inside the record",
                     COUNT_TEXT(rest));
        c->offset = c->size;
        return CHEX_OK;
    }
    status = buffer_reserve(&c->buffer, TFRECORD_HEADER, err);
    if (status != CHEX_OK)
        return status;
    if (!read_at(c, TFRECORD_HEADER)) {
        c->offset = c->size;
        return CHEX_OK;
    }
    if (tfrecord_length(c->buffer.data, rest, &data_size, &why) == CHEX_OK && data_size > MAX_RECORD)
        chex_fail(&why, CHEX_ERR_LIMIT, "%s bytes of data: no image is that large", COUNT_TEXT(data_size));
    if (why.status == CHEX_OK) {
        status = buffer_reserve(&c->buffer, (size_t)data_size + TFRECORD_FRAME, err);
        if (status == CHEX_OK && read_at(c, (size_t)data_size + TFRECORD_FRAME)) {
            status = check_content(c, data_size, err);
            c->offset += data_size + TFRECORD_FRAME;
        } else {
            c->offset = c->size;
        }
        return status;
    }
    report_fault(&c->r, why.status, c->index, c->offset, NULL, "%s", why.text);
    c->offset = c->stride > 0 && c->size % c->stride == 0 ? c->offset + c->stride : c->size;
    return CHEX_OK;
}

enum chex_status
verify_file(struct verify *v, const char *path, struct chex_error *err)
{
    struct check c = {.v = v};
    bool read_failed;
    enum chex_status status = file_open(AT_FDCWD, path, &c.fd, &c.size, err);

    if (status != CHEX_OK)
        return chex_context(err, status, "'%s'", path);
    v->shards_good = v->records_read = v->bytes_read = v->faults = v->notes = 0;
    if (c.size == 0)
        report_fault(&c.r, CHEX_ERR_EMPTY, 0, 0, NULL, "empty file");
    for (; c.offset < c.size && status == CHEX_OK; c.index++) {
        if (v->stop && atomic_load(v->stop))
            status = chex_fail_stopped(err);
        else
            status = check_record(&c, err);
        if (v->tick)
            v->tick(v->context, c.offset, c.size);
    }
    if (status == CHEX_OK && c.r.out_of_memory)
        status = chex_fail_memory(err);
    read_failed = c.r.read_failed;
    if (status == CHEX_OK)
        report_tell(&c.r, v, path);
    v->shards_good = c.r.faults == 0;
    report_release(&c.r);
    buffer_release(&c.buffer);
    close(c.fd);
    if (status == CHEX_OK && read_failed)
        status = chex_fail(err, CHEX_ERR_READ, "'%s' could not be read", path);
    return status;
}
