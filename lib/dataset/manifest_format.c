/*
 * manifest_format.c - writes the text of a manifest; see manifest.h and schemas/README.md
 *
 * The text is canonical: a fixed order of keys, an indent of 2, reals with 17 digits, a newline at the end.  jansson
 * writes numbers without the locale's decimal comma.  So equal data sets have manifests with equal bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/manifest_json.h"

#include "base/json.h"
#include "base/json_sum.h"
#include "base/member.h"

#include <math.h>
#include <string.h>

/*
 * The functions below return NULL when out of memory.  jansson's setters take ownership of a value, and fail for NULL.
 */
static json_t *format_object(const struct manifest *m, const struct manifest_field *fields, const void *object);

static json_t *
format_findings(const struct findings *findings, const uint64_t *number)
{
    json_t *object = json_object();
    unsigned i;

    for (i = 0; i < findings->count; i++) {
        if (json_object_set_new(object, findings->name[i], json_integer((json_int_t)number[i])) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* A list that is too long is formatted as an empty list, which manifest_read() refuses. */
static json_t *
format_list(const struct manifest *m, const struct manifest_field *f)
{
    json_t *array = json_array();
    const char *element;
    unsigned i, count;

    memcpy(&element, (const char *)m + f->offset, sizeof(element));
    memcpy(&count, (const char *)m + f->count, sizeof(count));
    for (i = 0; i < count && count <= f->max; i++) {
        if (json_array_append_new(array, format_object(m, f->fields, element + i * f->element)) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static const char *
text_at(const struct manifest_field *f, const void *at)
{
    return f->size == sizeof(char *) ? *(const char *const *)at : at;
}

static json_t *
format_field(const struct manifest *m, const struct manifest_field *f, const void *object)
{
    const void *at = (const char *)object + f->offset;
    unsigned split;
    double real;

    switch (f->type) {
    case MANIFEST_NUMBER:
        return json_integer((json_int_t)member_get(at, f->size));
    case MANIFEST_REAL:
        real = *(const double *)at;
        return isfinite(real) ? json_real(real) : json_null();
    case MANIFEST_BOOL:
        return json_boolean(*(const bool *)at);
    case MANIFEST_TEXT:
        return text_json(text_at(f, at));
    case MANIFEST_FINDINGS:
        return format_findings(&m->findings, at);
    case MANIFEST_SPLIT:
        split = *(const unsigned *)at;
        return split < m->split_count ? text_json(m->split[split].name) : json_null();
    case MANIFEST_DERIVED:
        return f->fixed ? json_string(f->fixed) : f->derive(m);
    case MANIFEST_OBJECT:
        return format_object(m, f->fields, object);
    case MANIFEST_LIST:
        return format_list(m, f);
    }
    return NULL;
}

static bool
is_there(const struct manifest *m, const struct manifest_field *f, const void *object)
{
    const struct manifest_field *inner;
    bool there = !f->optional;

    if (f->optional && f->type == MANIFEST_TEXT)
        return text_at(f, (const char *)object + f->offset) != NULL;
    if (f->optional && f->type == MANIFEST_FINDINGS)
        return m->layout.labels.unknown;
    if (f->optional && f->type == MANIFEST_BOOL)
        return *(const bool *)((const char *)object + f->offset);
    if (f->optional && f->type == MANIFEST_NUMBER)
        return member_get((const char *)object + f->offset, f->size) > 0;
    if (f->optional && f->type == MANIFEST_LIST)
        return *(const unsigned *)((const char *)m + f->count) > 0;
    for (inner = f->fields; !there && inner->key; inner++) {
        const void *at = (const char *)object + inner->offset;

        there = inner->type == MANIFEST_TEXT ? text_at(inner, at) && text_at(inner, at)[0]
                                             : member_get(at, inner->size) > 0;
    }
    return there;
}

static json_t *
format_object(const struct manifest *m, const struct manifest_field *fields, const void *object)
{
    json_t *out = json_object();
    const struct manifest_field *f;

    for (f = fields; f->key; f++) {
        if (is_there(m, f, object) && json_object_set_new(out, f->key, format_field(m, f, object)) != 0) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

enum chex_status
manifest_format(const struct manifest *m, struct buffer *b, struct chex_error *err)
{
    json_t *top = format_object(m, manifest_fields, m);
    struct manifest again = {0};
    struct buffer text = {0};
    enum chex_status status = top ? manifest_read(top, &again, err) : error_memory(err);

    manifest_release(&again);
    if (status == CHEX_ERR_DAMAGED)
        status = error_context(err, CHEX_ERR_BUG, "the manifest to be written");
    if (status == CHEX_OK)
        status = append_json(top, JSON_INDENT(2) | JSON_REAL_PRECISION(17), &text, err);
    if (status == CHEX_OK)
        status = json_sum_add(&text, MANIFEST_SUM_KEY, err);
    if (status == CHEX_OK)
        status = buffer_append(b, text.data, text.size, err);
    buffer_release(&text);
    json_decref(top);
    return status;
}
