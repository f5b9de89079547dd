/*
 * ahead.c - plans what a convolution fetches into the cache while it computes; see struct ahead in kernels.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/cpu_plan.h"

void
ahead_add(struct ahead *a, const float *block, const struct box *box)
{
    long top = box->top < 0 ? 0 : box->top, left = box->left < 0 ? 0 : box->left;
    long bottom = box->top + (long)box->rows, right = box->left + (long)box->columns;
    const float *from, *end;

    if (bottom > (long)box->height)
        bottom = (long)box->height;
    if (right > (long)box->width)
        right = (long)box->width;
    if (bottom <= top || right <= left)
        return;
    from = block + ((size_t)top * box->width + (size_t)left) * BLOCK;
    end = block + ((size_t)(bottom - 1) * box->width + (size_t)right) * BLOCK;
    if (a->runs > 0 && a->run[a->runs - 1].end == (const char *)from)
        a->run[a->runs - 1].end = (const char *)end;
    else if (a->runs < AHEAD_RUNS) {
        a->run[a->runs].at = (const char *)from;
        a->run[a->runs++].end = (const char *)end;
    }
}

void
ahead_spread(struct ahead *a, const struct plan *plan, size_t rows, size_t pixels, size_t weights)
{
    size_t steps = rows * ((pixels + plan->kernels->tile - 1) / plan->kernels->tile) * weights, lines = 0;
    unsigned i;

    /* A run ends with a step of its own.  With fewer steps there is little to compute meanwhile. */
    if (steps <= a->runs) {
        a->runs = 0;
        return;
    }
    for (i = 0; i < a->runs; i++)
        lines += (size_t)(a->run[i].end - a->run[i].at) / CACHE_LINE;
    a->lines = (lines + steps - a->runs - 1) / (steps - a->runs);
}
