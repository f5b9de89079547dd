/*
 * share.h - which shards of a plan are one process's work
 *
 * Shard s is in part s % of: neighbours, which are equally large, go to different processes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_SHARE_H
#define CHEX_LIB_SHARE_H

#include <stdbool.h>
#include <stddef.h>

#define SHARE_MAX 9999

/* How names of journals and locks say whose they are. */
#define SHARE_FORMAT        "-%05u-of-%05u" /* part + 1, of */
#define SHARE_SUFFIX_LENGTH 15

/* Zero-initialised: all shards. */
struct share {
    unsigned part; /* 0 .. of - 1; people count from 1 */
    unsigned of;   /* at most SHARE_MAX; 0 or 1: all shards are this process's */
};

static inline bool
share_is_whole(struct share share)
{
    return share.of <= 1;
}

static inline bool
share_has(struct share share, size_t shard)
{
    return share.of <= 1 || shard % share.of == share.part;
}

/* What SHARE_FORMAT wrote, at the start of text; false where it is something else. */
static inline bool
share_parse_suffix(const char *text, struct share *out)
{
    static const char form[] = "-ddddd-of-ddddd";
    unsigned number[2] = {0, 0};
    size_t i;

    for (i = 0; i < SHARE_SUFFIX_LENGTH; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';

        if (form[i] == 'd' ? !digit : text[i] != form[i])
            return false;
        if (digit)
            number[i > 6] = number[i > 6] * 10 + (unsigned)(text[i] - '0');
    }
    *out = (struct share){number[0] - 1, number[1]};
    return number[0] >= 1 && number[0] <= number[1] && number[1] <= SHARE_MAX;
}

#endif
