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
 * Frame data_size bytes that are already in their place, record + TFRECORD_HEADER: fills in what is before and
 * behind them.  record holds data_size + TFRECORD_FRAME bytes.
 */
void tfrecord_frame(uint8_t *record, size_t data_size);

/*
 * Read the length at the start of a record of which `available` bytes are in the buffer (at least TFRECORD_HEADER),
 * of a file that has `rest` bytes left from there on: the length is believed only within that.
 * CHEX_ERR_CHECKSUM "length checksum mismatch", CHEX_ERR_TRUNCATED "file ends N bytes inside the record"
 */
enum chex_status tfrecord_length(const uint8_t *record, uint64_t rest, uint64_t *data_size, struct chex_error *err);

/* Check the data's checksum; the whole record (data_size + TFRECORD_FRAME bytes) is there. */
enum chex_status tfrecord_check_data(const uint8_t *record, size_t data_size, struct chex_error *err);

/*
 * The checksum of a file of records, over the checksums of their data as they are stored: continue with each record in
 * turn, starting with 0.  It costs nothing where the data's checksums are compared anyway.
 */
uint32_t tfrecord_chain(uint32_t crc, const uint8_t *record, size_t data_size);

/* Little-endian numbers, at any alignment. */
uint32_t get_u32le(const uint8_t *p);
uint64_t get_u64le(const uint8_t *p);
void put_u32le(uint8_t *p, uint32_t v);
void put_u64le(uint8_t *p, uint64_t v);

#endif
