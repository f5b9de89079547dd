/*
 * manifest_parse.c - reads a manifest of untrusted origin; see manifest.h
 *
 * The size, the depth and the number of values are limited (json.h).  Each field of the table is read with its type and
 * limits.  manifest_check.c then compares fields with each other.  The outermost object may have unknown keys, so that
 * a later version can add keys without a new format number.  All others must have the form that this version writes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/manifest_json.h"

#include "base/ascii.h"
#include "base/json.h"
#include "base/json_sum.h"
#include "base/member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH  16
#define MAX_VALUES 1200000 /* enough for 99,999 shards */
#define PATH       64

/* ---- fields: reading ends at the first fault --------------------------------------------------------------------- */

struct manifest_reader {
    struct manifest *m;
    const char *where; /* "record.text_sizes", "shards[99998]", "" */
    enum chex_status status;
    struct chex_error *err;
};

static void read_fields(struct manifest_reader *r, const char *where, const json_t *from,
                        const struct manifest_field *fields, void *object);

static void
fault(struct manifest_reader *r, const char *key, const char *wanted)
{
    if (r->status == CHEX_OK)
        r->status = error_set(r->err, CHEX_ERR_DAMAGED, "%s%s%s: not %s", r->where, r->where[0] ? "." : "", key,
                              wanted);
}

static uint64_t
get_number(struct manifest_reader *r, const char *key, const struct manifest_field *f, const json_t *value)
{
    uint64_t number = (uint64_t)json_integer_value(value);
    char wanted[64];

    if (!json_is_integer(value) || number < f->min || number > f->max) {
        snprintf(wanted, sizeof(wanted), "a whole number from %llu to %llu", (unsigned long long)f->min,
                 (unsigned long long)f->max);
        fault(r, key, wanted);
    }
    return number;
}

static double
get_real(struct manifest_reader *r, const struct manifest_field *f, const json_t *value)
{
    double number = json_number_value(value);
    char wanted[64];

    if (!json_is_number(value) || number < 0 || number > f->most) {
        snprintf(wanted, sizeof(wanted), "a number from 0 to %g", f->most);
        fault(r, f->key, wanted);
    }
    return number;
}

/* Read a text into the member, or copy it to the manifest's arena. */
static void
read_text(struct manifest_reader *r, const struct manifest_field *f, const json_t *value, void *at)
{
    const char *text = json_string_value(value), *copy;
    size_t length = json_string_length(value);

    if (!text)
        fault(r, f->key, "a text");
    else if (f->names ? name_index(f->names, text) < 0
                      : length < f->min || length > f->max || strspn(text, f->letters) != length)
        fault(r, f->key, f->wanted);
    if (r->status != CHEX_OK)
        return;
    if (f->size != sizeof(char *)) {
        memcpy(at, text, length + 1);
        return;
    }
    copy = arena_copy(&r->m->strings, text, length);
    if (!copy)
        r->status = error_memory(r->err);
    memcpy(at, &copy, sizeof(copy));
}

static void
read_findings(struct manifest_reader *r, const struct manifest_field *f, const json_t *value, uint64_t *out)
{
    const struct findings *findings = &r->m->findings;
    unsigned i;

    if (json_object_size(value) != findings->count)
        fault(r, f->key, "an object with a number for each of the labels");
    for (i = 0; i < findings->count; i++)
        out[i] = get_number(r, findings->name[i], f, json_object_get(value, findings->name[i]));
}

/* Returns the index of the split with this name; a fault if there is none. */
static uint64_t
find_split(struct manifest_reader *r, const struct manifest_field *f, const json_t *value)
{
    const char *name = json_string_value(value);
    unsigned i;

    for (i = 0; name && i < r->m->split_count; i++)
        if (strcmp(r->m->split[i].name, name) == 0)
            return i;
    fault(r, f->key, f->wanted);
    return 0;
}

static void
compare_derived(struct manifest_reader *r, const struct manifest_field *f, const json_t *value)
{
    json_t *wanted = f->fixed ? json_string(f->fixed) : f->derive(r->m);

    if (!wanted)
        r->status = error_memory(r->err);
    else if (f->any ? !json_is_string(value) : !json_equal(wanted, value))
        fault(r, f->key, f->wanted);
    json_decref(wanted);
}

/* Returns whether it is an object with exactly the keys of these fields. */
static bool
has_keys(const json_t *object, const struct manifest_field *fields)
{
    const struct manifest_field *f;
    size_t count = 0;

    for (f = fields; f->key; f++)
        count += !f->optional || json_object_get(object, f->key);
    return json_is_object(object) && json_object_size(object) == count;
}

static void
read_object(struct manifest_reader *r, const struct manifest_field *f, const json_t *value, void *object)
{
    char path[PATH];

    if (!has_keys(value, f->fields))
        fault(r, f->key, "an object with the keys of format 1");
    snprintf(path, sizeof(path), "%s%s%s", r->where, r->where[0] ? "." : "", f->key);
    read_fields(r, path, value, f->fields, object);
    if (f->then && r->status == CHEX_OK)
        r->status = f->then(r->m, r->err);
}

static void
read_list(struct manifest_reader *r, const struct manifest_field *f, const json_t *value)
{
    size_t size = json_array_size(value), i;
    char path[PATH], *made;

    if (size < f->min || size > f->max) { /* check first: each shard will search all splits for its name */
        snprintf(path, sizeof(path), "a list of 1 to %llu objects", (unsigned long long)f->max);
        fault(r, f->key, path);
        return;
    }
    made = calloc(size, f->element);
    if (!made) {
        r->status = error_memory(r->err);
        return;
    }
    memcpy((char *)r->m + f->offset, &made, sizeof(made));
    memcpy((char *)r->m + f->count, &(unsigned){(unsigned)size}, sizeof(unsigned));
    for (i = 0; i < size && r->status == CHEX_OK; i++) {
        snprintf(path, sizeof(path), "%s[%zu]", f->key, i);
        r->where = path;
        if (!has_keys(json_array_get(value, i), f->fields))
            fault(r, "keys", "those of format 1");
        read_fields(r, path, json_array_get(value, i), f->fields, made + i * f->element);
        r->where = ""; /* only the outermost object has lists */
    }
}

static void
read_field(struct manifest_reader *r, const struct manifest_field *f, const json_t *value, void *object)
{
    void *at = (char *)object + f->offset;

    switch (f->type) {
    case MANIFEST_NUMBER:
        member_put(at, f->size, get_number(r, f->key, f, value));
        break;
    case MANIFEST_REAL:
        *(double *)at = get_real(r, f, value);
        break;
    case MANIFEST_BOOL:
        if (!json_is_boolean(value))
            fault(r, f->key, "true or false");
        *(bool *)at = json_is_true(value);
        break;
    case MANIFEST_TEXT:
        read_text(r, f, value, at);
        break;
    case MANIFEST_FINDINGS:
        read_findings(r, f, value, at);
        break;
    case MANIFEST_SPLIT:
        member_put(at, f->size, find_split(r, f, value));
        break;
    case MANIFEST_DERIVED:
        compare_derived(r, f, value);
        break;
    case MANIFEST_OBJECT:
        read_object(r, f, value, object);
        break;
    case MANIFEST_LIST:
        read_list(r, f, value);
        break;
    }
}

static void
read_fields(struct manifest_reader *r, const char *where, const json_t *from, const struct manifest_field *fields,
            void *object)
{
    const char *outer = r->where;
    const struct manifest_field *f;

    r->where = where;
    for (f = fields; f->key && r->status == CHEX_OK; f++) {
        const json_t *value = json_object_get(from, f->key);

        if (value || !f->optional || (f->type == MANIFEST_FINDINGS && r->m->layout.labels.unknown))
            read_field(r, f, value, object);
    }
    r->where = outer;
}

/* ---- all together ---------------------------------------------------------------------------------------------- */

/* Check the version first: the rules of this format do not apply to newer formats. */
static void
read_format(struct manifest_reader *r, const json_t *top)
{
    const json_t *format = json_object_get(top, "format");

    if (!json_is_integer(format) || json_integer_value(format) < 1)
        fault(r, "format", "a whole number from 1 on: not the manifest of a data set");
    else if (json_integer_value(format) > MANIFEST_FORMAT)
        r->status = error_set(r->err, CHEX_ERR_INCOMPATIBLE, "format %lld, this build reads up to %d",
                              (long long)json_integer_value(format), MANIFEST_FORMAT);
}

/* Read the findings first: the layout of the record and the numbers of the splits depend on them. */
static void
read_labels(struct manifest_reader *r, const json_t *top)
{
    const json_t *list = json_object_get(top, "labels");
    struct chex_bytes name[FINDINGS_MAX];
    size_t count = json_array_size(list), i;

    if (count == 0 || count > FINDINGS_MAX)
        fault(r, "labels", "a list of 1 to 254 findings");
    for (i = 0; r->status == CHEX_OK && i < count; i++) {
        const json_t *text = json_array_get(list, i);

        name[i] = (struct chex_bytes){json_string_value(text), json_string_length(text)};
        if (!name[i].data)
            fault(r, "labels", "a list of texts");
    }
    if (r->status != CHEX_OK)
        return;
    r->status = findings_make(name, count, &r->m->own, r->err);
    if (r->status == CHEX_ERR_USAGE)
        r->status = error_context(r->err, CHEX_ERR_DAMAGED, "labels");
    r->m->findings = r->m->own;
}

enum chex_status
manifest_read(const json_t *top, struct manifest *out, struct chex_error *err)
{
    struct manifest_reader r = {.m = out, .where = "", .err = err};

    read_format(&r, top);
    if (r.status == CHEX_OK)
        read_labels(&r, top);
    read_fields(&r, "", top, manifest_fields, out);
    return r.status == CHEX_OK ? manifest_check(out, err) : r.status;
}

static const struct parse_bounds bounds = {.size = MANIFEST_MAX, .depth = MAX_DEPTH, .values = MAX_VALUES};

enum chex_status
manifest_parse(const uint8_t *text, size_t size, struct manifest *out, struct chex_error *err)
{
    json_t *top;
    enum chex_status status = parse_json(text, size, &bounds, &top, err);

    if (status == CHEX_OK)
        status = manifest_read(top, out, err);
    if (status == CHEX_OK)
        status = json_sum_check(top, MANIFEST_SUM_KEY, text, size, err); /* older manifests have none */
    json_decref(top);
    return status;
}

void
manifest_release(struct manifest *m)
{
    free(m->split);
    free(m->shard);
    free(m->source);
    free(m->withdrawal);
    arena_release(&m->strings);
    findings_release(&m->own);
    *m = (struct manifest){0};
}
