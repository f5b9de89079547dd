/*
 * live_ranges.c - see live_ranges.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/live_ranges.h"

#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int
by_size(const void *a, const void *b)
{
    const struct live_range *x = *(struct live_range *const *)a, *y = *(struct live_range *const *)b;

    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x < y ? -1 : x > y;
}

/*
 * Set r->offset to the lowest gap between `count` placed ranges, which are sorted by offset.  Returns the index of r in
 * this order.
 */
static size_t
find_gap(struct live_range *const *placed, size_t count, struct live_range *r)
{
    size_t i;

    r->offset = 0;
    for (i = 0; i < count; i++) {
        const struct live_range *other = placed[i];

        if (other->begin > r->end || r->begin > other->end)
            continue;
        if (other->offset >= r->offset && other->offset - r->offset >= r->size)
            break;
        if (other->offset + other->size > r->offset)
            r->offset = other->offset + other->size;
    }
    for (i = 0; i < count && placed[i]->offset <= r->offset; i++)
        ;
    return i;
}

bool
live_ranges_place(struct live_range *range, size_t count, size_t *total)
{
    struct live_range **order, **placed;
    size_t i, k, end;

    *total = 0;
    if (count == 0)
        return true;
    order = calloc(2 * count, sizeof(struct live_range *));
    if (!order)
        return false;
    placed = order + count;
    for (i = 0; i < count; i++)
        order[i] = &range[i];
    qsort(order, count, sizeof(struct live_range *), by_size);
    for (i = 0; *total != SIZE_MAX && i < count; i++) {
        k = find_gap(placed, i, order[i]);
        memmove(placed + k + 1, placed + k, (i - k) * sizeof(struct live_range *));
        placed[k] = order[i];
        if (!size_add(order[i]->offset, order[i]->size, &end))
            end = SIZE_MAX;
        if (end > *total)
            *total = end;
    }
    free(order);
    return true;
}
