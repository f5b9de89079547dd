/*
 * unlabeled.h - names of images without a row, collected from folders and archives in any order
 *
 * The list depends on the names alone: sorted, each once, and where there are more than UNLABELED_MAX of them the first
 * ones by name, whatever the order in which they came.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_UNLABELED_H
#define CHEX_LIB_UNLABELED_H

#include "base/memory.h"

#define UNLABELED_MAX 1000000

struct unlabeled { /* zero-initialise */
    char **name;
    size_t count; /* valid after unlabeled_sort() */
    bool capped;  /* there were more */

    size_t capacity;
};

/* Add a copy of the name.  CHEX_ERR_MEMORY. */
enum chex_status unlabeled_add(struct unlabeled *s, const char *name, struct chex_error *err);
/* Sort, and leave each name once.  More may be added afterwards. */
void unlabeled_sort(struct unlabeled *s);
void unlabeled_release(struct unlabeled *s);

#endif
