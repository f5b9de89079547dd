/*
 * safetensors.c - reads safetensors files; see safetensors.h and safetensors_write.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/safetensors.h"

#include "base/ascii.h"
#include "base/json.h"
#include "base/number_format.h"
#include "io/content.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define METADATA "__metadata__"

static const struct parse_bounds bounds = {.size = SAFETENSORS_HEADER_MAX, .depth = 4, .values = 1000000};

/* ---- types ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [DTYPE_F64] = {"F64", 8}, [DTYPE_F32] = {"F32", 4},   [DTYPE_F16] = {"F16", 2}, [DTYPE_BF16] = {"BF16", 2},
    [DTYPE_I64] = {"I64", 8}, [DTYPE_I32] = {"I32", 4},   [DTYPE_I16] = {"I16", 2}, [DTYPE_I8] = {"I8", 1},
    [DTYPE_U8] = {"U8", 1},   [DTYPE_BOOL] = {"BOOL", 1},
};

#define TYPES (sizeof(types) / sizeof(types[0]))

size_t
dtype_size(enum dtype type)
{
    return types[type].size;
}

const char *
dtype_name(enum dtype type)
{
    return types[type].name;
}

/* ---- header ---------------------------------------------------------------------------------------------------- */

static char *
keep(struct safetensors *s, const char *text)
{
    return arena_copy(&s->strings, text, strlen(text));
}

/* Longest text of a file in an error message. */
#define SHOWN 100

static char *
show(const char *text, char out[SHOWN])
{
    return ascii_escape(text, strlen(text), out, SHOWN);
}

static enum chex_status
bad_tensor(const char *name, const char *why, struct chex_error *err)
{
    char shown[SHOWN];

    return error_set(err, CHEX_ERR_DAMAGED, "tensor '%s': %s", show(name, shown), why);
}

static enum chex_status
read_type(const char *name, const json_t *type, struct tensor_entry *e, struct chex_error *err)
{
    const char *text = json_string_value(type);
    char shown[SHOWN], dtype[SHOWN];
    size_t i;

    for (i = 0; text && i < TYPES; i++) {
        if (strcmp(text, types[i].name) == 0) {
            e->type = (enum dtype)i;
            return CHEX_OK;
        }
    }
    return text ? error_set(err, CHEX_ERR_UNSUPPORTED, "tensor '%s' has the dtype '%s'", show(name, shown),
                            show(text, dtype))
                : bad_tensor(name, "no dtype", err);
}

static bool
is_offset(const json_t *v)
{
    return json_is_integer(v) && json_integer_value(v) >= 0;
}

/* data: offset of the values in the file. */
static enum chex_status
read_entry(struct safetensors *s, const char *name, const json_t *object, uint64_t data, struct tensor_entry *e,
           struct chex_error *err)
{
    const json_t *shape = json_object_get(object, "shape"), *offsets = json_object_get(object, "data_offsets");
    uint64_t first, last, bytes;
    char shown[SHOWN];
    enum chex_status status = read_type(name, json_object_get(object, "dtype"), e, err);
    size_t i;

    if (status != CHEX_OK)
        return status;
    if (!json_is_array(shape) || json_array_size(shape) > SAFETENSORS_RANK)
        return bad_tensor(name, "its shape is not a list of at most 8 numbers", err);
    e->rank = (unsigned)json_array_size(shape);
    e->count = 1;
    for (i = 0; i < e->rank; i++) {
        if (!is_offset(json_array_get(shape, i)))
            return bad_tensor(name, "its shape is not a list of numbers", err);
        e->shape[i] = (uint64_t)json_integer_value(json_array_get(shape, i));
        if (__builtin_mul_overflow(e->count, e->shape[i], &e->count))
            return bad_tensor(name, "its shape overflows", err);
    }
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 || !is_offset(json_array_get(offsets, 0)) ||
        !is_offset(json_array_get(offsets, 1)))
        return bad_tensor(name, "its data_offsets are not two numbers", err);
    first = (uint64_t)json_integer_value(json_array_get(offsets, 0));
    last = (uint64_t)json_integer_value(json_array_get(offsets, 1));
    if (__builtin_mul_overflow(e->count, (uint64_t)types[e->type].size, &bytes) || last < first ||
        last - first != bytes)
        return bad_tensor(name, "its bytes are not those of its shape", err);
    if (last > s->size - data)
        return error_set(err, CHEX_ERR_TRUNCATED, "tensor '%s' ends %s bytes after the end of the file",
                         show(name, shown), COUNT_TEXT(last - (s->size - data)));
    e->offset = data + first;
    e->name = keep(s, name);
    return e->name ? CHEX_OK : error_memory(err);
}

static enum chex_status
read_metadata(struct safetensors *s, json_t *object, struct chex_error *err)
{
    const char *key;
    json_t *value;
    char shown[SHOWN];

    if (!json_is_object(object))
        return error_set(err, CHEX_ERR_DAMAGED, METADATA " is not an object");
    s->metadata = calloc(json_object_size(object) + 1, sizeof(*s->metadata));
    if (!s->metadata)
        return error_memory(err);
    json_object_foreach (object, key, value) {
        struct metadata *m = &s->metadata[s->metadata_count];

        if (!json_is_string(value))
            return error_set(err, CHEX_ERR_DAMAGED, METADATA ": '%s' is not a string", show(key, shown));
        m->key = keep(s, key);
        m->value = keep(s, json_string_value(value));
        if (!m->key || !m->value)
            return error_memory(err);
        s->metadata_count++;
    }
    return CHEX_OK;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct tensor_entry *)a)->name, ((const struct tensor_entry *)b)->name);
}

static int
by_offset(const void *a, const void *b)
{
    const struct tensor_entry *x = a, *y = b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->count < y->count ? -1 : x->count > y->count;
}

static int
by_key(const void *a, const void *b)
{
    return strcmp(((const struct metadata *)a)->key, ((const struct metadata *)b)->key);
}

/* Check that the tensors fill the file after the header: no overlap, no gap, no trailing bytes. */
static enum chex_status
check_places(struct safetensors *s, uint64_t data, struct chex_error *err)
{
    uint64_t at = data;
    size_t i;

    qsort(s->entry, s->count, sizeof(*s->entry), by_offset);
    for (i = 0; i < s->count; i++) {
        const struct tensor_entry *e = &s->entry[i];

        if (e->offset != at)
            return bad_tensor(e->name, e->offset < at ? "it overlaps another one" : "there is a hole before it", err);
        at += e->count * types[e->type].size;
    }
    if (at != s->size)
        return error_set(err, CHEX_ERR_DAMAGED, "%s bytes after the last tensor", COUNT_TEXT(s->size - at));
    qsort(s->entry, s->count, sizeof(*s->entry), by_name);
    return CHEX_OK;
}

static enum chex_status
read_entries(struct safetensors *s, json_t *top, uint64_t data, struct chex_error *err)
{
    const char *name;
    json_t *value;
    enum chex_status status = CHEX_OK;

    if (!json_is_object(top))
        return error_set(err, CHEX_ERR_DAMAGED, "its header is not a JSON object");
    s->entry = calloc(json_object_size(top) + 1, sizeof(*s->entry));
    if (!s->entry)
        return error_memory(err);
    json_object_foreach (top, name, value) {
        if (strcmp(name, METADATA) == 0)
            status = read_metadata(s, value, err);
        else
            status = read_entry(s, name, value, data, &s->entry[s->count++], err);
        if (status != CHEX_OK)
            return status;
    }
    if (s->metadata_count > 1)
        qsort(s->metadata, s->metadata_count, sizeof(*s->metadata), by_key);
    return check_places(s, data, err);
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

/* Say what the file is instead.  PyTorch's own format is a ZIP or a pickle. */
static enum chex_status
not_safetensors(const struct safetensors *s, struct chex_error *err)
{
    uint8_t head[CONTENT_LOOK];
    size_t got;
    const char *look;
    enum chex_status status = file_pread(s->fd, 0, head, sizeof(head), &got, err);

    if (status != CHEX_OK)
        return status;
    if (got >= 4 && (memcmp(head, "PK\3\4", 4) == 0 || head[0] == 0x80))
        return error_set(
            err, CHEX_ERR_NOT_IMAGE,
            "this is a file of torch.save(), which only chex-train --init reads (chex-train(1), WEIGHTS FROM PYTORCH)");
    look = got > 0 ? content_look(head, got) : NULL;
    return error_set(err, CHEX_ERR_NOT_IMAGE, "this is not a safetensors file%s%s", look ? ": " : "", look ? look : "");
}

static enum chex_status
read_header(struct safetensors *s, struct chex_error *err)
{
    uint8_t head[8];
    struct buffer text = {0};
    uint64_t length = 0;
    json_t *top = NULL;
    size_t got, i;
    enum chex_status status = file_pread(s->fd, 0, head, sizeof(head), &got, err);

    if (status != CHEX_OK)
        return status;
    if (got < sizeof(head))
        return s->size == 0 ? error_set(err, CHEX_ERR_EMPTY, "the file is empty") : not_safetensors(s, err);
    for (i = 0; i < sizeof(head); i++)
        length |= (uint64_t)head[i] << (8 * i);
    if (length > SAFETENSORS_HEADER_MAX)
        return not_safetensors(s, err);
    if (length > s->size - sizeof(head))
        return error_set(err, CHEX_ERR_TRUNCATED, "the file ends within its header");
    status = buffer_reserve(&text, length + 1, err);
    if (status == CHEX_OK)
        status = file_pread(s->fd, sizeof(head), text.data, length, &got, err);
    if (status == CHEX_OK && got < length)
        status = error_set(err, CHEX_ERR_TRUNCATED, "the file ends within its header");
    if (status == CHEX_OK && (length == 0 || text.data[0] != '{'))
        status = not_safetensors(s, err);
    if (status == CHEX_OK)
        status = parse_json(text.data, length, &bounds, &top, err);
    if (status == CHEX_OK)
        status = read_entries(s, top, sizeof(head) + length, err);
    json_decref(top);
    buffer_release(&text);
    return status;
}

enum chex_status
safetensors_open(int folder_fd, const char *path, struct safetensors *out, struct chex_error *err)
{
    enum chex_status status;

    *out = (struct safetensors){.fd = -1};
    status = file_open_input(folder_fd, path, &out->fd, &out->size, err);
    if (status != CHEX_OK) {
        out->fd = -1;
        return status;
    }
    return read_header(out, err);
}

void
safetensors_close(struct safetensors *s)
{
    if (s->fd >= 0)
        close(s->fd);
    free(s->entry);
    free(s->metadata);
    arena_release(&s->strings);
    *s = (struct safetensors){.fd = -1};
}

enum chex_status
safetensors_index(struct safetensors *s, struct chex_error *err)
{
    size_t i;

    if (s->count > 0)
        qsort(s->entry, s->count, sizeof(*s->entry), by_name);
    for (i = 1; i < s->count; i++)
        if (strcmp(s->entry[i - 1].name, s->entry[i].name) == 0)
            return bad_tensor(s->entry[i].name, "it occurs twice", err);
    return CHEX_OK;
}

const struct tensor_entry *
safetensors_find(const struct safetensors *s, const char *name)
{
    struct tensor_entry key = {.name = name};

    return s->count > 0 ? bsearch(&key, s->entry, s->count, sizeof(*s->entry), by_name) : NULL;
}

const char *
safetensors_metadata(const struct safetensors *s, const char *key)
{
    struct metadata wanted = {.key = key}, *found;

    if (s->metadata_count == 0)
        return NULL;
    found = bsearch(&wanted, s->metadata, s->metadata_count, sizeof(*s->metadata), by_key);
    return found ? found->value : NULL;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

enum chex_status
safetensors_read_part(const struct safetensors *s, const struct tensor_entry *e, uint64_t first, size_t count,
                      void *out, struct chex_error *err)
{
    size_t size = types[e->type].size, got;
    enum chex_status status = file_pread(s->fd, e->offset + first * size, out, count * size, &got, err);

    if (status == CHEX_OK && got < count * size)
        status = error_set(err, CHEX_ERR_TRUNCATED, "the file became shorter");
    return status;
}

enum chex_status
safetensors_read_raw(const struct safetensors *s, const struct tensor_entry *e, void *out, struct chex_error *err)
{
    return safetensors_read_part(s, e, 0, e->count, out, err);
}

/* Convert IEEE half precision; every value is exact as a float. */
static float
half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = h >> 10 & 31, fraction = h & 1023, bits;
    float f;

    if (exponent == 0) {
        f = (float)fraction * 0x1p-24f;
        return sign ? -f : f;
    }
    bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

double
dtype_value(enum dtype type, const uint8_t *p)
{
    uint16_t half;
    int64_t i64;
    int32_t i32;
    int16_t i16;
    double d;
    float f;

    switch (type) {
    case DTYPE_F64:
        memcpy(&d, p, sizeof(d));
        return d;
    case DTYPE_F32:
        memcpy(&f, p, sizeof(f));
        return (double)f;
    case DTYPE_F16:
        memcpy(&half, p, sizeof(half));
        return (double)half_to_float(half);
    case DTYPE_BF16:
        memcpy(&half, p, sizeof(half));
        memcpy(&f, &(uint32_t){(uint32_t)half << 16}, sizeof(f));
        return (double)f;
    case DTYPE_I64:
        memcpy(&i64, p, sizeof(i64));
        return (double)i64;
    case DTYPE_I32:
        memcpy(&i32, p, sizeof(i32));
        return i32;
    case DTYPE_I16:
        memcpy(&i16, p, sizeof(i16));
        return i16;
    case DTYPE_I8:
        return (int8_t)*p;
    case DTYPE_U8:
    case DTYPE_BOOL:
        break;
    }
    return *p;
}

#define PIECE 8192 /* bytes that are read at once */

/* Returns the offset in values of the next value row by row; `index` is that of this one. */
static uint64_t
next_place(const struct tensor_entry *e, uint64_t index[SAFETENSORS_RANK], uint64_t place)
{
    unsigned i;

    for (i = e->rank; i-- > 0;) {
        place += e->stride[i];
        if (++index[i] < e->shape[i])
            break;
        place -= e->stride[i] * index[i];
        index[i] = 0;
    }
    return place;
}

/* Read a tensor whose values are not row by row, such as one of PyTorch's channels_last, through a window. */
static enum chex_status
read_strided(const struct safetensors *s, const struct tensor_entry *e, float *out, struct chex_error *err)
{
    size_t size = types[e->type].size, values = 0, got;
    uint64_t index[SAFETENSORS_RANK] = {0}, place = 0, first = 0;
    uint8_t piece[PIECE];
    enum chex_status status;
    size_t i;

    for (i = 0; i < e->count; i++, place = next_place(e, index, place)) {
        if (place < first || place - first >= values) {
            first = place;
            status = file_pread(s->fd, e->offset + first * size, piece, sizeof(piece), &got, err);
            values = got / size;
            if (status == CHEX_OK && values == 0)
                status = error_set(err, CHEX_ERR_TRUNCATED, "the file became shorter");
            if (status != CHEX_OK)
                return status;
        }
        out[i] = (float)dtype_value(e->type, piece + (place - first) * size);
    }
    return CHEX_OK;
}

enum chex_status
safetensors_read_floats(const struct safetensors *s, const struct tensor_entry *e, float *out, struct chex_error *err)
{
    size_t size = types[e->type].size, at;
    uint8_t piece[PIECE];
    char shown[SHOWN];
    enum chex_status status = CHEX_OK;

    if (e->type > DTYPE_BF16)
        return error_set(err, CHEX_ERR_UNSUPPORTED, "tensor '%s' is of type %s, not a floating point one",
                         show(e->name, shown), types[e->type].name);
    if (e->strided)
        return read_strided(s, e, out, err);
    if (e->type == DTYPE_F32)
        return safetensors_read_raw(s, e, out, err);
    for (at = 0; status == CHEX_OK && at < e->count;) {
        size_t values = e->count - at < sizeof(piece) / size ? e->count - at : sizeof(piece) / size, i;

        status = safetensors_read_part(s, e, at, values, piece, err);
        for (i = 0; status == CHEX_OK && i < values; i++)
            out[at + i] = (float)dtype_value(e->type, piece + i * size);
        at += values;
    }
    return status;
}
