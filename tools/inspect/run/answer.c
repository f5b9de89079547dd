/*
 * answer.c - an answer of the report of a run, and its numbers as text; see run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/run.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

const char *
run_number(double value, int digits, char out[RUN_DIGITS])
{
    if (isnan(value))
        return "-";
    snprintf(out, RUN_DIGITS, "%.*f", digits, value);
    return strcmp(out, "-0.000") == 0 ? out + 1 : out;
}

struct run_answer *
run_answer_begin(struct run_report *r, const char *id, const char *title, enum run_answer_level level)
{
    struct run_answer *a = &r->answer[r->answers < RUN_ANSWERS - 1 ? r->answers++ : RUN_ANSWERS - 1];

    *a = (struct run_answer){.id = id, .title = title, .level = level};
    return a;
}

void
run_say(struct run_answer *a, const char *format, ...)
{
    size_t used = strlen(a->text);
    va_list args;

    va_start(args, format);
    vsnprintf(a->text + used, sizeof(a->text) - used, format, args);
    va_end(args);
}

void
run_put_answers(struct html *h, const struct run_report *r)
{
    static const struct {
        const char *kind, *mark;
    } of[RUN_ANSWER_LEVELS] = {[RUN_GOOD] = {"good", "&#10003; answer"},
                               [RUN_NOTE] = {"note", "&#9675; note"},
                               [RUN_LOOK] = {"look", "&#9679; look"}};
    unsigned i;

    for (i = 0; i < r->answers; i++) {
        const struct run_answer *a = &r->answer[i];

        html_format(h, "<tr id=\"%sanswer-%s\"><td class=\"lv %s\">%s</td><th>%s</th><td>", r->id, a->id,
                    of[a->level].kind, of[a->level].mark, a->title);
        html_words(h, a->text);
        html_raw(h, "</td></tr>\n");
    }
}
