/*
 * json.c - see json.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/json.h"

#include "base/ascii.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum chex_status
check_bounds(const uint8_t *text, size_t size, const struct parse_bounds *bounds, struct chex_error *err)
{
    size_t i, depth = 0, values = 0;
    bool quoted = false;

    if (size > bounds->size)
        return error_set(err, CHEX_ERR_LIMIT, "%zu bytes are more than the %zu allowed", size, bounds->size);
    for (i = 0; i < size; i++) {
        if (quoted) {
            if (text[i] == '\\')
                i++;
            else if (text[i] == '"')
                quoted = false;
            continue;
        }
        quoted = text[i] == '"';
        /* Each value except the first of its container follows a comma; a container counts twice. */
        values += text[i] == ',' || text[i] == '[' || text[i] == '{';
        if (text[i] == '[' || text[i] == '{')
            depth++;
        else if ((text[i] == ']' || text[i] == '}') && depth > 0)
            depth--;
        if (depth > bounds->depth)
            return error_set(err, CHEX_ERR_LIMIT, "nested deeper than %zu", bounds->depth);
        if (values > bounds->values)
            return error_set(err, CHEX_ERR_LIMIT, "more than %zu values", bounds->values);
    }
    return CHEX_OK;
}

/* jansson's message may quote the text, so replace unprintable characters. */
static enum chex_status
fail_syntax(const json_error_t *e, struct chex_error *err)
{
    char words[JSON_ERROR_TEXT_LENGTH];
    size_t i;

    /* jansson has a message for every fault of a text, but none for a failed allocation. */
    if (json_error_code(e) == json_error_out_of_memory || !e->text[0])
        return error_memory(err);
    for (i = 0; e->text[i] && i + 1 < sizeof(words); i++)
        words[i] = e->text[i] >= 0x20 && e->text[i] <= 0x7e ? e->text[i] : '?';
    words[i] = '\0';
    return error_set(err, CHEX_ERR_DAMAGED, "line %d: %s", e->line, words);
}

enum chex_status
parse_json(const void *text, size_t size, const struct parse_bounds *bounds, json_t **out, struct chex_error *err)
{
    enum chex_status status = check_bounds(text, size, bounds, err);
    size_t flags = JSON_REJECT_DUPLICATES | (bounds->reals ? JSON_DECODE_INT_AS_REAL : 0);
    json_t *again;
    json_error_t e, second;

    *out = NULL;
    if (status != CHEX_OK)
        return status;
    /*
     * If the buffer of a token cannot grow, jansson drops bytes and continues: a string is truncated, a number changes,
     * or the text seems not to be JSON.  The next allocation may succeed, so only a second parse detects this.
     */
    *out = json_loadb(text, size, flags, &e);
    again = json_loadb(text, size, flags, &second);
    if (!*out && !again && strcmp(e.text, second.text) == 0)
        return fail_syntax(&e, err);
    if (!*out || !again || !json_equal(*out, again)) {
        json_decref(*out);
        *out = NULL;
        status = error_memory(err);
    }
    json_decref(again);
    return status;
}

struct sink {
    struct buffer *buffer;
    bool failed; /* jansson does not check the result of every call */
};

static int
append(const char *data, size_t size, void *context)
{
    struct sink *sink = context;

    sink->failed = sink->failed || buffer_append(sink->buffer, data, size, NULL) != CHEX_OK;
    return sink->failed ? -1 : 0;
}

enum chex_status
append_json(const json_t *value, size_t flags, struct buffer *b, struct chex_error *err)
{
    struct sink sink = {.buffer = b};

    if (!value || json_dump_callback(value, append, &sink, flags) != 0 || append("\n", 1, &sink) != 0)
        return error_memory(err);
    return CHEX_OK;
}

json_t *
text_json_n(const char *text, size_t size)
{
    json_t *string = json_stringn(text, size);
    size_t room;
    char *escaped;

    if (string || !size_mul(size, 4, &room) || !size_add(room, 1, &room))
        return string;
    /* jansson returns NULL for invalid UTF-8 and for lack of memory.  Valid text that succeeds now lacked memory. */
    string = json_stringn(text, size);
    if (string) {
        json_decref(string);
        return NULL;
    }
    escaped = malloc(room);
    if (!escaped)
        return NULL;
    string = json_string(ascii_escape(text, size, escaped, room));
    free(escaped);
    return string;
}

json_t *
text_json(const char *text)
{
    return text ? text_json_n(text, strlen(text)) : json_null();
}

json_t *
count_json(uint64_t n)
{
    return json_integer((json_int_t)n);
}

json_t *
real_json(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

const char *
json_show(const json_t *value, char out[JSON_SHOWN])
{
    const char *text = json_string_value(value);
    char escaped[JSON_SHOWN - 2];

    if (text)
        snprintf(out, JSON_SHOWN, "\"%s\"", ascii_escape(text, strlen(text), escaped, sizeof(escaped)));
    else if (json_is_number(value))
        snprintf(out, JSON_SHOWN, "%.17g", json_number_value(value));
    else
        snprintf(out, JSON_SHOWN, "%s",
                 !value                 ? "missing"
                 : json_is_null(value)  ? "null"
                 : json_is_true(value)  ? "true"
                 : json_is_false(value) ? "false"
                 : json_is_array(value) ? "a list"
                                        : "an object");
    return out;
}
