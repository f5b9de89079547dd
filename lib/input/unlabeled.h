/*
 * unlabeled.h - names of images without a row, collected from folders and archives in any order
 *
 * The list depends on the names alone: sorted, each once, and where there are more than STRAYS_MAX of them the first
 * ones by name, whatever the order in which they came.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_STRAYS_H
#define CHEX_LIB_STRAYS_H

#include "base/memory.h"

#define STRAYS_MAX 1000000

struct strays { /* zero-initialise */
    char **name;
    size_t count; /* valid after strays_sort() */
    bool capped;  /* there were more */

    size_t capacity;
};

/* Add a copy of the name.  CHEX_ERR_MEMORY. */
enum chex_status strays_add(struct strays *s, const char *name, struct chex_error *err);
/* Sort, and leave each name once.  More may be added afterwards. */
void strays_sort(struct strays *s);
void strays_release(struct strays *s);

#endif
