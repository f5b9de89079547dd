/*
 * format.c - see format.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/format.h"

#include <stdio.h>
#include <string.h>

#define INFIX ".tfrecord-"

const char *const tail_names[] = {[TAIL_PAD] = "pad", [TAIL_SHORT] = "short", [TAIL_DROP] = "drop", NULL};

void
shard_name_format(char name[SHARD_NAME_MAX], const char *split, size_t number, size_t of)
{
    snprintf(name, SHARD_NAME_MAX, SHARD_PREFIX "-%s" INFIX "%05zu-of-%05zu", split, number, of);
}

static const char *
shard_number_end(const char *p)
{
    static const char digits[] = "0123456789";

    if (strncmp(p, INFIX, strlen(INFIX)) != 0)
        return NULL;
    p += strlen(INFIX);
    if (strspn(p, digits) != 5 || strncmp(p + 5, "-of-", 4) != 0 || strspn(p + 9, digits) != 5)
        return NULL;
    return p + 14;
}

const char *
shard_name_end(const char *p)
{
    if (strncmp(p, SHARD_PREFIX "-", strlen(SHARD_PREFIX "-")) != 0)
        return NULL;
    p += strlen(SHARD_PREFIX "-");
    return shard_number_end(p + strspn(p, "abcdefghijklmnopqrstuvwxyz_0123456789"));
}

bool
shard_is_name(const char *name)
{
    const char *number = strstr(name, INFIX), *end = number ? shard_number_end(number) : NULL;

    return end && *end == '\0';
}
