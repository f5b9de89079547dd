/*
 * findings.c - see findings.h
 *
 * The order is that of CheXNet (Rajpurkar et al. 2017); the names are those of NIH's Data_Entry files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/findings.h"

#include "base/ascii.h"

#include <string.h>

#define NAME_MAX_LENGTH 32 /* longer than any name in any spelling */
#define SUGGEST_MAX     3

static const char *const finding_names[CHEX_FINDINGS] = {
    "Atelectasis", "Cardiomegaly", "Effusion",           "Infiltration",  "Mass",
    "Nodule",      "Pneumonia",    "Pneumothorax",       "Consolidation", "Edema",
    "Emphysema",   "Fibrosis",     "Pleural_Thickening", "Hernia",
};

/*
 * Other common spellings, from NIH's list of boxes, the paper and copies of the data set; in the form that fold()
 * returns.
 */
static const struct {
    const char *name;
    const char *of;
} aliases[] = {
    {"infiltrate", "Infiltration"},
    {"pleuralthickening", "Pleural_Thickening"},
};

const char *
chex_finding_name(unsigned index)
{
    return index < CHEX_FINDINGS ? finding_names[index] : NULL;
}

/*
 * Convert to lower case, trim blanks, and replace each run of blanks, '_' and '-' by one '_'.  Returns the length, or 0
 * if the name is too long to match.
 */
static size_t
fold(const char *name, size_t length, char out[NAME_MAX_LENGTH])
{
    size_t used = 0;

    ascii_trim(&name, &length);
    for (size_t i = 0; i < length; i++) {
        bool separator = ascii_is_blank(name[i]) || name[i] == '_' || name[i] == '-';

        if (separator && used > 0 && out[used - 1] == '_')
            continue;
        if (used == NAME_MAX_LENGTH)
            return 0;
        out[used++] = separator ? '_' : ascii_lower(name[i]);
    }
    return used;
}

int
finding_index(const char *name, size_t length)
{
    char folded[NAME_MAX_LENGTH];
    size_t size = fold(name, length, folded);

    for (int i = 0; i < CHEX_FINDINGS; i++)
        if (ascii_is(folded, size, finding_names[i]))
            return i;
    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
        if (ascii_is(folded, size, aliases[i].name))
            return finding_index(aliases[i].of, strlen(aliases[i].of));
    return -1;
}

bool
finding_is_none(const char *name, size_t length)
{
    char folded[NAME_MAX_LENGTH];
    size_t size = fold(name, length, folded);

    return ascii_is(folded, size, "no_finding") || ascii_is(folded, size, "nofinding");
}

const char *
finding_suggest(const char *name, size_t length)
{
    const char *best = NULL;
    unsigned least = SUGGEST_MAX + 1;

    for (int i = 0; i <= CHEX_FINDINGS; i++) {
        const char *candidate = i < CHEX_FINDINGS ? finding_names[i] : "No Finding";
        unsigned distance = ascii_distance(name, length, candidate, strlen(candidate));

        if (distance < least) {
            least = distance;
            best = candidate;
        }
    }
    return best;
}

enum findings_fault
findings_scan(const char *text, size_t text_length, findings_unknown_fn *unknown, void *context, uint16_t *mask)
{
    const char *end = text + text_length;
    enum findings_fault fault = FINDINGS_GOOD;
    bool none = false;

    *mask = 0;
    ascii_trim(&text, &text_length);
    if (text_length == 0)
        return FINDINGS_EMPTY;
    for (const char *part = text, *next; part; part = next) {
        const char *bar = memchr(part, '|', (size_t)(end - part));
        size_t length = (size_t)((bar ? bar : end) - part);
        int index;

        next = bar ? bar + 1 : NULL;
        ascii_trim(&part, &length);
        if (length == 0)
            return FINDINGS_EMPTY_PART;
        if (finding_is_none(part, length)) {
            none = true;
        } else if ((index = finding_index(part, length)) >= 0) {
            *mask |= (uint16_t)(1u << index);
        } else {
            unknown(part, length, context);
            fault = FINDINGS_UNKNOWN;
        }
    }
    return fault == FINDINGS_GOOD && none && *mask ? FINDINGS_CONTRADICTION : fault;
}

bool
findings_are_exact(const char *text, size_t text_length)
{
    const char *end = text + text_length;

    for (const char *part = text, *next; part; part = next) {
        const char *bar = memchr(part, '|', (size_t)(end - part)), *name;
        size_t length = (size_t)((bar ? bar : end) - part);
        int index;

        next = bar ? bar + 1 : NULL;
        ascii_trim(&part, &length);
        index = finding_index(part, length);
        name = index < 0 ? "No Finding" : finding_names[index];
        if (length != strlen(name) || memcmp(part, name, length) != 0)
            return false;
    }
    return true;
}
