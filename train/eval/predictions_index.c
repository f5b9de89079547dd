/*
 * predictions_index.c - see predictions_index.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/predictions_index.h"

#include "base/ascii.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN 201 /* bytes of a name in a message */

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct named_row *)a)->name, ((const struct named_row *)b)->name);
}

enum chex_status
predictions_index(const struct predictions *p, struct named_row **out, struct chex_error *err)
{
    struct named_row *row = malloc((p->count ? p->count : 1) * sizeof(*row));
    char name[SHOWN];
    size_t i;

    *out = row;
    if (!row)
        return error_memory(err);
    for (i = 0; i < p->count; i++)
        row[i] = (struct named_row){p->image[i], i};
    qsort(row, p->count, sizeof(*row), by_name);
    for (i = 1; i < p->count; i++)
        if (strcmp(row[i - 1].name, row[i].name) == 0)
            return error_set(err, CHEX_ERR_INCOMPATIBLE, "it has the image '%s' twice",
                             ascii_escape(row[i].name, strlen(row[i].name), name, sizeof(name)));
    return CHEX_OK;
}

size_t
predictions_find(const struct named_row *index, size_t count, const char *name)
{
    const struct named_row key = {.name = name};
    const struct named_row *found = count > 0 ? bsearch(&key, index, count, sizeof(key), by_name) : NULL;

    return found ? found->row : PREDICTIONS_NONE;
}
