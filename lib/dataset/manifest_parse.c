/*
 * manifest_parse.c - read a manifest that anybody may have made; see manifest.h
 *
 * Size, depth and number of values are bounded (json.h), then each known key is read with its type and range, and
 * manifest_check.c looks at the whole.  Unknown keys of the outermost object are allowed, so that a later version can
 * say more without a new format number; everything else must be as this version would have written it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/json.h"
#include "dataset/manifest_json.h"

#include "base/sha256.h"
#include "dataset/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH  16
#define MAX_VALUES 1200000 /* 99,999 shards have less than this */

/* ---- values: the first fault is kept, all later ones are its consequences -------------------------------------- */

struct reader {
    struct manifest *m;
    enum chex_status status;
    struct chex_error *err;
};

static void
fault(struct reader *r, const char *where, const char *key, const char *wanted)
{
    if (r->status == CHEX_OK)
        r->status = chex_fail(r->err, CHEX_ERR_DAMAGED, "%s%s%s: not %s", where, where[0] ? "." : "", key, wanted);
}

static uint64_t
get_number(struct reader *r, const char *where, const json_t *object, const char *key, uint64_t max)
{
    const json_t *v = json_object_get(object, key);
    char wanted[64];

    if (json_is_integer(v) && json_integer_value(v) >= 0 && (uint64_t)json_integer_value(v) <= max)
        return (uint64_t)json_integer_value(v);
    snprintf(wanted, sizeof(wanted), "a whole number from 0 to %llu", (unsigned long long)max);
    fault(r, where, key, wanted);
    return 0;
}

static double
get_real(struct reader *r, const char *where, const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    if (!json_is_number(v))
        fault(r, where, key, "a number");
    return json_number_value(v);
}

static bool
get_bool(struct reader *r, const char *where, const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    if (!json_is_boolean(v))
        fault(r, where, key, "true or false");
    return json_is_true(v);
}

/* A copy in the manifest's arena; "" after a fault, so that the caller need not look. */
static const char *
get_string(struct reader *r, const char *where, const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    const char *copy;

    if (!json_is_string(v)) {
        fault(r, where, key, "a text");
        return "";
    }
    copy = arena_copy(&r->m->strings, json_string_value(v), json_string_length(v));
    if (!copy && r->status == CHEX_OK)
        r->status = chex_fail_memory(r->err);
    return copy ? copy : "";
}

/* An object with exactly `count` keys, or NULL; what is read from NULL is a fault by itself. */
static const json_t *
get_object(struct reader *r, const char *where, const json_t *object, const char *key, size_t count)
{
    const json_t *v = json_object_get(object, key);

    if (json_is_object(v) && json_object_size(v) == count)
        return v;
    fault(r, where, key, "an object with the keys of format 1");
    return NULL;
}

/* ---- parts ----------------------------------------------------------------------------------------------------- */

static void
read_record(struct reader *r, const json_t *top)
{
    const json_t *record = get_object(r, "", top, "record", 9);
    const json_t *texts = get_object(r, "record", record, "text_sizes", 3);
    struct manifest *m = r->m;
    uint32_t height = (uint32_t)get_number(r, "record", record, "height", RECORD_MAX_SIDE);
    uint32_t width = (uint32_t)get_number(r, "record", record, "width", RECORD_MAX_SIDE);
    uint64_t channels = get_number(r, "record", record, "channels", 1);
    uint32_t align = (uint32_t)get_number(r, "record", record, "align", 4096);
    uint64_t stride = get_number(r, "record", record, "stride", (uint64_t)RECORD_MAX_SIDE * RECORD_MAX_SIDE * 2);
    uint64_t pixel_offset = get_number(r, "record", record, "pixel_offset", RECORD_MAX_HEAD);

    m->shard_size = (uint32_t)get_number(r, "record", record, "shard_size", MANIFEST_MAX_SHARD_SIZE);
    m->tail = get_string(r, "record", record, "tail");
    m->view_size = (uint32_t)get_number(r, "record.text_sizes", texts, "view", RECORD_MAX_TEXT);
    m->patient_size = (uint32_t)get_number(r, "record.text_sizes", texts, "patient", RECORD_MAX_TEXT);
    m->name_size = (uint32_t)get_number(r, "record.text_sizes", texts, "filename", RECORD_MAX_TEXT);
    if (r->status != CHEX_OK)
        return;
    r->status = record_restore(height, width, align, (size_t)stride, &m->layout, r->err);
    if (r->status == CHEX_OK && (channels != m->layout.channels || pixel_offset != m->layout.pixel_offset))
        r->status = chex_fail(r->err, CHEX_ERR_DAMAGED, "record: pixels at %llu, in this layout they are at %zu",
                              (unsigned long long)pixel_offset, m->layout.pixel_offset);
}

/* It follows from the record: no program that believes it may be led elsewhere. */
static void
read_dtype(struct reader *r, const json_t *top)
{
    json_t *wanted;

    if (r->status != CHEX_OK)
        return;
    wanted = manifest_dtype(r->m);
    if (!wanted)
        r->status = chex_fail_memory(r->err);
    else if (!json_equal(wanted, json_object_get(top, "dtype")))
        r->status = chex_fail(r->err, CHEX_ERR_DAMAGED, "dtype: not that of the record");
    json_decref(wanted);
}

static void
read_labels(struct reader *r, const json_t *top)
{
    const json_t *labels = json_object_get(top, "labels");
    unsigned i;

    if (!json_is_array(labels) || json_array_size(labels) != CHEX_FINDINGS)
        fault(r, "", "labels", "a list of 14 names");
    for (i = 0; i < CHEX_FINDINGS && r->status == CHEX_OK; i++) {
        const char *name = json_string_value(json_array_get(labels, i));

        if (!name || strcmp(name, chex_finding_name(i)) != 0)
            fault(r, "", "labels", "the 14 findings in their order");
    }
}

static void
read_decode(struct reader *r, const json_t *top)
{
    const json_t *decode = get_object(r, "", top, "decode", 5);
    const json_t *split = get_object(r, "", top, "split", 2);
    const json_t *pixels = get_object(r, "", top, "pixels", 2);
    struct manifest *m = r->m;

    m->resize = get_string(r, "decode", decode, "resize");
    if (strcmp(get_string(r, "decode", decode, "luma"), MANIFEST_LUMA) != 0)
        fault(r, "decode", "luma", MANIFEST_LUMA);
    m->max_pixels = get_number(r, "decode", decode, "max_pixels", INT64_MAX);
    m->min_side = (uint32_t)get_number(r, "decode", decode, "min_side", UINT32_MAX);
    m->lenient = get_bool(r, "decode", decode, "lenient");
    m->split_rule = get_string(r, "split", split, "rule");
    m->seed = get_number(r, "split", split, "order_seed", INT64_MAX);
    m->pixel_mean = get_real(r, "pixels", pixels, "mean");
    m->pixel_deviation = get_real(r, "pixels", pixels, "deviation");
}

/* Manifests of before lack the key, and so do those of data sets that have every row. */
static void
read_left_out(struct reader *r, const json_t *top)
{
    const json_t *object;
    struct manifest_left_out *l = &r->m->left_out;

    if (!json_object_get(top, "left_out"))
        return;
    object = get_object(r, "", top, "left_out", 4);
    l->views = get_string(r, "left_out", object, "views");
    l->other_views = get_number(r, "left_out", object, "other_views", INT64_MAX / 4);
    l->excluded = get_number(r, "left_out", object, "excluded", INT64_MAX / 4);
    l->missing = get_number(r, "left_out", object, "missing", INT64_MAX / 4);
}

static void
read_split(struct reader *r, const char *where, const json_t *object, struct manifest_split *split)
{
    const json_t *positives = get_object(r, where, object, "positives", CHEX_FINDINGS);
    unsigned i;

    if (json_object_size(object) != 7)
        fault(r, where, "keys", "those of format 1");
    split->name = get_string(r, where, object, "name");
    split->members_sha256 = get_string(r, where, object, "members_sha256");
    split->first_shard = (unsigned)get_number(r, where, object, "first_shard", UINT32_MAX / 2);
    split->shard_count = (unsigned)get_number(r, where, object, "shards", UINT32_MAX / 2);
    split->images = get_number(r, where, object, "images", INT64_MAX);
    split->patients = get_number(r, where, object, "patients", INT64_MAX);
    for (i = 0; i < CHEX_FINDINGS; i++)
        split->positives[i] = get_number(r, where, positives, chex_finding_name(i), INT64_MAX);
}

/* The number of the split of this name; a fault where there is none. */
static unsigned
split_of_name(struct reader *r, const char *where, const char *name)
{
    unsigned i;

    for (i = 0; i < r->m->split_count; i++)
        if (strcmp(r->m->split[i].name, name) == 0)
            return i;
    fault(r, where, "split", "the name of a split");
    return 0;
}

static void
read_shard(struct reader *r, const char *where, const json_t *object, struct manifest_shard *shard)
{
    const json_t *split = json_object_get(object, "split");
    bool has_crc = json_object_get(object, "crc32c") != NULL;

    if (json_object_size(object) != (has_crc ? 9 : 8))
        fault(r, where, "keys", "those of format 1");
    shard->name = get_string(r, where, object, "name");
    shard->sha256 = get_string(r, where, object, "sha256");
    shard->crc32c = has_crc ? get_string(r, where, object, "crc32c") : NULL;
    shard->split = split_of_name(r, where, json_is_string(split) ? json_string_value(split) : "");
    shard->number = (uint32_t)get_number(r, where, object, "number", UINT32_MAX / 2);
    shard->of = (uint32_t)get_number(r, where, object, "of", UINT32_MAX / 2);
    shard->records = (uint32_t)get_number(r, where, object, "records", UINT32_MAX / 2);
    shard->images = (uint32_t)get_number(r, where, object, "images", UINT32_MAX / 2);
    shard->size = get_number(r, where, object, "size", INT64_MAX);
}

/* An array of 1 to `most` objects: its length, and room for as many elements of the caller; NULL after a fault. */
static void *
make_array(struct reader *r, const json_t *top, const char *key, size_t most, size_t element_size, unsigned *count)
{
    const json_t *array = json_object_get(top, key);
    size_t size = json_array_size(array);
    char wanted[64];
    void *made;

    if (r->status != CHEX_OK)
        return NULL;
    if (size == 0 || size > most) { /* before each shard looks for its split among all of them */
        snprintf(wanted, sizeof(wanted), "a list of 1 to %zu objects", most);
        fault(r, "", key, wanted);
        return NULL;
    }
    made = calloc(size, element_size);
    if (!made)
        r->status = chex_fail_memory(r->err);
    else
        *count = (unsigned)size;
    return made;
}

static void
read_lists(struct reader *r, const json_t *top)
{
    struct manifest *m = r->m;
    char where[32];
    unsigned i;

    m->split = make_array(r, top, "splits", SPLIT_MAX, sizeof(*m->split), &m->split_count);
    for (i = 0; i < m->split_count && r->status == CHEX_OK; i++) {
        snprintf(where, sizeof(where), "splits[%u]", i);
        read_split(r, where, json_array_get(json_object_get(top, "splits"), i), &m->split[i]);
    }
    m->shard = make_array(r, top, "shards", SHARDS_MAX, sizeof(*m->shard), &m->shard_count);
    for (i = 0; i < m->shard_count && r->status == CHEX_OK; i++) {
        snprintf(where, sizeof(where), "shards[%u]", i);
        read_shard(r, where, json_array_get(json_object_get(top, "shards"), i), &m->shard[i]);
    }
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

/* First of all: what a newer format says is not judged by the rules of this one. */
static void
read_format(struct reader *r, const json_t *top)
{
    const json_t *format = json_object_get(top, "format");

    if (!json_is_integer(format) || json_integer_value(format) < 1)
        fault(r, "", "format", "a whole number from 1 on: no manifest of a data set");
    else if (json_integer_value(format) > MANIFEST_FORMAT)
        r->status = chex_fail(r->err, CHEX_ERR_INCOMPATIBLE, "format %lld, this build reads up to %d",
                              (long long)json_integer_value(format), MANIFEST_FORMAT);
}

static void
read_top(struct reader *r, const json_t *top)
{
    struct manifest *m = r->m;
    const json_t *tool;
    const char *id;

    read_format(r, top);
    if (r->status != CHEX_OK)
        return;
    tool = get_object(r, "", top, "tool", 2);
    id = get_string(r, "", top, "dataset_id");
    if (strlen(id) != CHEX_ID_LENGTH)
        fault(r, "", "dataset_id", "16 hexadecimal digits");
    snprintf(m->dataset_id, sizeof(m->dataset_id), "%.*s", CHEX_ID_LENGTH, id);
    get_string(r, "tool", tool, "name");
    m->tool_version = get_string(r, "tool", tool, "version");
    read_record(r, top);
    read_dtype(r, top);
    read_labels(r, top);
    read_decode(r, top);
    m->labels_sha256 = get_string(r, "", top, "labels_sha256");
    m->rejects = get_number(r, "", top, "rejects", INT64_MAX);
    read_left_out(r, top);
    read_lists(r, top);
    if (r->status == CHEX_OK)
        r->status = manifest_check(m, r->err);
}

/* A bit that turned over in a number makes another number: only this notices it.  Manifests of before lack the key. */
static enum chex_status
check_sum(const json_t *top, const uint8_t *text, size_t size, struct chex_error *err)
{
    char sum[MANIFEST_SUM_ROOM];
    size_t end = strlen("  \"" MANIFEST_SUM_KEY "\": \"\"\n}\n") + 2 * DIGEST_SIZE;
    enum chex_status status;

    if (!json_object_get(top, MANIFEST_SUM_KEY))
        return CHEX_OK;
    if (size < end)
        return chex_fail(err, CHEX_ERR_DAMAGED, MANIFEST_SUM_KEY ": not a line of its own at the end");
    status = manifest_sum(text, size - end, sum, err);
    if (status == CHEX_OK && memcmp(sum, text + size - end, end) != 0)
        status = chex_fail(err, CHEX_ERR_DAMAGED,
                           MANIFEST_SUM_KEY ": not that of the text, which is damaged or was edited");
    return status;
}

static const struct json_bounds bounds = {.size = MANIFEST_MAX, .depth = MAX_DEPTH, .values = MAX_VALUES};

static enum chex_status
parse(const uint8_t *text, size_t size, struct manifest *out, struct chex_error *err)
{
    struct reader r = {.m = out, .err = err};
    json_t *top;
    enum chex_status status = json_read(text, size, &bounds, &top, err);

    if (status != CHEX_OK)
        return status;
    read_top(&r, top);
    if (r.status == CHEX_OK)
        r.status = check_sum(top, text, size, err);
    json_decref(top);
    return r.status;
}

enum chex_status
manifest_parse(const uint8_t *text, size_t size, struct manifest *out, struct chex_error *err)
{
    enum chex_status status = parse(text, size, out, err);

    if (status == CHEX_ERR_DAMAGED) {
        /* Where an allocation fails jansson may lose part of a token and call it a fault of the text: look again. */
        manifest_release(out);
        status = parse(text, size, out, err);
    }
    return status;
}

void
manifest_release(struct manifest *m)
{
    free(m->split);
    free(m->shard);
    arena_release(&m->strings);
    *m = (struct manifest){0};
}
