/*
 * sentence.c - helpers that write the sentences of the checks of the report; see checks.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/report/checks.h"

#include "base/ascii.h"

#include <stdarg.h>
#include <string.h>

struct report_check *
report_check_begin(struct html_report *r, const char *id, const char *title, enum report_level level, uint64_t count)
{
    struct report_check *c = &r->checks[r->check_count < REPORT_CHECKS - 1 ? r->check_count++ : REPORT_CHECKS - 1];

    *c = (struct report_check){.id = id, .title = title, .level = level, .count = count};
    return c;
}

void
report_check_say(struct report_check *c, const char *format, ...)
{
    size_t used = strlen(c->text);
    va_list args;

    va_start(args, format);
    vsnprintf(c->text + used, sizeof(c->text) - used, format, args);
    va_end(args);
}

const char *
report_split_name(const struct html_report *r, unsigned split)
{
    return r->dataset->split[split].name;
}

const char *
report_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

void
report_check_name(struct report_check *c, const char *name)
{
    char text[80];

    report_check_say(c, "%s", ascii_escape(name, strlen(name), text, sizeof(text)));
}
