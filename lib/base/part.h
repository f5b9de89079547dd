/*
 * part.h - the shards of a plan that one process makes: those of --part, or of one rank of several
 *
 * Shard s is in part s % count, so neighbours, which are equally large, are in different parts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PART_H
#define CHEX_LIB_PART_H

#include <stdbool.h>
#include <stddef.h>

#define PART_MAX 9999

/* The end of names of journals and locks of a part. */
#define PART_FORMAT        "-%05u-of-%05u" /* index + 1, count */
#define PART_SUFFIX_LENGTH 15

/* Zero-initialised: all shards. */
struct part {
    unsigned index; /* 0 .. count - 1; people count from 1 */
    unsigned count; /* at most PART_MAX; 0 or 1: all shards are this process's */
};

static inline bool
part_is_whole(struct part part)
{
    return part.count <= 1;
}

static inline bool
part_has(struct part part, size_t shard)
{
    return part.count <= 1 || shard % part.count == part.index;
}

/* Parse the start of a text as PART_FORMAT wrote it; false where it is something else. */
static inline bool
part_parse_suffix(const char *text, struct part *out)
{
    static const char form[] = "-ddddd-of-ddddd";
    unsigned number[2] = {0, 0};
    size_t i;

    for (i = 0; i < PART_SUFFIX_LENGTH; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';

        if (form[i] == 'd' ? !digit : text[i] != form[i])
            return false;
        if (digit)
            number[i > 6] = number[i > 6] * 10 + (unsigned)(text[i] - '0');
    }
    *out = (struct part){number[0] - 1, number[1]};
    return number[0] >= 1 && number[0] <= number[1] && number[1] <= PART_MAX;
}

#endif
