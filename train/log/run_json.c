/*
 * run_json.c - see run_json.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "log/run_json.h"

#include "base/ascii.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXACT 9007199254740992.0 /* 2^53: integers below are exact as double */

struct run_json
run_json_object(void)
{
    struct run_json j = {.object = json_object()};

    j.failed = !j.object;
    return j;
}

void
run_json_add(struct run_json *j, const char *key, json_t *value)
{
    /* json_object_set_new() takes ownership also on failure, and fails for NULL. */
    if (json_object_set_new(j->object, key, value) != 0)
        j->failed = true;
}

void
run_json_text(struct run_json *j, const char *key, const char *text)
{
    run_json_add(j, key, text_json(text));
}

void
run_json_count(struct run_json *j, const char *key, uint64_t number)
{
    run_json_add(j, key, count_json(number));
}

void
run_json_real(struct run_json *j, const char *key, double number)
{
    run_json_add(j, key, real_json(number));
}

void
run_json_bool(struct run_json *j, const char *key, bool yes)
{
    run_json_add(j, key, json_boolean(yes));
}

static void
add_value(struct run_json *j, const struct run_value *v)
{
    switch (v->kind) {
    case RUN_TEXT:
        run_json_text(j, v->name, v->text);
        break;
    case RUN_NUMBER:
        if (fabs(v->number) < EXACT && v->number == floor(v->number))
            run_json_add(j, v->name, json_integer((json_int_t)v->number));
        else
            run_json_real(j, v->name, v->number);
        break;
    case RUN_BOOL:
        run_json_bool(j, v->name, v->yes);
        break;
    }
}

void
run_json_values(struct run_json *j, const char *key, const struct run_value *value, size_t count)
{
    struct run_json inner = run_json_object();
    size_t i;

    for (i = 0; i < count; i++)
        add_value(&inner, value + i);
    run_json_add(j, key, run_json_take(&inner));
}

json_t *
run_json_take(struct run_json *j)
{
    json_t *object = j->object;

    if (j->failed) {
        json_decref(object);
        object = NULL;
    }
    *j = (struct run_json){.failed = true};
    return object;
}
