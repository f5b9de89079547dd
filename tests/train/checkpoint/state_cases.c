/*
 * state_cases.c - see state_cases.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "state_cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
put_real(struct state_case *out, const char *what, bool fits, double number)
{
    out->what = what;
    out->fits = fits;
    snprintf(out->json, sizeof(out->json), "\"%a\"", number);
}

/* Writes a decimal number, which may be -1 or 2^64, with quotes if it is a text. */
static void
put_integer(struct state_case *out, const char *what, bool fits, bool text, uint64_t number, const char *digits)
{
    const char *quote = text ? "\"" : "";
    char plain[24];

    snprintf(plain, sizeof(plain), "%llu", (unsigned long long)number);
    out->what = what;
    out->fits = fits;
    snprintf(out->json, sizeof(out->json), "%s%s%s", quote, digits ? digits : plain, quote);
}

/* Values that no field accepts, or only fields of one kind. */
static bool
other_type(const struct state_field *f, unsigned number, struct state_case *out)
{
    static const char *const value[] = {"",     "null", "true", "[]",      "{}",       "0.5",
                                        "1e30", "-1",   "\"\"", "\"x/y\"", "\" 1 x\"", "100000000000000000000"};
    bool text = f->kind == STATE_TEXT && number >= 8 && number <= 10;

    if (number >= sizeof(value) / sizeof(value[0]))
        return false;
    out->what = number == 0 ? "missing" : "of another type";
    snprintf(out->json, sizeof(out->json), "%s", value[number]);
    out->fits = number == 0 ? f->added : text && !f->letters && f->min == 0;
    return true;
}

static bool
integer_case(const struct state_field *f, const struct checkpoint_state *state, unsigned number, struct state_case *out)
{
    uint64_t max = state_max(f, state);
    bool text = f->kind == STATE_COUNT;

    switch (number) {
    case 0:
        put_integer(out, "below the smallest", false, text, f->min - 1, f->min > 0 ? NULL : "-1");
        return true;
    case 1:
        put_integer(out, "the smallest", true, text, f->min, NULL);
        return true;
    case 2:
        put_integer(out, "the largest", true, text, max, NULL);
        return true;
    case 3:
        put_integer(out, "above the largest", false, text, max + 1, NULL);
        return true;
    case 4:
        put_integer(out, "2^63 - 1", max >= INT64_MAX, text, INT64_MAX, NULL);
        return true;
    case 5:
        put_integer(out, "2^64", false, text, 0, "18446744073709551616");
        return true;
    case 6: /* a number instead of a text, and the reverse */
        put_integer(out, "of the other type", false, !text, f->min, NULL);
        return true;
    case 7:
        put_real(out, "not a number", false, (double)NAN);
        return true;
    default:
        return other_type(f, number - 8, out);
    }
}

static bool
real_case(const struct state_field *f, unsigned number, struct state_case *out)
{
    switch (number) {
    case 0:
        put_real(out, "below the smallest", false, nextafter(f->least, -(double)INFINITY));
        return true;
    case 1:
        put_real(out, "the smallest", true, f->least);
        return true;
    case 2:
        put_real(out, "the largest", true, f->most);
        return true;
    case 3: /* infinity, after the largest finite number */
        put_real(out, "above the largest", isinf(nextafter(f->most, (double)INFINITY)) && f->also & STATE_INFINITY,
                 nextafter(f->most, (double)INFINITY));
        return true;
    case 4:
        put_real(out, "infinite", f->also & STATE_INFINITY, (double)INFINITY);
        return true;
    case 5:
        put_real(out, "infinite and negative", false, -(double)INFINITY);
        return true;
    case 6:
        put_real(out, "not a number", f->also & STATE_NAN, (double)NAN);
        return true;
    case 7:
        put_real(out, "negative", false, -1);
        return true;
    case 8:
        put_real(out, "zero", f->least == 0 || f->also & STATE_ZERO, 0);
        return true;
    case 9:
        put_real(out, "between two powers of two", f->most >= 3 && !(f->also & STATE_POWER_OF_TWO), 3);
        return true;
    case 10:
        put_real(out, "half of the smallest", f->least == 0, f->least / 2);
        return true;
    case 11:
        put_real(out, "twice the largest", isinf(2 * f->most) && f->also & STATE_INFINITY, 2 * f->most);
        return true;
    default:
        return other_type(f, number - 12, out);
    }
}

static bool
text_case(const struct state_field *f, unsigned number, struct state_case *out)
{
    static const char *const what[] = {"shorter than the shortest", "the shortest", "the longest",
                                       "longer than the longest", "with another letter"};
    const size_t length[] = {f->min > 0 ? f->min - 1 : 0, f->min, f->max, f->max + 1, f->max};

    if (number >= sizeof(length) / sizeof(length[0]))
        return other_type(f, number - (unsigned)(sizeof(length) / sizeof(length[0])), out);
    out->what = what[number];
    out->fits = number == 1 || number == 2 || (number == 0 && f->min == 0) || (number == 4 && !f->letters);
    out->json[0] = '"';
    memset(out->json + 1, f->letters ? f->letters[0] : 'a', length[number]);
    if (number == 4)
        out->json[length[number]] = '/';
    memcpy(out->json + 1 + length[number], "\"", 2);
    return true;
}

bool
state_case(const struct state_field *f, const struct checkpoint_state *state, unsigned number, struct state_case *out)
{
    switch (f->kind) {
    case STATE_COUNT:
    case STATE_NUMBER:
        return integer_case(f, state, number, out);
    case STATE_REAL:
        return real_case(f, number, out);
    case STATE_TEXT:
        return text_case(f, number, out);
    }
    return false;
}

char *
state_with(const char *text, const char *field, const char *json)
{
    json_t *top = json_loads(text, 0, NULL);
    size_t length;
    char *out, *with;

    if (!json_is_object(top)) {
        json_decref(top);
        return NULL;
    }
    json_object_del(top, field);
    out = json_dumps(top, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(top);
    if (!json[0])
        return out;
    /* jansson cannot write some of the values, so they are appended as text. */
    length = strlen(out) + strlen(field) + strlen(json) + 8;
    with = realloc(out, length);
    if (!with) {
        free(out);
        return NULL;
    }
    snprintf(strrchr(with, '}'), length - (size_t)(strrchr(with, '}') - with), "%s\"%s\":%s}",
             with[1] == '}' ? "" : ",", field, json);
    return with;
}

/* Other fields are bounded by this one, so they are 0. */
struct checkpoint_state
state_plain(const struct state_field *f)
{
    return (struct checkpoint_state){
        .model = "densenet-micro",
        .side = 64,
        .dataset_id = "0123456789abcdef",
        .seed = 7,
        .step = 4800,
        .epoch = 3,
        .batches = 17,
        .micro_batches = 19200,
        .global_batch = 16,
        .plan = {.applied = f && f->up_to ? 4790 : 0, .loss_scale = 0x1p16},
        .schedule = {.options = {.base = 1e-3, .factor = 0.1, .steps = 10000}, .factor = 1, .best = (double)INFINITY},
        .best = (double)NAN,
        .loss_sum = 0.1,
        .loss_images = 3,
        .settings = "lr 0.001\n"};
}
