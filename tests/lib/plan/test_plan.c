/*
 * test_plan.c - assigns images to slots (plan.h)
 *
 * Values of the order: Python 3.11, sorted(names, key=lambda n: hashlib.sha256(b"chex-order:SEED:" + n).digest()[:8]).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "lib/dataset/record_fixture.h"
#include "plan/plan.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- helpers -------------------------------------------------------------------------------------------------- */

#define HEADER "Image Index,Patient ID,Finding Labels,Patient Age,Patient Gender,View Position\n"

static const char five[] = HEADER "00000001_000.png,1,Mass,58,M,PA\n"
                                  "00000001_001.png,1,Mass|Hernia,58,M,PA\n"
                                  "00000001_002.png,1,No Finding,59,M,AP\n"
                                  "00000002_000.png,2,No Finding,,F,PA\n"
                                  "00000003_000.png,3,Edema,81,F,AP\n";

static struct labels labels;
static struct slot_plan plan;
static struct spec spec;
static struct chex_error err;

static void
setup(void)
{
    spec = spec_default();
    spec.split = (struct split_rule){.kind = SPLIT_NONE};
    spec.shard_size = 2;
}

static void
teardown(void)
{
    plan_release(&plan);
    labels_release(&labels);
}

static void
read_labels(const char *csv)
{
    const struct labels_options options = {0};

    labels_release(&labels);
    ck_assert_msg(labels_read(unit_file("plan.csv", csv, strlen(csv)), &options, &labels, &err) == CHEX_OK, "%s",
                  err.text);
}

static const struct slot_plan *
make_plan(const char *csv)
{
    plan_release(&plan);
    read_labels(csv);
    ck_assert_msg(plan_make(&spec, &labels, NULL, &plan, &err) == CHEX_OK, "%s", err.text);
    return &plan;
}

static void
expect_error(const char *text)
{
    plan_release(&plan);
    ck_assert_int_eq(plan_make(&spec, &labels, NULL, &plan, &err), CHEX_ERR_USAGE);
    ck_assert_msg(strstr(err.text, text), "\"%s\" is not in \"%s\"", text, err.text);
}

/* Requires these image numbers, slot by slot, "1_0 2_0 | 3_0". */
static void
expect_slots(const char *wanted)
{
    char text[512] = "";
    size_t used = 0;

    for (size_t i = 0; i < plan.shard_count; i++) {
        const struct plan_shard *s = &plan.shard[i];

        for (size_t k = 0; k < s->images; k++) {
            const char *name = labels.entry[plan.image[s->first + k]].name;

            used += (size_t)sprintf(text + used, "%s%c_%c", used == 0 ? "" : k == 0 ? " | " : " ", name[7], name[11]);
        }
        if (s->records > s->images)
            used += (size_t)sprintf(text + used, " +%u", s->records - s->images);
    }
    ck_assert_str_eq(text, wanted);
}

/* Makes a label file of `rows` random images, three per patient, in random order. */
static const char *
shuffled(unsigned rows, uint64_t seed)
{
    static char csv[65536];
    unsigned order[1000];
    size_t used = (size_t)sprintf(csv, "%s", HEADER);

    for (unsigned i = 0; i < rows; i++) {
        unsigned k = pick_below(&seed, i + 1);

        order[i] = order[k];
        order[k] = i;
    }
    for (unsigned i = 0; i < rows; i++)
        used += (size_t)sprintf(csv + used, "%08u_%03u.png,%u,%s,%u,%c,%s\n", order[i] / 3, order[i] % 3, order[i] / 3,
                                order[i] % 2 ? "Mass" : "Edema|Mass", order[i] % 90, order[i] / 3 % 2 ? 'M' : 'F',
                                order[i] % 5 ? "PA" : "AP");
    return csv;
}

/* ---- order ---------------------------------------------------------------------------------------------------- */

TEST_CASE("plan", "plan", setup, teardown);

TEST(the_order_follows_a_keyed_hash)
{
    make_plan(five);
    expect_slots("3_0 2_0 | 1_0 1_1 | 1_2 +1");
    spec.seed = 7;
    make_plan(five);
    expect_slots("2_0 1_0 | 1_1 1_2 | 3_0 +1");
    spec.seed = UINT64_MAX;
    make_plan(five);
    expect_slots("1_0 2_0 | 1_2 1_1 | 3_0 +1");
}

TEST(the_order_of_the_rows_does_not_matter)
{
    struct plan_shard *first;
    char id[CHEX_ID_LENGTH + 1], members[DIGEST_HEX];
    size_t count;
    char *names;

    spec.split = (struct split_rule){.kind = SPLIT_PATIENT, .percent = {70, 10, 20}};
    make_plan(shuffled(300, 1));
    strcpy(id, plan.dataset_id);
    strcpy(members, plan.members_sha256[0]);
    count = plan.shard_count;
    first = malloc(count * sizeof(*first));
    names = calloc(plan.image_count, 32);
    memcpy(first, plan.shard, count * sizeof(*first));
    for (size_t i = 0; i < plan.image_count; i++)
        strcpy(names + 32 * i, labels.entry[plan.image[i]].name);
    for (uint64_t seed = 2; seed < 8; seed++) {
        make_plan(shuffled(300, seed));
        ck_assert_str_eq(plan.dataset_id, id);
        ck_assert_str_eq(plan.members_sha256[0], members);
        ck_assert_uint_eq(plan.shard_count, count);
        for (size_t i = 0; i < plan.image_count; i++)
            ck_assert_str_eq(labels.entry[plan.image[i]].name, names + 32 * i);
        for (size_t i = 0; i < count; i++)
            ck_assert_str_eq(plan.shard[i].name, first[i].name);
    }
    free(names);
    free(first);
}

/* Leaving out images moves the others up and does not change their order. */
TEST(the_order_of_two_images_depends_on_no_other)
{
    bool skip[300] = {false};
    char before[300][32];
    size_t count = 0, at = 0;

    make_plan(shuffled(300, 1));
    for (size_t i = 0; i < plan.image_count; i++) {
        const char *name = labels.entry[plan.image[i]].name;

        skip[plan.image[i]] = i % 3 == 0;
        if (i % 3 > 0)
            strcpy(before[count++], name);
    }
    plan_release(&plan);
    ck_assert_int_eq(plan_make(&spec, &labels, skip, &plan, &err), CHEX_OK);
    ck_assert_uint_eq(plan.image_count, count);
    for (; at < count; at++)
        ck_assert_str_eq(labels.entry[plan.image[at]].name, before[at]);
}

/* ---- shards --------------------------------------------------------------------------------------------------- */

TEST(a_tail_is_padded_kept_short_or_dropped)
{
    const uint32_t sizes[] = {2, 5, 256};
    static const char *const pad[] = {"3_0 2_0 | 1_0 1_1 | 1_2 +1", "3_0 2_0 1_0 1_1 1_2", "3_0 2_0 1_0 1_1 1_2 +251"};
    static const char *const cut[] = {"3_0 2_0 | 1_0 1_1 | 1_2", "3_0 2_0 1_0 1_1 1_2", "3_0 2_0 1_0 1_1 1_2"};

    for (size_t i = 0; i < 3; i++) {
        spec.shard_size = sizes[i];
        spec.tail = TAIL_PAD;
        make_plan(five);
        expect_slots(pad[i]);
        ck_assert_uint_eq(plan_size(&plan), plan.shard_count * sizes[i] * plan.layout.stride);
        ck_assert_uint_eq(plan.dropped, 0);
        spec.tail = TAIL_SHORT;
        make_plan(five);
        expect_slots(cut[i]);
        ck_assert_uint_eq(plan_size(&plan), 5 * plan.layout.stride);
    }
    spec.tail = TAIL_DROP;
    spec.shard_size = 2;
    make_plan(five);
    expect_slots("3_0 2_0 | 1_0 1_1");
    ck_assert_uint_eq(plan.dropped, 1);
    ck_assert_uint_eq(plan.image_count, 4);
    spec.shard_size = 6;
    expect_error("no split fills a shard: nothing is left to convert");
}

TEST(shards_are_numbered_over_all_splits_and_named_within)
{
    static const char rule[] = "Patient ID,split\n1,test\n2,train\n3,site_9\n";
    static const char *const names[] = {
        "chestxray14-train.tfrecord-00000-of-00001",
        "chestxray14-test.tfrecord-00000-of-00002",
        "chestxray14-test.tfrecord-00001-of-00002",
        "chestxray14-site_9.tfrecord-00000-of-00001",
    };
    size_t first = 0;

    spec.split = (struct split_rule){.kind = SPLIT_FILE};
    snprintf(spec.split.path, sizeof(spec.split.path), "%s", unit_file("split.csv", rule, strlen(rule)));
    make_plan(five);
    ck_assert_uint_eq(plan.shard_count, 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_str_eq(plan.shard[i].name, names[i]);
        ck_assert_uint_eq(plan.shard[i].first, first);
        ck_assert_uint_eq(plan.shard[i].records, 2);
        first += plan.shard[i].images;
    }
    ck_assert(plan.shard[2].number == 1 && plan.shard[2].of == 2 && plan.shard[2].split == 1);
    expect_slots("2_0 +1 | 1_0 1_1 | 1_2 +1 | 3_0 +1");
    /* A split that fills no shard has none; the other splits are not affected. */
    spec.tail = TAIL_DROP;
    make_plan(five);
    expect_slots("1_0 1_1");
    ck_assert_str_eq(plan.shard[0].name, "chestxray14-test.tfrecord-00000-of-00001");
    ck_assert_uint_eq(plan.dropped, 3);
}

TEST(more_shards_than_a_slot_can_name_are_refused)
{
    enum { COUNT = SHARDS_MAX + 1 };
    const char *patient = "00000001";
    char(*name)[16] = calloc(COUNT, sizeof(*name));
    struct labels many = {
        .entry = calloc(COUNT, sizeof(*many.entry)), .count = COUNT, .patient_count = 1, .patient = &patient};

    for (size_t i = 0; i < COUNT; i++) {
        snprintf(name[i], sizeof(name[i]), "%08zu", i);
        many.entry[i] = (struct entry){.name = name[i], .patient = patient, .sex = 'U', .view = "U"};
    }
    spec.shard_size = 1;
    ck_assert_int_eq(plan_make(&spec, &many, NULL, &plan, &err), CHEX_ERR_USAGE);
    ck_assert_str_eq(err.text, "100,000 shards are too many: choose a larger --shard-size");
    free(many.entry);
    free(name);
}

TEST(a_plan_needs_an_image)
{
    const bool skip[5] = {true, true, true, true, true};

    read_labels(five);
    ck_assert_int_eq(plan_make(&spec, &labels, skip, &plan, &err), CHEX_ERR_USAGE);
    plan_release(&plan);
    spec.size = 0;
    expect_error("a side is 1 to 16384 pixels");
    spec.size = 256;
    spec.align = 128;
    expect_error("must be 64, 512 or 4096");
}

/* ---- layout, members, values ---------------------------------------------------------------------------------- */

TEST(every_image_fits_into_the_slot_of_every_other)
{
    static const char csv[] = HEADER "a,1,Mass,58,M,PA\n"
                                     "a name of forty characters: quite long..,2,Mass,58,M,LATERAL\n"
                                     "b.png,a patient with a long name,Mass,58,F,\n";

    make_plan(csv);
    for (size_t i = 0; i < labels.count; i++) {
        uint8_t *record = calloc(1, plan.layout.stride);
        struct record_values v, back;

        plan_values(&plan, &labels.entry[i], 3, 7, 1, &v);
        record_encode(&plan.layout, &v, record);
        record_seal(&plan.layout, record);
        ck_assert_msg(record_decode(&plan.layout, record, &back, &err) == CHEX_OK, "%s", err.text);
        ck_assert(same_values(&v, &back));
        ck_assert(back.shard == 3 && back.index == 7 && back.weight == 1);
        ck_assert_str_eq(back.dataset_id, plan.dataset_id);
        ck_assert_mem_eq(back.name.data, labels.entry[i].name, strlen(labels.entry[i].name));
        free(record);
    }
}

/* Python: hashlib.sha256("".join(name + "\n" for name in names)).hexdigest() */
TEST(members_are_hashed_by_their_sorted_names)
{
    static const char rule[] = "Patient ID,split\n1,train\n2,test\n3,test\n";

    make_plan(five);
    ck_assert_str_eq(plan.members_sha256[0], "be15eed1a08cc709a9c8ffcb13dddb83fc1312bf115cbfb10bd102dbb13b52f3");
    spec.split = (struct split_rule){.kind = SPLIT_FILE};
    snprintf(spec.split.path, sizeof(spec.split.path), "%s", unit_file("split.csv", rule, strlen(rule)));
    make_plan(five);
    ck_assert_str_eq(plan.members_sha256[0], "b6acc4d0fabd885bd02fd70b403289bd96f6f77741e814c4b9bb683bb19b3b14");
}

TEST(a_specification_is_one_line)
{
    char text[256];

    spec.limits = (struct decode_limits){.max_pixels = 64000000, .min_side = 64};
    spec_format(&spec, text, sizeof(text));
    ck_assert_str_eq(text, "256x256 bilinear, 2 a shard, tail pad, align 64, split none, seed 0, "
                           "at most 64000000 pixels, sides from 64");
    spec.limits.lenient = true;
    spec_format(&spec, text, sizeof(text));
    ck_assert_str_eq(strrchr(text, ','), ", lenient");
}

TEST(only_differences_of_a_specification_are_reported)
{
    char text[SPEC_DIFFERENCE];

    ck_assert_str_eq(spec_difference("128x128 area, split patient:70,10,20:0, seed 0",
                                     "256x256 area, split patient:80,10,10:0, seed 0", text),
                     "it has 128x128 area, split patient:70,10,20:0, wanted is 256x256 area, split patient:80,10,10:0");
    ck_assert_str_eq(spec_difference("a, b, lenient", "a, b", text), "it has lenient, wanted is nothing");
    ck_assert_str_eq(spec_difference("a, b", "a, b, lenient", text), "it has nothing, wanted is lenient");
    ck_assert_str_eq(spec_difference("a, b", "a, b", text),
                     "the options are the same, but the label file, the lists or the excluded images differ");
    ck_assert_str_eq(spec_difference("x", ",, ,", text), "it has x, wanted is ,, ,");
}

/* ---- identity ------------------------------------------------------------------------------------------------- */

static char seen[64][CHEX_ID_LENGTH + 1];
static unsigned seen_count;

/* Requires an id that did not occur before. */
static void
expect_new_id(const char *csv)
{
    make_plan(csv);
    ck_assert_uint_eq(strlen(plan.dataset_id), CHEX_ID_LENGTH);
    ck_assert_uint_eq(strspn(plan.dataset_id, "0123456789abcdef"), CHEX_ID_LENGTH);
    for (unsigned i = 0; i < seen_count; i++)
        ck_assert_str_ne(plan.dataset_id, seen[i]);
    strcpy(seen[seen_count++], plan.dataset_id);
}

TEST(whatever_decides_about_bytes_is_in_the_id)
{
    const struct spec usual = spec;
    struct spec other[12];
    size_t count = sizeof(other) / sizeof(other[0]);

    for (size_t i = 0; i < count; i++)
        other[i] = usual;
    other[1].size = 255;
    other[2].resize = RESAMPLE_AREA;
    other[3].shard_size = 3;
    other[4].tail = TAIL_SHORT;
    other[5].align = 512;
    other[6].seed = 1;
    other[7].limits.max_pixels--;
    other[8].limits.min_side++;
    other[9].limits.lenient = true;
    other[10].split = (struct split_rule){.kind = SPLIT_PATIENT, .percent = {70, 10, 20}};
    other[11].split = (struct split_rule){.kind = SPLIT_PATIENT, .percent = {70, 10, 20}, .seed = 1};
    for (size_t i = 0; i < count; i++) {
        spec = other[i];
        expect_new_id(five);
    }
}

TEST(whatever_a_record_says_is_in_the_id)
{
    static const char *const rows[] = {
        "a,1,Mass,58,M,PA",       "b,1,Mass,58,M,PA",       "a,2,Mass,58,M,PA", "a,1,Edema,58,M,PA",
        "a,1,No Finding,58,M,PA", "a,1,Mass|Edema,58,M,PA", "a,1,Mass,59,M,PA", "a,1,Mass,058M,M,PA",
        "a,1,Mass,,M,PA",         "a,1,Mass,58,F,PA",       "a,1,Mass,58,,PA",  "a,1,Mass,58,M,AP",
        "a,1,Mass,58,M,",
    };
    char csv[256];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(csv, sizeof(csv), HEADER "%s\n", rows[i]);
        expect_new_id(csv);
    }
}

/* Names and patients may contain blanks, so the id must include where each one ends. */
TEST(a_blank_in_a_name_does_not_make_two_data_sets_one)
{
    expect_new_id(HEADER "a,b 0000 c,No Finding,58,M,PA\n");
    expect_new_id(HEADER "a 0000 b,c,No Finding,58,M,PA\n");
}

/* Two forms of an unknown age, and an image that is skipped or was never in the file. */
TEST(values_that_no_record_has_are_not_in_the_id)
{
    char id[CHEX_ID_LENGTH + 1];
    const bool skip[2] = {false, true};

    make_plan(HEADER "a,1,Mass,,M,PA\n");
    strcpy(id, plan.dataset_id);
    make_plan(HEADER "a,1,Mass,412,M,PA\n");
    ck_assert_str_eq(plan.dataset_id, id);
    labels.entry[0].age = -NAN;
    plan_release(&plan);
    ck_assert_int_eq(plan_make(&spec, &labels, NULL, &plan, &err), CHEX_OK);
    ck_assert_str_eq(plan.dataset_id, id);
    read_labels("Finding Labels,Image Index,Patient ID,Patient Age,Patient Gender,View Position\n"
                "Mass,a,00000001,,M,PA\n"
                "Mass,b,3,,M,PA\n");
    plan_release(&plan);
    ck_assert_int_eq(plan_make(&spec, &labels, skip, &plan, &err), CHEX_OK);
    ck_assert_str_eq(plan.dataset_id, id);
}
