/*
 * test_example.c - the reader of any Example (example.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/example.h"
#include "record_fixture.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static struct chex_error err;
static const struct text_sizes nih = {2, 8, 16}; /* PA, 00000001, 00000001_000.png */

static uint8_t packed[65536];

static enum chex_status
parse(const struct message *m, struct chex_record *r, struct example **e)
{
    size_t size = chex__example__get_packed_size(&m->example);

    ck_assert_uint_le(size, sizeof(packed));
    chex__example__pack(&m->example, packed);
    return example_parse(packed, size, e, r, &err);
}

static struct message *
message_8x8(void)
{
    static const uint8_t pixels[64] = {1, 2, 3};
    static struct message m;
    uint64_t state = 5;
    struct record_values v = random_values(&state, nih);

    v.label = (const uint8_t[14]){1, 0, 1};
    message_make(&m, 8, 8, pixels, &v);
    return &m;
}

TEST_CASE("record", "example", NULL, NULL);

TEST(entries_may_come_in_any_order_without_padding)
{
    struct message *m = message_8x8();
    struct chex_record r;
    struct example *e;

    for (unsigned i = 0; i < MESSAGE_ENTRIES / 2; i++) {
        Chex__FeatureEntry *other = m->list[i];

        m->list[i] = m->list[MESSAGE_ENTRIES - 1 - i];
        m->list[MESSAGE_ENTRIES - 1 - i] = other;
    }
    m->list[0]->key = (char *)(uintptr_t) "a key of another writer";
    m->features.n_feature--; /* and no _p0 */
    ck_assert_msg(parse(m, &r, &e) == CHEX_OK, "%s", err.text);
    ck_assert(r.height == 8 && r.label[0] == 1 && r.label[1] == 0 && r.label[2] == 1 && r.pixels[2] == 3);
    example_free(e);
    example_free(NULL);
}

/* TensorFlow does the same, so both see the same file before training. */
TEST(the_last_value_of_a_repeated_key_counts)
{
    struct message *m = message_8x8();
    Chex__Int64List sides = CHEX__INT64_LIST__INIT;
    Chex__Feature side = CHEX__FEATURE__INIT;
    Chex__FeatureEntry entry = CHEX__FEATURE_ENTRY__INIT;
    int64_t value = 7;
    struct chex_record r;
    struct example *e;

    sides.n_value = 1;
    sides.value = &value;
    side.kind_case = CHEX__FEATURE__KIND_INT64_LIST;
    side.int64_list = &sides;
    entry.key = (char *)(uintptr_t) "image/height";
    entry.value = &side;
    m->list[0] = &entry;
    ck_assert_msg(parse(m, &r, &e) == CHEX_OK, "%s", err.text);
    ck_assert_uint_eq(r.height, 8);
    example_free(e);
    m->list[0] = m->list[MESSAGE_ENTRIES - 1];
    m->list[MESSAGE_ENTRIES - 1] = &entry;
    ck_assert_int_eq(parse(m, &r, &e), CHEX_ERR_DAMAGED);
    ck_assert_str_eq(err.text, "missing or wrong key image/raw");
}

TEST(every_key_must_be_there)
{
    for (unsigned i = 0; i < MESSAGE_ENTRIES; i++) {
        struct message *m = message_8x8();
        char wanted[64];
        struct chex_record r;
        struct example *e;

        if (m->list[i]->key[0] == '_')
            continue;
        snprintf(wanted, sizeof(wanted), "missing or wrong key %s", m->list[i]->key);
        m->list[i] = m->list[0];
        ck_assert_int_eq(parse(m, &r, &e), CHEX_ERR_DAMAGED);
        ck_assert_str_eq(err.text, wanted);
        ck_assert_ptr_null(e);
    }
}

/* Each value in turn becomes a list of floats, or of two numbers, or is missing. */
TEST(every_value_must_be_of_its_type)
{
    static int64_t two[] = {0, 0};
    static float real[] = {0, 0};

    for (unsigned i = 1; i + 1 < MESSAGE_ENTRIES; i++) {
        for (unsigned kind = 0; kind < 3; kind++) {
            struct message *m = message_8x8();
            Chex__Int64List integers = CHEX__INT64_LIST__INIT;
            Chex__FloatList floats = CHEX__FLOAT_LIST__INIT;
            Chex__Feature *f = m->list[i]->value;
            struct chex_record r;
            struct example *e;

            integers.n_value = floats.n_value = 2;
            integers.value = two;
            floats.value = real;
            f->kind_case = kind == 0 ? CHEX__FEATURE__KIND_FLOAT_LIST : CHEX__FEATURE__KIND_INT64_LIST;
            if (kind == 0)
                f->float_list = &floats;
            else
                f->int64_list = &integers;
            if (kind == 2)
                m->list[i]->value = NULL;
            if (kind == 1 && strcmp(m->list[i]->key, "image/label") == 0) {
                ck_assert_int_eq(parse(m, &r, &e), CHEX_OK); /* labels of two findings */
                ck_assert_uint_eq(r.finding_count, 2);
                example_free(e);
                continue;
            }
            ck_assert_int_eq(parse(m, &r, &e), CHEX_ERR_DAMAGED);
        }
    }
}

TEST(values_out_of_range_are_refused)
{
    static const struct {
        const char *key;
        int64_t value;
    } wrong[] = {{"image/height", 9},   {"image/height", -8},  {"image/width", 1ll << 40}, {"image/width", 0},
                 {"image/channels", 5}, {"image/channels", 0}, {"image/weight", 2},        {"image/weight", -1},
                 {"image/label", 2},    {"image/label", -1}};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct message *m = message_8x8();
        struct chex_record r;
        struct example *e;

        for (unsigned k = 0; k < MESSAGE_ENTRIES; k++)
            if (strcmp(m->list[k]->key, wrong[i].key) == 0)
                m->list[k]->value->int64_list->value[0] = wrong[i].value;
        ck_assert_int_eq(parse(m, &r, &e), CHEX_ERR_DAMAGED);
    }
}

/* A sign or a blank is not a digit: "-9380" would be shard 4294957916. */
TEST(a_slot_of_another_form_is_refused)
{
    static const char *const wrong[] = {
        "0123456789abcdef/-9380/00004", "0123456789abcdef/00311/+0037", "0123456789abcdef/ 0311/00037",
        "0123456789abcdef/0311//00037", "0123456789abcde//00311/00037", "0123456789ABCDEF/00311/00037",
        "0123456789abcdef/00311/0003x", "0123456789abcdef/00311/003 7",
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct message *m = message_8x8();
        struct chex_record r;
        struct example *e;

        ck_assert_uint_eq(strlen(wrong[i]), strlen(m->slot));
        strcpy(m->slot, wrong[i]);
        ck_assert_msg(parse(m, &r, &e) == CHEX_ERR_DAMAGED, "%s", wrong[i]);
        ck_assert_str_eq(err.text, "missing or wrong key record/slot");
    }
}

/* It is consistent, so only the rule itself refuses it: its 64 pixels are missing. */
TEST(an_image_without_a_byte_is_refused)
{
    static const char *const keys[] = {"image/height", "image/width", "image/channels"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct message *m = message_8x8();
        struct chex_record r;
        struct example *e;

        for (unsigned k = 0; k < MESSAGE_ENTRIES; k++) {
            if (strcmp(m->list[k]->key, keys[i]) == 0)
                m->list[k]->value->int64_list->value[0] = 0;
            if (strcmp(m->list[k]->key, "image/raw") == 0)
                m->list[k]->value->bytes_list->value[0].len = 0;
        }
        ck_assert_int_eq(parse(m, &r, &e), CHEX_ERR_DAMAGED);
        ck_assert_msg(strstr(err.text, keys[i]) != NULL, "%s", err.text);
    }
}

TEST(other_messages_than_an_example_are_refused)
{
    static const uint8_t garbage[] = {0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f};
    struct chex_record r;
    struct example *e;

    ck_assert_int_eq(example_parse(garbage, sizeof(garbage), &e, &r, &err), CHEX_ERR_DAMAGED);
    ck_assert_str_eq(err.text, "not a tf.train.Example");
    ck_assert_int_eq(example_parse(garbage, 0, &e, &r, &err), CHEX_ERR_DAMAGED);
    ck_assert_ptr_null(e);
}

/* Many entries of two bytes each, or numbers of one byte. */
TEST(a_small_record_does_not_fill_the_memory)
{
    static uint8_t data[1 << 20];
    const size_t size = sizeof(data);
    struct chex_record r;
    struct example *e;
    size_t i;

    data[0] = 0x0a; /* features, of four bytes less */
    data[1] = (uint8_t)((size - 4) & 0x7f) | 0x80;
    data[2] = (uint8_t)((size - 4) >> 7 & 0x7f) | 0x80;
    data[3] = (uint8_t)((size - 4) >> 14);
    for (i = 4; i + 1 < size; i += 2)
        data[i] = 0x0a;
    ck_assert_int_eq(example_parse(data, size, &e, &r, &err), CHEX_ERR_LIMIT);
    ck_assert_str_eq(err.text, "a tf.train.Example of too many parts for an image");
    ck_assert_ptr_null(e);
}
