/*
 * record.h - where everything is in the records of one data set; the writer's form of a record, and its strict reader
 *
 * All records of a data set have one size, the stride.  A record is a TFRecord frame around a tf.train.Example whose
 * map entries come in this order:
 *
 *     _p0              front padding: brings the first pixel to a multiple of 64 bytes
 *     image/raw        the pixels
 *     image/height, image/width, image/channels          constant in a data set
 *     image/label, image/weight, patient/age, patient/sex, record/slot    of constant size: at constant offsets
 *     image/view, patient/id, image/filename             of any size
 *     _p1              end padding: makes up for the sizes before it
 *
 * There is exactly one way to encode a record, so the strict reader takes the values, encodes them again and compares:
 * any byte that the writer would not have written is noticed.  The general reader for any Example is example.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_RECORD_H
#define CHEX_LIB_RECORD_H

#include "base/error.h"

#define RECORD_MAX_TEXT 255 /* bytes of a name; patient ids and views are shorter */
#define RECORD_MAX_SIDE 16384
#define RECORD_MAX_HEAD 256  /* bytes before the pixels */
#define RECORD_MAX_TAIL 8192 /* bytes behind them */
#define RECORD_SLOT     28   /* "7f3c9a12d0e4b5c6/00311/00037": data set id, shard over all splits, index */

struct record_layout {
    uint32_t height, width, channels;
    uint32_t align; /* of the stride: 64, 512 or 4096 */
    size_t stride;
    size_t features_size; /* bytes of the Features message */
    size_t front;         /* bytes of padding in _p0 */
    size_t pixel_offset;  /* from the start of the record; likewise those below */
    size_t pixel_size;
    size_t label_offset, weight_offset, age_offset, sex_offset, slot_offset;
    size_t texts_offset; /* where the entry of image/view begins */
};

/* What a record says besides its pixels. */
struct record_values {
    uint16_t findings; /* bit mask */
    uint8_t weight;    /* 1 image, 0 padding record */
    float age;         /* NaN = unknown */
    char sex;          /* M, F, U */
    char dataset_id[CHEX_ID_LENGTH + 1];
    uint32_t shard, index; /* at most 99999 */
    struct chex_bytes view, patient, name;
};

/* Bytes that the three texts of these sizes take in a record, framing included: what _p1 has to make up for. */
size_t record_text_size(size_t view, size_t patient, size_t name);

/* Where view, patient and name themselves begin, from the start of a record in which they have these sizes. */
void record_text_offsets(const struct record_layout *layout, size_t view, size_t patient, size_t name, size_t out[3]);

/*
 * Choose the layout for records of these images.
 * text_sizes   the distinct values of record_text_size() over all records, text_count of them (at least one)
 * The stride is the smallest multiple of align into which every record fits, with a padding that can be encoded
 * (a length that needs one byte more makes some sizes impossible).
 * CHEX_ERR_USAGE for a side of 0 or above RECORD_MAX_SIDE.
 */
enum chex_status record_choose(uint32_t height, uint32_t width, uint32_t align, const size_t *text_sizes,
                               size_t text_count, struct record_layout *out, struct chex_error *err);

/* The layout of a data set whose manifest gives sides, alignment and stride; CHEX_ERR_DAMAGED where these cannot be. */
enum chex_status record_restore(uint32_t height, uint32_t width, uint32_t align, size_t stride,
                                struct record_layout *out, struct chex_error *err);

/*
 * Write a record around the pixels, which the caller has put (or will put before record_seal()) at
 * record + pixel_offset.  record holds stride bytes; every byte but the pixels and the data's checksum is written.
 */
void record_encode(const struct record_layout *layout, const struct record_values *values, uint8_t *record);

/* Write both checksums: last, when the pixels are there. */
void record_seal(const struct record_layout *layout, uint8_t *record);

/*
 * Read a record strictly.  The checksum of the data is not checked: tfrecord_check_data().
 * CHEX_ERR_DAMAGED "record header differs from the manifest" and the like, with the offset in the record
 */
enum chex_status record_decode(const struct record_layout *layout, const uint8_t *record, struct record_values *out,
                               struct chex_error *err);

#endif
