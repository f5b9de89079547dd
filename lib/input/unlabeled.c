/*
 * unlabeled.c - see unlabeled.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "input/unlabeled.h"

#include "base/ascii.h"

#include <stdlib.h>
#include <string.h>

/* The number of names above UNLABELED_MAX that triggers the next sort. */
#define SLACK 65536

void
unlabeled_sort(struct unlabeled *s)
{
    size_t i, kept = 0;

    if (s->count > 1)
        qsort(s->name, s->count, sizeof(*s->name), compare_texts);
    for (i = 0; i < s->count; i++) {
        bool again = kept > 0 && strcmp(s->name[kept - 1], s->name[i]) == 0;

        if (!again && kept < UNLABELED_MAX) {
            s->name[kept++] = s->name[i];
        } else {
            s->capped |= !again;
            free(s->name[i]);
        }
    }
    s->count = kept;
}

enum chex_status
unlabeled_add(struct unlabeled *s, const char *name, struct chex_error *err)
{
    char **grown, *copy;

    if (s->count >= UNLABELED_MAX + SLACK)
        unlabeled_sort(s);
    grown = array_grow(s->name, &s->capacity, s->count, sizeof(*s->name));
    if (!grown)
        return error_memory(err);
    s->name = grown;
    copy = strdup(name);
    if (!copy)
        return error_memory(err);
    s->name[s->count++] = copy;
    return CHEX_OK;
}

void
unlabeled_release(struct unlabeled *s)
{
    while (s->count > 0)
        free(s->name[--s->count]);
    free(s->name);
    *s = (struct unlabeled){0};
}
