/*
 * checkpoint_state.c - the state of a run as JSON in the metadata of its model file; see checkpoint.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/checkpoint_private.h"

#include "base/ascii.h"
#include "base/json.h"
#include "base/member.h"
#include "checkpoint/weights.h"
#include "io/digest_file.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct parse_bounds bounds = {.size = 65536, .depth = 2, .values = 100};

void
checkpoint_name(uint64_t step, char out[CHECKPOINT_NAME])
{
    snprintf(out, CHECKPOINT_NAME, "step-%06llu", (unsigned long long)step);
}

/* ---- one table for writing and reading -------------------------------------------------------------------------- */

enum state_kind { KIND_U64, KIND_U32, KIND_REAL, KIND_TEXT };

struct state_field {
    const char *name;
    enum state_kind kind;
    size_t offset, size; /* size: of a text */
    bool added;          /* later: older files lack it */
};

#define FIELD(name, kind, member)                                       \
    {                                                                   \
        name, kind, offsetof(struct checkpoint_state, member), 0, false \
    }
#define ADDED(name, kind, member)                                      \
    {                                                                  \
        name, kind, offsetof(struct checkpoint_state, member), 0, true \
    }
#define TEXT(name, member)                                                                                          \
    {                                                                                                               \
        name, KIND_TEXT, offsetof(struct checkpoint_state, member), sizeof(((struct checkpoint_state *)0)->member), \
            false                                                                                                   \
    }

/* Enums are four bytes here, as unsigned numbers. */
static const struct state_field fields[] = {
    TEXT("model", model),
    FIELD("side", KIND_U32, side),
    TEXT("dataset_id", dataset_id),
    FIELD("seed", KIND_U64, seed),
    FIELD("step", KIND_U64, step),
    FIELD("epoch", KIND_U32, epoch),
    FIELD("batches", KIND_U64, batches),
    ADDED("micro_batches", KIND_U64, micro_batches),
    FIELD("global_batch", KIND_U64, global_batch),
    FIELD("window", KIND_U32, window),
    FIELD("optimizer", KIND_U32, optimizer),
    ADDED("applied", KIND_U64, plan.applied),
    ADDED("loss_scale", KIND_REAL, plan.loss_scale),
    ADDED("good_steps", KIND_U32, plan.good),
    FIELD("schedule_kind", KIND_U32, schedule.options.kind),
    FIELD("schedule_base", KIND_REAL, schedule.options.base),
    FIELD("schedule_warmup", KIND_U64, schedule.options.warmup),
    FIELD("schedule_steps", KIND_U64, schedule.options.steps),
    FIELD("schedule_patience", KIND_U32, schedule.options.patience),
    FIELD("schedule_reduction", KIND_REAL, schedule.options.factor),
    FIELD("schedule_factor", KIND_REAL, schedule.factor),
    FIELD("schedule_best", KIND_REAL, schedule.best),
    FIELD("schedule_bad_epochs", KIND_U32, schedule.bad_epochs),
    FIELD("best", KIND_REAL, best),
    FIELD("best_step", KIND_U64, best_step),
    FIELD("bad_epochs", KIND_U32, bad_epochs),
    FIELD("loss_sum", KIND_REAL, loss_sum),
    FIELD("loss_images", KIND_U64, loss_images),
    TEXT("settings", settings),
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

_Static_assert(sizeof(enum optimizer_kind) == sizeof(uint32_t), "an enum is read and written as a number");

/* JSON knows neither infinity nor NaN, and texts keep every bit: reals are hexadecimal floating point. */
static json_t *
format_field(const struct state_field *f, const struct checkpoint_state *state)
{
    const void *at = (const char *)state + f->offset;
    char text[40];
    double real;

    switch (f->kind) {
    case KIND_U64:
        snprintf(text, sizeof(text), "%llu", (unsigned long long)member_get(at, sizeof(uint64_t)));
        return json_string(text);
    case KIND_U32:
        return json_integer((json_int_t)member_get(at, sizeof(uint32_t)));
    case KIND_REAL:
        memcpy(&real, at, sizeof(real));
        snprintf(text, sizeof(text), "%a", real);
        return json_string(text);
    case KIND_TEXT:
        return json_string(at);
    }
    return NULL;
}

static bool
parse_field(const struct state_field *f, const json_t *value, struct checkpoint_state *state)
{
    void *at = (char *)state + f->offset;
    char *end;
    const char *text = json_string_value(value);
    double real;

    switch (f->kind) {
    case KIND_U64:
        if (!text || strspn(text, "0123456789") != strlen(text) || strlen(text) == 0 || strlen(text) > 20)
            return false;
        errno = 0;
        member_put(at, sizeof(uint64_t), strtoull(text, NULL, 10));
        return errno == 0;
    case KIND_U32:
        if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > UINT32_MAX)
            return false;
        member_put(at, sizeof(uint32_t), (uint64_t)json_integer_value(value));
        return true;
    case KIND_REAL:
        if (!text || strlen(text) > 39)
            return false;
        real = strtod(text, &end);
        memcpy(at, &real, sizeof(real));
        return end != text && *end == '\0';
    case KIND_TEXT:
        return text && (size_t)snprintf(at, f->size, "%s", text) < f->size;
    }
    return false;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

/* One line, terminated. */
static enum chex_status
format_state(const struct checkpoint_state *state, struct buffer *b, struct chex_error *err)
{
    json_t *top = json_object();
    enum chex_status status;
    size_t i;

    for (i = 0; i < FIELDS; i++)
        if (json_object_set_new(top, fields[i].name, format_field(&fields[i], state)) != 0)
            break;
    status = i == FIELDS ? append_json(top, JSON_COMPACT | JSON_ENSURE_ASCII, b, err) : error_memory(err);
    json_decref(top);
    if (status == CHEX_OK)
        b->data[b->size - 1] = '\0'; /* in the place of the newline */
    return status;
}

const char *
checkpoint_labels(char out[CHECKPOINT_LABELS])
{
    size_t used = 0;
    unsigned i;

    for (i = 0; i < CHEX_FINDINGS; i++)
        used += (size_t)snprintf(out + used, CHECKPOINT_LABELS - used, "%s%s", i > 0 ? "," : "", chex_finding_name(i));
    return out;
}

enum chex_status
checkpoint_write_model(const struct folder *folder, const char *file, const struct graph *g,
                       const struct checkpoint_state *state, const struct checkpoint_arrays *arrays, char *hex,
                       struct chex_error *err)
{
    struct buffer text = {0};
    char labels[CHECKPOINT_LABELS], format[16];
    enum chex_status status = format_state(state, &text, err);

    if (status != CHEX_OK) {
        buffer_release(&text);
        return status;
    }
    snprintf(format, sizeof(format), "%d", CHECKPOINT_FORMAT);
    {
        const struct metadata metadata[] = {
            {"chex_format", format},
            {"labels", checkpoint_labels(labels)},
            {"note", "Research use only, not for diagnosis."},
            {"state", (const char *)text.data},
            {"tool", "chex-train"},
            {"version", chex_version()},
        };

        status = weights_write(g, folder, file, arrays->params, arrays->stats, state->micro_batches, metadata,
                               sizeof(metadata) / sizeof(metadata[0]), hex, err);
    }
    buffer_release(&text);
    return status;
}

enum chex_status
checkpoint_hash(const struct folder *folder, const char *file, char hex[DIGEST_HEX], struct chex_error *err)
{
    uint64_t size;
    int fd;
    enum chex_status status = file_open(folder->fd, file, &fd, &size, err);

    if (status != CHEX_OK)
        return status;
    status = digest_file(fd, NULL, NULL, hex, err);
    close(fd);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Files from before 0.1.0 may say "auto": that was fp32, the only precision that there was. */
static void
name_precision(char *settings)
{
    static const char automatic[] = "precision auto\n";
    char *at = strstr(settings, automatic);

    if (at && (at == settings || at[-1] == '\n'))
        memcpy(at, "precision fp32\n", strlen(automatic));
}

/*
 * What a run can reach.  A device has the loss scale as a float, which begins as a power of two, is halved and doubled;
 * 0 is that of a new plan.  Each step is applied or skipped.
 */
static const char *
impossible_field(const struct checkpoint_state *state)
{
    const struct plan_state *p = &state->plan;
    int exponent;

    if (!(p->loss_scale == 0 || (p->loss_scale >= (double)FLT_MIN && p->loss_scale <= (double)FLT_MAX &&
                                 frexp(p->loss_scale, &exponent) == 0.5)))
        return "loss_scale";
    if (p->applied > state->step)
        return "applied";
    return p->good > p->applied ? "good_steps" : NULL;
}

static enum chex_status
parse_state(const struct safetensors *s, struct checkpoint_state *state, struct chex_error *err)
{
    const char *format = safetensors_metadata(s, "chex_format"), *text = safetensors_metadata(s, "state");
    const char *labels = safetensors_metadata(s, "labels");
    char ours[CHECKPOINT_LABELS], shown[CHECKPOINT_LABELS];
    const char *impossible = NULL;
    json_t *top;
    enum chex_status status;
    size_t i;

    if (!format || !text)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "it holds weights, but no state of a run (--init takes them)");
    if (strcmp(format, "1") != 0)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "format %s, this build reads up to %d",
                         ascii_escape(format, strlen(format), shown, 20), CHECKPOINT_FORMAT);
    if (labels && strcmp(labels, checkpoint_labels(ours)) != 0)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "its findings are '%s', in another order or others",
                         ascii_escape(labels, strlen(labels), shown, sizeof(shown)));
    status = parse_json(text, strlen(text), &bounds, &top, err);
    if (status != CHEX_OK)
        return status;
    for (i = 0; i < FIELDS; i++) {
        const json_t *value = json_object_get(top, fields[i].name);

        if ((value || !fields[i].added) && !parse_field(&fields[i], value, state)) {
            impossible = fields[i].name;
            break;
        }
    }
    if (!json_object_get(top, "micro_batches"))
        state->micro_batches = state->step;
    if (!json_object_get(top, "applied"))
        state->plan.applied = state->step;
    json_decref(top);
    if (!impossible)
        impossible = impossible_field(state);
    if (impossible)
        return error_set(err, CHEX_ERR_DAMAGED, "its state has no valid '%s'", impossible);
    name_precision(state->settings);
    return status;
}

enum chex_status
checkpoint_read_state(const struct folder *folder, const char *name, struct checkpoint_state *state,
                      struct chex_error *err)
{
    char file[CHECKPOINT_NAME + 24];
    struct safetensors s;
    enum chex_status status;

    snprintf(file, sizeof(file), "%s.safetensors", name);
    *state = (struct checkpoint_state){.step = 0};
    status = safetensors_open(folder->fd, file, &s, err);
    if (status == CHEX_OK)
        status = parse_state(&s, state, err);
    safetensors_close(&s);
    return status == CHEX_OK ? status : error_context(err, status, "'%s/%s'", folder->path, file);
}
