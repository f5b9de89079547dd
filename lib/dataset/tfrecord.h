/*
 * tfrecord.h - TFRecord framing
 *
 *     u64le length | u32le masked_crc32c(length) | data[length] | u32le masked_crc32c(data)
 *
 * Source: tensorflow/core/lib/io/record_writer.h; the checksum is chex_crc32c_mask(chex_crc32c(0, ...)).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_TFRECORD_H
#define CHEX_LIB_TFRECORD_H

#include "base/error.h"

#define TFRECORD_HEADER 12 /* length and its checksum */
#define TFRECORD_FOOTER 4  /* checksum of the data */
#define TFRECORD_FRAME  (TFRECORD_HEADER + TFRECORD_FOOTER)

/*
 * Write the frame of data_size bytes at record + TFRECORD_HEADER: the header before them and the footer after them.
 * record has data_size + TFRECORD_FRAME bytes.
 */
void tfrecord_frame(uint8_t *record, size_t data_size);

/*
 * Read the length of a record.  The buffer has at least its first TFRECORD_HEADER bytes; `rest` is the number of bytes
 * from its start to the end of the file.  A length beyond the end is refused.
 * CHEX_ERR_CHECKSUM "length checksum mismatch", CHEX_ERR_TRUNCATED "file ends N bytes inside the record"
 */
enum chex_status tfrecord_length(const uint8_t *record, uint64_t rest, uint64_t *data_size, struct chex_error *err);

/* Check the data's checksum.  The buffer has the whole record: data_size + TFRECORD_FRAME bytes. */
enum chex_status tfrecord_check_data(const uint8_t *record, size_t data_size, struct chex_error *err);

/*
 * Returns the checksum of a file of records: the CRC-32C over the stored checksums of their data.  Start with 0 and
 * continue with each record in turn.  It costs almost nothing if the data's checksums are compared anyway.
 */
uint32_t tfrecord_chain(uint32_t crc, const uint8_t *record, size_t data_size);

/* Read and write little-endian numbers at any alignment. */
uint32_t get_u32le(const uint8_t *p);
uint64_t get_u64le(const uint8_t *p);
void put_u32le(uint8_t *p, uint32_t v);
void put_u64le(uint8_t *p, uint64_t v);

#endif
