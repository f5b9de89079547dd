/*
 * test_manifest.c - a manifest has exactly one form; every other text is refused
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/dataset.h"

#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "small_dataset.h"
#include "unit.h"

/* Returns the manifest of the small data set, with a NUL; free() it. */
static char *
good_text(const struct small_dataset *s)
{
    struct buffer b = {0};

    ck_assert_int_eq(manifest_format(&s->manifest, &b, NULL), CHEX_OK);
    ck_assert_int_eq(buffer_append(&b, "", 1, NULL), CHEX_OK);
    return (char *)b.data;
}

static enum chex_status
parse(const char *text, size_t size, struct chex_error *err)
{
    struct manifest m = {0};
    enum chex_status status = manifest_parse((const uint8_t *)text, size, &m, err);

    manifest_release(&m);
    return status;
}

TEST_CASE("manifest", "manifest", NULL, NULL);

TEST(a_written_manifest_is_read_back_unchanged)
{
    struct small_dataset s;
    struct manifest_source source[] = {{"0011223344556677", 512, "area", "1024x1024 none", 7, 3, "Mass", "a-"},
                                       {.dataset_id = "1011223344556677", .size = 256, .resize = "none"}};
    struct manifest_withdrawal withdrawal[] = {{"8899aabbccddeeff", 3, "2026-11-23T22:30:00Z"},
                                               {"99aabbccddeeff00", 0, "2026-11-24T22:30:00Z"}};
    struct manifest m = {0};
    struct buffer again = {0};
    char *text;

    small_make(&s, "round");
    text = good_text(&s);
    ck_assert_ptr_null(strstr(text, "left_out"));
    ck_assert_ptr_null(strstr(text, "empty_labels"));
    ck_assert_ptr_null(strstr(text, "synthetic"));
    ck_assert_ptr_null(strstr(text, "sources"));
    ck_assert_ptr_null(strstr(text, "withdraw"));
    free(text);
    s.manifest.source = source;
    s.manifest.source_count = 2;
    s.manifest.withdrawal = withdrawal;
    s.manifest.withdrawal_count = 2;
    s.manifest.empty_labels = 5;
    s.manifest.synthetic = true;
    s.manifest.left_out = (struct manifest_left_out){"PA", 3, 1, 2, "Mass & sex=F", 4};
    text = good_text(&s);
    ck_assert_int_eq(manifest_parse((const uint8_t *)text, strlen(text), &m, NULL), CHEX_OK);
    ck_assert_str_eq(m.dataset_id, s.manifest.dataset_id);
    ck_assert_mem_eq(&m.layout, &s.manifest.layout, sizeof(m.layout));
    ck_assert(m.pixel_mean == s.manifest.pixel_mean && m.pixel_deviation == s.manifest.pixel_deviation);
    ck_assert_uint_eq(m.split[1].positives[7], 1);
    ck_assert_str_eq(m.shard[2].name, s.shard[2].name);
    ck_assert_uint_eq(m.empty_labels, 5);
    ck_assert(m.synthetic);
    ck_assert_str_eq(m.left_out.views, "PA");
    ck_assert_uint_eq(m.left_out.other_views, 3);
    ck_assert_uint_eq(m.left_out.excluded, 1);
    ck_assert_uint_eq(m.left_out.missing, 2);
    ck_assert_str_eq(m.left_out.where, "Mass & sex=F");
    ck_assert_uint_eq(m.left_out.not_selected, 4);
    ck_assert_uint_eq(m.source_count, 2);
    ck_assert_str_eq(m.source->dataset_id, source->dataset_id);
    ck_assert_uint_eq(m.source->size, 512);
    ck_assert_str_eq(m.source->resize, "area");
    ck_assert_str_eq(m.source->from, "1024x1024 none");
    ck_assert_uint_eq(m.source->withdrawn, 7);
    ck_assert_uint_eq(m.source->left_out, 3);
    ck_assert_str_eq(m.source->where, "Mass");
    ck_assert_str_eq(m.source->id_prefix, "a-");
    ck_assert_str_eq(m.source[1].dataset_id, source[1].dataset_id);
    ck_assert_uint_eq(manifest_withdrawn(&m), 3);
    ck_assert_str_eq(m.withdrawal[1].time, "2026-11-24T22:30:00Z");
    ck_assert_str_eq(manifest_record_id(&m), "8899aabbccddeeff");
    ck_assert(manifest_had_id(&m, "99aabbccddeeff00") && !manifest_had_id(&m, m.dataset_id));
    ck_assert_int_eq(manifest_format(&m, &again, NULL), CHEX_OK);
    ck_assert_uint_eq(again.size, strlen(text));
    ck_assert_mem_eq(again.data, text, again.size);
    buffer_release(&again);
    manifest_release(&m);
    free(text);
    small_release(&s);
}

TEST(the_text_does_not_depend_on_the_locale)
{
    struct small_dataset s;
    char *text, *foreign;

    small_make(&s, "locale");
    text = good_text(&s);
    ck_assert_ptr_nonnull(strstr(text, "\"mean\": 77.099999999999994"));
    ck_assert_int_eq(text[strlen(text) - 1], '\n');
    /* Has no effect if the locale is not installed. */
    setlocale(LC_ALL, "de_DE.UTF-8");
    foreign = good_text(&s);
    ck_assert_str_eq(text, foreign);
    ck_assert_int_eq(parse(foreign, strlen(foreign), NULL), CHEX_OK);
    setlocale(LC_ALL, "C");
    free(text);
    free(foreign);
    small_release(&s);
}

/* Finds the offsets of the layout in a record. */
TEST(the_dtype_points_at_the_fields)
{
    struct small_dataset s;
    size_t at[3];
    const uint8_t *record;
    char *text;

    small_make(&s, "dtype");
    text = good_text(&s);
    record = s.bytes[0] + s.manifest.layout.stride;
    record_text_offsets(&s.manifest.layout, 2, 8, 16, at);
    ck_assert_mem_eq(record + at[0], "PA", 2);
    ck_assert_mem_eq(record + at[1], "00000001", 8);
    ck_assert_mem_eq(record + at[2], "00000001_000.png", 16);
    ck_assert_ptr_nonnull(strstr(text, "\"(8,8)u1\""));
    ck_assert_ptr_nonnull(strstr(text, "\"S16\""));
    free(text);
    /* If views differ in size, later fields have no constant offset. */
    s.manifest.view_size = 0;
    text = good_text(&s);
    ck_assert_ptr_null(strstr(text, "\"S8\""));
    ck_assert_int_eq(parse(text, strlen(text), NULL), CHEX_OK);
    free(text);
    small_release(&s);
}

/* ---- refusals -------------------------------------------------------------------------------------------------- */

#define OTHER_HASH "\"0011\""

/* Replaces the first `old` in a good manifest by `new`. */
#define WITHDRAWAL(id, slots) "{\"dataset_id\": \"" id "\", \"slots\": " slots ", \"time\": \"2026-11-23T22:30:00Z\"}"
#define SOURCE(size, resize)  "{\"dataset_id\": \"0011223344556677\", \"size\": " size ", \"resize\": \"" resize "\"}"
/* With the 14 names of the manifest these are 255. */
#define NAMES_11(x)                                                                                           \
    "\"" x "0\",\"" x "1\",\"" x "2\",\"" x "3\",\"" x "4\",\"" x "5\",\"" x "6\",\"" x "7\",\"" x "8\",\"" x \
    "9\",\"" x "x\","
#define NAMES_121(x) \
    NAMES_11(x "0")  \
    NAMES_11(x "1")  \
    NAMES_11(x "2")  \
    NAMES_11(x "3")  \
    NAMES_11(x "4") NAMES_11(x "5") NAMES_11(x "6") NAMES_11(x "7") NAMES_11(x "8") NAMES_11(x "9") NAMES_11(x "x")
#define NAMES_242 NAMES_121("a") NAMES_121("b")

static const struct {
    const char *old, *new;
    enum chex_status status;
    const char *text; /* part of the message */
} hostile[] = {
    {"\"format\": 1", "\"format\": 3", CHEX_ERR_INCOMPATIBLE, "format 3, this build reads up to 1"},
    {"\"format\": 1", "\"format\": 0", CHEX_ERR_DAMAGED, "format"},
    {"\"format\": 1", "\"format\": \"1\"", CHEX_ERR_DAMAGED, "format"},
    {"\"format\": 1", "\"format\": 1e0", CHEX_ERR_DAMAGED, "format"},
    {"\"format\": 1,", "", CHEX_ERR_DAMAGED, "format"},
    {"\"format\": 1", "\"format\": 1, \"format\": 1", CHEX_ERR_DAMAGED, "duplicate"},
    {"\"format\": 1", "\"format\": 99999999999999999999", CHEX_ERR_DAMAGED, "line"},
    {"\"0123456789abcdef\"", "\"0123456789ABCDEF\"", CHEX_ERR_DAMAGED, "dataset_id"},
    {"\"0123456789abcdef\"", "\"0123456789abcdef0\"", CHEX_ERR_DAMAGED, "dataset_id"},
    {"\"0123456789abcdef\"", "\"0123\\u0000\"", CHEX_ERR_DAMAGED, "line"},
    {"\"0123456789abcdef\"", "17", CHEX_ERR_DAMAGED, "dataset_id"},
    {"\"0.1.0\"", "\"0.1\\n.0\"", CHEX_ERR_DAMAGED, "tool.version"},
    {"\"0.1.0\"", "\"0.1.0\", \"more\": 1", CHEX_ERR_DAMAGED, "tool"},
    {"\"stride\": ", "\"stride\": -", CHEX_ERR_DAMAGED, "record.stride"},
    {"\"stride\": ", "\"stride\": 1", CHEX_ERR_DAMAGED, "stride"},
    {"\"stride\": ", "\"stride\": 9000000000000", CHEX_ERR_DAMAGED, "record.stride"},
    {"\"pixel_offset\": ", "\"pixel_offset\": 1", CHEX_ERR_DAMAGED, "pixel"},
    {"\"height\": 8", "\"height\": 0", CHEX_ERR_DAMAGED, "record"},
    {"\"height\": 8", "\"height\": 16385", CHEX_ERR_DAMAGED, "record.height"},
    {"\"width\": 8", "\"width\": 16384", CHEX_ERR_DAMAGED, "stride"},
    {"\"channels\": 1", "\"channels\": 3", CHEX_ERR_DAMAGED, "record.channels"},
    {"\"channels\": 1", "\"channels\": 0", CHEX_ERR_DAMAGED, "record"},
    {"\"align\": 64", "\"align\": 65", CHEX_ERR_DAMAGED, "record"},
    {"\"shard_size\": 3", "\"shard_size\": 0", CHEX_ERR_DAMAGED, "shard_size"},
    {"\"shard_size\": 3", "\"shard_size\": 100001", CHEX_ERR_DAMAGED, "shard_size"},
    {"\"shard_size\": 3", "\"shard_size\": 4", CHEX_ERR_DAMAGED, "shards[0].records"},
    {"\"tail\": \"pad\"", "\"tail\": \"wag\"", CHEX_ERR_DAMAGED, "record.tail"},
    {"\"view\": 2", "\"view\": 256", CHEX_ERR_DAMAGED, "text_sizes"},
    {"\"view\": 2", "\"view\": 1", CHEX_ERR_DAMAGED, "dtype"},
    {"\"S28\"", "\"S29\"", CHEX_ERR_DAMAGED, "dtype"},
    {"\"itemsize\": ", "\"itemsize\": 1", CHEX_ERR_DAMAGED, "dtype"},
    {"\"Cardiomegaly\"", "\"Effusion\"", CHEX_ERR_DAMAGED, "labels"},
    {"\"labels\": [", "\"labels\": [1, ", CHEX_ERR_DAMAGED, "labels"},
    {"\"labels\": [", "\"labels\": [], \"names\": [", CHEX_ERR_DAMAGED, "labels: not a list of 1 to 254"},
    {"\"labels\": [", "\"labels\": {}, \"names\": [", CHEX_ERR_DAMAGED, "labels: not a list of 1 to 254"},
    {"\"labels\": [", "\"labels\": [" NAMES_242, CHEX_ERR_DAMAGED, "labels: not a list of 1 to 254"},
    {"\"labels\": [", "\"labels\": [\"cardio-megaly\", \"CARDIO  MEGALY\", ", CHEX_ERR_DAMAGED, "the same name"},
    {"\"labels\": [", "\"labels\": [\"Other\", ", CHEX_ERR_DAMAGED, "dtype"},
    {"\"labels\": [", "\"labels\": [\"a<b\", ", CHEX_ERR_DAMAGED, "labels"},
    {"\"labels\": [", "\"labels\": [\"\\u001b[2J\", ", CHEX_ERR_DAMAGED, "labels"},
    {"\"(14,)u1\"", "\"(13,)u1\"", CHEX_ERR_DAMAGED, "dtype"},
    {"\"tail\": \"pad\"", "\"unknown_labels\": true, \"tail\": \"pad\"", CHEX_ERR_DAMAGED, "known"},
    {"\"positives\": {", "\"known\": {}, \"positives\": {", CHEX_ERR_DAMAGED, "known"},
    {"\"labels_sha256\"", "\"leaks\": {\"patients\": 0, \"images\": 2}, \"labels_sha256\"", CHEX_ERR_DAMAGED, "leaks"},
    {"\"labels_sha256\"", "\"leaks\": {\"patients\": 2, \"images\": 3}, \"labels_sha256\"", CHEX_ERR_DAMAGED, "leaks"},
    {"\"labels_sha256\"", "\"leaks\": {\"patients\": 900, \"images\": 1800}, \"labels_sha256\"", CHEX_ERR_DAMAGED,
     "leaks"},
    {"\"bilinear\"", "\"telepathy\"", CHEX_ERR_DAMAGED, "decode.resize"},
    {"\"bt601\"", "\"bt709\"", CHEX_ERR_DAMAGED, "decode.luma"},
    {"\"rejects\": 0", "\"rejects\": 0, \"gray_rule\": \"gray8-0\"", CHEX_ERR_DAMAGED, "gray_rule: not a known rule"},
    {"\"max_pixels\": 64000000", "\"max_pixels\": 0", CHEX_ERR_DAMAGED, "max_pixels"},
    {"\"min_side\": 8", "\"min_side\": 4294967296", CHEX_ERR_DAMAGED, "min_side"},
    {"\"lenient\": false", "\"lenient\": 0", CHEX_ERR_DAMAGED, "lenient"},
    {"\"patient:70,30,0:0\"", "\"\"", CHEX_ERR_DAMAGED, "split.rule"},
    {"\"patient:70,30,0:0\"", "\"\\u001b[2J\"", CHEX_ERR_DAMAGED, "split.rule"},
    {"\"order_seed\": 0", "\"order_seed\": -1", CHEX_ERR_DAMAGED, "order_seed"},
    {"\"name\": \"train\"", "\"name\": \"../train\"", CHEX_ERR_DAMAGED, "splits[0].name"},
    {"\"name\": \"train\"", "\"name\": \"val\"", CHEX_ERR_DAMAGED, "shards[0].split"},
    {"\"name\": \"train\"", "\"name\": \"other\"", CHEX_ERR_DAMAGED, "shards[0].split"},
    {"\"first_shard\": 0", "\"first_shard\": 1", CHEX_ERR_DAMAGED, "splits[0]"},
    {"\"shards\": 2", "\"shards\": 0", CHEX_ERR_DAMAGED, "splits[0]"},
    {"\"shards\": 2", "\"shards\": 2147483647", CHEX_ERR_DAMAGED, "splits[0]"},
    {"\"shards\": 2", "\"shards\": 1", CHEX_ERR_DAMAGED, "number"},
    {"\"images\": 6", "\"images\": 7", CHEX_ERR_DAMAGED, "splits[0].images"},
    {"\"patients\": 6", "\"patients\": 6.5", CHEX_ERR_DAMAGED, "patients"},
    {"\"patients\": 6", "\"patients\": 7", CHEX_ERR_DAMAGED, "more patients than images"},
    {"\"Atelectasis\": 0", "\"Atelectasis\": 7", CHEX_ERR_DAMAGED, "positives"},
    {"\"Atelectasis\": 0", "\"Atelektase\": 0", CHEX_ERR_DAMAGED, "Atelectasis"},
    {"\"chestxray14-train.tfrecord-00000-of-00002\"", "\"../../etc/passwd\"", CHEX_ERR_DAMAGED, "shards[0].name"},
    {"\"chestxray14-train.tfrecord-00000-of-00002\"", "\"/etc/passwd\"", CHEX_ERR_DAMAGED, "shards[0].name"},
    {"\"chestxray14-train.tfrecord-00000-of-00002\"", "\"..\"", CHEX_ERR_DAMAGED, "shards[0].name"},
    {"\"chestxray14-train.tfrecord-00000-of-00002\"", "\"a b\"", CHEX_ERR_DAMAGED, "shards[0].name"},
    {"\"chestxray14-train.tfrecord-00000-of-00002\"", "\"\"", CHEX_ERR_DAMAGED, "shards[0].name"},
    {"\"chestxray14-train.tfrecord-00000-of-00002\"", "\"manifest.json\"", CHEX_ERR_DAMAGED, "shards[0].name"},
    {"\"chestxray14-train.tfrecord-00000-of-00002\"", "\"chestxray14-val.tfrecord-00000-of-00001\"", CHEX_ERR_DAMAGED,
     "twice"},
    {"\"split\": \"train\"", "\"split\": \"val\"", CHEX_ERR_DAMAGED, "shards[0].split"},
    {"\"number\": 0", "\"number\": 1", CHEX_ERR_DAMAGED, "shards[0]"},
    {"\"of\": 2", "\"of\": 3", CHEX_ERR_DAMAGED, "shards[0]"},
    {"\"records\": 3", "\"records\": 0", CHEX_ERR_DAMAGED, "shards[0].records"},
    {"\"records\": 3", "\"records\": 2", CHEX_ERR_DAMAGED, "shards[0].records"},
    {"\"images\": 3", "\"images\": 4", CHEX_ERR_DAMAGED, "shards[0].images"},
    {"\"size\": ", "\"size\": 1", CHEX_ERR_DAMAGED, "shards[0].size"},
    {"\"sha256\": ", "\"sha256\": " OTHER_HASH ", \"x\": ", CHEX_ERR_DAMAGED, "shards[0]"},
    {"\"crc32c\": \"", "\"crc32c\": \"0", CHEX_ERR_DAMAGED, "shards[0].crc32c"},
    {"\"crc32c\": \"", "\"crc32c\": 1, \"x\": \"", CHEX_ERR_DAMAGED, "shards[0]"},
    {"\"crc32c\"", "\"crc32d\"", CHEX_ERR_DAMAGED, "shards[0]"},
    {"\"mean\": 77", "\"mean\": 277", CHEX_ERR_DAMAGED, "pixels.mean"},
    {"\"mean\": 77", "\"mean\": 1e999, \"x\": 77", CHEX_ERR_DAMAGED, "line"},
    {"\"deviation\": 0", "\"deviation\": 200", CHEX_ERR_DAMAGED, "pixels.deviation"},
    {"\"deviation\": 0", "\"deviation\": -0", CHEX_ERR_DAMAGED, "pixels.deviation"},
    {"\"labels_sha256\": \"00", "\"labels_sha256\": \"zz", CHEX_ERR_DAMAGED, "labels_sha256"},
    {"\"rejects\": 0", "\"rejects\": null", CHEX_ERR_DAMAGED, "rejects"},
    {"\"rejects\": 0", "\"rejects\": 0, \"left_out\": 5", CHEX_ERR_DAMAGED, "left_out"},
    {"\"rejects\": 0",
     "\"rejects\": 0, \"left_out\": {\"views\": \"$(x)\", \"other_views\": 1, \"excluded\": 0, \"missing\": 0}",
     CHEX_ERR_DAMAGED, "left_out.views"},
    {"\"rejects\": 0",
     "\"rejects\": 0, \"left_out\": {\"views\": \"\", \"other_views\": 0, \"excluded\": -1, \"missing\": 0}",
     CHEX_ERR_DAMAGED, "excluded"},
    {"\"rejects\": 0", "\"rejects\": 0, \"withdrawals\": []", CHEX_ERR_DAMAGED, "withdrawals"},
    {"\"rejects\": 0", "\"rejects\": 0, \"withdrawals\": [" WITHDRAWAL("12345", "1") "]", CHEX_ERR_DAMAGED,
     "dataset_id"},
    {"\"rejects\": 0", "\"rejects\": 0, \"withdrawals\": [" WITHDRAWAL("0011223344556677", "-1") "]", CHEX_ERR_DAMAGED,
     "slots"},
    {"\"rejects\": 0", "\"rejects\": 0, \"sources\": {}", CHEX_ERR_DAMAGED, "sources"},
    {"\"rejects\": 0", "\"rejects\": 0, \"sources\": []", CHEX_ERR_DAMAGED, "sources"},
    {"\"rejects\": 0", "\"rejects\": 0, \"sources\": [5]", CHEX_ERR_DAMAGED, "sources[0]"},
    {"\"rejects\": 0", "\"rejects\": 0, \"sources\": [" SOURCE("999", "area") "," SOURCE("999", "area") "]",
     CHEX_ERR_DAMAGED, "sources: not in the order of their ids"},
    {"\"rejects\": 0", "\"rejects\": 0, \"sources\": [" SOURCE("999", "area\", \"id_prefix\": \"a b") "]",
     CHEX_ERR_DAMAGED, "id_prefix"},
    {"\"rejects\": 0", "\"rejects\": 0, \"sources\": [" SOURCE("1", "area") "]", CHEX_ERR_DAMAGED, "sources"},
    {"\"rejects\": 0", "\"rejects\": 0, \"sources\": [" SOURCE("99999", "area") "]", CHEX_ERR_DAMAGED, "size"},
    {"\"rejects\": 0", "\"rejects\": 0, \"sources\": [" SOURCE("512", "cubic") "]", CHEX_ERR_DAMAGED, "resize"},
    {"\"rejects\": 0", "\"rejects\": 0, \"sources\": [" SOURCE("512", "area\", \"from\": \"$(x)") "]", CHEX_ERR_DAMAGED,
     "from"},
    {"\"rejects\": 0",
     "\"rejects\": 0, \"sources\": [" SOURCE("512", "bilinear\", \"from\": \"1024x1024 bilinear of 9 none") "]",
     CHEX_ERR_DAMAGED, "sources"},
    {"\"splits\": [", "\"splits\": 5, \"old\": [", CHEX_ERR_DAMAGED, "splits"},
    {"\"splits\": [", "\"splits\": [0,0,0,0, 0,0,0,0, 0,0,0,0, 0,0,0,0, ", CHEX_ERR_DAMAGED, "list of 1 to 16 objects"},
    {"\"shards\": [", "\"shards\": [], \"old\": [", CHEX_ERR_DAMAGED, "shards"},
    {"\"record\": {", "\"record\": [], \"old\": {", CHEX_ERR_DAMAGED, "record"},
    {"}\n", "} x\n", CHEX_ERR_DAMAGED, "line"},
    {"\"rejects\"", "\"re\xff\xfe\"", CHEX_ERR_DAMAGED, "line"},
};

/* Returns a copy of text with the first old replaced. */
static char *
replace(const char *text, const char *old, const char *new)
{
    const char *at = strstr(text, old);
    size_t size = strlen(text) + strlen(new) + 1;
    char *out = malloc(size);

    ck_assert_ptr_nonnull(at);
    ck_assert_ptr_nonnull(out);
    snprintf(out, size, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
    return out;
}

LOOP_TEST(a_hostile_value_is_refused_and_named, 0, sizeof(hostile) / sizeof(hostile[0]))
{
    struct small_dataset s;
    struct chex_error err = {.text = ""};
    char name[32];
    char *text, *changed;

    snprintf(name, sizeof(name), "hostile%d", _i);
    small_make(&s, name);
    text = good_text(&s);
    /* The last brace and the last line end together only at the end of the text. */
    if (strcmp(hostile[_i].old, "}\n") == 0) {
        changed = replace(text, "\"\n}\n", "\"\n} x\n");
    } else {
        changed = replace(text, hostile[_i].old, hostile[_i].new);
    }
    ck_assert_msg(parse(changed, strlen(changed), &err) == hostile[_i].status, "%s -> %s: %s", hostile[_i].old,
                  hostile[_i].new, err.text);
    ck_assert_msg(strstr(err.text, hostile[_i].text) != NULL, "%s -> %s: %s", hostile[_i].old, hostile[_i].new,
                  err.text);
    free(text);
    free(changed);
    small_release(&s);
}

TEST(an_unknown_outer_key_is_allowed)
{
    struct small_dataset s;
    char *text, *changed;

    small_make(&s, "future");
    text = good_text(&s);
    changed = replace(text, "\"format\": 1", "\"format\": 1, \"licence\": {\"name\": \"x\"}");
    /* By a writer that corrects the checksum, or by one that does not. */
    ck_assert_int_eq(parse(changed, strlen(changed), NULL), CHEX_ERR_DAMAGED);
    strcpy(strstr(changed, ",\n  \"manifest_sha256\""), "\n}\n");
    ck_assert_int_eq(parse(changed, strlen(changed), NULL), CHEX_OK);
    free(text);
    free(changed);
    small_release(&s);
}

TEST(every_truncation_is_refused_and_a_lost_byte_does_not_crash)
{
    struct small_dataset s;
    char *text, *cut;
    size_t size, i;

    small_make(&s, "cut");
    text = good_text(&s);
    size = strlen(text);
    cut = malloc(size);
    for (i = 0; i + 1 < size; i++)
        ck_assert_int_ne(parse(text, i, NULL), CHEX_OK);
    for (i = 0; i < size; i += 3) {
        memcpy(cut, text, i);
        memcpy(cut + i, text + i + 1, size - i - 1);
        parse(cut, size - 1, NULL);
    }
    free(cut);
    free(text);
    small_release(&s);
}

static void
refuse(const char *text, size_t size, enum chex_status wanted, const char *part)
{
    struct chex_error err = {.text = ""};

    ck_assert_int_eq(parse(text, size, &err), wanted);
    ck_assert_msg(strstr(err.text, part) != NULL, "%s", err.text);
}

/*
 * A flipped bit in a number or a name gives another valid one; the checksum over the text detects it.  If the bit is in
 * the name of the checksum's key, the manifest has no checksum, and everything else is unchanged.
 */
LOOP_TEST(every_flipped_bit_is_noticed_or_in_the_name_of_the_checksum, 0, 8)
{
    struct small_dataset s;
    size_t size, i, key, taken = 0;
    char name[32], *text;

    snprintf(name, sizeof(name), "manifest-bits%d", _i);
    small_make(&s, name);
    text = good_text(&s);
    size = strlen(text);
    key = (size_t)(strstr(text, "manifest_sha256") - text);
    for (i = 0; i < size; i++) {
        text[i] ^= (char)(1 << _i);
        if (parse(text, size, NULL) == CHEX_OK) {
            ck_assert_msg(i >= key && i < key + strlen("manifest_sha256"), "byte %zu", i);
            taken++;
        }
        text[i] ^= (char)(1 << _i);
    }
    ck_assert(taken > 0 || _i == 7); /* not ASCII: not valid JSON */
    ck_assert_int_eq(parse(text, size, NULL), CHEX_OK);
    ck_assert_int_eq(parse(text, size - 1, NULL), CHEX_ERR_DAMAGED); /* without its last newline */
    free(text);
    small_release(&s);
}

TEST(depth_number_and_size_are_bounded_before_the_text_is_read)
{
    size_t size = (size_t)MANIFEST_MAX + 1, i;
    char *text = malloc(size);

    ck_assert_ptr_nonnull(text);
    refuse("", 0, CHEX_ERR_DAMAGED, "line");
    memset(text, '[', size);
    refuse(text, 17, CHEX_ERR_LIMIT, "nested deeper than 16");
    refuse(text, 16, CHEX_ERR_DAMAGED, "line");
    /* Brackets in a string do not nest, and an escaped quote does not end a string. */
    refuse("\"[[[[[[[[[[[[[[[[[[[[[[[\"", 25, CHEX_ERR_DAMAGED, "line");
    refuse("[\"\\\\\",[[[[[[[[[[[[[[[[[[[[[[[", 30, CHEX_ERR_LIMIT, "nested");
    refuse("[\"\\\"[[[[[[[[[[[[[[[[[[[[[[[", 27, CHEX_ERR_DAMAGED, "line");
    for (i = 0; i < size; i += 2)
        memcpy(text + i, "0,", i + 1 < size ? 2 : 1);
    refuse(text, 4000000, CHEX_ERR_LIMIT, "values");
    refuse(text, size, CHEX_ERR_LIMIT, "bytes are more than");
    free(text);
}

TEST(the_writer_refuses_the_same_manifests_as_the_reader)
{
    struct small_dataset s;
    struct buffer b = {0};
    struct chex_error err;

    small_make(&s, "writer");
    s.split[0].images = 5;
    ck_assert_int_eq(manifest_format(&s.manifest, &b, &err), CHEX_ERR_BUG);
    ck_assert_ptr_nonnull(strstr(err.text, "splits[0].images: 5, its shards have 6"));
    s.split[0].images = 6;
    s.manifest.pixel_mean = NAN;
    ck_assert_int_eq(manifest_format(&s.manifest, &b, &err), CHEX_ERR_BUG);
    buffer_release(&b);
    small_release(&s);
}
