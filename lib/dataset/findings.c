/*
 * findings.c - see findings.h; findings_lists.c has the lists
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/findings.h"

#include "base/ascii.h"

#include <stdlib.h>
#include <string.h>

#define SUGGEST_MAX 3

const struct findings findings_nih14 = {(const char *const[]){FINDINGS_NIH14, NULL}, 14};

/* Another spelling, from NIH's list of boxes; in the form that fold() returns. */
static const struct {
    const char *name;
    const char *of;
} aliases[] = {
    {"infiltrate", "Infiltration"},
};

/* Convert to lower case, without blanks, '_' and '-'.  Returns the length, or 0 if the name is too long to match. */
static size_t
fold(const char *name, size_t length, char out[FINDING_NAME_MAX])
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        if (ascii_is_separator(name[i]))
            continue;
        if (used == FINDING_NAME_MAX)
            return 0;
        out[used++] = ascii_lower(name[i]);
    }
    return used;
}

/* Returns whether fold() makes the same text of this name. */
static bool
folds_to(const char *name, const char *folded, size_t size)
{
    char own[FINDING_NAME_MAX];
    size_t length = size > 0 ? fold(name, strlen(name), own) : 0;

    return length == size && size > 0 && memcmp(own, folded, size) == 0;
}

static int
index_of_folded(const struct findings *list, const char *folded, size_t size)
{
    for (unsigned i = 0; i < list->count; i++)
        if (folds_to(list->name[i], folded, size))
            return (int)i;
    return -1;
}

bool
findings_equal(const struct findings *a, const struct findings *b)
{
    bool equal = a->count == b->count;

    for (unsigned i = 0; equal && i < a->count; i++)
        equal = strcmp(a->name[i], b->name[i]) == 0;
    return equal;
}

/* Returns NULL, or why the name cannot be that of a finding. */
static const char *
name_fault(const struct chex_bytes *name)
{
    if (name->size == 0)
        return "is empty";
    if (name->size > FINDING_NAME_MAX)
        return "is longer than 64 characters";
    for (size_t i = 0; i < name->size; i++)
        if (name->data[i] < ' ' || name->data[i] > '~' || strchr("|,\"<>&", name->data[i]))
            return "has a character other than printable ASCII without | , \" < > &";
    if (name->data[0] == ' ' || name->data[name->size - 1] == ' ')
        return "begins or ends with a blank";
    for (size_t i = 0; ascii_is_separator(name->data[i]); i++)
        if (i + 1 == name->size)
            return "has only _ and -";
    return NULL;
}

/* Returns whether two names are equal for finding_index(), or both mean No Finding. */
static bool
same_finding(const char *a, const char *b)
{
    char folded[FINDING_NAME_MAX] = "";

    return folds_to(b, folded, fold(a, strlen(a), folded)) ||
           (finding_is_none(a, strlen(a)) && finding_is_none(b, strlen(b)));
}

enum chex_status
findings_make(const struct chex_bytes *name, size_t count, struct findings *out, struct chex_error *err)
{
    char shown[4 * FINDING_NAME_MAX + 4], *text;
    size_t size = 0, i, j;
    const char **list;

    if (count == 0 || count > FINDINGS_MAX)
        return error_set(err, CHEX_ERR_USAGE, "a list of %zu findings: must be 1 to %d", count, FINDINGS_MAX);
    for (i = 0; i < count; i++) {
        const char *wrong = name_fault(&name[i]);

        if (wrong)
            return error_set(err, CHEX_ERR_USAGE, "the name of finding %zu, \"%s\", %s", i + 1,
                             ascii_escape(name[i].data, name[i].size, shown, sizeof(shown)), wrong);
        size += name[i].size + 1;
    }
    list = malloc((count + 1) * sizeof(*list) + size);
    if (!list)
        return error_memory(err);
    text = (char *)(list + count + 1);
    for (i = 0; i < count; i++) {
        list[i] = memcpy(text, name[i].data, name[i].size);
        text += name[i].size;
        *text++ = '\0';
        for (j = 0; j < i; j++) {
            if (!same_finding(list[j], list[i]))
                continue;
            error_set(err, CHEX_ERR_USAGE, "the findings \"%s\" and \"%s\" have the same name", list[j], list[i]);
            free(list);
            return CHEX_ERR_USAGE;
        }
    }
    list[count] = NULL;
    *out = (struct findings){list, (unsigned)count};
    return CHEX_OK;
}

void
findings_release(struct findings *list)
{
    free((void *)(uintptr_t)list->name);
    *list = (struct findings){0};
}

int
finding_index(const struct findings *list, const char *name, size_t length)
{
    char folded[FINDING_NAME_MAX] = "";
    size_t size = fold(name, length, folded);
    int index = index_of_folded(list, folded, size);

    for (size_t i = 0; index < 0 && i < sizeof(aliases) / sizeof(aliases[0]); i++)
        if (ascii_is(folded, size, aliases[i].name))
            index = index_of_folded(list, folded, fold(aliases[i].of, strlen(aliases[i].of), folded));
    return index;
}

bool
finding_is_none(const char *name, size_t length)
{
    char folded[FINDING_NAME_MAX] = "";
    size_t size = fold(name, length, folded);

    return ascii_is(folded, size, "nofinding");
}

const char *
finding_suggest(const struct findings *list, const char *name, size_t length)
{
    const char *best = NULL;
    unsigned least = SUGGEST_MAX + 1;

    for (unsigned i = 0; i <= list->count; i++) {
        const char *candidate = i < list->count ? list->name[i] : "No Finding";
        unsigned distance = ascii_distance(name, length, candidate, strlen(candidate));

        if (distance < least) {
            least = distance;
            best = candidate;
        }
    }
    return best;
}

bool
labels_are_none(const uint8_t *label, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (label[i] != 0)
            return false;
    return true;
}

enum findings_fault
findings_scan(const struct findings_form *form, const char *text, size_t text_length, findings_unknown_fn *unknown,
              void *context, uint8_t *label, size_t *ignored)
{
    const struct findings *list = form->list;
    const char *end = text + text_length;
    enum findings_fault fault = FINDINGS_GOOD;
    bool none = false, some = false;

    memset(label, 0, list->count);
    ascii_trim(&text, &text_length);
    if (text_length == 0)
        return FINDINGS_EMPTY;
    for (const char *part = text, *next; part; part = next) {
        const char *bar = memchr(part, form->separator, (size_t)(end - part));
        size_t length = (size_t)((bar ? bar : end) - part);
        int index;

        next = bar ? bar + 1 : NULL;
        ascii_trim(&part, &length);
        if (length == 0)
            return FINDINGS_EMPTY_PART;
        if (finding_is_none(part, length)) {
            none = true;
        } else if ((index = finding_index(list, part, length)) >= 0) {
            label[index] = 1;
            some = true;
        } else if (finding_index(form->known, part, length) >= 0) {
            ++*ignored;
            some = true;
        } else {
            unknown(part, length, context);
            fault = FINDINGS_UNKNOWN;
        }
    }
    for (unsigned i = 0; none && i < list->count; i++)
        label[i] |= finding_is_none(list->name[i], strlen(list->name[i]));
    return fault == FINDINGS_GOOD && none && some ? FINDINGS_CONTRADICTION : fault;
}

bool
findings_are_exact(const struct findings_form *form, const char *text, size_t text_length)
{
    const struct findings *list = form->list;
    const char *end = text + text_length;

    for (const char *part = text, *next; part; part = next) {
        const char *bar = memchr(part, form->separator, (size_t)(end - part)), *name;
        size_t length = (size_t)((bar ? bar : end) - part);
        int index;

        next = bar ? bar + 1 : NULL;
        ascii_trim(&part, &length);
        index = finding_index(list, part, length);
        if (index < 0) /* No Finding, or a known finding that the list lacks */
            name = finding_is_none(part, length) ? "No Finding"
                                                 : form->known->name[finding_index(form->known, part, length)];
        else
            name = list->name[index];
        if (length != strlen(name) || memcmp(part, name, length) != 0)
            return false;
    }
    return true;
}
