/*
 * part.h - the shards that one process converts: those of --part, or of one of several ranks
 *
 * Shard s is in part s % count.  So adjacent shards, which have similar sizes, are in different parts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PART_H
#define CHEX_LIB_PART_H

#include <stdbool.h>
#include <stddef.h>

#define PART_MAX 9999

/* The suffix of the names of a part's journal and lock. */
#define PART_FORMAT        "-%05u-of-%05u" /* index + 1, count */
#define PART_SUFFIX_LENGTH 15

/* If zeroed: all shards. */
struct part {
    unsigned index; /* 0 .. count - 1; users count from 1 */
    unsigned count; /* at most PART_MAX; 0 or 1: this process has all shards */
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

/* Parse a text that begins with PART_FORMAT.  Returns false if it does not. */
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
