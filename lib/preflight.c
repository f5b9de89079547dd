/*
 * preflight.c - see preflight.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "preflight.h"

#define WHOLE_COUNT 112120

/* The archive that holds the image of this rank among all, sorted by name. */
static size_t
archive_of(size_t rank)
{
    const size_t first = 4999, each = 10000;

    return rank < first ? 0 : 1 + (rank - first) / each;
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
        if (!takes_part)
            continue;
        if (!there && out->missing < PREFLIGHT_SAMPLES)
            out->sample[out->missing] = labels->entry[i].name;
        out->wanted++;
        out->found += there;
        out->missing += !there;
        if (out->whole) {
            out->archive[archive_of(i)].wanted++;
            out->archive[archive_of(i)].found += there;
        }
    }
    out->extra = source->count - out->found;
}
