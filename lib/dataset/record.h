/*
 * record.h - the layout of the records of a data set; writes records and reads them strictly
 *
 * All records of a data set have the same size, the stride.  A record is a TFRecord frame around a tf.train.Example
 * with the following map entries, in this order:
 *
 *     _p0              front padding: moves the first pixel to a multiple of 64 bytes
 *     image/raw        the pixels
 *     image/height, image/width, image/channels          the same in the whole data set
 *     image/label, image/weight, patient/age, patient/sex, record/slot    of constant size, at constant offsets
 *                      Each label takes one byte: an int64 list has varints of one byte for 0 and 1, but 255 would take
 *                      two.  So a data set with unknown labels stores its labels as one bytes value.
 *     image/view, patient/id, image/filename             of any size
 *     _p1              end padding: compensates for the size of the texts
 *
 * There is exactly one encoding of a record.  The strict reader decodes the values, encodes them again and compares the
 * bytes, so it detects every byte that the writer would not write.  example.h reads any Example.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_RECORD_H
#define CHEX_LIB_RECORD_H

#include "dataset/findings.h"

#define RECORD_MAX_TEXT 255 /* bytes of a name; patient ids and views are shorter */
#define RECORD_MAX_SIDE 16384
#define RECORD_MAX_HEAD 256  /* bytes before the pixels */
#define RECORD_MAX_TAIL 8192 /* bytes after the pixels */
#define RECORD_SLOT     28   /* "7f3c9a12d0e4b5c6/00311/00037": data set id, shard over all splits, index */

/* The form of image/label, which all records of a data set share. */
struct label_form {
    unsigned count; /* findings: 1 to FINDINGS_MAX */
    bool unknown;   /* labels may be unknown: one bytes value [count] of 0, 1, 255.  false: an int64 list of 0 and 1 */
};

struct record_layout {
    uint32_t height, width, channels;
    struct label_form labels;
    uint32_t align; /* of the stride: 64, 512 or 4096 */
    size_t stride;
    size_t features_size; /* bytes of the Features message */
    size_t front;         /* bytes of padding in _p0 */
    size_t pixel_offset;  /* offsets are from the start of the record */
    size_t pixel_size;
    size_t label_offset, weight_offset, age_offset, sex_offset, slot_offset;
    size_t texts_offset; /* offset of the entry image/view */
};

/* The values of a record without its pixels. */
struct record_values {
    const uint8_t *label; /* [layout->labels.count]; record_decode(): a part of the record; NULL if it is unreadable */
    uint8_t weight;       /* 1 image, 0 padding record */
    float age;            /* NaN = unknown */
    char sex;             /* M, F, U */
    char dataset_id[CHEX_ID_LENGTH + 1];
    uint32_t shard, index; /* at most 99999 */
    struct chex_bytes view, patient, name;
};

/* Returns the bytes of the entries of the three texts, with keys and lengths; _p1 compensates for them. */
size_t record_text_size(size_t view, size_t patient, size_t name);

/* Compute the offsets of view, patient and name, from the start of a record with texts of these sizes. */
void record_text_offsets(const struct record_layout *layout, size_t view, size_t patient, size_t name, size_t out[3]);

/*
 * Choose the layout of a data set.
 * text_sizes   the distinct values of record_text_size() over all records, text_count values (at least one)
 * The stride is the smallest multiple of align into which every record fits, with a padding that can be encoded: some
 * sizes of padding are impossible because a longer length takes one more byte.
 * CHEX_ERR_USAGE for a side of 0 or above RECORD_MAX_SIDE.
 */
enum chex_status record_choose(uint32_t height, uint32_t width, uint32_t align, struct label_form labels,
                               const size_t *text_sizes, size_t text_count, struct record_layout *out,
                               struct chex_error *err);

/*
 * Restore the layout of a data set from the sides, alignment, form of labels and stride of its manifest.
 * CHEX_ERR_DAMAGED if they are invalid
 */
enum chex_status record_restore(uint32_t height, uint32_t width, uint32_t align, struct label_form labels,
                                size_t stride, struct record_layout *out, struct chex_error *err);

/*
 * Write a record around its pixels.  The caller writes the pixels to record + pixel_offset, before this call or before
 * record_seal().  record has stride bytes; this writes all bytes except the pixels and the frame.
 */
void record_encode(const struct record_layout *layout, const struct record_values *values, uint8_t *record);

/* Write the frame with both checksums.  Call this last, after the pixels were written. */
void record_seal(const struct record_layout *layout, uint8_t *record);

/*
 * Read a record strictly.  This does not check the checksum of the data: tfrecord_check_data().
 * CHEX_ERR_DAMAGED "record header differs from the manifest" and similar texts, with the offset in the record
 */
enum chex_status record_decode(const struct record_layout *layout, const uint8_t *record, struct record_values *out,
                               struct chex_error *err);

#endif
