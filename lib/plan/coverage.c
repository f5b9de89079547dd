/*
 * coverage.c - see coverage.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "plan/coverage.h"

#include "input/image_name.h"

#include <stdio.h>
#include <string.h>

#define WHOLE_COUNT 112120

size_t
preflight_archive(size_t row)
{
    const size_t first = 4999, each = 10000;

    return row < first ? 0 : 1 + (row - first) / each;
}

/* Add one row to the counts. */
static void
count_row(const struct labels *labels, size_t row, bool there, struct preflight *out)
{
    if (!there && out->missing < PREFLIGHT_SAMPLES)
        out->sample[out->missing] = labels->entry[row].name;
    out->wanted++;
    out->found += there;
    out->missing += !there;
    if (out->whole) {
        out->archive[preflight_archive(row)].wanted++;
        out->archive[preflight_archive(row)].found += there;
    }
}

void
preflight_count(const struct labels *labels, const bool *skip, const struct source *source, bool *missing_image,
                struct preflight *out)
{
    size_t i;

    *out = (struct preflight){.whole = labels->count == WHOLE_COUNT};
    for (i = 0; i < labels->count; i++) {
        bool takes_part = !skip || !skip[i];
        bool there = takes_part && source_find(source, labels->entry[i].name) != NULL;

        if (missing_image)
            missing_image[i] = takes_part && !there;
        if (takes_part)
            count_row(labels, i, there, out);
    }
    out->extra = source->count - out->found;
}

void
preflight_recount(const struct labels *labels, const bool *skip, const bool *missing_image, struct preflight *out)
{
    size_t i;

    *out = (struct preflight){.whole = out->whole, .extra = out->extra, .expected = out->expected};
    for (i = 0; i < labels->count; i++)
        if (!skip || !skip[i])
            count_row(labels, i, !missing_image[i], out);
}

void
preflight_expect(const struct labels *labels, bool *missing_image, struct preflight *out)
{
    out->expected = out->missing;
    out->missing = 0;
    memset(out->sample, 0, sizeof(out->sample));
    memset(missing_image, 0, labels->count * sizeof(*missing_image));
}

/* Returns the unlabeled image with the same name except for the suffix, or NULL. */
static const char *
find_stem(const struct unlabeled *unlabeled, const char *name)
{
    const char *dot = strrchr(name, '.');
    size_t length = dot ? (size_t)(dot - name) + 1 : 0, low = 0, high = unlabeled->count;

    if (length == 0 || !image_name_is_known(name))
        return NULL;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strncmp(unlabeled->name[middle], name, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < unlabeled->count && strncmp(unlabeled->name[low], name, length) == 0; low++)
        if (!strchr(unlabeled->name[low] + length, '.') && image_name_is_known(unlabeled->name[low]))
            return unlabeled->name[low];
    return NULL;
}

size_t
preflight_endings(const struct labels *labels, const bool *missing_image, const struct unlabeled *unlabeled,
                  char text[PREFLIGHT_HINT])
{
    const char *name = NULL, *other = NULL;
    size_t count = 0, i;

    text[0] = '\0';
    for (i = 0; i < labels->count; i++) {
        const char *stem = missing_image[i] ? find_stem(unlabeled, labels->entry[i].name) : NULL;

        if (!stem)
            continue;
        name = name ? name : labels->entry[i].name;
        other = other ? other : stem;
        count++;
    }
    if (count > 0)
        snprintf(text, PREFLIGHT_HINT, "; %zu %s there with another ending: '%s' where the label file says '%s'", count,
                 count == 1 ? "is" : "are", other, name);
    return count;
}
