/*
 * checkpoint_fields.c - the fields of the state of a run: their JSON form and their bounds
 *
 * One table drives writing, reading and checking; the tests and the fuzzer generate values from it.  Values out of
 * bounds are rejected in both directions, so the trainer can compute with every value of a state without overflow.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/checkpoint_private.h"

#include "base/member.h"
#include "dataset/record.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define AT(member) \
    .offset = offsetof(struct checkpoint_state, member), .size = sizeof(((struct checkpoint_state *)0)->member)

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

/* Older files lack it: then it has the value of another field, or 0. */
#define ADDED(field) .added = true, .otherwise = field
/* Losses.  A loss scale of half precision is a float; it starts as a power of two and is halved and doubled. */
#define LOSS       .most = DBL_MAX
#define LOSS_SCALE .least = (double)FLT_MIN, .most = 0x1p127, .also = STATE_ZERO | STATE_POWER_OF_TWO

/* Enums have four bytes.  A field must come after the fields that it refers to. */
const struct state_field state_fields[] = {
    {"model", STATE_TEXT, AT(model), .min = 1, .max = 31, .letters = LOWER DIGITS "-"},
    {"side", STATE_NUMBER, AT(side), .min = 1, .max = RECORD_MAX_SIDE},
    {"dataset_id", STATE_TEXT, AT(dataset_id), .min = CHEX_ID_LENGTH, .max = CHEX_ID_LENGTH,
     .letters = DIGITS "abcdef"},
    {"seed", STATE_COUNT, AT(seed), .max = CHECKPOINT_MAX_SEED},
    {"step", STATE_COUNT, AT(step), .max = CHECKPOINT_MAX_COUNT},
    {"epoch", STATE_NUMBER, AT(epoch), .max = CHECKPOINT_MAX_EPOCHS},
    {"batches", STATE_COUNT, AT(batches), .max = CHECKPOINT_MAX_BATCH},
    {"micro_batches", STATE_COUNT, AT(micro_batches), .max = CHECKPOINT_MAX_COUNT, ADDED("step")},
    {"global_batch", STATE_COUNT, AT(global_batch), .min = 1, .max = CHECKPOINT_MAX_BATCH},
    {"window", STATE_NUMBER, AT(window), .max = CHECKPOINT_MAX_WINDOW},
    {"optimizer", STATE_NUMBER, AT(optimizer), .max = OPTIMIZER_COUNT - 1},
    {"applied", STATE_COUNT, AT(plan.applied), .max = CHECKPOINT_MAX_COUNT, .up_to = "step", ADDED("step")},
    {"loss_scale", STATE_REAL, AT(plan.loss_scale), LOSS_SCALE, ADDED(NULL)},
    {"good_steps", STATE_NUMBER, AT(plan.good), .max = UINT32_MAX, .up_to = "applied", ADDED(NULL)},
    {"schedule_kind", STATE_NUMBER, AT(schedule.options.kind), .max = SCHEDULE_CONSTANT},
    {"schedule_base", STATE_REAL, AT(schedule.options.base), .most = CHECKPOINT_MAX_RATE},
    {"schedule_warmup", STATE_COUNT, AT(schedule.options.warmup), .max = CHECKPOINT_MAX_COUNT},
    {"schedule_steps", STATE_COUNT, AT(schedule.options.steps), .max = CHECKPOINT_MAX_COUNT},
    {"schedule_patience", STATE_NUMBER, AT(schedule.options.patience), .max = CHECKPOINT_MAX_EPOCHS},
    {"schedule_reduction", STATE_REAL, AT(schedule.options.factor), .most = 1},
    {"schedule_factor", STATE_REAL, AT(schedule.factor), .most = 1},
    {"schedule_best", STATE_REAL, AT(schedule.best), LOSS, .also = STATE_INFINITY},
    {"schedule_bad_epochs", STATE_NUMBER, AT(schedule.bad_epochs), .max = CHECKPOINT_MAX_EPOCHS, .up_to = "epoch"},
    {"best", STATE_REAL, AT(best), LOSS, .also = STATE_NAN},
    {"best_step", STATE_COUNT, AT(best_step), .max = CHECKPOINT_MAX_COUNT, .up_to = "step"},
    {"bad_epochs", STATE_NUMBER, AT(bad_epochs), .max = CHECKPOINT_MAX_EPOCHS, .up_to = "epoch"},
    {"loss_sum", STATE_REAL, AT(loss_sum), LOSS},
    {"loss_images", STATE_COUNT, AT(loss_images), .max = CHECKPOINT_MAX_COUNT},
    {"skipped", STATE_COUNT, AT(skipped), .max = CHECKPOINT_MAX_COUNT, ADDED(NULL)},
    {"settings", STATE_TEXT, AT(settings), .max = SETTINGS_TEXT - 1},
    {.name = NULL},
};

_Static_assert(sizeof(enum optimizer_kind) == sizeof(uint32_t), "an enum is read and written as a number");
/* So the position in an epoch, batches * global_batch, is below 2^64. */
_Static_assert(CHECKPOINT_MAX_BATCH <= UINT32_MAX, "a product of two such numbers has 64 bits");

const struct state_field *
state_field(const char *name)
{
    const struct state_field *f = state_fields;

    while (f->name && strcmp(f->name, name) != 0)
        f++;
    return f->name ? f : NULL;
}

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

static uint64_t
number_of(const struct state_field *f, const struct checkpoint_state *state)
{
    return member_get((const char *)state + f->offset, f->size);
}

/* The value of the field of that name; `otherwise` where no name is given. */
static uint64_t
number_of_name(const char *name, const struct checkpoint_state *state, uint64_t otherwise)
{
    const struct state_field *f = name ? state_field(name) : NULL;

    return f ? number_of(f, state) : otherwise;
}

uint64_t
state_max(const struct state_field *f, const struct checkpoint_state *state)
{
    uint64_t bound = number_of_name(f->up_to, state, f->max);

    return bound < f->max ? bound : f->max;
}

static bool
real_fits(const struct state_field *f, double x)
{
    int exponent;

    if (isnan(x))
        return f->also & STATE_NAN;
    if (x == 0 && f->also & STATE_ZERO)
        return true;
    if (isinf(x))
        return x > 0 && f->also & STATE_INFINITY;
    return x >= f->least && x <= f->most && (!(f->also & STATE_POWER_OF_TWO) || frexp(x, &exponent) == 0.5);
}

static bool
text_fits(const struct state_field *f, const char *text)
{
    size_t length = strnlen(text, f->size);

    return length >= f->min && length <= f->max && (!f->letters || strspn(text, f->letters) == length);
}

static bool
fits(const struct state_field *f, const struct checkpoint_state *state)
{
    const void *at = (const char *)state + f->offset;
    double real;

    switch (f->kind) {
    case STATE_COUNT:
    case STATE_NUMBER:
        return number_of(f, state) >= f->min && number_of(f, state) <= state_max(f, state);
    case STATE_REAL:
        memcpy(&real, at, sizeof(real));
        return real_fits(f, real);
    case STATE_TEXT:
        return text_fits(f, at);
    }
    return false;
}

/* Describe the valid values of a field: "a number from 0 to 1000000". */
static void
describe(const struct state_field *f, const struct checkpoint_state *state, char *out, size_t size)
{
    int used = 0;

    switch (f->kind) {
    case STATE_COUNT:
    case STATE_NUMBER:
        used = snprintf(out, size, "a %s from %llu to %llu", f->kind == STATE_COUNT ? "text with a number" : "number",
                        (unsigned long long)f->min, (unsigned long long)state_max(f, state));
        if (f->up_to && state_max(f, state) < f->max)
            snprintf(out + used, size - (size_t)used, ", its '%s'", f->up_to);
        break;
    case STATE_REAL:
        snprintf(out, size, "a text with a %s from %g to %g%s%s%s",
                 f->also & STATE_POWER_OF_TWO ? "power of two" : "number", f->least, f->most,
                 f->also & STATE_ZERO ? ", or 0" : "", f->also & STATE_INFINITY ? ", or inf" : "",
                 f->also & STATE_NAN ? ", or nan" : "");
        break;
    case STATE_TEXT:
        used = snprintf(out, size, "a text of %llu to %llu bytes", (unsigned long long)f->min,
                        (unsigned long long)f->max);
        if (f->letters)
            snprintf(out + used, size - (size_t)used, " of '%s'", f->letters);
        break;
    }
}

static enum chex_status
refuse(const struct state_field *f, const struct checkpoint_state *state, const char *found, struct chex_error *err)
{
    char wanted[160];

    describe(f, state, wanted, sizeof(wanted));
    return error_set(err, CHEX_ERR_DAMAGED, "'%s' of the run's state is %s; it has to be %s", f->name, found, wanted);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* Format a value for an error message; a hexadecimal real is shown in decimal. */
static const char *
show(const struct state_field *f, const json_t *value, char out[JSON_SHOWN])
{
    const char *text = json_string_value(value);
    char *end = NULL;
    double real = text && f->kind == STATE_REAL ? strtod(text, &end) : 0;

    if (!end || end == text || *end != '\0')
        return json_show(value, out);
    snprintf(out, JSON_SHOWN, "\"%.17g\"", real);
    return out;
}

json_t *
state_format(const struct state_field *f, const struct checkpoint_state *state)
{
    const void *at = (const char *)state + f->offset;
    char text[40];
    double real;

    switch (f->kind) {
    case STATE_COUNT:
        snprintf(text, sizeof(text), "%llu", (unsigned long long)number_of(f, state));
        return json_string(text);
    case STATE_NUMBER:
        return json_integer((json_int_t)number_of(f, state));
    case STATE_REAL:
        memcpy(&real, at, sizeof(real));
        snprintf(text, sizeof(text), "%a", real);
        return json_string(text);
    case STATE_TEXT:
        return json_string(at);
    }
    return NULL;
}

/* Store a value in the member; returns false if its kind or range does not fit. */
static bool
take(const struct state_field *f, const json_t *value, void *at)
{
    const char *text = json_string_value(value);
    double real = json_number_value(value);
    char *end;

    switch (f->kind) {
    case STATE_COUNT:
        if (!text || !*text || strspn(text, DIGITS) != strlen(text))
            return false;
        errno = 0;
        member_put(at, f->size, strtoull(text, NULL, 10));
        return errno == 0;
    case STATE_NUMBER:
        if (!json_is_number(value) || !(real >= 0 && real <= UINT32_MAX && real == floor(real)))
            return false;
        member_put(at, f->size, (uint64_t)real);
        return true;
    case STATE_REAL:
        if (!text)
            return false;
        real = strtod(text, &end);
        memcpy(at, &real, sizeof(real));
        return end != text && *end == '\0';
    case STATE_TEXT:
        return text && (size_t)snprintf(at, f->size, "%s", text) < f->size;
    }
    return false;
}

/* Set a field that an older file lacks. */
static void
take_otherwise(const struct state_field *f, struct checkpoint_state *state)
{
    if (f->otherwise)
        member_put((char *)state + f->offset, f->size, number_of_name(f->otherwise, state, 0));
}

enum chex_status
state_parse(const json_t *object, struct checkpoint_state *state, struct chex_error *err)
{
    const struct state_field *f;
    char found[JSON_SHOWN];

    *state = (struct checkpoint_state){.step = 0};
    for (f = state_fields; f->name; f++) {
        const json_t *value = json_object_get(object, f->name);

        if (!value && f->added)
            take_otherwise(f, state);
        else if (!take(f, value, (char *)state + f->offset) || !fits(f, state))
            return refuse(f, state, show(f, value, found), err);
    }
    return CHEX_OK;
}

enum chex_status
state_check(const struct checkpoint_state *state, struct chex_error *err)
{
    const struct state_field *f = state_fields;
    char found[JSON_SHOWN];
    enum chex_status status;
    json_t *value;

    while (f->name && fits(f, state))
        f++;
    if (!f->name)
        return CHEX_OK;
    value = state_format(f, state);
    status = value ? refuse(f, state, show(f, value, found), err) : error_memory(err);
    json_decref(value);
    return status;
}
