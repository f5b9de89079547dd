/*
 * test_record.c - the frame of a record (tfrecord.h) and its layout (record.h)
 *
 * Damaged records: test_record_faults.c.  Any Example: test_example.c.  protobuf-c is the reference for the encoding,
 * see record_fixture.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/example.h"
#include "dataset/tfrecord.h"
#include "record_fixture.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct chex_error err;
static const uint32_t aligns[] = {64, 512, 4096};
static const struct text_sizes nih = {2, 8, 16}; /* PA, 00000001, 00000001_000.png */

/* ---- frame ---------------------------------------------------------------------------------------------------- */

TEST_CASE("record", "tfrecord", NULL, NULL);

TEST(numbers_are_little_endian_at_any_alignment)
{
    uint8_t p[16] = {0};

    for (size_t at = 0; at < 8; at++) {
        put_u64le(p + at, 0x0123456789abcdefu);
        ck_assert_uint_eq(p[at], 0xef);
        ck_assert_uint_eq(p[at + 7], 0x01);
        ck_assert_uint_eq(get_u64le(p + at), 0x0123456789abcdefu);
        ck_assert_uint_eq(get_u32le(p + at + 4), 0x01234567u);
        put_u32le(p + at, 0xfffefdfcu);
        ck_assert_uint_eq(get_u32le(p + at), 0xfffefdfcu);
    }
}

/*
 * Python, with CRC-32C by its definition: struct.pack("<Q", 9) + mask(crc(that)) + b"123456789" + mask(crc(that)); the
 * last four bytes are c78ab0e5, the masked check value.
 */
TEST(a_frame_equals_tensorflows)
{
    static const uint8_t wanted[] = {0x09, 0,   0,   0,   0,   0,   0,   0,   0x37, 0xf9, 0x71, 0x39, '1',
                                     '2',  '3', '4', '5', '6', '7', '8', '9', 0xe5, 0xb0, 0x8a, 0xc7};
    uint8_t record[sizeof(wanted)] = {0};
    uint64_t size = 0;

    memcpy(record + TFRECORD_HEADER, "123456789", 9);
    tfrecord_frame(record, 9);
    ck_assert_mem_eq(record, wanted, sizeof(wanted));
    ck_assert_int_eq(tfrecord_length(record, sizeof(record), &size, &err), CHEX_OK);
    ck_assert_uint_eq(size, 9);
    ck_assert_int_eq(tfrecord_check_data(record, 9, &err), CHEX_OK);
    record[12] ^= 1;
    ck_assert_int_eq(tfrecord_check_data(record, 9, &err), CHEX_ERR_CHECKSUM);
    ck_assert_str_eq(err.text, "data checksum mismatch");
    record[0] ^= 1;
    ck_assert_int_eq(tfrecord_length(record, sizeof(record), &size, &err), CHEX_ERR_CHECKSUM);
    ck_assert_str_eq(err.text, "length checksum mismatch");
}

TEST(a_length_is_believed_only_within_the_file)
{
    const uint64_t lengths[] = {9, 10, 1u << 20, 1ull << 32, UINT64_MAX - 15, UINT64_MAX - 16, UINT64_MAX};
    uint8_t header[TFRECORD_HEADER];

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        uint64_t size = 77;

        put_u64le(header, lengths[i]);
        put_u32le(header + 8, chex_crc32c_mask(chex_crc32c(0, header, 8)));
        for (uint64_t rest = TFRECORD_HEADER; rest < 25 || (i == 0 && rest == 25); rest++) {
            bool fits = i == 0 && rest == 9 + TFRECORD_FRAME;

            ck_assert_int_eq(tfrecord_length(header, rest, &size, &err), fits ? CHEX_OK : CHEX_ERR_TRUNCATED);
            ck_assert_uint_eq(size, fits ? 9 : 77);
        }
    }
    ck_assert_int_eq(tfrecord_length(header, 20, &(uint64_t){0}, &err), CHEX_ERR_TRUNCATED);
    ck_assert_str_eq(err.text, "file ends 20 bytes inside the record");
}

/* ---- layout --------------------------------------------------------------------------------------------------- */

/* Checks all offsets of the layout in a record. */
static void
expect_offsets(const struct record_layout *l, const struct record_values *v, const uint8_t *record)
{
    size_t text[3];
    uint32_t age;
    uint32_t bits;

    ck_assert_uint_eq(l->pixel_offset % 64, 0);
    ck_assert_uint_eq(l->stride % l->align, 0);
    ck_assert_uint_le(l->pixel_offset, RECORD_MAX_HEAD);
    ck_assert_uint_le(l->stride - l->pixel_offset - l->pixel_size, RECORD_MAX_TAIL);
    ck_assert_mem_eq(record + l->label_offset, v->label, l->labels.count);
    ck_assert_uint_eq(record[l->weight_offset], v->weight);
    ck_assert_int_eq((char)record[l->sex_offset], v->sex);
    age = get_u32le(record + l->age_offset);
    memcpy(&bits, &v->age, sizeof(bits));
    ck_assert_uint_eq(age, isnan(v->age) ? 0x7fc00000u : bits);
    ck_assert_mem_eq(record + l->slot_offset, v->dataset_id, CHEX_ID_LENGTH);
    ck_assert_int_eq(record[l->slot_offset + RECORD_SLOT - 6], '/');
    record_text_offsets(l, v->view.size, v->patient.size, v->name.size, text);
    ck_assert_mem_eq(record + text[0], v->view.data, v->view.size);
    ck_assert_mem_eq(record + text[1], v->patient.data, v->patient.size);
    ck_assert_mem_eq(record + text[2], v->name.data, v->name.size);
}

/* example.h reads the same values with protobuf-c. */
static void
expect_parsed(const struct record_layout *l, const struct record_values *v, const uint8_t *record)
{
    struct chex_record r;
    struct example *e;
    struct record_values back;

    ck_assert_msg(example_parse(record + TFRECORD_HEADER, l->stride - TFRECORD_FRAME, &e, &r, &err) == CHEX_OK, "%s",
                  err.text);
    ck_assert(r.height == l->height && r.width == l->width && r.channels == 1);
    ck_assert_mem_eq(r.pixels, record + l->pixel_offset, l->pixel_size);
    back = (struct record_values){.label = r.label,
                                  .weight = r.weight,
                                  .age = r.age,
                                  .sex = r.sex,
                                  .shard = r.shard,
                                  .index = r.index,
                                  .view = r.view,
                                  .patient = r.patient,
                                  .name = r.name};
    memcpy(back.dataset_id, r.dataset_id, sizeof(back.dataset_id));
    ck_assert_uint_eq(r.finding_count, l->labels.count);
    ck_assert(same_values(&back, v));
    example_free(e);
}

/* protobuf-c packs the same values, with padding found independently, to the same bytes. */
static void
expect_packed(const struct record_layout *l, const struct record_values *v, const uint8_t *record)
{
    static struct message m;
    uint8_t *packed = malloc(l->stride);

    message_make(&m, l->height, l->width, record + l->pixel_offset, v);
    ck_assert(message_fit(&m, l->stride));
    ck_assert_uint_eq(message_pixel_offset(&m), l->pixel_offset);
    ck_assert_uint_eq(chex__example__pack(&m.example, packed), l->stride - TFRECORD_FRAME);
    if (!isnan(v->age)) /* any NaN is allowed */
        ck_assert(memcmp(packed, record + TFRECORD_HEADER, l->stride - TFRECORD_FRAME) == 0);
    free(packed);
}

static void
expect_decoded(const struct record_layout *l, const struct record_values *v, const uint8_t *record)
{
    struct record_values back;
    uint64_t size;

    ck_assert_int_eq(tfrecord_length(record, l->stride, &size, &err), CHEX_OK);
    ck_assert_uint_eq(size, l->stride - TFRECORD_FRAME);
    ck_assert_int_eq(tfrecord_check_data(record, size, &err), CHEX_OK);
    ck_assert_msg(record_decode(l, record, &back, &err) == CHEX_OK, "%s", err.text);
    ck_assert(same_values(&back, v));
}

static struct text_sizes
random_sizes(uint64_t *state)
{
    /* Small and large texts: lengths of 128 and more take two bytes. */
    static const uint32_t most[] = {1, 8, 32, 128, RECORD_MAX_TEXT + 1};
    struct text_sizes s;

    s.view = pick_below(state, most[pick_below(state, 5)]);
    s.patient = pick_below(state, most[pick_below(state, 5)]);
    s.name = pick_below(state, most[pick_below(state, 5)]);
    return s;
}

TEST_CASE("record", "layout", NULL, NULL);

/* Sides 1 to 400, all alignments, one to eight sets of text sizes per data set. */
TEST(records_of_any_size_read_back_by_both_readers)
{
    enum { MOST = 8 };
    uint64_t state = 1;

    for (unsigned round = 0; round < 60; round++) {
        uint32_t height = 1 + pick_below(&state, 400), width = 1 + pick_below(&state, 400);
        size_t count = 1 + pick_below(&state, MOST), size[MOST];
        struct text_sizes texts[MOST];
        struct record_layout l, again;

        for (size_t i = 0; i < count; i++) {
            texts[i] = random_sizes(&state);
            size[i] = record_text_size(texts[i].view, texts[i].patient, texts[i].name);
        }
        ck_assert_int_eq(record_choose(height, width, aligns[round % 3], FOURTEEN, size, count, &l, &err), CHEX_OK);
        ck_assert_int_eq(record_restore(height, width, l.align, FOURTEEN, l.stride, &again, &err), CHEX_OK);
        ck_assert_uint_eq(again.labels.count, l.labels.count);
        ck_assert_int_eq(again.labels.unknown, l.labels.unknown);
        memcpy(&again.labels, &l.labels, sizeof(l.labels)); /* a gap follows `unknown` */
        ck_assert_mem_eq(&again, &l, sizeof(l));
        for (size_t i = 0; i < count; i++) {
            struct record_values v = random_values(&state, texts[i]);
            uint8_t *record = sealed_record(&l, &v, &state);

            expect_offsets(&l, &v, record);
            expect_decoded(&l, &v, record);
            expect_parsed(&l, &v, record);
            expect_packed(&l, &v, record);
            free(record);
        }
    }
}

/* According to protobuf-c, does every text fit into a record of this stride? */
static bool
attainable(uint32_t side, size_t stride, const struct text_sizes *texts, size_t count)
{
    static struct message m;
    uint64_t state = 1;

    for (size_t i = 0; i < count; i++) {
        struct record_values v = random_values(&state, texts[i]);

        message_make(&m, side, side, NULL, &v);
        if (!message_fit(&m, stride))
            return false;
    }
    return true;
}

TEST(the_stride_is_the_smallest_that_fits_every_record)
{
    enum { TEXTS = 3 };
    uint64_t state = 2;

    for (unsigned round = 0; round < 150; round++) {
        uint32_t side = 1 + pick_below(&state, round % 2 ? 24 : 400);
        struct text_sizes texts[TEXTS];
        size_t size[TEXTS];
        struct record_layout l;

        for (size_t i = 0; i < TEXTS; i++) {
            texts[i] = random_sizes(&state);
            size[i] = record_text_size(texts[i].view, texts[i].patient, texts[i].name);
        }
        ck_assert_int_eq(record_choose(side, side, aligns[round / 2 % 3], FOURTEEN, size, TEXTS, &l, &err), CHEX_OK);
        ck_assert(attainable(side, l.stride, texts, TEXTS));
        if (l.stride > l.align)
            ck_assert(!attainable(side, l.stride - l.align, texts, TEXTS));
    }
}

/*
 * A padding whose length needs one more byte skips a size.  With many names some stride is impossible, and the next one
 * is used.
 */
TEST(a_padding_is_found_for_every_text_of_a_data_set)
{
    size_t size[RECORD_MAX_TEXT + 1];
    uint64_t state = 3;

    for (size_t i = 0; i <= RECORD_MAX_TEXT; i++)
        size[i] = record_text_size(2, 8, i);
    for (unsigned a = 0; a < 3; a++) {
        for (uint32_t side = 1; side <= 64; side += 31) {
            struct record_layout l;

            ck_assert_int_eq(record_choose(side, side, aligns[a], FOURTEEN, size, RECORD_MAX_TEXT + 1, &l, &err),
                             CHEX_OK);
            for (size_t i = 0; i <= RECORD_MAX_TEXT; i++) {
                struct record_values v = random_values(&state, (struct text_sizes){2, 8, i});
                uint8_t *record = sealed_record(&l, &v, &state);

                expect_decoded(&l, &v, record);
                free(record);
            }
        }
    }
}

/* 256 x 256 with the texts of NIH: the overhead that design and manual promise. */
TEST(the_usual_record_costs_less_than_a_percent)
{
    struct record_layout l = layout_for(256, 256, 64, nih);

    ck_assert_uint_le(l.stride, 65536 + 65536 / 100);
    ck_assert_uint_eq(256 * l.stride % 4096, 0); /* a shard of 256 is whole pages */
    l = layout_for(RECORD_MAX_SIDE, RECORD_MAX_SIDE, 4096, nih);
    ck_assert_uint_ge(l.stride, (size_t)1 << 28);
    ck_assert_uint_eq(l.pixel_offset % 64, 0);
}

TEST(layouts_that_cannot_be_are_refused)
{
    size_t text_size = record_text_size(2, 8, 16);
    struct record_layout l, again;
    const uint32_t sides[] = {0, RECORD_MAX_SIDE + 1, UINT32_MAX};

    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(record_choose(sides[i], 8, 64, FOURTEEN, &text_size, 1, &l, &err), CHEX_ERR_USAGE);
        ck_assert_int_eq(record_choose(8, sides[i], 64, FOURTEEN, &text_size, 1, &l, &err), CHEX_ERR_USAGE);
        ck_assert_int_eq(record_restore(sides[i], 8, 64, FOURTEEN, 1024, &l, &err), CHEX_ERR_DAMAGED);
    }
    for (uint32_t align = 0; align < 200; align += align == 62 ? 3 : 2)
        if (align != 64)
            ck_assert_int_eq(record_choose(8, 8, align, FOURTEEN, &text_size, 1, &l, &err), CHEX_ERR_USAGE);
    l = layout_for(8, 8, 64, nih);
    for (size_t stride = 0; stride < 20000; stride++) {
        enum chex_status status = record_restore(8, 8, 64, FOURTEEN, stride, &again, &err);

        ck_assert(status == CHEX_OK || status == CHEX_ERR_DAMAGED);
        if (stride % 64 != 0 || stride < 64 + 300) /* pixels, and the values with their keys */
            ck_assert_int_eq(status, CHEX_ERR_DAMAGED);
        if (status == CHEX_OK)
            ck_assert_uint_le(again.stride - again.texts_offset, RECORD_MAX_TAIL);
    }
    ck_assert_int_eq(record_restore(8, 8, 64, FOURTEEN, SIZE_MAX / 64 * 64, &again, &err), CHEX_ERR_DAMAGED);
    ck_assert_int_eq(record_restore(8, 8, 64, FOURTEEN, l.stride, &again, &err), CHEX_OK);
}

/* Any NaN is written as one NaN, so the bytes do not depend on the compiler. */
TEST(every_nan_is_written_alike)
{
    const uint32_t nans[] = {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0x7fffffffu};
    const uint32_t others[] = {0, 0x80000000u, 0x7f800000u, 0x00000001u, 0x42c80000u}; /* 0, -0, inf, least, 100 */
    struct record_layout l = layout_for(8, 8, 64, nih);
    uint8_t *record = calloc(1, l.stride);
    uint64_t state = 4;

    for (size_t i = 0; i < 4 + 5; i++) {
        struct record_values v = random_values(&state, nih), back;
        uint32_t bits = i < 4 ? nans[i] : others[i - 4];

        memcpy(&v.age, &bits, sizeof(bits));
        record_encode(&l, &v, record);
        record_seal(&l, record);
        ck_assert_uint_eq(get_u32le(record + l.age_offset), i < 4 ? 0x7fc00000u : bits);
        ck_assert_int_eq(record_decode(&l, record, &back, &err), CHEX_OK);
        ck_assert(same_values(&back, &v));
    }
    free(record);
}
