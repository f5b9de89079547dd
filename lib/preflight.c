/*
 * preflight.c - see preflight.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "preflight.h"

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
