/*
 * rank.c - implements rank.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "maps/rank.h"

#include <math.h>
#include <stdlib.h>

struct cell_rank {
    float value;
    size_t at;
};

static int
compare_values(const void *a, const void *b)
{
    const struct cell_rank *x = a, *y = b;

    return (x->value > y->value) - (x->value < y->value);
}

/* Compute twice the rank of each number, which is an integer also for the mean of two ranks. */
static void
rank_all(const float *value, size_t count, struct cell_rank *sorted, double *rank)
{
    size_t i, first, end;

    for (i = 0; i < count; i++)
        sorted[i] = (struct cell_rank){value[i], i};
    qsort(sorted, count, sizeof(*sorted), compare_values);
    for (first = 0; first < count; first = end) {
        for (end = first + 1; end < count && sorted[end].value == sorted[first].value; end++)
            ;
        for (i = first; i < end; i++)
            rank[sorted[i].at] = (double)(first + end - 1);
    }
}

/* Pearson's correlation of the ranks; the mean of twice the ranks 0 .. count - 1 is count - 1. */
static double
correlate(const double *a, const double *b, size_t count)
{
    double mean = (double)count - 1, both = 0, of_a = 0, of_b = 0;
    size_t i;

    for (i = 0; i < count; i++) {
        both += (a[i] - mean) * (b[i] - mean);
        of_a += (a[i] - mean) * (a[i] - mean);
        of_b += (b[i] - mean) * (b[i] - mean);
    }
    return of_a > 0 && of_b > 0 ? both / sqrt(of_a * of_b) : (double)NAN;
}

enum chex_status
rank_correlation(const float *a, const float *b, size_t count, double *out, struct chex_error *err)
{
    struct cell_rank *sorted = calloc(count ? count : 1, sizeof(*sorted));
    double *rank = calloc(count ? 2 * count : 1, sizeof(*rank));
    bool finite = true;
    size_t i;

    for (i = 0; i < count; i++)
        finite &= isfinite(a[i]) && isfinite(b[i]);
    *out = (double)NAN;
    if (sorted && rank && finite) {
        rank_all(a, count, sorted, rank);
        rank_all(b, count, sorted, rank + count);
        *out = correlate(rank, rank + count, count);
    }
    free(sorted);
    free(rank);
    return sorted && rank ? CHEX_OK : error_memory(err);
}
