/*
 * shard_scan.h - the one loop that reads the records of a file, checks them, and shows each to a visitor
 *
 * Of a shard whose record is known, record i begins at i * stride, so a damaged length does not hide what follows.  The
 * file is read in pieces of whole records that stay in the second-level cache until they are checked: the copy
 * out of the page cache and the CRC-32C take the time.
 *
 * Of any other TFRecord file the lengths say where records begin.  After a length that cannot be right, the
 * scan looks for the next record one stride further, if the file consists of whole strides of its first record;
 * otherwise the rest of the file is out of reach.
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

/* What the records of a shard must be. */
struct shard_identity {
    const struct record_layout *layout;
    const char *dataset_id;
    uint32_t number; /* of the shard, over all splits */
};

/* What is wrong with a record: the first of these. */
enum record_fault {
    RECORD_GOOD,
    RECORD_LENGTH_CHECKSUM,
    RECORD_LENGTH, /* not that of the shard's records, or not within the file */
    RECORD_DATA_CHECKSUM,
    RECORD_FORM,  /* record_decode() does not accept it, although its checksums are right */
    RECORD_PLACE, /* a good record of another slot, shard or data set */
};

struct scanned_record {
    uint32_t index;
    uint64_t offset;      /* in the file */
    const uint8_t *bytes; /* frame and data, during the visit; with .texts no pixels; NULL where out of reach */
    size_t size;          /* of bytes */
    uint64_t length;      /* of the data, as the record says */
    enum record_fault fault;
    struct chex_error why;       /* of the fault */
    struct chex_error form;      /* with RECORD_DATA_CHECKSUM: what record_decode() says, or status CHEX_OK */
    struct record_values values; /* as far as they can be read; a text without data cannot */
};

/*
 * Check one record of a known shard, of which stride bytes are there.  Without checksums only the form and the place
 * are checked.  Fills in *out but for the offset; the status is that of out->why.
 */
enum chex_status record_check(const struct shard_identity *shard, uint32_t index, const uint8_t *record, bool checksums,
                              struct scanned_record *out);

/* Copy out->why to err, which may be NULL, and return its status. */
enum chex_status record_fail(const struct scanned_record *record, struct chex_error *err);

struct shard_scan {
    struct shard_identity shard; /* layout NULL: any TFRecord file */
    int fd;
    struct safe_file *partial; /* not NULL: this is read back, and not fd */
    uint32_t records;          /* that are to be there, of a known shard */
    uint64_t size;             /* of any other file */
    bool sha256;               /* compute it */
    bool texts;                /* only what is around the pixels is read, and no checksum is checked */

    /* Is this record to be read?  NULL: all of them. */
    bool (*wants)(void *context, uint32_t index);
    /* Each record in turn.  Anything but CHEX_OK ends the scan. */
    enum chex_status (*visit)(void *context, const struct scanned_record *record, struct chex_error *err);
    void *context;
    const atomic_bool *stop; /* NULL: never */
    _Atomic uint64_t *bytes; /* NULL, or where bytes are counted while they are read */

    /* out */
    uint32_t next;               /* the first record that was not reached, or at which the visitor ended the scan */
    uint64_t offset;             /* where it begins */
    uint64_t bytes_read;         /* by this scan */
    uint32_t crc32c;             /* over the checksums of all records, tfrecord_chain() */
    char sha256_hex[DIGEST_HEX]; /* of all bytes that were read */
};

/*
 * CHEX_ERR_READ, CHEX_ERR_TRUNCATED "file became shorter while it was read": the records before scan->next were visited
 * CHEX_ERR_MEMORY, CHEX_ERR_STOPPED; of a partial file also CHEX_ERR_WRITE, see safe_file_pread(); of the visitor
 */
enum chex_status shard_scan(struct shard_scan *scan, struct chex_error *err);

#endif
