/*
 * pickle_tensor.c - the names of a pickle that make tensors, and nothing else; see pickle.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/pickle_private.h"

#include "base/ascii.h"

#include <stdlib.h>
#include <string.h>

enum role { DICTIONARY, TENSOR, PARAMETER, STORAGE };

static const struct {
    const char *module, *name;
    enum role role;
    enum dtype type; /* STORAGE */
} names[] = {
    {"collections", "OrderedDict", DICTIONARY, DTYPE_F32},
    {"torch._utils", "_rebuild_tensor_v2", TENSOR, DTYPE_F32},
    {"torch._utils", "_rebuild_tensor", TENSOR, DTYPE_F32},
    {"torch._utils", "_rebuild_parameter", PARAMETER, DTYPE_F32},
    {"torch", "DoubleStorage", STORAGE, DTYPE_F64},
    {"torch", "FloatStorage", STORAGE, DTYPE_F32},
    {"torch", "HalfStorage", STORAGE, DTYPE_F16},
    {"torch", "BFloat16Storage", STORAGE, DTYPE_BF16},
    {"torch", "LongStorage", STORAGE, DTYPE_I64},
    {"torch", "IntStorage", STORAGE, DTYPE_I32},
    {"torch", "ShortStorage", STORAGE, DTYPE_I16},
    {"torch", "CharStorage", STORAGE, DTYPE_I8},
    {"torch", "ByteStorage", STORAGE, DTYPE_U8},
    {"torch", "BoolStorage", STORAGE, DTYPE_BOOL},
};

#define NAMES (sizeof(names) / sizeof(names[0]))

enum chex_status
pickle_name(const char *module, const char *name, struct pickle_value *value, struct chex_error *err)
{
    char shown[2][100];
    size_t i;

    for (i = 0; i < NAMES; i++) {
        bool cuda = names[i].role == STORAGE && strcmp(module, "torch.cuda") == 0;

        if ((cuda || strcmp(module, names[i].module) == 0) && strcmp(name, names[i].name) == 0) {
            *value = (struct pickle_value){.kind = PICKLE_NAME, .number = (int64_t)i};
            return CHEX_OK;
        }
    }
    return error_set(err, CHEX_ERR_UNSUPPORTED,
                     "it needs '%s.%s', which is not a tensor, so it is not loaded: save model.state_dict() alone",
                     ascii_escape(module, strlen(module), shown[0], sizeof(shown[0])),
                     ascii_escape(name, strlen(name), shown[1], sizeof(shown[1])));
}

static enum chex_status
bad(const char *why, struct chex_error *err)
{
    return error_set(err, CHEX_ERR_DAMAGED, "a tensor of the pickle: %s", why);
}

/* Returns element i of a list if it has this kind, else NULL. */
static const struct pickle_value *
element(const struct pickle *p, const struct pickle_value *list, size_t i, enum pickle_kind kind)
{
    const struct pickle_value *v = list && list->kind == PICKLE_LIST && i < list->items.count
                                       ? &p->value[list->items.value[i]]
                                       : NULL;

    return v && v->kind == kind ? v : NULL;
}

/* ---- a tensor ---------------------------------------------------------------------------------------------------- */

static bool
read_numbers(const struct pickle *p, const struct pickle_value *list, uint64_t *out)
{
    size_t i;

    for (i = 0; i < list->items.count; i++) {
        const struct pickle_value *v = element(p, list, i, PICKLE_NUMBER);

        if (!v || v->number < 0)
            return false;
        out[i] = (uint64_t)v->number;
    }
    return true;
}

/* Check that the tensor is inside of its storage, and count its values. */
static enum chex_status
check_extent(struct pickle_tensor *t, uint64_t stored, struct chex_error *err)
{
    uint64_t last = t->offset, step;
    unsigned i;

    t->count = 1;
    for (i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(t->count, t->shape[i], &t->count))
            return bad("its shape overflows", err);
    if (t->count == 0)
        return t->offset <= stored ? CHEX_OK : bad("it begins after its storage", err);
    for (i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(t->shape[i] - 1, t->stride[i], &step) || __builtin_add_overflow(last, step, &last))
            return bad("its strides overflow", err);
    return last < stored ? CHEX_OK : bad("it is larger than its storage", err);
}

/* (storage, offset, shape, strides, ...) */
static enum chex_status
make_tensor(const struct pickle *p, const struct pickle_value *arguments, struct pickle_value *made,
            struct chex_error *err)
{
    const struct pickle_value *storage = element(p, arguments, 0, PICKLE_STORAGE),
                              *offset = element(p, arguments, 1, PICKLE_NUMBER),
                              *shape = element(p, arguments, 2, PICKLE_LIST),
                              *stride = element(p, arguments, 3, PICKLE_LIST);
    struct pickle_tensor *t;
    enum chex_status status = CHEX_OK;

    if (!storage || !offset || offset->number < 0 || !shape || !stride)
        return bad("not a storage, an offset, a shape and strides", err);
    if (shape->items.count > SAFETENSORS_RANK || stride->items.count != shape->items.count)
        return bad("its shape is not a list of at most 8 numbers, with as many strides", err);
    t = calloc(1, sizeof(*t));
    if (!t)
        return error_memory(err);
    t->storage = arguments->items.value[0];
    t->offset = (uint64_t)offset->number;
    t->rank = (unsigned)shape->items.count;
    if (!read_numbers(p, shape, t->shape) || !read_numbers(p, stride, t->stride))
        status = bad("its shape or its strides are not numbers from 0 on", err);
    if (status == CHEX_OK)
        status = check_extent(t, storage->storage.count, err);
    if (status == CHEX_OK)
        *made = (struct pickle_value){.kind = PICKLE_TENSOR, .tensor = t};
    else
        free(t);
    return status;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* OrderedDict() is empty; Python 2 wrote OrderedDict([[key, value], ...]). */
static enum chex_status
make_dictionary(struct pickle *p, const struct pickle_value *arguments, struct pickle_value *made,
                struct chex_error *err)
{
    const struct pickle_value *pairs = element(p, arguments, 0, PICKLE_LIST);
    size_t count = pairs ? pairs->items.count : 0, i;
    uint32_t *value;
    enum chex_status status;

    *made = (struct pickle_value){.kind = PICKLE_DICT};
    if (arguments->items.count > 0 && !pairs)
        return bad("a dictionary of something other than pairs", err);
    if (count == 0)
        return CHEX_OK;
    status = pickle_count_elements(p, 2 * count, err);
    if (status != CHEX_OK)
        return status;
    value = calloc(count, 2 * sizeof(*value));
    if (!value)
        return error_memory(err);
    for (i = 0; i < count; i++) {
        const struct pickle_value *pair = element(p, pairs, i, PICKLE_LIST);

        if (!pair || pair->items.count != 2) {
            free(value);
            return bad("a dictionary of something other than pairs", err);
        }
        memcpy(value + 2 * i, pair->items.value, 2 * sizeof(*value));
    }
    made->items.value = value;
    made->items.count = made->items.capacity = 2 * count;
    return CHEX_OK;
}

enum chex_status
pickle_call(struct pickle *p, const struct pickle_value *name, const struct pickle_value *arguments, uint32_t *result,
            struct pickle_value *made, struct chex_error *err)
{
    switch (names[name->number].role) {
    case DICTIONARY:
        return make_dictionary(p, arguments, made, err);
    case TENSOR:
        return make_tensor(p, arguments, made, err);
    case PARAMETER:
        if (!element(p, arguments, 0, PICKLE_TENSOR))
            return bad("a parameter without its tensor", err);
        *result = arguments->items.value[0];
        return CHEX_OK;
    case STORAGE:
        break;
    }
    return error_set(err, CHEX_ERR_UNSUPPORTED, "it calls '%s.%s', which makes no tensor: not loaded",
                     names[name->number].module, names[name->number].name);
}

enum chex_status
pickle_storage(const struct pickle *p, const struct pickle_value *id, struct pickle_value *made, struct chex_error *err)
{
    const struct pickle_value *word = element(p, id, 0, PICKLE_TEXT), *type = element(p, id, 1, PICKLE_NAME),
                              *key = element(p, id, 2, PICKLE_TEXT), *count = element(p, id, 4, PICKLE_NUMBER);

    if (!word || strcmp(word->text.data, "storage") != 0 || !type || names[type->number].role != STORAGE || !key ||
        !count || count->number < 0)
        return bad("a storage without type, key and size", err);
    if (id->items.count > 5 && !element(p, id, 5, PICKLE_NONE))
        return error_set(err, CHEX_ERR_UNSUPPORTED, "a storage that is a part of another one");
    *made = (struct pickle_value){.kind = PICKLE_STORAGE};
    made->storage.key = key->text.data;
    made->storage.count = (uint64_t)count->number;
    made->storage.type = names[type->number].type;
    return CHEX_OK;
}
