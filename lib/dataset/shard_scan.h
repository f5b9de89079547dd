/*
 * shard_scan.h - reads the records of a file, checks them, and passes each to a visitor
 *
 * In a shard with a known layout, record i begins at i * stride, so a damaged length does not hide the records after
 * it.  The scan reads pieces of whole records that fit into the L2 cache until they are checked.  Most of the time is
 * spent on copying from the page cache and on CRC-32C.
 *
 * In any other TFRecord file, the lengths locate the records.  After an invalid length, the scan continues one stride
 * further if the file consists of whole strides of its first record.  Otherwise the rest of the file is unreadable.
 *
 *     file_open(folder_fd, name, &fd, &size, err)
 *     struct shard_scan scan = {.shard = {layout, dataset_id, number}, .fd = fd, .records = 256,
 *                               .visit = visit, .context = ...};
 *     shard_scan(&scan, err)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_SHARD_SCAN_H
#define CHEX_LIB_SHARD_SCAN_H

#include "base/sha256.h"
#include "dataset/record.h"
#include "io/file.h"

#include <stdatomic.h>

/* The layout, data set and number that all records of a shard must have. */
struct shard_identity {
    const struct record_layout *layout;
    const char *dataset_id;
    uint32_t number; /* of the shard, counted over all splits */
};

/* The first fault of a record, in this order. */
enum record_fault {
    RECORD_GOOD,
    RECORD_LENGTH_CHECKSUM,
    RECORD_LENGTH, /* not the length of the shard's records, or beyond the end of the file */
    RECORD_DATA_CHECKSUM,
    RECORD_FORM,  /* record_decode() refuses it although its checksums are right */
    RECORD_PLACE, /* valid, but of another index, shard or data set */
};

struct scanned_record {
    uint32_t index;
    uint64_t offset;      /* in the file */
    const uint8_t *bytes; /* frame and data, valid during the visit; with .texts without pixels; NULL if unreadable */
    size_t size;          /* of bytes */
    uint64_t length;      /* of the data, as stored in the record */
    enum record_fault fault;
    struct chex_error why;       /* the error of the fault */
    struct chex_error form;      /* with RECORD_DATA_CHECKSUM: the error of record_decode(), or status CHEX_OK */
    struct record_values values; /* the readable values; an unreadable text has data NULL */
};

/*
 * Check one record of a known shard; all stride bytes are present.  Without checksums, check only form and slot.  Fills
 * all of *out except the offset.  Returns the status of out->why.
 */
enum chex_status record_check(const struct shard_identity *shard, uint32_t index, const uint8_t *record, bool checksums,
                              struct scanned_record *out);

/* Copy out->why to err, which may be NULL, and return its status. */
enum chex_status record_fail(const struct scanned_record *record, struct chex_error *err);

struct shard_scan {
    struct shard_identity shard; /* layout NULL: any TFRecord file */
    int fd;
    struct safe_file *partial; /* if not NULL, the scan reads this file back instead of fd */
    uint32_t records;          /* expected number of records of a known shard */
    uint64_t size;             /* size of any other file, in bytes */
    bool sha256;               /* compute the SHA-256 */
    bool texts;                /* read only the bytes around the pixels, and check no checksums */

    /* Returns whether to read this record.  NULL: read all. */
    bool (*wants)(void *context, uint32_t index);
    /* Called for each record in turn.  Any status but CHEX_OK ends the scan. */
    enum chex_status (*visit)(void *context, const struct scanned_record *record, struct chex_error *err);
    void *context;
    const atomic_bool *stop; /* NULL: never */
    _Atomic uint64_t *bytes; /* NULL, or a counter that is increased while bytes are read */

    /* Results: */
    uint32_t next;               /* the first record that was not reached, or at which the visitor ended the scan */
    uint64_t offset;             /* its offset */
    uint64_t bytes_read;         /* by this scan */
    uint32_t crc32c;             /* over the data checksums of all records, tfrecord_chain() */
    char sha256_hex[DIGEST_HEX]; /* of all bytes read */
};

/*
 * Scan the file.  After a read error the records before scan->next were visited.
 * CHEX_ERR_READ, CHEX_ERR_TRUNCATED "file became shorter while it was read", CHEX_ERR_MEMORY, CHEX_ERR_STOPPED; for a
 * partial file also CHEX_ERR_WRITE, see safe_file_pread(); any status of the visitor
 */
enum chex_status shard_scan(struct shard_scan *scan, struct chex_error *err);

#endif
