/*
 * test_record_faults.c - records that are damaged by accident, and forged records
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/example.h"
#include "dataset/tfrecord.h"
#include "record_fixture.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 8 };

static const struct text_sizes nih = {2, 8, 16};
static struct record_layout layout;
static struct record_values values;
static uint8_t *good, *bad; /* of exactly the stride, so that a sanitizer detects every byte beyond it */

static void
setup(void)
{
    uint64_t state = 6;

    layout = layout_for(SIDE, SIDE, 64, nih);
    values = random_values(&state, nih);
    good = sealed_record(&layout, &values, &state);
    bad = malloc(layout.stride);
    ck_assert_ptr_nonnull(bad);
    memcpy(bad, good, layout.stride);
}

static void
teardown(void)
{
    free(good);
    free(bad);
}

static bool
is_pixel(size_t at)
{
    return at >= layout.pixel_offset && at < layout.pixel_offset + layout.pixel_size;
}

/* The three checks that every reader of a sealed record makes. */
static bool
passes(const uint8_t *record, bool check_data)
{
    struct record_values v;
    uint64_t size;

    return tfrecord_length(record, layout.stride, &size, NULL) == CHEX_OK &&
           record_decode(&layout, record, &v, NULL) == CHEX_OK &&
           (!check_data || tfrecord_check_data(record, size, NULL) == CHEX_OK);
}

TEST_CASE("record", "faults", setup, teardown);

TEST(every_flipped_bit_is_noticed)
{
    ck_assert(passes(bad, true));
    for (size_t bit = 0; bit < layout.stride * 8; bit++) {
        bad[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (passes(bad, true))
            ck_abort_msg("bit %zu", bit);
        bad[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    ck_assert(passes(bad, true));
}

/* With correct checksums too, each set of values has one encoding. */
TEST(a_flipped_bit_under_a_good_checksum_is_another_value_or_noticed)
{
    size_t values_changed = 0;

    for (size_t bit = TFRECORD_HEADER * 8; bit < (layout.stride - TFRECORD_FOOTER) * 8; bit++) {
        struct record_values v;

        if (is_pixel(bit / 8))
            continue;
        memcpy(bad, good, layout.stride);
        bad[bit / 8] ^= (uint8_t)(1u << bit % 8);
        record_seal(&layout, bad);
        if (record_decode(&layout, bad, &v, NULL) != CHEX_OK)
            continue;
        if (same_values(&v, &values))
            ck_abort_msg("bit %zu of byte %zu says nothing", bit % 8, bit / 8);
        values_changed++;
    }
    /* Texts are any bytes; each digit of the id, the age and the labels have at least one bit that can differ. */
    ck_assert_uint_ge(values_changed, (2 + 8 + 16) * 8 + CHEX_ID_LENGTH + 14);
}

TEST(faults_name_the_byte)
{
    struct chex_error err = {0};
    struct record_values v;
    char wanted[128];

    bad[TFRECORD_HEADER + 5] ^= 1;
    ck_assert_int_eq(record_decode(&layout, bad, &v, &err), CHEX_ERR_DAMAGED);
    ck_assert_str_eq(err.text, "record header differs from the manifest at byte 17");
    bad[TFRECORD_HEADER + 5] ^= 1;
    bad[layout.stride - TFRECORD_FOOTER - 1] = 1; /* the last byte of the padding */
    ck_assert_int_eq(record_decode(&layout, bad, &v, &err), CHEX_ERR_DAMAGED);
    snprintf(wanted, sizeof(wanted), "record differs from the form that the manifest describes at byte %zu",
             layout.stride - TFRECORD_FOOTER - 1);
    ck_assert_str_eq(err.text, wanted);
    put_u64le(bad, layout.stride);
    ck_assert_int_eq(record_decode(&layout, bad, &v, &err), CHEX_ERR_DAMAGED);
    snprintf(wanted, sizeof(wanted), "length %zu differs from the manifest's stride %zu", layout.stride, layout.stride);
    ck_assert_str_eq(err.text, wanted);
}

/* The general reader allocates memory, so with many records it reads only every eighth. */
static void
read_with_both(const uint8_t *record, size_t round)
{
    struct record_values v;
    struct chex_record r;
    struct example *e;

    /* Assertions cost microseconds, so there is not one for each of these. */
    if (record_decode(&layout, record, &v, NULL) == CHEX_OK &&
        (v.view.size > RECORD_MAX_TEXT || v.patient.size > RECORD_MAX_TEXT || v.name.size > RECORD_MAX_TEXT ||
         v.view.data < (const char *)record + layout.texts_offset ||
         v.name.data + v.name.size > (const char *)record + layout.stride))
        ck_abort_msg("texts out of bounds");
    if (round % 8 > 0)
        return;
    if (example_parse(record + TFRECORD_HEADER, layout.stride - TFRECORD_FRAME, &e, &r, NULL) == CHEX_OK)
        example_free(e);
}

/* Random changes, mostly after the pixels, with correct checksums: nothing is read out of bounds. */
TEST(mutations_do_no_harm)
{
    uint64_t state = 7;

    for (unsigned round = 0; round < 100000; round++) {
        unsigned changes = 1 + pick_below(&state, 4);

        memcpy(bad, good, layout.stride);
        while (changes-- > 0) {
            size_t from = pick_below(&state, 8) ? layout.label_offset : TFRECORD_HEADER;
            size_t at = from + pick_below(&state, (uint32_t)(layout.stride - TFRECORD_FOOTER - from));

            bad[at] = pick_below(&state, 3) ? (uint8_t)random_next(&state) : (uint8_t)(bad[at] + 1);
        }
        record_seal(&layout, bad);
        read_with_both(bad, round);
    }
}

/* A forger would change the lengths of the texts: all pairs of bytes in the headers of the three entries. */
TEST(forged_lengths_do_no_harm)
{
    static const uint8_t lengths[] = {0, 127, 255};
    size_t text[3], end, round = 0;

    record_text_offsets(&layout, nih.view, nih.patient, nih.name, text);
    end = text[2];
    for (size_t a = layout.texts_offset; a < end; a++) {
        for (size_t b = a; b < end; b++) {
            for (size_t i = 0; i < sizeof(lengths) * sizeof(lengths); i++, round++) {
                memcpy(bad, good, layout.stride);
                bad[a] = lengths[i / sizeof(lengths)];
                bad[b] = lengths[i % sizeof(lengths)];
                record_seal(&layout, bad);
                read_with_both(bad, round);
            }
        }
    }
}

TEST(garbage_does_no_harm)
{
    uint64_t state = 8;

    for (unsigned round = 0; round < 5000; round++) {
        for (size_t i = TFRECORD_HEADER; i < layout.stride; i++)
            bad[i] = (uint8_t)random_next(&state);
        /* Every other record passes the check of the header. */
        if (round % 2)
            memcpy(bad, good, layout.pixel_offset);
        record_seal(&layout, bad);
        read_with_both(bad, round);
    }
}

/* The strict reader of one layout meets records of another one. */
/* An id is printed if a record belongs elsewhere, so escape sequences and broken UTF-8 are refused. */
TEST(an_id_of_other_bytes_is_refused)
{
    static const char wrong[] = {'\033', '\n', '\x80', '\xff', 'A', 'g', '/', ' '};

    for (size_t i = 0; i < sizeof(wrong); i++) {
        struct record_values v = values;

        v.dataset_id[CHEX_ID_LENGTH - 1] = wrong[i];
        record_encode(&layout, &v, bad);
        record_seal(&layout, bad);
        ck_assert_msg(!passes(bad, true), "byte %zu", i);
    }
}

TEST(a_record_of_another_layout_is_refused)
{
    const struct text_sizes other = {2, 8, 200};
    uint64_t state = 9;

    for (uint32_t side = 6; side <= 10; side++) {
        struct record_layout l = layout_for(side, side, 64, other);
        struct record_values v = random_values(&state, other), back;
        uint8_t *record = sealed_record(&l, &v, &state);

        if (l.stride >= layout.stride)
            ck_assert_int_eq(record_decode(&layout, record, &back, NULL), CHEX_ERR_DAMAGED);
        if (l.stride <= layout.stride)
            ck_assert_int_eq(record_decode(&l, good, &back, NULL), CHEX_ERR_DAMAGED);
        free(record);
    }
}
