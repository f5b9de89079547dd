/*
 * pickle.c - the stack machine of pickles; see pickle.h
 *
 * The operations are those of Python's Lib/pickletools.py that torch.save() needs with any protocol from 2 on.
 * Operations that make an object of a class (NEWOBJ, INST, OBJ) or look one up (EXT1, PERSID) are refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/pickle_private.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MOST 256 /* bytes of a module or a name */

/* ---- values ------------------------------------------------------------------------------------------------------ */

static enum chex_status
damaged(const struct pickle_machine *m, const char *why)
{
    return error_set(m->err, CHEX_ERR_DAMAGED, "the pickle is damaged at byte %zu: %s", m->at, why);
}

static bool
is_container(const struct pickle_value *v)
{
    return v->kind == PICKLE_LIST || v->kind == PICKLE_DICT;
}

static enum chex_status
add_value(struct pickle *p, struct pickle_value value, uint32_t *number, struct chex_error *err)
{
    struct pickle_value *grown;

    if (p->count >= PICKLE_VALUES)
        return error_set(err, CHEX_ERR_LIMIT, "the pickle has more than %u values", PICKLE_VALUES);
    grown = array_grow(p->value, &p->capacity, p->count, sizeof(*p->value));
    if (!grown)
        return error_memory(err);
    p->value = grown;
    *number = (uint32_t)p->count;
    p->value[p->count++] = value;
    return CHEX_OK;
}

/* Put the number of a value on the stack. */
static enum chex_status
push_number(struct pickle_machine *m, uint32_t number)
{
    uint32_t *grown = array_grow(m->stack, &m->stack_capacity, m->depth, sizeof(*m->stack));

    if (!grown)
        return error_memory(m->err);
    m->stack = grown;
    m->stack[m->depth++] = number;
    return CHEX_OK;
}

enum chex_status
pickle_push(struct pickle_machine *m, struct pickle_value value)
{
    uint32_t number = 0;
    enum chex_status status = add_value(m->p, value, &number, m->err);

    if (status == CHEX_OK)
        return push_number(m, number);
    if (is_container(&value))
        free(value.items.value);
    if (value.kind == PICKLE_TENSOR)
        free(value.tensor);
    return status;
}

static enum chex_status
push_int(struct pickle_machine *m, int64_t number)
{
    return pickle_push(m, (struct pickle_value){.kind = PICKLE_NUMBER, .number = number});
}

static enum chex_status
push_kind(struct pickle_machine *m, enum pickle_kind kind)
{
    return pickle_push(m, (struct pickle_value){.kind = kind});
}

/* Returns the value at this depth below the top, NULL if the stack is too short or has a mark there. */
static struct pickle_value *
peek(const struct pickle_machine *m, size_t below)
{
    struct pickle_value *v = below < m->depth ? &m->p->value[m->stack[m->depth - 1 - below]] : NULL;

    return v && v->kind != PICKLE_MARK ? v : NULL;
}

static enum chex_status
append(struct pickle_machine *m, struct pickle_value *container, const uint32_t *number, size_t count)
{
    enum chex_status status = pickle_count_elements(m->p, count, m->err);
    size_t i;

    for (i = 0; status == CHEX_OK && i < count; i++) {
        uint32_t *grown = array_grow(container->items.value, &container->items.capacity, container->items.count,
                                     sizeof(*number));

        if (!grown)
            return error_memory(m->err);
        container->items.value = grown;
        container->items.value[container->items.count++] = number[i];
    }
    return status;
}

/* ---- bytes of the program ---------------------------------------------------------------------------------------- */

static bool
take(struct pickle_machine *m, size_t count, const uint8_t **bytes)
{
    if (count > m->size - m->at)
        return false;
    *bytes = m->data + m->at;
    m->at += count;
    return true;
}

static enum chex_status
truncated(const struct pickle_machine *m)
{
    return error_set(m->err, CHEX_ERR_TRUNCATED, "the pickle ends within an operation");
}

static enum chex_status
take_number(struct pickle_machine *m, size_t bytes, uint64_t *number)
{
    const uint8_t *from;
    size_t i;

    if (!take(m, bytes, &from))
        return truncated(m);
    *number = 0;
    for (i = 0; i < bytes; i++)
        *number |= (uint64_t)from[i] << (8 * i);
    return CHEX_OK;
}

static enum chex_status
push_text(struct pickle_machine *m, size_t length_bytes)
{
    struct pickle_value v = {.kind = PICKLE_TEXT};
    const uint8_t *bytes;
    uint64_t length = 0;
    enum chex_status status = take_number(m, length_bytes, &length);

    if (status != CHEX_OK)
        return status;
    if (length > m->size - m->at || !take(m, (size_t)length, &bytes))
        return truncated(m);
    v.text.size = (size_t)length;
    v.text.data = arena_copy(&m->p->strings, (const char *)bytes, v.text.size);
    return v.text.data ? pickle_push(m, v) : error_memory(m->err);
}

/* LONG1: a little-endian integer in two's complement. */
static enum chex_status
push_long(struct pickle_machine *m)
{
    const uint8_t *bytes;
    uint64_t length = 0, number = 0;
    size_t i;
    enum chex_status status = take_number(m, 1, &length);

    if (status != CHEX_OK)
        return status;
    if (length > 8) {
        m->at--;
        return push_text(m, 1);
    }
    if (!take(m, (size_t)length, &bytes))
        return truncated(m);
    for (i = 0; i < 8; i++)
        number |= (uint64_t)(i < length ? bytes[i] : length > 0 && bytes[length - 1] & 0x80 ? 0xff : 0) << (8 * i);
    return push_int(m, (int64_t)number);
}

/* Copy the text up to the next LF. */
static enum chex_status
take_line(struct pickle_machine *m, char out[NAME_MOST])
{
    const uint8_t *from = m->data + m->at, *end = memchr(from, '\n', m->size - m->at);
    size_t length = end ? (size_t)(end - from) : 0;

    if (!end)
        return truncated(m);
    if (length >= NAME_MOST)
        return damaged(m, "a name of more than 255 bytes");
    if (memchr(from, '\0', length))
        return damaged(m, "a name with a zero byte");
    memcpy(out, from, length);
    out[length] = '\0';
    m->at += length + 1;
    return CHEX_OK;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* Replace everything above the last mark by a list or a dictionary of it. */
static enum chex_status
gather(struct pickle_machine *m, enum pickle_kind kind)
{
    struct pickle_value made = {.kind = kind};
    size_t mark = m->depth;
    enum chex_status status;

    while (mark > 0 && m->p->value[m->stack[mark - 1]].kind != PICKLE_MARK)
        mark--;
    if (mark == 0)
        return damaged(m, "no mark");
    if (kind == PICKLE_DICT && (m->depth - mark) % 2 != 0)
        return damaged(m, "a key without a value");
    status = append(m, &made, m->stack + mark, m->depth - mark);
    if (status != CHEX_OK) {
        free(made.items.value);
        return status;
    }
    m->depth = mark - 1;
    return pickle_push(m, made);
}

/* Make a tuple of the uppermost values. */
static enum chex_status
make_tuple(struct pickle_machine *m, size_t count)
{
    struct pickle_value made = {.kind = PICKLE_LIST};
    enum chex_status status;
    size_t i;

    for (i = 0; i < count; i++)
        if (!peek(m, i))
            return damaged(m, "the stack is too short");
    status = append(m, &made, m->stack + m->depth - count, count);
    if (status != CHEX_OK) {
        free(made.items.value);
        return status;
    }
    m->depth -= count;
    return pickle_push(m, made);
}

/* Add the uppermost values, or all above the last mark, to the list or dictionary below them. */
static enum chex_status
extend(struct pickle_machine *m, enum pickle_kind kind, size_t count, bool to_mark)
{
    size_t above = 0, base;
    struct pickle_value *to;
    enum chex_status status;

    if (to_mark) {
        while (above < m->depth && peek(m, above))
            above++;
        count = above;
    }
    base = count + (to_mark ? 1 : 0);
    if (base >= m->depth || (!to_mark && !peek(m, 0)) || (!to_mark && count > 1 && !peek(m, 1)))
        return damaged(m, "the stack is too short");
    to = &m->p->value[m->stack[m->depth - 1 - base]];
    if (to->kind != kind || (kind == PICKLE_DICT && count % 2 != 0))
        return damaged(m, kind == PICKLE_DICT ? "items of something other than a dictionary"
                                              : "elements of something other than a list");
    status = append(m, to, m->stack + m->depth - count, count);
    m->depth -= base;
    return status;
}

static enum chex_status
put_memo(struct pickle_machine *m, uint64_t index)
{
    if (!peek(m, 0))
        return damaged(m, "the stack is empty");
    if (index >= PICKLE_VALUES)
        return error_set(m->err, CHEX_ERR_LIMIT, "the pickle has more than %u values", PICKLE_VALUES);
    while (m->memo_count <= index) {
        uint32_t *grown = array_grow(m->memo, &m->memo_capacity, m->memo_count, sizeof(*m->memo));

        if (!grown)
            return error_memory(m->err);
        m->memo = grown;
        m->memo[m->memo_count++] = UINT32_MAX;
    }
    m->memo[index] = m->stack[m->depth - 1];
    return CHEX_OK;
}

static enum chex_status
put_memo_of(struct pickle_machine *m, size_t bytes)
{
    uint64_t index = 0;
    enum chex_status status = take_number(m, bytes, &index);

    return status == CHEX_OK ? put_memo(m, index) : status;
}

static enum chex_status
get_memo(struct pickle_machine *m, size_t bytes)
{
    uint64_t index = 0;
    enum chex_status status = take_number(m, bytes, &index);

    if (status != CHEX_OK)
        return status;
    if (index >= m->memo_count || m->memo[index] == UINT32_MAX)
        return damaged(m, "it uses a value that it has not kept");
    return push_number(m, m->memo[index]);
}

static enum chex_status
push_name(struct pickle_machine *m, const char *module, const char *name)
{
    struct pickle_value v;
    enum chex_status status = pickle_name(module, name, &v, m->err);

    return status == CHEX_OK ? pickle_push(m, v) : status;
}

static enum chex_status
take_name(struct pickle_machine *m)
{
    char module[NAME_MOST], name[NAME_MOST];
    enum chex_status status = take_line(m, module);

    if (status == CHEX_OK)
        status = take_line(m, name);
    return status == CHEX_OK ? push_name(m, module, name) : status;
}

/* STACK_GLOBAL: module and name are on the stack. */
static enum chex_status
name_of_stack(struct pickle_machine *m)
{
    const struct pickle_value *name = peek(m, 0), *module = peek(m, 1);

    if (!name || !module || name->kind != PICKLE_TEXT || module->kind != PICKLE_TEXT)
        return damaged(m, "a name that is not a text");
    m->depth -= 2;
    return push_name(m, module->text.data, name->text.data);
}

static enum chex_status
call(struct pickle_machine *m)
{
    const struct pickle_value *arguments = peek(m, 0), *name = peek(m, 1);
    struct pickle_value made = {.kind = PICKLE_NONE};
    uint32_t result = UINT32_MAX;
    enum chex_status status;

    if (!arguments || !name || arguments->kind != PICKLE_LIST || name->kind != PICKLE_NAME)
        return damaged(m, "a call of something other than a name");
    status = pickle_call(m->p, name, arguments, &result, &made, m->err);
    if (status != CHEX_OK)
        return status;
    m->depth -= 2;
    return result != UINT32_MAX ? push_number(m, result) : pickle_push(m, made);
}

/* BUILD sets attributes: those of an OrderedDict (torch's _metadata) are left out. */
static enum chex_status
build(struct pickle_machine *m)
{
    const struct pickle_value *state = peek(m, 0), *object = peek(m, 1);

    if (!state || !object || object->kind != PICKLE_DICT)
        return damaged(m, "attributes of something other than a dictionary");
    m->depth--;
    return CHEX_OK;
}

static enum chex_status
make_storage(struct pickle_machine *m)
{
    const struct pickle_value *id = peek(m, 0);
    struct pickle_value made;
    enum chex_status status;

    if (!id)
        return damaged(m, "the stack is empty");
    status = pickle_storage(m->p, id, &made, m->err);
    if (status != CHEX_OK)
        return status;
    m->depth--;
    return pickle_push(m, made);
}

static enum chex_status
push_bytes(struct pickle_machine *m, size_t bytes)
{
    uint64_t number = 0;
    enum chex_status status = take_number(m, bytes, &number);

    if (status != CHEX_OK)
        return status;
    return push_int(m, bytes == 4 ? (int64_t)(int32_t)(uint32_t)number : (int64_t)number);
}

static enum chex_status
skip(struct pickle_machine *m, size_t bytes)
{
    const uint8_t *from;

    return take(m, bytes, &from) ? CHEX_OK : truncated(m);
}

static enum chex_status
pop(struct pickle_machine *m)
{
    if (m->depth == 0)
        return damaged(m, "the stack is empty");
    m->depth--;
    return CHEX_OK;
}

static enum chex_status
refuse(const struct pickle_machine *m, uint8_t operation)
{
    return error_set(m->err, CHEX_ERR_UNSUPPORTED,
                     "the operation 0x%02x at byte %zu of its pickle is not one of a dictionary of tensors", operation,
                     m->at - 1);
}

/* The operations of containers and names. */
static enum chex_status
run_container(struct pickle_machine *m, uint8_t operation)
{
    switch (operation) {
    case ')': /* EMPTY_TUPLE */
    case ']': /* EMPTY_LIST */
        return push_kind(m, PICKLE_LIST);
    case '}': /* EMPTY_DICT */
        return push_kind(m, PICKLE_DICT);
    case 't': /* TUPLE */
    case 'l': /* LIST */
        return gather(m, PICKLE_LIST);
    case 'd': /* DICT */
        return gather(m, PICKLE_DICT);
    case 0x85: /* TUPLE1 */
    case 0x86: /* TUPLE2 */
    case 0x87: /* TUPLE3 */
        return make_tuple(m, operation - 0x84u);
    case 'a': /* APPEND */
        return extend(m, PICKLE_LIST, 1, false);
    case 'e': /* APPENDS */
        return extend(m, PICKLE_LIST, 0, true);
    case 's': /* SETITEM */
        return extend(m, PICKLE_DICT, 2, false);
    case 'u': /* SETITEMS */
        return extend(m, PICKLE_DICT, 0, true);
    case 'c': /* GLOBAL */
        return take_name(m);
    case 0x93: /* STACK_GLOBAL */
        return name_of_stack(m);
    case 'R': /* REDUCE */
        return call(m);
    case 'b': /* BUILD */
        return build(m);
    case 'Q': /* BINPERSID */
        return make_storage(m);
    default:
        return refuse(m, operation);
    }
}

static enum chex_status
run_operation(struct pickle_machine *m, uint8_t operation)
{
    switch (operation) {
    case 0x80: /* PROTO */
        return skip(m, 1);
    case 0x95: /* FRAME */
        return skip(m, 8);
    case '(': /* MARK */
        return push_kind(m, PICKLE_MARK);
    case '0': /* POP */
        return pop(m);
    case 'N': /* NONE */
        return push_kind(m, PICKLE_NONE);
    case 0x88: /* NEWTRUE */
    case 0x89: /* NEWFALSE */
        return push_int(m, operation == 0x88);
    case 'K': /* BININT1 */
        return push_bytes(m, 1);
    case 'M': /* BININT2 */
        return push_bytes(m, 2);
    case 'J': /* BININT */
        return push_bytes(m, 4);
    case 0x8a: /* LONG1 */
        return push_long(m);
    case 'G': /* BINFLOAT */
        return skip(m, 8) == CHEX_OK ? push_kind(m, PICKLE_REAL) : truncated(m);
    case 'U':  /* SHORT_BINSTRING */
    case 'C':  /* SHORT_BINBYTES */
    case 0x8c: /* SHORT_BINUNICODE */
        return push_text(m, 1);
    case 'T': /* BINSTRING */
    case 'B': /* BINBYTES */
    case 'X': /* BINUNICODE */
        return push_text(m, 4);
    case 'q': /* BINPUT */
        return put_memo_of(m, 1);
    case 'r': /* LONG_BINPUT */
        return put_memo_of(m, 4);
    case 0x94: /* MEMOIZE */
        return put_memo(m, m->memo_count);
    case 'h': /* BINGET */
        return get_memo(m, 1);
    case 'j': /* LONG_BINGET */
        return get_memo(m, 4);
    default:
        return run_container(m, operation);
    }
}

enum chex_status
pickle_run(struct pickle *p, const uint8_t *data, size_t size, size_t *used, uint32_t *top, struct chex_error *err)
{
    struct pickle_machine m = {.p = p, .data = data, .size = size, .err = err};
    enum chex_status status = CHEX_OK;
    uint8_t operation = 0;

    while (status == CHEX_OK && operation != '.') {
        if (m.at == m.size) {
            status = error_set(err, CHEX_ERR_TRUNCATED, "the pickle ends before its last operation");
            break;
        }
        operation = m.data[m.at++];
        if (operation != '.')
            status = run_operation(&m, operation);
    }
    if (status == CHEX_OK && !peek(&m, 0))
        status = damaged(&m, "it leaves no value");
    if (status == CHEX_OK) {
        *top = m.stack[m.depth - 1];
        *used = m.at;
    }
    free(m.stack);
    free(m.memo);
    return status;
}

void
pickle_release(struct pickle *p)
{
    size_t i;

    for (i = 0; i < p->count; i++) {
        if (is_container(&p->value[i]))
            free(p->value[i].items.value);
        if (p->value[i].kind == PICKLE_TENSOR)
            free(p->value[i].tensor);
    }
    free(p->value);
    arena_release(&p->strings);
    *p = (struct pickle){.count = 0};
}

const struct pickle_value *
pickle_find(const struct pickle *p, const struct pickle_value *dict, const char *key)
{
    const struct pickle_value *found = NULL;
    size_t i;

    for (i = 0; dict->kind == PICKLE_DICT && i + 1 < dict->items.count; i += 2) {
        const struct pickle_value *k = &p->value[dict->items.value[i]];

        if (k->kind == PICKLE_TEXT && strcmp(k->text.data, key) == 0)
            found = &p->value[dict->items.value[i + 1]];
    }
    return found;
}
