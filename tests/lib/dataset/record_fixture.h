/*
 * record_fixture.h - makes records twice from the same values: with record.h, and with protobuf-c
 *
 * The second is independent: it does not compute varints, and finds its padding by trying.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_RECORD_FIXTURE_H
#define CHEX_TESTS_RECORD_FIXTURE_H

#include "dataset/record.h"
#include "schemas/example.pb-c.h"

/* ---- random numbers: SplitMix64 (Steele, Lea and Flood 2014), the same in every run ---------------------------- */

uint64_t random_next(uint64_t *state);
/* 0 .. below - 1 */
uint32_t pick_below(uint64_t *state, uint32_t below);

/* ---- values --------------------------------------------------------------------------------------------------- */

/* The labels of ChestX-ray14: 14 findings, all known. */
#define FOURTEEN ((struct label_form){14, false})

struct text_sizes {
    size_t view, patient, name;
};

/* Returns random values with texts of these sizes; valid until the next call. */
struct record_values random_values(uint64_t *state, struct text_sizes sizes);
/* Compares all values; NaN equals NaN. */
bool same_values(const struct record_values *a, const struct record_values *b);

/* Returns the layout for images of these sides and one set of text sizes. */
struct record_layout layout_for(uint32_t height, uint32_t width, uint32_t align, struct text_sizes sizes);
/* Returns a sealed record on the heap, exactly one stride long, with random pixels. */
uint8_t *sealed_record(const struct record_layout *layout, const struct record_values *values, uint64_t *state);

/* ---- the witness ---------------------------------------------------------------------------------------------- */

enum { MESSAGE_ENTRIES = 14 };

struct message {
    Chex__Example example;
    Chex__Features features;
    Chex__FeatureEntry *list[MESSAGE_ENTRIES];
    Chex__FeatureEntry entry[MESSAGE_ENTRIES];
    Chex__Feature feature[MESSAGE_ENTRIES];
    Chex__BytesList bytes[MESSAGE_ENTRIES];
    ProtobufCBinaryData value[MESSAGE_ENTRIES];
    Chex__Int64List number[MESSAGE_ENTRIES];
    int64_t integer[MESSAGE_ENTRIES];
    int64_t label[FINDINGS_MAX];
    Chex__FloatList floats;
    float age;
    char slot[64], sex;
    uint8_t zeros[16384];
};

/* Makes the message of these values, in the order of record.h, without padding.  It points to pixels and texts. */
void message_make(struct message *m, uint32_t height, uint32_t width, const uint8_t *pixels,
                  const struct record_values *values);
/* Sets the bytes of padding in _p0 and in _p1. */
void message_pad(struct message *m, size_t front, size_t end);
/* Returns the offset of the first pixel in a record of this message, including the frame. */
size_t message_pixel_offset(const struct message *m);
/* Finds the padding for a record of `stride` bytes whose pixels are aligned to 64; returns false if there is none. */
bool message_fit(struct message *m, size_t stride);

#endif
