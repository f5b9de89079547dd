/*
 * where.c - see where.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/where.h"

#include "base/ascii.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Keys of the terms that are not findings, in the order of enum where_kind. */
static const char *const keys[] = {"view", "sex", "age", "patient", "name", "split", NULL};

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

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

/* The list of findings is not known yet: where_resolve() looks the name up. */
static enum chex_status
parse_finding(struct where_term *t, const char *text, size_t name, size_t length, struct chex_error *err)
{
    t->kind = WHERE_FINDING;
    t->wanted = true;
    t->text = (struct chex_bytes){text, name};
    if (name == length)
        return CHEX_OK;
    if (length - name != 2 || (text[name + 1] != '0' && text[name + 1] != '1'))
        return error_set(err, CHEX_ERR_USAGE, "a finding is =0 or =1, not '%.*s'", (int)(length < 100 ? length : 100),
                         text);
    t->wanted = text[name + 1] == '1';
    return CHEX_OK;
}

static enum chex_status
parse_term(struct where_term *t, const char *text, size_t length, struct chex_error *err)
{
    const char *equals = memchr(text, '=', length);
    size_t name = equals ? (size_t)(equals - text) : length;
    unsigned i;

    if (length == 0)
        return error_set(err, CHEX_ERR_USAGE, "an empty term");
    for (i = 0; equals && keys[i]; i++) {
        if (!ascii_is(text, name, keys[i]))
            continue;
        t->kind = (enum where_kind)(WHERE_VIEW + i);
        t->text = (struct chex_bytes){equals + 1, length - name - 1};
        if (t->text.size == 0)
            return error_set(err, CHEX_ERR_USAGE, "%s= needs a value", keys[i]);
        if (t->kind == WHERE_SEX && (t->text.size != 1 || !strchr("MFUmfu", t->text.data[0])))
            return error_set(err, CHEX_ERR_USAGE, "a sex is M, F or U, not '%.*s'",
                             (int)(t->text.size < 100 ? t->text.size : 100), t->text.data);
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

/* The message lists the first findings; --where alone cannot list 254. */
static enum chex_status
unknown_finding(const struct findings *findings, struct chex_bytes name, struct chex_error *err)
{
    const char *near = finding_suggest(findings, name.data, name.size);
    char list[256] = "", shown[128];
    size_t used = 0;
    unsigned i;

    for (i = 0; i < findings->count && used + strlen(findings->name[i]) + 2 < sizeof(list) - 4; i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s, ", findings->name[i]);
    if (i < findings->count)
        snprintf(list + used, sizeof(list) - used, "...");
    ascii_escape(name.data, name.size, shown, sizeof(shown));
    return error_set(err, CHEX_ERR_USAGE,
                     "no finding '%s'%s%s%s; there are %sNo_Finding, and view=, sex=, age=, patient=, name=, split=",
                     shown, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "", list);
}

enum chex_status
where_resolve(struct where *w, const struct findings *findings, struct chex_error *err)
{
    w->finding_count = findings->count;
    for (unsigned i = 0; i < w->count; i++) {
        struct where_term *t = &w->term[i];

        if (t->kind != WHERE_FINDING)
            continue;
        t->finding = finding_index(findings, t->text.data, t->text.size);
        if (t->finding < 0 && !finding_is_none(t->text.data, t->text.size))
            return unknown_finding(findings, t->text, err);
    }
    return CHEX_OK;
}

enum chex_status
where_check_splits(const struct where *w, const char *const *name, unsigned count, struct chex_error *err)
{
    char list[256] = "", shown[128];
    size_t used = 0;
    unsigned i, k;

    for (i = 0; i < w->count; i++) {
        const struct chex_bytes text = w->term[i].text;

        if (w->term[i].kind != WHERE_SPLIT)
            continue;
        for (k = 0; k < count && (strlen(name[k]) != text.size || memcmp(name[k], text.data, text.size) != 0);)
            k++;
        if (k < count)
            continue;
        for (k = 0; k < count && used + strlen(name[k]) + 2 < sizeof(list); k++)
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", k > 0 ? ", " : "", name[k]);
        ascii_escape(text.data, text.size < 30 ? text.size : 30, shown, sizeof(shown));
        return error_set(err, CHEX_ERR_USAGE, "no split '%s'; there are %s", shown, list);
    }
    return CHEX_OK;
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

static bool
same(struct chex_bytes a, struct chex_bytes b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

static bool
is_number(struct chex_bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!ascii_is_digit(text.data[i]))
            return false;
    return true;
}

/* An id of fewer than 8 digits is padded with zeros when labels are read, so "1" is the patient "00000001". */
static bool
same_patient(struct chex_bytes text, struct chex_bytes id)
{
    size_t zeros = text.size < 8 && id.size == 8 ? 8 - text.size : 0;

    for (size_t i = 0; i < zeros; i++)
        if (id.data[i] != '0')
            return false;
    return text.size > 0 && same(text, (struct chex_bytes){id.data + zeros, id.size - zeros});
}

static bool
finding_holds(const struct where *w, const struct where_term *t, const uint8_t *label)
{
    if (t->finding >= 0)
        return label[t->finding] == t->wanted;
    return t->wanted ? labels_are_none(label, w->finding_count) : memchr(label, 1, w->finding_count) != NULL;
}

static bool
term_holds(const struct where *w, const struct where_term *t, const struct record_values *v, const char *split)
{
    switch (t->kind) {
    case WHERE_FINDING:
        return finding_holds(w, t, v->label);
    case WHERE_VIEW:
        return ascii_same(t->text.data, t->text.size, v->view.data, v->view.size);
    case WHERE_SEX:
        return t->text.size == 1 && ascii_upper(t->text.data[0]) == v->sex;
    case WHERE_AGE:
        return !isnan(v->age) && v->age >= (float)t->age_min && v->age < (float)t->age_max + 1;
    case WHERE_PATIENT:
        return same_patient(t->text, v->patient);
    case WHERE_NAME:
        return same(t->text, v->name);
    case WHERE_SPLIT:
        return split && strlen(split) == t->text.size && memcmp(split, t->text.data, t->text.size) == 0;
    }
    return false;
}

bool
where_holds(const struct where *w, const struct record_values *values, const char *split)
{
    unsigned i = 0;

    while (i < w->count) {
        unsigned clause = w->term[i].clause;
        bool any = false;

        for (; i < w->count && w->term[i].clause == clause; i++)
            any = any || term_holds(w, &w->term[i], values, split);
        if (!any)
            return false;
    }
    return true;
}

/* ---- one line ---------------------------------------------------------------------------------------------------- */

/* Write a term in its canonical spelling: one for each meaning.  Returns its length, which may exceed the size. */
static size_t
format_term(const struct where_term *t, const struct findings *findings, char *out, size_t size)
{
    const char *name = t->finding >= 0 ? findings->name[t->finding] : "No_Finding";
    const int value = (int)t->text.size;
    int length;

    if (t->kind == WHERE_FINDING)
        length = snprintf(out, size, "%s%s", name, t->wanted ? "" : "=0");
    else if (t->kind == WHERE_AGE && t->age_min == t->age_max)
        length = snprintf(out, size, "age=%u", t->age_min);
    else if (t->kind == WHERE_AGE)
        length = snprintf(out, size, "age=%u-%u", t->age_min, t->age_max);
    else if (t->kind == WHERE_PATIENT && is_number(t->text))
        length = snprintf(out, size, "patient=%.*s%.*s", value < 8 ? 8 - value : 0, "00000000", value, t->text.data);
    else
        length = snprintf(out, size, "%s=%.*s", keys[t->kind - WHERE_VIEW], value, t->text.data);
    if (t->kind == WHERE_VIEW || t->kind == WHERE_SEX)
        for (size_t i = strcspn(out, "="); out[i]; i++)
            out[i] = ascii_upper(out[i]);
    return (size_t)length;
}

/* Insert a part into a sorted line of parts, unless the line has it.  Returns false if the line becomes too long. */
static bool
insert(char line[WHERE_TEXT], const char *separator, const char *part)
{
    const size_t length = strlen(part), gap = strlen(separator), used = strlen(line);
    char *at = line;

    while (*at) {
        const char *next = strstr(at, separator);
        size_t size = next ? (size_t)(next - at) : strlen(at);
        int order = memcmp(at, part, size < length ? size : length);

        if (order == 0 && size == length)
            return true;
        if (order > 0 || (order == 0 && size > length))
            break;
        at += next ? size + gap : size;
    }
    if (used + gap + length >= WHERE_TEXT)
        return false;
    if (used == 0) {
        memcpy(line, part, length + 1);
    } else if (*at) { /* before the part at this place */
        memmove(at + length + gap, at, strlen(at) + 1);
        memcpy(at, part, length);
        memcpy(at + length, separator, gap);
    } else {
        memcpy(at, separator, gap);
        memcpy(at + gap, part, length + 1);
    }
    return true;
}

/* Insert the texts of a line of an earlier selection, each with its terms in order. */
static void
insert_line(char line[WHERE_TEXT], char *earlier)
{
    for (char *next; earlier; earlier = next) {
        char clause[WHERE_TEXT] = "", *term, *rest = NULL;

        next = strstr(earlier, WHERE_AND);
        if (next) {
            *next = '\0';
            next += strlen(WHERE_AND);
        }
        for (term = strtok_r(earlier, ",", &rest); term; term = strtok_r(NULL, ",", &rest))
            insert(clause, ",", term);
        insert(line, WHERE_AND, clause);
    }
}

static bool
is_plain(const char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~' || *text == '&')
            return false;
    return true;
}

enum chex_status
where_format(const struct where *w, const struct findings *findings, char text[WHERE_TEXT], struct chex_error *err)
{
    char earlier[WHERE_TEXT];
    unsigned i = 0;

    memcpy(earlier, text, WHERE_TEXT);
    text[0] = '\0';
    if (earlier[0])
        insert_line(text, earlier);
    while (i < w->count) {
        char clause[WHERE_TEXT] = "", term[WHERE_TEXT];
        unsigned number = w->term[i].clause;
        bool fits = true;

        for (; i < w->count && w->term[i].clause == number && fits; i++) {
            fits = format_term(&w->term[i], findings, term, sizeof(term)) < sizeof(term);
            if (fits && !is_plain(term))
                return error_set(err, CHEX_ERR_USAGE, "a value has an '&' or is not printable ASCII");
            fits = fits && insert(clause, ",", term);
        }
        if (!fits || !insert(text, WHERE_AND, clause))
            return error_set(err, CHEX_ERR_USAGE,
                             "longer than %d bytes, which the manifest could not record: use --exclude LIST",
                             WHERE_TEXT - 1);
    }
    return CHEX_OK;
}

bool
where_has(const struct where *w, enum where_kind kind)
{
    for (unsigned i = 0; i < w->count; i++)
        if (w->term[i].kind == kind)
            return true;
    return false;
}
