/*
 * json_file.c - see json_file.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/json_file.h"

#include "base/json.h"
#include "io/file.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>

#define JSON_MAX (64u << 20)

static const struct parse_bounds bounds = {.size = JSON_MAX, .depth = 8, .values = 4000000, .reals = true};

enum chex_status
json_file_unread(struct chex_error *err, enum chex_status status, const char *path)
{
    return error_context(err, status == CHEX_ERR_NOT_IMAGE ? CHEX_ERR_MISSING : status, "'%s'", path);
}

enum chex_status
json_file_read(const char *path, const char *program, json_t **out, struct chex_error *err)
{
    struct buffer text = {0};
    enum chex_status status = file_read(AT_FDCWD, path, JSON_MAX, &text, err);

    if (status != CHEX_OK)
        status = json_file_unread(err, status, path);
    else if ((status = parse_json(text.data, text.size, &bounds, out, err)) != CHEX_OK)
        status = error_context(err, status == CHEX_ERR_MEMORY ? status : CHEX_ERR_INCOMPATIBLE,
                               "'%s' is not a file of %s", path, program);
    buffer_release(&text);
    return status;
}

void
json_take_text(const json_t *object, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(object, key));

    snprintf(out, size, "%s", text ? text : "");
}

uint64_t
json_take_count(const json_t *object, const char *key)
{
    double x = json_number_value(json_object_get(object, key));

    return x >= 0 && x <= 0x1p53 ? (uint64_t)x : 0;
}

double
json_take_real(const json_t *object, const char *key, double low, double high)
{
    const json_t *value = json_object_get(object, key);
    double x = json_number_value(value);

    return json_is_number(value) && x >= low && x <= high ? x : (double)NAN;
}
