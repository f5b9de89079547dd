/*
 * leaks_find.c - finds patients and images in more than one split; see leaks.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/check/leaks.h"

#include <stdlib.h>
#include <string.h>

static int
by_patient(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    int order = strcmp(x->patient, y->patient);

    if (order != 0)
        return order;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Add the images of one patient, seen[0 .. count - 1], to the sums of their splits. */
static void
add_patient(struct split_check *c, const struct seen *seen, size_t count)
{
    uint32_t images[SPLIT_MAX] = {0}, known[SPLIT_MAX][FINDINGS_MAX], with[SPLIT_MAX][FINDINGS_MAX];
    const unsigned findings = c->dataset->info.finding_count;
    unsigned splits = 0, s, f;
    size_t i;

    for (i = 0; i < count; i++) {
        s = seen[i].split;
        for (f = 0; f < findings && images[s] == 0; f++)
            known[s][f] = with[s][f] = 0;
        images[s]++;
        for (f = 0; f < findings; f++) {
            known[s][f] += seen[i].label[f] != CHEX_LABEL_UNKNOWN;
            with[s][f] += seen[i].label[f] == 1;
        }
    }
    for (s = 0; s < c->dataset->info.split_count; s++) {
        if (images[s] == 0)
            continue;
        splits++;
        c->sums[s].patients++;
        for (f = 0; f < findings; f++)
            if (known[s][f] > 0)
                ratio_add(&c->sums[s].finding[f], known[s][f], with[s][f]);
    }
    c->patients++;
    c->shared_patients += splits > 1;
}

static void
check_patients(struct split_check *c)
{
    size_t i, next;

    if (c->count > 1)
        qsort(c->seen, c->count, sizeof(*c->seen), by_patient);
    for (i = 0; i < c->count; i = next) {
        for (next = i + 1; next < c->count && strcmp(c->seen[i].patient, c->seen[next].patient) == 0;)
            next++;
        add_patient(c, &c->seen[i], next - i);
    }
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

static int
by_hash(const void *a, const void *b)
{
    const struct seen *x = *(const struct seen *const *)a, *y = *(const struct seen *const *)b;
    int order = memcmp(x->hash, y->hash, sizeof(x->hash));

    if (order != 0)
        return order;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static enum chex_status
check_images(struct split_check *c, struct chex_error *err)
{
    size_t i, next;

    c->by_hash = calloc(c->count ? c->count : 1, sizeof(*c->by_hash));
    if (!c->by_hash)
        return error_memory(err);
    for (i = 0; i < c->count; i++)
        c->by_hash[i] = &c->seen[i];
    if (c->count > 1)
        qsort(c->by_hash, c->count, sizeof(*c->by_hash), by_hash);
    for (i = 0; i < c->count; i = next) {
        if (split_check_image(c, i, &next))
            c->shared_images++;
        else
            c->repeated_images += next - i - 1;
    }
    return CHEX_OK;
}

bool
split_check_same(const struct split_check *c, size_t i, size_t j)
{
    return j < c->count && memcmp(c->by_hash[i]->hash, c->by_hash[j]->hash, sizeof(c->by_hash[i]->hash)) == 0;
}

/* ---- the checks -------------------------------------------------------------------------------------------------- */

double
split_z(const struct split_sums *a, const struct split_sums *b, unsigned f)
{
    return ratio_z(&a->finding[f], &b->finding[f], SPLIT_EXPECTED);
}

bool
split_check_patient(const struct split_check *c, size_t i, size_t *next, uint64_t images[SPLIT_MAX])
{
    unsigned splits = 0;

    memset(images, 0, SPLIT_MAX * sizeof(*images));
    for (*next = i; *next < c->count && strcmp(c->seen[i].patient, c->seen[*next].patient) == 0; ++*next)
        splits += images[c->seen[*next].split]++ == 0;
    return splits > 1;
}

bool
split_check_image(const struct split_check *c, size_t i, size_t *next)
{
    bool shared = false;

    for (*next = i + 1; split_check_same(c, i, *next); ++*next)
        shared |= c->by_hash[*next]->split != c->by_hash[i]->split;
    return shared;
}

enum chex_status
split_check_run(struct split_check *c, struct chex_error *err)
{
    check_patients(c);
    return check_images(c, err);
}
