/*
 * record_fixture.c - see record_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "record_fixture.h"

#include "unit.h"

#include "dataset/tfrecord.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Indices of the entries. */
enum {
    FRONT,
    RAW,
    HEIGHT,
    WIDTH,
    CHANNELS,
    LABEL,
    WEIGHT,
    AGE,
    SEX,
    SLOT,
    VIEW,
    PATIENT,
    NAME,
    END,
};

uint64_t
random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t
pick_below(uint64_t *state, uint32_t below)
{
    return (uint32_t)(random_next(state) >> 32) % below;
}

/* ---- values --------------------------------------------------------------------------------------------------- */

struct record_values
random_values(uint64_t *state, struct text_sizes sizes)
{
    static char text[3][RECORD_MAX_TEXT];
    static const char sexes[] = "MFU";
    static uint8_t label[14];
    struct record_values v = {
        .view = {text[0], sizes.view},
        .patient = {text[1], sizes.patient},
        .name = {text[2], sizes.name},
    };

    for (size_t i = 0; i < sizeof(label); i++)
        label[i] = (uint8_t)pick_below(state, 2);
    v.label = label;
    v.weight = (uint8_t)pick_below(state, 2);
    v.age = pick_below(state, 5) == 0 ? NAN : (float)pick_below(state, 120000) / 1000;
    v.sex = sexes[pick_below(state, 3)];
    v.shard = pick_below(state, 100000);
    v.index = pick_below(state, 100000);
    /* Random bytes: the strict reader only checks sizes. */
    for (size_t i = 0; i < sizeof(text); i++)
        text[i / RECORD_MAX_TEXT][i % RECORD_MAX_TEXT] = (char)random_next(state);
    snprintf(v.dataset_id, sizeof(v.dataset_id), "%016llx", (unsigned long long)random_next(state));
    return v;
}

static bool
same_bytes(struct chex_bytes a, struct chex_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool
same_values(const struct record_values *a, const struct record_values *b)
{
    bool same_age = (isnan(a->age) && isnan(b->age)) || memcmp(&a->age, &b->age, sizeof(a->age)) == 0;

    return memcmp(a->label, b->label, 14) == 0 && a->weight == b->weight && same_age && a->sex == b->sex &&
           memcmp(a->dataset_id, b->dataset_id, sizeof(a->dataset_id)) == 0 && a->shard == b->shard &&
           a->index == b->index && same_bytes(a->view, b->view) && same_bytes(a->patient, b->patient) &&
           same_bytes(a->name, b->name);
}

struct record_layout
layout_for(uint32_t height, uint32_t width, uint32_t align, struct text_sizes sizes)
{
    size_t text_size = record_text_size(sizes.view, sizes.patient, sizes.name);
    struct chex_error err = {0};
    struct record_layout l;

    ck_assert_msg(record_choose(height, width, align, (struct label_form){14, false}, &text_size, 1, &l, &err) ==
                      CHEX_OK,
                  "%s", err.text);
    return l;
}

uint8_t *
sealed_record(const struct record_layout *layout, const struct record_values *values, uint64_t *state)
{
    uint8_t *record = malloc(layout->stride);

    ck_assert_ptr_nonnull(record);
    for (size_t i = 0; i < layout->stride; i++)
        record[i] = (uint8_t)random_next(state);
    record_encode(layout, values, record);
    record_seal(layout, record);
    return record;
}

/* ---- the witness ---------------------------------------------------------------------------------------------- */

static void
set_key(struct message *m, unsigned i, const char *key)
{
    chex__feature_entry__init(&m->entry[i]);
    chex__feature__init(&m->feature[i]);
    m->entry[i].key = (char *)(uintptr_t)key; /* packing does not write to it */
    m->entry[i].value = &m->feature[i];
    m->list[i] = &m->entry[i];
}

static void
set_bytes(struct message *m, unsigned i, const char *key, const void *data, size_t size)
{
    set_key(m, i, key);
    chex__bytes_list__init(&m->bytes[i]);
    m->value[i] = (ProtobufCBinaryData){size, (uint8_t *)(uintptr_t)data};
    m->bytes[i].n_value = 1;
    m->bytes[i].value = &m->value[i];
    m->feature[i].kind_case = CHEX__FEATURE__KIND_BYTES_LIST;
    m->feature[i].bytes_list = &m->bytes[i];
}

static void
set_integers(struct message *m, unsigned i, const char *key, int64_t *value, size_t count)
{
    set_key(m, i, key);
    chex__int64_list__init(&m->number[i]);
    m->number[i].n_value = count;
    m->number[i].value = value;
    m->feature[i].kind_case = CHEX__FEATURE__KIND_INT64_LIST;
    m->feature[i].int64_list = &m->number[i];
}

static void
set_integer(struct message *m, unsigned i, const char *key, int64_t value)
{
    m->integer[i] = value;
    set_integers(m, i, key, &m->integer[i], 1);
}

void
message_make(struct message *m, uint32_t height, uint32_t width, const uint8_t *pixels, const struct record_values *v)
{
    memset(m, 0, sizeof(*m));
    chex__example__init(&m->example);
    chex__features__init(&m->features);
    m->example.features = &m->features;
    m->features.n_feature = MESSAGE_ENTRIES;
    m->features.feature = m->list;
    set_bytes(m, RAW, "image/raw", pixels, (size_t)height * width);
    set_integer(m, HEIGHT, "image/height", height);
    set_integer(m, WIDTH, "image/width", width);
    set_integer(m, CHANNELS, "image/channels", 1);
    for (unsigned i = 0; i < 14; i++)
        m->label[i] = v->label[i];
    set_integers(m, LABEL, "image/label", m->label, 14);
    set_integer(m, WEIGHT, "image/weight", v->weight);
    m->age = v->age;
    set_key(m, AGE, "patient/age");
    chex__float_list__init(&m->floats);
    m->floats.n_value = 1;
    m->floats.value = &m->age;
    m->feature[AGE].kind_case = CHEX__FEATURE__KIND_FLOAT_LIST;
    m->feature[AGE].float_list = &m->floats;
    m->sex = v->sex;
    set_bytes(m, SEX, "patient/sex", &m->sex, 1);
    snprintf(m->slot, sizeof(m->slot), "%s/%05u/%05u", v->dataset_id, v->shard, v->index);
    set_bytes(m, SLOT, "record/slot", m->slot, strlen(m->slot));
    set_bytes(m, VIEW, "image/view", v->view.data, v->view.size);
    set_bytes(m, PATIENT, "patient/id", v->patient.data, v->patient.size);
    set_bytes(m, NAME, "image/filename", v->name.data, v->name.size);
    message_pad(m, 0, 0);
}

void
message_pad(struct message *m, size_t front, size_t end)
{
    ck_assert(front <= sizeof(m->zeros) && end <= sizeof(m->zeros));
    set_bytes(m, FRONT, "_p0", m->zeros, front);
    set_bytes(m, END, "_p1", m->zeros, end);
}

size_t
message_pixel_offset(const struct message *m)
{
    Chex__Features first = m->features;
    size_t before = chex__example__get_packed_size(&m->example) - chex__features__get_packed_size(&m->features);

    /* The size up to the pixels: the first two entries. */
    first.n_feature = 2;
    return TFRECORD_HEADER + before + chex__features__get_packed_size(&first) - m->value[RAW].len;
}

bool
message_fit(struct message *m, size_t stride)
{
    for (size_t front = 0; front < 64; front++) {
        size_t empty, end;

        message_pad(m, front, 0);
        empty = chex__example__get_packed_size(&m->example) + TFRECORD_FRAME;
        if (empty > stride)
            return false;
        /* A longer padding has a longer length field, so start a few bytes below the gap. */
        for (end = stride - empty; end + 16 > stride - empty; end--) {
            message_pad(m, front, end);
            if (chex__example__get_packed_size(&m->example) + TFRECORD_FRAME == stride &&
                message_pixel_offset(m) % 64 == 0)
                return true;
            if (end == 0)
                break;
        }
    }
    return false;
}
