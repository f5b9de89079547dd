/*
 * convert_notes.c - reports the labels and list lines that chex-convert had to interpret
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_report.h"

#include "base/number_format.h"
#include "common/printable.h"

static const struct {
    const char *noun, *rest;
} kinds[NOTE_KINDS] = {
    [NOTE_SPELLING] = {"row", "with a finding in another spelling"},
    [NOTE_AGE] = {"age", "that is not a number, taken as unknown"},
    [NOTE_SEX] = {"sex", "other than M and F, taken as unknown"},
    [NOTE_VIEW] = {"view", "that is not a word, taken as unknown"},
    [NOTE_JUNK] = {"line", "of a list that names no image"},
    [NOTE_GLUED] = {"line", "of a list with two names: is a newline missing?"},
};

/* Prints the first lines of each kind; "more" replaces the others. */
static void
list_kept(const struct notes *n, enum note_kind kind)
{
    char more[FORMAT_TEXT];
    size_t i;

    for (i = 0; i < n->count[kind] && i < NOTES_KEPT; i++)
        printable_line(stderr, "           %s", n->text[kind][i]);
    if (i < n->count[kind])
        fprintf(stderr, "           and %s more\n", format_count(n->count[kind] - i, more));
}

void
report_notes(const struct convert *c, bool list)
{
    const struct labels *l = &c->labels;
    const struct notes *all[] = {&l->notes, &c->exclude.notes, &c->plan.splits.notes};
    bool hidden = false;
    char n[FORMAT_THINGS];

    if (l->no_age || l->no_sex || l->no_view)
        fprintf(stderr, "         no column for%s%s%s: unknown for all images\n", l->no_age ? " age" : "",
                l->no_sex ? " sex" : "", l->no_view ? " view" : "");
    for (int kind = 0; kind < NOTE_KINDS; kind++) {
        size_t count = 0, i;

        for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
            count += all[i]->count[kind];
        if (count == 0)
            continue;
        fprintf(stderr, "         %s %s\n", format_things(count, kinds[kind].noun, n), kinds[kind].rest);
        hidden = !list;
        for (i = 0; list && i < sizeof(all) / sizeof(all[0]); i++)
            list_kept(all[i], (enum note_kind)kind);
    }
    if (hidden)
        fprintf(stderr, "         -v lists these\n");
}
