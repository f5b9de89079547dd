/*
 * verify_file.c - checks a TFRecord file without a manifest; see verify.h
 *
 * All records must match the first one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "verify/verify_private.h"

#include "base/number_format.h"
#include "dataset/example.h"
#include "dataset/tfrecord.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct file_check {
    struct verify *v;
    const struct shard_scan *scan;
    size_t stride; /* of the first record; 0 before it was read */
    bool placed;   /* the first valid record has set the members below */
    char id[CHEX_ID_LENGTH + 1];
    uint32_t shard;
    struct report r;
};

/* Report a fault of this record: struct file_check, record, status, image's name, then the text. */
#define RECORD_FAULT(c, record, status, image, ...) \
    report_fault(&(c)->r, status, (record)->index, (record)->offset, image, __VA_ARGS__)

static void
check_place(struct file_check *c, const struct scanned_record *record, const struct chex_record *content)
{
    if (!c->placed) {
        c->placed = true;
        memcpy(c->id, content->dataset_id, sizeof(c->id));
        c->shard = content->shard;
    }
    if (strcmp(content->dataset_id, c->id) != 0)
        RECORD_FAULT(c, record, CHEX_ERR_INCOMPATIBLE, &content->name,
                     "of data set '%.16s', those before it are of '%s'", content->dataset_id, c->id);
    else if (content->shard != c->shard)
        RECORD_FAULT(c, record, CHEX_ERR_INCOMPATIBLE, &content->name, "of shard %u, those before it are of shard %u",
                     content->shard, c->shard);
    else if (content->index != record->index)
        RECORD_FAULT(c, record, CHEX_ERR_INCOMPATIBLE, &content->name, "holds the record of slot %u", content->index);
}

/* Check a record that was read completely.  CHEX_ERR_MEMORY */
static enum chex_status
check_content(struct file_check *c, const struct scanned_record *record, struct chex_error *err)
{
    struct chex_record content;
    struct example *example = NULL;
    struct chex_error why = record->why;

    c->r.records++;
    c->r.bytes += record->size;
    if (c->stride == 0)
        c->stride = record->size;
    if (record->fault != RECORD_GOOD ||
        example_parse(record->bytes + TFRECORD_HEADER, (size_t)record->length, &example, &content, &why) != CHEX_OK) {
        if (why.status == CHEX_ERR_MEMORY)
            return error_memory(err);
        RECORD_FAULT(c, record, why.status, NULL, "%s", why.text);
    } else if (record->size != c->stride) {
        RECORD_FAULT(c, record, CHEX_ERR_DAMAGED, &content.name, "%s bytes long, the first record has %s",
                     COUNT_TEXT(record->size), COUNT_TEXT(c->stride));
    } else {
        check_place(c, record, &content);
        c->r.images += content.weight == 1;
        c->r.notes += content.weight == 1 && verify_is_constant(content.pixels, (size_t)content.height * content.width);
    }
    example_free(example);
    return CHEX_OK;
}

static enum chex_status
check_record(void *context, const struct scanned_record *record, struct chex_error *err)
{
    struct file_check *c = context;
    enum chex_status status = CHEX_OK;

    if (record->bytes)
        status = check_content(c, record, err);
    else
        RECORD_FAULT(c, record, record->why.status, NULL, "%s", record->why.text);
    if (c->v->tick)
        c->v->tick(c->v->context, record->offset + record->size, c->scan->size);
    return status;
}

enum chex_status
verify_file(struct verify *v, const char *path, struct chex_error *err)
{
    struct shard_scan scan = {.visit = check_record, .stop = v->stop};
    struct file_check c = {.v = v, .scan = &scan};
    struct chex_error why;
    bool read_failed;
    enum chex_status status = file_open_input(AT_FDCWD, path, &scan.fd, &scan.size, err);

    if (status != CHEX_OK)
        return error_context(err, status, "'%s'", path);
    v->shards_good = v->records_read = v->bytes_read = v->faults = v->notes = 0;
    if (scan.size == 0)
        report_fault(&c.r, CHEX_ERR_EMPTY, 0, 0, NULL, "empty file");
    scan.context = &c;
    status = shard_scan(&scan, &why);
    close(scan.fd);
    if (status == CHEX_ERR_READ || status == CHEX_ERR_TRUNCATED) {
        report_fault(&c.r, status, scan.next, scan.offset, NULL, "%s", why.text);
        status = CHEX_OK;
    }
    if (status == CHEX_OK && c.r.out_of_memory)
        status = error_memory(&why);
    read_failed = c.r.read_failed;
    if (status == CHEX_OK)
        report_pass_on(&c.r, v, path);
    v->shards_good = c.r.faults == 0;
    report_release(&c.r);
    if (status == CHEX_OK && read_failed)
        status = error_set(&why, CHEX_ERR_READ, "'%s' could not be read", path);
    if (status != CHEX_OK && err)
        *err = why;
    return status;
}
