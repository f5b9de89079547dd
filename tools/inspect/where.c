/*
 * where.c - see where.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/where.h"

#include "base/ascii.h"
#include "dataset/findings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

static enum chex_status
unknown_finding(const char *name, size_t length, struct chex_error *err)
{
    const char *near = finding_suggest(&findings_nih14, name, length);
    char list[256] = "", shown[128];
    unsigned i;

    for (i = 0; i < CHEX_FINDINGS; i++) {
        strncat(list, chex_finding_name(i), sizeof(list) - strlen(list) - 1);
        strncat(list, ", ", sizeof(list) - strlen(list) - 1);
    }
    ascii_escape(name, length, shown, sizeof(shown));
    return error_set(err, CHEX_ERR_USAGE,
                     "no finding '%s'%s%s%s; there are %sNo_Finding, and view=, sex=, age=, patient=, name=", shown,
                     near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "", list);
}

/* "60" or "40-59", up to three digits each. */
static enum chex_status
parse_age(struct where_term *t, struct chex_error *err)
{
    char text[16], rest;
    int fields;

    t->age_min = t->age_max = 0;
    snprintf(text, sizeof(text), "%.*s", (int)(t->text.size < 15 ? t->text.size : 15), t->text.data);
    fields = sscanf(text, "%3u-%3u%c", &t->age_min, &t->age_max, &rest);
    if (fields == 1 && t->text.size <= 3 && strspn(text, "0123456789") == t->text.size) {
        t->age_max = t->age_min;
        return CHEX_OK;
    }
    if (fields == 2 && ascii_is_digit(text[0]) && t->text.size <= 7 && t->age_min <= t->age_max &&
        strspn(text, "0123456789-") == strlen(text))
        return CHEX_OK;
    return error_set(err, CHEX_ERR_USAGE, "an age is years, as 60 or 40-59, not '%s'", text);
}

static enum chex_status
parse_finding(struct where_term *t, const char *text, size_t name, size_t length, struct chex_error *err)
{
    bool value = name < length;
    int finding = finding_index(&findings_nih14, text, name);

    t->wanted = true;
    if (value) {
        if (length - name != 2 || (text[name + 1] != '0' && text[name + 1] != '1'))
            return finding < 0 && !finding_is_none(text, name)
                       ? unknown_finding(text, name, err)
                       : error_set(err, CHEX_ERR_USAGE, "a finding is =0 or =1, not '%.*s'",
                                   (int)(length < 100 ? length : 100), text);
        t->wanted = text[name + 1] == '1';
    }
    t->kind = finding < 0 ? WHERE_NONE : WHERE_FINDING;
    t->finding = finding < 0 ? 0 : (unsigned)finding;
    return finding >= 0 || finding_is_none(text, name) ? CHEX_OK : unknown_finding(text, name, err);
}

static enum chex_status
parse_term(struct where_term *t, const char *text, size_t length, struct chex_error *err)
{
    static const char *const keys[] = {"view", "sex", "age", "patient", "name"};
    const char *equals = memchr(text, '=', length);
    size_t name = equals ? (size_t)(equals - text) : length;
    unsigned i;

    if (length == 0)
        return error_set(err, CHEX_ERR_USAGE, "an empty term");
    for (i = 0; equals && i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (!ascii_is(text, name, keys[i]))
            continue;
        t->kind = (enum where_kind)(WHERE_VIEW + i);
        t->text = (struct chex_bytes){equals + 1, length - name - 1};
        if (t->text.size == 0)
            return error_set(err, CHEX_ERR_USAGE, "%s= needs a value", keys[i]);
        return t->kind == WHERE_AGE ? parse_age(t, err) : CHEX_OK;
    }
    return parse_finding(t, text, name, length, err);
}

enum chex_status
where_add(struct where *w, const char *text, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    if (w->text_count == WHERE_MAX_TEXTS)
        return error_set(err, CHEX_ERR_USAGE, "at most %d times", WHERE_MAX_TEXTS);
    w->text[w->text_count] = text;
    for (;;) {
        size_t length = strcspn(text, ",");

        if (w->count == WHERE_MAX_TERMS)
            return error_set(err, CHEX_ERR_USAGE, "at most %d terms", WHERE_MAX_TERMS);
        w->term[w->count] = (struct where_term){.clause = w->text_count, .source = {text, length}};
        status = parse_term(&w->term[w->count], text, length, err);
        if (status != CHEX_OK)
            return status;
        w->count++;
        if (!text[length])
            break;
        text += length + 1;
    }
    w->text_count++;
    return CHEX_OK;
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

static bool
same(struct chex_bytes a, struct chex_bytes b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

static bool
term_holds(const struct where_term *t, const struct record_values *v)
{
    switch (t->kind) {
    case WHERE_FINDING:
        return (v->label[t->finding] == 1) == t->wanted;
    case WHERE_NONE:
        return labels_are_none(v->label, CHEX_FINDINGS) == t->wanted;
    case WHERE_VIEW:
        return ascii_same(t->text.data, t->text.size, v->view.data, v->view.size);
    case WHERE_SEX:
        return t->text.size == 1 && ascii_upper(t->text.data[0]) == v->sex;
    case WHERE_AGE:
        return !isnan(v->age) && v->age >= (float)t->age_min && v->age < (float)t->age_max + 1;
    case WHERE_PATIENT:
        return same(t->text, v->patient);
    case WHERE_NAME:
        return same(t->text, v->name);
    }
    return false;
}

bool
where_holds(const struct where *w, const struct record_values *values)
{
    unsigned i = 0;

    while (i < w->count) {
        unsigned clause = w->term[i].clause;
        bool any = false;

        for (; i < w->count && w->term[i].clause == clause; i++)
            any = any || term_holds(&w->term[i], values);
        if (!any)
            return false;
    }
    return true;
}
