/*
 * unlabeled.h - collects the names of images without a row, in any order
 *
 * The list depends only on the set of names: it is sorted and has no duplicates.  If there are more than UNLABELED_MAX
 * names, it keeps the first ones in sorted order.
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
    bool capped;  /* the list lacks some names: there were more than UNLABELED_MAX */

    size_t capacity;
};

/* Add a copy of the name.  CHEX_ERR_MEMORY. */
enum chex_status unlabeled_add(struct unlabeled *s, const char *name, struct chex_error *err);
/* Sort the names and remove duplicates.  More names may be added afterwards. */
void unlabeled_sort(struct unlabeled *s);
void unlabeled_release(struct unlabeled *s);

#endif
