/*
 * settings.c - see settings.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/settings.h"

#include "base/member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ---------------------------------------------------------------------------------------------------- */

void
settings_add(struct settings *s, const struct setting *setting, const void *object)
{
    const void *at = (const char *)object + setting->offset;
    struct run_value v = {.name = setting->name, .kind = RUN_TEXT};
    char digits[24];

    switch (setting->type) {
    case SETTING_TEXT:
        v.text = *(const char *const *)at ? *(const char *const *)at : setting->none;
        break;
    case SETTING_DIGITS:
        snprintf(digits, sizeof(digits), "%llu", (unsigned long long)member_get(at, setting->size));
        v.text = digits;
        break;
    case SETTING_CHOICE:
        v.text = setting->names[member_get(at, setting->size)];
        break;
    case SETTING_NUMBER:
        v.kind = RUN_NUMBER;
        v.number = (double)member_get(at, setting->size);
        break;
    case SETTING_REAL:
    case SETTING_TIME:
        v.kind = RUN_NUMBER;
        v.number = *(const double *)at;
        break;
    case SETTING_FLAG:
        v.kind = RUN_BOOL;
        v.yes = *(const bool *)at;
        break;
    }
    if (v.text) {
        v.text = arena_copy(&s->strings, v.text, strlen(v.text));
        s->failed |= !v.text;
    }
    if (s->count == SETTINGS_MAX) {
        s->failed = true;
        return;
    }
    s->kind[s->count] = setting->kind;
    s->training[s->count] = setting->training;
    s->before[s->count] = setting->before;
    s->value[s->count++] = v;
}

void
settings_release(struct settings *s)
{
    arena_release(&s->strings);
    *s = (struct settings){.count = 0};
}

/* ---- as text --------------------------------------------------------------------------------------------------- */

char *
settings_format(double number, char out[SETTINGS_NUMBER])
{
    int digits;

    for (digits = 15; digits <= 17; digits++) {
        snprintf(out, SETTINGS_NUMBER, "%.*g", digits, number);
        if (strtod(out, NULL) == number)
            break;
    }
    return out;
}

static const char *
value_text(const struct run_value *v, char number[SETTINGS_NUMBER])
{
    switch (v->kind) {
    case RUN_NUMBER:
        return settings_format(v->number, number);
    case RUN_BOOL:
        return v->yes ? "yes" : "no";
    case RUN_TEXT:
        break;
    }
    return v->text ? v->text : "none";
}

static enum chex_status
append_lines(const struct settings *s, enum setting_kind least, struct buffer *b, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; status == CHEX_OK && i < s->count; i++) {
        char number[SETTINGS_NUMBER];
        const char *parts[] = {s->value[i].name, " ", value_text(&s->value[i], number), "\n"};
        size_t k;

        for (k = 0; status == CHEX_OK && s->kind[i] >= least && k < 4; k++)
            status = buffer_append(b, parts[k], strlen(parts[k]), err);
    }
    return status;
}

enum chex_status
settings_common(const struct settings *s, struct buffer *b, struct chex_error *err)
{
    enum chex_status status = append_lines(s, SETTING_SHARED, b, err);

    return status == CHEX_OK ? buffer_append(b, "", 1, err) : status;
}

enum chex_status
settings_keep(const struct settings *s, char out[SETTINGS_TEXT], struct chex_error *err)
{
    struct buffer b = {0};
    enum chex_status status = append_lines(s, SETTING_FREE, &b, err);

    if (status == CHEX_OK && b.size >= SETTINGS_TEXT)
        status = error_set(err, CHEX_ERR_BUG, "%zu bytes of settings are too many for a checkpoint", b.size);
    if (status == CHEX_OK) {
        memcpy(out, b.data, b.size);
        out[b.size] = '\0';
    }
    buffer_release(&b);
    return status;
}

/* ---- comparing ------------------------------------------------------------------------------------------------- */

#define KEPT_TEXT SETTINGS_TEXT

bool
settings_kept_text(const char *kept, const char *name, char *out, size_t size)
{
    size_t length = strlen(name);

    for (; *kept; kept += strcspn(kept, "\n"), kept += *kept == '\n') {
        if (strncmp(kept, name, length) == 0 && kept[length] == ' ') {
            snprintf(out, size, "%.*s", (int)strcspn(kept + length + 1, "\n"), kept + length + 1);
            return true;
        }
    }
    return false;
}

double
settings_kept_number(const char *kept, const char *name, double otherwise)
{
    char text[SETTINGS_NUMBER];

    return settings_kept_text(kept, name, text, sizeof(text)) ? strtod(text, NULL) : otherwise;
}

void
settings_note(char *out, size_t size, const char *name, const char *before, const char *now)
{
    size_t used = strlen(out);

    snprintf(out + used, size - used, "%s%s %.60s -> %.60s", used > 0 ? ", " : "", name, before, now);
}

/* Returns the options that allow changes of these kinds (bits); "" if one of them cannot be allowed. */
static const char *
advise(unsigned refused, char out[128])
{
    static const char *const option[] = {[SETTING_BATCH] = "--allow-batch-change",
                                         [SETTING_DATA] = "--allow-new-data",
                                         [SETTING_PRECISION] = "--allow-precision-change"};
    size_t used = 0;
    int kind;

    out[0] = '\0';
    if (refused >> SETTING_FIXED & 1)
        return out;
    for (kind = SETTING_BATCH; kind <= SETTING_PRECISION; kind++)
        if (refused >> kind & 1)
            used += (size_t)snprintf(out + used, 128 - used, "%s%s", used > 0 ? " " : " (", option[kind]);
    snprintf(out + used, 128 - used, " resumes with it)");
    return out;
}

/* Returns whether value i differs from the one in a checkpoint. */
static bool
differs(const struct settings *s, size_t i, const char *kept, char before[KEPT_TEXT])
{
    char number[SETTINGS_NUMBER];

    if (s->kind[i] < SETTING_FREE)
        return false;
    if (!settings_kept_text(kept, s->value[i].name, before, KEPT_TEXT)) {
        if (!s->before[i])
            return false;
        snprintf(before, KEPT_TEXT, "%s", s->before[i]);
    }
    return strncmp(before, value_text(&s->value[i], number), KEPT_TEXT - 1) != 0;
}

void
settings_compare_training(const struct settings *s, const char *kept, unsigned kinds, char out[SETTINGS_CHANGE])
{
    size_t i;

    out[0] = '\0';
    for (i = 0; i < s->count; i++) {
        char number[SETTINGS_NUMBER], before[KEPT_TEXT];

        if (s->training[i] && kinds >> s->kind[i] & 1 && differs(s, i, kept, before))
            settings_note(out, SETTINGS_CHANGE, s->value[i].name, before, value_text(&s->value[i], number));
    }
}

void
settings_compare_names(const struct settings *s, const char *kept, unsigned kinds, const char *const *names,
                       char out[SETTINGS_CHANGE])
{
    size_t i, n;

    out[0] = '\0';
    for (i = 0; i < s->count; i++) {
        char number[SETTINGS_NUMBER], before[KEPT_TEXT];
        bool listed = kinds >> s->kind[i] & 1;

        for (n = 0; names[n] && !listed; n++)
            listed = strcmp(names[n], s->value[i].name) == 0;
        if (listed && differs(s, i, kept, before))
            settings_note(out, SETTINGS_CHANGE, s->value[i].name, before, value_text(&s->value[i], number));
    }
}

enum chex_status
settings_compare(const struct settings *s, const char *kept, unsigned allowed, struct settings_change *out,
                 struct chex_error *err)
{
    char refused[CHEX_ERROR_TEXT - 200] = "", advice[128];
    unsigned kinds = 0; /* refused kinds, bits */
    size_t i;

    *out = (struct settings_change){.batch = false};
    for (i = 0; i < s->count; i++) {
        char number[SETTINGS_NUMBER], before[KEPT_TEXT];
        const char *now = value_text(&s->value[i], number), *name = s->value[i].name;
        enum setting_kind kind = s->kind[i];

        if (!differs(s, i, kept, before))
            continue;
        if (kind > SETTING_FREE && !(allowed >> kind & 1)) {
            settings_note(refused, sizeof(refused), name, before, now);
            kinds |= 1u << kind;
            continue;
        }
        out->batch |= kind == SETTING_BATCH;
        out->data |= kind == SETTING_DATA;
        out->precision |= kind == SETTING_PRECISION;
        settings_note(out->text, sizeof(out->text), name, before, now);
    }
    if (refused[0])
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "it was made with other options: %s%s", refused,
                         advise(kinds, advice));
    return CHEX_OK;
}
