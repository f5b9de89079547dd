/*
 * test_manifest_check.c - a manifest that could not be read again is not written; lines of a journal
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calls.h"
#include "dataset/manifest_json.h"
#include "plan/split.h"
#include "small_dataset.h"
#include "store/journal.h"
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- manifests ------------------------------------------------------------------------------------------------ */

/* Spoils it in one way; returns the expected text, or NULL after the last way. */
static const char *
spoil_scalars(struct manifest *m, int way)
{
    static char long_text[2000];

    switch (way) {
    case 0:
        return m->seed = UINT64_MAX, "split.order_seed";
    case 1:
        return m->rejects = UINT64_MAX, "rejects";
    case 2:
        return m->max_pixels = UINT64_MAX, "decode.max_pixels";
    case 3:
        return m->max_pixels = 0, "decode.max_pixels";
    case 4:
        return m->shard_size = 0, "record.shard_size";
    case 5:
        return m->shard_size = MANIFEST_MAX_SHARD_SIZE + 1, "record.shard_size";
    case 6:
        return m->view_size = RECORD_MAX_TEXT + 1, "record.text_sizes";
    case 7:
        return m->patient_size = RECORD_MAX_TEXT + 1, "record.text_sizes";
    case 8:
        return m->name_size = RECORD_MAX_TEXT + 1, "record.text_sizes";
    case 9:
        return m->view_size = m->patient_size = m->name_size = RECORD_MAX_TEXT, "record.text_sizes";
    case 10:
        return m->pixel_mean = (double)NAN, "pixels.mean";
    case 11:
        return m->pixel_deviation = (double)INFINITY, "pixels.deviation";
    case 12:
        return m->tool_version = "", "tool.version";
    case 13:
        return m->tool_version = "caf\xc3\xa9", "tool.version";
    case 14:
        memset(long_text, 'x', sizeof(long_text) - 1);
        return m->split_rule = long_text, "split.rule";
    case 15:
        m->left_out.views = "";
        return m->left_out.missing = UINT64_MAX, "left_out";
    case 16:
        return m->left_out.missing = 1, "left_out.views";
    case 17:
        m->left_out.views = "PA; rm";
        return m->left_out.other_views = 1, "left_out.views";
    case 18:
        return m->left_out.views = "PA", "left_out.views";
    case 19:
        m->left_out.views = "";
        return m->left_out.other_views = 1, "left_out.views";
    case 20:
        m->left_out.views = "";
        return m->left_out.not_selected = 1, "left_out.where";
    case 21:
        memset(long_text, 'x', sizeof(long_text) - 1);
        m->left_out.views = "";
        return m->left_out.where = long_text, "left_out.where";
    default:
        return NULL;
    }
}

static const char *
spoil_splits(struct manifest *m, int way)
{
    static char long_name[SPLIT_NAME_MAX + 1], long_file[300];

    switch (way) {
    case 0:
        return m->split_count = 0, "splits: not a list of 1 to";
    case 1:
        return m->split_count = SPLIT_MAX + 1, "splits: not a list of 1 to";
    case 2:
        return m->shard_count = 0, "shards: not a list of 1 to";
    case 3:
        return m->shard_count = UINT32_MAX, "shards: not a list of 1 to";
    case 4:
        m->shard[2].split = 0;
        return m->split_count = 1, "the splits have 2";
    case 5:
        return m->split[1].name = m->split[0].name, "occurs twice";
    case 6:
        return m->split[0].name = "", "splits[0].name";
    case 7:
        memset(long_name, 'x', sizeof(long_name) - 1);
        return m->split[0].name = long_name, "splits[0].name";
    case 8:
        return m->split[0].name = "Train", "splits[0].name";
    case 9:
        return m->split[0].images = UINT64_MAX, "splits[0].images";
    case 10:
        return m->split[0].patients = UINT64_MAX, "splits[0].patients";
    case 11:
        memset(long_file, 'x', sizeof(long_file) - 1);
        return m->shard[0].name = long_file, "shards[0].name";
    case 12:
        m->shard[0].records = m->shard_size = 3;
        m->layout.stride = SIZE_MAX / 2;
        return "record.stride";
    default:
        return NULL;
    }
}

typedef const char *spoil(struct manifest *m, int way);

/* Tries each way; returns their number. */
static int
spoil_all_ways(spoil *act, const char *folder)
{
    const char *text;
    int way = 0;

    do {
        struct small_dataset s;
        struct chex_error err = {.text = ""};
        struct buffer b = {0};
        char name[32];

        snprintf(name, sizeof(name), "%s%d", folder, way++);
        small_make(&s, name);
        ck_assert_msg(manifest_format(&s.manifest, &b, &err) == CHEX_OK, "%s", err.text);
        text = act(&s.manifest, way - 1);
        if (text)
            ck_assert_int_eq(manifest_format(&s.manifest, &b, &err), CHEX_ERR_BUG);
        ck_assert_msg(!text || strstr(err.text, text), "\"%s\" is not in \"%s\"", text, err.text);
        buffer_release(&b);
        small_release(&s);
    } while (text);
    return way - 1;
}

TEST_CASE("manifest", "not written", NULL, NULL);

TEST(a_manifest_that_could_not_be_read_is_not_written)
{
    ck_assert_int_eq(spoil_all_ways(spoil_scalars, "scalars"), 22);
    ck_assert_int_eq(spoil_all_ways(spoil_splits, "splits"), 13);
}

/* ---- the schema ----------------------------------------------------------------------------------------------- */

/* Returns what a key of the schema allows; follows a reference. */
static const json_t *
schema_of(const json_t *schema, const json_t *properties, const char *key)
{
    const json_t *value = json_object_get(properties, key);
    const char *reference = json_string_value(json_object_get(value, "$ref"));

    ck_assert_msg(json_is_object(value), "the schema lacks %s", key);
    return reference ? json_object_get(json_object_get(schema, "$defs"), strrchr(reference, '/') + 1) : value;
}

static bool
is_required(const json_t *object, const char *key)
{
    const json_t *required = json_object_get(object, "required");

    for (size_t i = 0; i < json_array_size(required); i++)
        if (strcmp(json_string_value(json_array_get(required, i)), key) == 0)
            return true;
    return false;
}

/* Requires that an object of the schema has the keys of the table, and `more` others. */
static void
compare_keys(const json_t *schema, const json_t *object, const struct manifest_field *fields, size_t more)
{
    static const char *const types[] = {"integer", "number", "boolean", "string", "object",
                                        "string",  NULL,     "object",  "array"};
    const json_t *properties = json_object_get(object, "properties");
    size_t count = 0;

    for (const struct manifest_field *f = fields; f->key; f++, count++) {
        const json_t *value = schema_of(schema, properties, f->key), *type = json_object_get(value, "type");
        const json_t *most = json_object_get(value, f->type == MANIFEST_LIST ? "maxItems" : "maximum");

        ck_assert_msg(is_required(object, f->key) == !f->optional, "%s", f->key);
        if (type && types[f->type])
            ck_assert_str_eq(json_string_value(type), types[f->type]);
        if (f->type == MANIFEST_REAL)
            ck_assert(json_number_value(most) == f->most);
        else if (json_is_integer(most) && f->max != UINT32_MAX / 2 && f->max != INT64_MAX / 4)
            ck_assert_msg((uint64_t)json_integer_value(most) == f->max, "%s", f->key);
        if (f->fields)
            compare_keys(schema, f->type == MANIFEST_LIST ? json_object_get(value, "items") : value, f->fields, 0);
    }
    ck_assert_uint_eq(json_object_size(properties), count + more);
}

TEST(the_schema_has_the_keys_and_the_limits_of_the_table)
{
    const char *source = getenv("srcdir");
    char path[4096];
    json_t *schema;

    snprintf(path, sizeof(path), "%s/schemas/manifest.schema.json", source ? source : ".");
    schema = json_load_file(path, 0, NULL);
    ck_assert_msg(schema != NULL, "%s", path);
    compare_keys(schema, schema, manifest_fields, 1); /* and the checksum */
    json_decref(schema);
}

/* ---- journals ------------------------------------------------------------------------------------------------- */

#define SHA  "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEAD "{\"shard\":1,\"size\":9,\"sha256\":\"" SHA "\",\"crc32c\":\"01234567\","
#define SUMS "\"images\":3,\"sum\":4,\"squares\":5,"

TEST_CASE("manifest", "lines of a journal", NULL, NULL);

TEST(lines_of_a_journal_are_strict)
{
    static const struct {
        const char *line;
        bool good;
    } lines[] = {
        {HEAD SUMS "\"rejects\":0}", true},
        {HEAD SUMS "\"rejects\":2}", true},
        {HEAD SUMS "\"rejects\":-1}", false},
        {HEAD SUMS "\"rejects\":\"none\"}", false},
        {HEAD "\"images\":-1,\"sum\":4,\"squares\":5,\"rejects\":0}", false},
        {HEAD "\"images\":4294967296,\"sum\":4,\"squares\":5,\"rejects\":0}", false},
        {HEAD "\"images\":3,\"sum\":-4,\"squares\":5,\"rejects\":0}", false},
        {HEAD "\"images\":3,\"sum\":4,\"squares\":-5,\"rejects\":0}", false},
        {"{\"shard\":-1,\"size\":9,\"sha256\":\"" SHA "\",\"crc32c\":\"01234567\"," SUMS "\"rejects\":0}", false},
        {"{\"shard\":2,\"size\":9,\"sha256\":\"" SHA "\",\"crc32c\":\"01234567\"," SUMS "\"rejects\":0}", false},
        {"{\"shard\":1,\"size\":-9,\"sha256\":\"" SHA "\",\"crc32c\":\"01234567\"," SUMS "\"rejects\":0}", false},
        {"{\"shard\":1,\"size\":9,\"sha256\":\"0\",\"crc32c\":\"01234567\"," SUMS "\"rejects\":0}", false},
        {"{\"shard\":1,\"size\":9,\"sha256\":\"" SHA "\",\"crc32c\":\"0\"," SUMS "\"rejects\":0}", false},
        {"{\"shard\":1,\"size\":9,\"sha256\":\"\",\"crc32c\":\"\"," SUMS "\"rejects\":0}", false},
        {"{", false},
        {"", false},
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct shard_result r;
        struct chex_error err;
        size_t shard;
        enum chex_status status = journal_parse(lines[i].line, strlen(lines[i].line), 2, &shard, &r, &err);

        ck_assert_msg(status == (lines[i].good ? CHEX_OK : CHEX_ERR_DAMAGED), "%s: %d", lines[i].line, status);
        ck_assert(!lines[i].good || (shard == 1 && r.size == 9 && r.images == 3 && r.sum == 4 && r.squares == 5));
        ck_assert(lines[i].good || (!r.done && !r.reject && r.size == 0 && r.sha256[0] == '\0'));
        shard_result_release(&r);
    }
}

/* Writes a line and reads it. */
static enum chex_status
write_and_read_line(struct chex_error *err)
{
    struct shard_result result = {.size = 4, .images = 2, .sha256 = SHA, .crc32c = "01234567", .reject_count = 2},
                        there;
    struct buffer line = {0};
    size_t shard;
    enum chex_status status = journal_format(1, &result, &line, err);

    if (status == CHEX_OK) {
        status = journal_parse((const char *)line.data, line.size - 1, 2, &shard, &there, err);
        if (status == CHEX_OK && (there.reject_count != 2 || there.images != 2 || strcmp(there.sha256, SHA) != 0))
            status = error_set(err, CHEX_ERR_BUG, "another line");
    }
    buffer_release(&line);
    return status;
}

TEST(a_line_of_a_journal_without_memory)
{
    calls_each(CALL_MEMORY, ENOMEM, write_and_read_line, NULL, CHEX_ERR_MEMORY, 0);
}
