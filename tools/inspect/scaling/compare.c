/*
 * compare.c - what a run is compared with the reference; see scaling.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/scaling/scaling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const scaling_kind_name[] = {
    [SCALING_ONE] = "one", [SCALING_STRONG] = "strong", [SCALING_WEAK] = "weak", [SCALING_MIXED] = "mixed"};

/* Sorts by ranks; runs with equal ranks keep the order of the command line. */
static void
sort_runs(struct scaling *s)
{
    size_t i, j;

    for (i = 1; i < s->count; i++) {
        struct scaling_run moved = s->run[i];

        for (j = i; j > 0 && s->run[j - 1].ranks > moved.ranks; j--)
            s->run[j] = s->run[j - 1];
        s->run[j] = moved;
    }
}

static enum scaling_kind
find_kind(const struct scaling *s)
{
    bool strong = true, weak = true;
    size_t i;

    for (i = 1; i < s->count; i++) {
        strong &= s->run[i].global_batch == s->run[0].global_batch;
        weak &= s->run[i].global_batch * s->run[0].ranks == s->run[0].global_batch * s->run[i].ranks;
    }
    if (s->run[0].ranks == s->run[s->count - 1].ranks)
        return SCALING_ONE;
    return strong ? SCALING_STRONG : weak ? SCALING_WEAK : SCALING_MIXED;
}

char *
scaling_difference(const struct scaling_run *a, const struct scaling_run *b, char *out, size_t size)
{
    size_t used = 0;
    unsigned i;

    out[0] = '\0';
    for (i = 0; i < FACT_COUNT && used < size; i++)
        if (strcmp(a->fact[i], b->fact[i]) != 0)
            used += (size_t)snprintf(out + used, size - used, "%s%s (%.24s, %.24s)", used > 0 ? ", " : "",
                                     scaling_fact_name[i], a->fact[i], b->fact[i]);
    return out;
}

static void
compare_run(const struct scaling_run *reference, struct scaling_run *r)
{
    struct rank_scaling scaled = rank_times_scaling(&reference->times, &r->times);
    double longer = r->epochs / reference->epochs; /* the useful time is that of an epoch */

    rank_times_factors(&r->times, r->factor);
    r->speedup = reference->ranks * reference->epoch_seconds / r->epoch_seconds;
    r->efficiency = r->speedup / r->ranks;
    r->computation = scaled.computation * longer;
    r->global = scaled.global * longer;
    scaling_difference(reference, r, r->differs, sizeof(r->differs));
}

void
scaling_compare(struct scaling *s)
{
    size_t i;

    sort_runs(s);
    s->reference = &s->run[0];
    s->kind = find_kind(s);
    for (i = 0; i < s->count; i++)
        compare_run(s->reference, &s->run[i]);
}

bool
scaling_comparable(const struct scaling *s)
{
    size_t i;

    for (i = 0; i < s->count; i++)
        if (s->run[i].differs[0])
            return false;
    return true;
}
