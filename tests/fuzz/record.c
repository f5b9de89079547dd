/*
 * record.c - fuzz target: TFRecord framing, the strict reader of records, and the general one
 *
 * The first byte chooses the test:
 *   's'  Six bytes give a layout (height, width, alignment, sizes of the texts), the rest is a record of it, cut or
 *        filled with zeros.  What the strict reader accepts has the same bytes when it is written again; protobuf-c
 *        reads the same values from it; and a reader of the framing alone finds the record.
 *   'e'  The rest is the data of a record, for protobuf-c only.  Accepted data is packed and read again.
 *   'l'  A layout computed from sides, alignment and stride, as a manifest gives them: offsets are in order and in
 *        range.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include "dataset/example.h"
#include "dataset/record.h"
#include "dataset/tfrecord.h"

#include "schemas/example.pb-c.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD 7 /* bytes before a record: 's', height, width, alignment, sizes of view, patient and name */

/* ---- the two readers ------------------------------------------------------------------------------------------- */

static bool
same_text(struct chex_bytes a, struct chex_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static void
require_same_values(const struct record_layout *l, const struct record_values *v, const uint8_t *record,
                    const struct chex_record *r)
{
    FUZZ_REQUIRE(r->height == l->height && r->width == l->width && r->channels == 1);
    FUZZ_REQUIRE(memcmp(r->pixels, record + l->pixel_offset, l->pixel_size) == 0);
    FUZZ_REQUIRE(r->finding_count == l->labels.count && memcmp(r->label, v->label, l->labels.count) == 0);
    FUZZ_REQUIRE(r->weight == v->weight && r->sex == v->sex && r->shard == v->shard && r->index == v->index);
    FUZZ_REQUIRE((isnan(r->age) && isnan(v->age)) || memcmp(&r->age, &v->age, sizeof(r->age)) == 0);
    FUZZ_REQUIRE(strncmp(r->dataset_id, v->dataset_id, CHEX_ID_LENGTH) == 0);
    FUZZ_REQUIRE(same_text(r->view, v->view) && same_text(r->patient, v->patient) && same_text(r->name, v->name));
}

static void
require_general(const struct record_layout *l, const struct record_values *v, const uint8_t *record)
{
    struct example *e = NULL;
    struct chex_record r;
    struct chex_error err = {0};

    if (example_parse(record + TFRECORD_HEADER, l->stride - TFRECORD_FRAME, &e, &r, &err) != CHEX_OK)
        fuzz_fail(__FILE__, __LINE__, err.text);
    require_same_values(l, v, record, &r);
    example_free(e);
}

static void
require_framing(const struct record_layout *l, const uint8_t *record)
{
    struct chex_error err = {0};
    uint64_t size = 0;
    enum chex_status status = tfrecord_length(record, l->stride, &size, &err);

    fuzz_require_error(status, &err);
    if (status == CHEX_OK) {
        FUZZ_REQUIRE(size <= l->stride - TFRECORD_FRAME);
        fuzz_require_error(tfrecord_check_data(record, (size_t)size, &err), &err);
    }
}

/* ---- a record of our own --------------------------------------------------------------------------------------- */

static const uint32_t alignments[] = {64, 512, 4096};

static struct record_layout
layout_of(const uint8_t *head)
{
    struct record_layout l;
    size_t size = record_text_size(head[4] % 8, head[5] % 64, head[6]);

    FUZZ_REQUIRE(record_choose(1 + head[1] % 48, 1 + head[2] % 48, alignments[head[3] % 3],
                               (struct label_form){14, false}, &size, 1, &l, NULL) == CHEX_OK);
    return l;
}

static void
fuzz_strict(const uint8_t *data, size_t size)
{
    struct record_layout l = layout_of(data);
    uint8_t *record = calloc(1, l.stride), *again = malloc(l.stride);
    struct record_values v;
    struct chex_error err = {0};
    size_t have = size - HEAD < l.stride ? size - HEAD : l.stride;
    enum chex_status status;

    FUZZ_REQUIRE(record && again);
    memcpy(record, data + HEAD, have);
    require_framing(&l, record);
    status = record_decode(&l, record, &v, &err);
    fuzz_require_error(status, &err);
    if (status == CHEX_OK) {
        memcpy(again, record, l.stride);
        record_encode(&l, &v, again);
        FUZZ_REQUIRE(memcmp(again + TFRECORD_HEADER, record + TFRECORD_HEADER, l.stride - TFRECORD_FRAME) == 0);
        require_general(&l, &v, record);
        record_seal(&l, again);
        FUZZ_REQUIRE(tfrecord_check_data(again, l.stride - TFRECORD_FRAME, &err) == CHEX_OK);
    }
    free(record);
    free(again);
}

/* ---- any Example ----------------------------------------------------------------------------------------------- */

static void
require_packed_again(const uint8_t *data, size_t size, const struct chex_record *wanted)
{
    Chex__Example *m = chex__example__unpack(NULL, size, data);
    struct example *e = NULL;
    struct chex_record r;
    uint8_t *packed;
    size_t packed_size;

    FUZZ_REQUIRE(m != NULL);
    packed_size = chex__example__get_packed_size(m);
    packed = malloc(packed_size + 1);
    FUZZ_REQUIRE(packed && chex__example__pack(m, packed) == packed_size);
    chex__example__free_unpacked(m, NULL);
    /*
     * protobuf-c, unlike other parsers, accepts an unknown field with the number 0, but cannot read what it packs of
     * it.
     */
    m = chex__example__unpack(NULL, packed_size, packed);
    if (!m) {
        free(packed);
        return;
    }
    FUZZ_REQUIRE(example_parse(packed, packed_size, &e, &r, NULL) == CHEX_OK);
    FUZZ_REQUIRE(r.height == wanted->height && r.width == wanted->width && r.channels == wanted->channels &&
                 r.weight == wanted->weight && r.sex == wanted->sex && r.shard == wanted->shard &&
                 r.index == wanted->index && strcmp(r.dataset_id, wanted->dataset_id) == 0);
    FUZZ_REQUIRE(memcmp(r.pixels, wanted->pixels, (size_t)r.height * r.width * r.channels) == 0);
    FUZZ_REQUIRE(r.finding_count == wanted->finding_count && memcmp(r.label, wanted->label, r.finding_count) == 0);
    FUZZ_REQUIRE(same_text(r.name, wanted->name) && same_text(r.view, wanted->view));
    example_free(e);
    chex__example__free_unpacked(m, NULL);
    free(packed);
}

static void
fuzz_example(const uint8_t *data, size_t size)
{
    struct example *e = NULL;
    struct chex_record r;
    struct chex_error err = {0};
    enum chex_status status = example_parse(data, size, &e, &r, &err);

    fuzz_require_error(status, &err);
    if (status == CHEX_OK) {
        const uint8_t *end = r.pixels + (size_t)r.height * r.width * r.channels;
        unsigned sum = 0;

        for (const uint8_t *p = r.pixels; p < end; p++) /* every pixel can be read */
            sum += *p;
        FUZZ_REQUIRE(sum <= 255 * (uint64_t)(end - r.pixels));
        FUZZ_REQUIRE(r.weight <= 1 && r.shard <= 99999 && r.index <= 99999);
        FUZZ_REQUIRE(r.dataset_id[strspn(r.dataset_id, "0123456789abcdef")] == '\0' &&
                     strlen(r.dataset_id) == CHEX_ID_LENGTH);
        require_packed_again(data, size, &r);
    }
    example_free(e);
}

/* ---- a layout of a manifest ------------------------------------------------------------------------------------ */

static void
fuzz_layout(const uint8_t *data, size_t size)
{
    struct record_layout l;
    struct chex_error err = {0};
    uint8_t number[16] = {0};
    enum chex_status status;

    memcpy(number, data, size < 16 ? size : 16);
    status = record_restore(get_u32le(number) & 0x7fff, get_u32le(number + 2) & 0x7fff, get_u32le(number + 4) & 0x1fff,
                            (struct label_form){14, false}, (size_t)get_u64le(number + 6), &l, &err);
    fuzz_require_error(status, &err);
    if (status != CHEX_OK)
        return;
    FUZZ_REQUIRE(l.pixel_offset % 64 == 0 && l.pixel_offset >= TFRECORD_HEADER &&
                 l.pixel_offset - TFRECORD_HEADER <= RECORD_MAX_HEAD);
    FUZZ_REQUIRE(l.pixel_size == (size_t)l.height * l.width);
    FUZZ_REQUIRE(l.pixel_offset + l.pixel_size < l.label_offset && l.label_offset < l.weight_offset &&
                 l.weight_offset < l.age_offset && l.age_offset < l.sex_offset && l.sex_offset < l.slot_offset &&
                 l.slot_offset < l.texts_offset && l.texts_offset <= l.stride - TFRECORD_FOOTER);
    FUZZ_REQUIRE(l.stride - TFRECORD_FOOTER - l.pixel_offset - l.pixel_size <= RECORD_MAX_TAIL);
}

/* ---------------------------------------------------------------------------------------------------------------- */

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= HEAD && data[0] == 's')
        fuzz_strict(data, size);
    else if (size > 0 && data[0] == 'e')
        fuzz_example(data + 1, size - 1);
    else if (size > 0 && data[0] == 'l')
        fuzz_layout(data + 1, size - 1);
    return 0;
}

/* Usually corrects both CRC-32C of a record. */
size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    size = LLVMFuzzerMutate(data, size, max_size);
    if (size >= HEAD && data[0] == 's' && seed % 16 != 0) {
        struct record_layout l = layout_of(data);

        if (size >= HEAD + l.stride)
            record_seal(&l, data + HEAD);
    }
    return size;
}

/* ---- seeds ----------------------------------------------------------------------------------------------------- */

static void
give_record(const uint8_t head[HEAD], unsigned number, fuzz_seed_fn *give, void *context)
{
    static const char text[] =
        "00000001_000.png and more of it, since a name may be as long as two hundred and fifty-five "
        "bytes, which is quite a lot of text to make up, so from here on there are digits alone: "
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567";
    struct record_layout l = layout_of(head);
    uint8_t label[14];
    struct record_values v = {
        .label = label,
        .weight = number % 3 != 0,
        .age = number % 4 == 0 ? NAN : (float)number * 7,
        .sex = "MFU"[number % 3],
        .dataset_id = "0123456789abcdef",
        .shard = number * 12345 % 100000,
        .index = number,
        .view = {text, head[4] % 8},
        .patient = {text, head[5] % 64},
        .name = {text, head[6]},
    };
    uint8_t *input = malloc(HEAD + l.stride);
    uint64_t random = number;
    char name[32];

    FUZZ_REQUIRE(input != NULL);
    for (unsigned i = 0; i < sizeof(label); i++)
        label[i] = number * 1237 >> i & 1;
    memcpy(input, head, HEAD);
    for (size_t i = 0; i < l.stride; i++)
        input[HEAD + i] = (uint8_t)fuzz_random(&random);
    record_encode(&l, &v, input + HEAD);
    record_seal(&l, input + HEAD);
    snprintf(name, sizeof(name), "record%u", number);
    give(name, input, HEAD + l.stride, context);
    input[HEAD + TFRECORD_HEADER - 1] = 'e';
    snprintf(name, sizeof(name), "example%u", number);
    give(name, input + HEAD + TFRECORD_HEADER - 1, 1 + l.stride - TFRECORD_FRAME, context);
    free(input);
}

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
    static const uint8_t heads[][HEAD] = {
        {'s', 0, 0, 0, 2, 8, 16},   {'s', 7, 7, 0, 2, 8, 16},   {'s', 15, 31, 1, 0, 1, 1},
        {'s', 4, 2, 0, 7, 63, 200}, {'s', 40, 3, 0, 2, 8, 130}, {'s', 1, 1, 2, 2, 5, 0},
    };
    static const uint8_t layouts[][15] = {
        {'l', 8, 0, 8, 0, 64, 0, 0x40, 2}, {'l', 0, 1, 0, 1, 64, 0, 0, 3, 1}, {'l', 1, 0, 1, 0, 0, 16, 0, 16}};

    for (unsigned i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        give_record(heads[i], i, give, context);
    for (unsigned i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        give(i == 0 ? "layout0" : i == 1 ? "layout1" : "layout2", layouts[i], sizeof(layouts[i]), context);
}
