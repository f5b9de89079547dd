/*
 * template.c - see template.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "draw/template.h"

#include "base/number_format.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

extern const char *const page_style[]; /* page.css */

void
template_add(struct template_values *v, const char *name, const char *format, ...)
{
    unsigned i = v->count < TEMPLATE_VALUES - 1 ? v->count++ : TEMPLATE_VALUES - 1;
    va_list args;

    va_start(args, format);
    v->of[i].name = name;
    vsnprintf(v->of[i].text, TEMPLATE_VALUE, format, args);
    va_end(args);
}

void
template_add_some(struct template_values *v, const char *name, uint64_t n)
{
    char text[FORMAT_TEXT];

    template_add(v, name, "%s", n > 0 ? format_count(n, text) : "");
}

struct tag_writer {
    struct html *h;
    const struct template_values *values;
    template_part_fn *part;
    const void *context;
    bool skip; /* within a condition that is false */
};

static const char *
find_value(const struct template_values *v, const char *name, size_t length)
{
    unsigned i;

    for (i = 0; i < v->count; i++)
        if (strlen(v->of[i].name) == length && memcmp(v->of[i].name, name, length) == 0)
            return v->of[i].text;
    return NULL;
}

static void
put_style(struct html *h)
{
    size_t i;

    for (i = 0; page_style[i]; i++)
        html_raw(h, page_style[i]);
}

/* Replace a tag, which is between "{{" and "}}". */
static enum chex_status
put_tag(struct tag_writer *f, const char *tag, size_t length, struct chex_error *err)
{
    bool condition = tag[0] == '?' || tag[0] == '^', found = false;
    const char *value = find_value(f->values, tag + condition, length - condition);
    enum chex_status status = CHEX_OK;

    if (tag[0] == '/') {
        f->skip = false;
        return CHEX_OK;
    }
    if (condition && value) {
        f->skip = (value[0] != '\0') != (tag[0] == '?');
        return CHEX_OK;
    }
    if (f->skip)
        return CHEX_OK;
    if (value) {
        html_text(f->h, value);
    } else if (length == strlen("style") && memcmp(tag, "style", length) == 0) {
        put_style(f->h);
    } else {
        status = f->part(f->h, f->context, tag, length, &found, err);
        if (status == CHEX_OK && !found)
            return error_set(err, CHEX_ERR_BUG, "the template has no value for '%.*s'", (int)length, tag);
    }
    return status;
}

static enum chex_status
put_line(struct tag_writer *f, const char *line, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    const char *tag, *end;

    while (status == CHEX_OK && (tag = strstr(line, "{{")) != NULL && (end = strstr(tag, "}}")) != NULL) {
        if (!f->skip)
            html_format(f->h, "%.*s", (int)(tag - line), line);
        status = put_tag(f, tag + 2, (size_t)(end - tag - 2), err);
        if (tag == line && strcmp(end, "}}\n") == 0) /* a tag alone adds no line */
            return status;
        line = end + 2;
    }
    if (!f->skip)
        html_raw(f->h, line);
    return status;
}

enum chex_status
template_fill(const char *const *line, const struct template_values *v, template_part_fn *part, const void *context,
              struct html *h, struct chex_error *err)
{
    struct tag_writer f = {.h = h, .values = v, .part = part, .context = context};
    enum chex_status status = CHEX_OK;

    for (; *line && status == CHEX_OK; line++)
        status = put_line(&f, *line, err);
    return status == CHEX_OK && h->failed ? error_memory(err) : status;
}
