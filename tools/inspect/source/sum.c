/*
 * sum.c - reduces the items to one per name and computes the sums; see source.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/source/source.h"

#include <stdlib.h>
#include <string.h>

/* ---- one item for each name -------------------------------------------------------------------------------------- */

static int
compare_items(const void *a, const void *b)
{
    const struct source_item *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* Move the items of all archives to c->item, after the loose files, and sort them. */
static enum chex_status
gather_items(struct source_check *c, struct chex_error *err)
{
    struct source_item *all;
    size_t i, count = c->count, size;

    for (i = 0; i < c->archive_count; i++)
        count += c->archive[i].count;
    if (count > UINT32_MAX || !size_mul(count ? count : 1, sizeof(*all), &size) || !(all = realloc(c->item, size)))
        return error_memory(err);
    c->item = all;
    for (i = 0; i < c->archive_count; i++) {
        if (c->archive[i].count > 0)
            memcpy(all + c->count, c->archive[i].item, c->archive[i].count * sizeof(*all));
        c->count += c->archive[i].count;
        free(c->archive[i].item);
        c->archive[i].item = NULL;
    }
    for (i = 0; i < count; i++)
        all[i].order = (uint32_t)i;
    if (count > 1)
        qsort(all, count, sizeof(*all), compare_items);
    return CHEX_OK;
}

static enum chex_status
add_conflict(struct source_check *c, size_t *capacity, const struct source_item *stands,
             const struct source_item *other, struct chex_error *err)
{
    struct source_conflict *grown = array_grow(c->conflict, capacity, (size_t)c->count_of[SOURCE_CONFLICT],
                                               sizeof(*grown));

    if (!grown)
        return error_memory(err);
    c->conflict = grown;
    grown[c->count_of[SOURCE_CONFLICT]++] = (struct source_conflict){stands->name, stands->place, other->place};
    return CHEX_OK;
}

static bool
same_image(const struct source_check *c, const struct source_item *a, const struct source_item *b)
{
    return c->place[a->place].archive ? a->hash == b->hash : !b->differs;
}

/* Keep one item of each name; the sorted items of one name are adjacent. */
static enum chex_status
keep_one(struct source_check *c, struct chex_error *err)
{
    struct source_item *all = c->item;
    size_t i, j, end, kept = 0, capacity = 0;
    enum chex_status status = CHEX_OK;

    for (i = 0; status == CHEX_OK && i < c->count; i = end) {
        size_t stands = i;

        for (end = i + 1; end < c->count && strcmp(all[end].name, all[i].name) == 0; end++)
            if (all[stands].fault == SOURCE_LOST && all[end].fault != SOURCE_LOST)
                stands = end;
        for (j = i; status == CHEX_OK && j < end; j++) {
            if (j == stands || all[j].fault == SOURCE_LOST)
                continue;
            if (same_image(c, &all[stands], &all[j]))
                c->repeated++;
            else
                status = add_conflict(c, &capacity, &all[stands], &all[j], err);
        }
        all[kept++] = all[stands];
    }
    c->count = kept;
    return status;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static void
count_items(struct source_check *c)
{
    size_t i;

    for (i = 0; i < c->count; i++) {
        struct source_item *item = &c->item[i];
        struct source_place *place = &c->place[item->place];
        bool brief = item->fault == SOURCE_EMPTY || item->fault == SOURCE_SHORT;

        item->extra = !labels_find(&c->labels, item->name);
        c->count_of[item->fault]++;
        c->count_of[SOURCE_EXTRA] += item->extra;
        c->misnamed += item->misnamed;
        c->read_errors += item->failed;
        c->bytes += item->size;
        place->images++;
        place->bytes += item->size;
        place->brief += brief;
        place->damaged += item->fault != SOURCE_GOOD && !brief;
        place->extra += item->extra;
    }
    for (i = 0; i < c->count_of[SOURCE_CONFLICT]; i++)
        c->place[c->conflict[i].other].damaged++;
    for (i = 0; i < c->place_count; i++)
        c->count_of[SOURCE_ARCHIVE] += c->place[i].error.status != CHEX_OK;
}

static void
count_missing(struct source_check *c)
{
    size_t i;

    preflight_count(&c->labels, NULL, &c->source, c->missing, &c->preflight);
    for (i = 0; i < c->count; i++) {
        const struct entry *entry = labels_find(&c->labels, c->item[i].name);

        if (entry)
            c->missing[entry - c->labels.entry] = false;
    }
    preflight_recount(&c->labels, NULL, c->missing, &c->preflight);
    c->preflight.extra = (size_t)c->count_of[SOURCE_EXTRA];
    c->count_of[SOURCE_MISSING] = c->preflight.missing;
    c->count_of[SOURCE_ROW] = c->labels.reject_count;
}

/* Find the place with the most images of each NIH archive.  Rows of other label files have no archive number. */
static enum chex_status
find_nih(struct source_check *c, struct chex_error *err)
{
    size_t(*held)[PREFLIGHT_ARCHIVES], i, k;

    if (!c->preflight.whole)
        return CHEX_OK;
    held = calloc(c->place_count ? c->place_count : 1, sizeof(*held));
    if (!held)
        return error_memory(err);
    for (i = 0; i < c->count; i++) {
        const struct entry *entry = labels_find(&c->labels, c->item[i].name);

        if (entry)
            held[c->item[i].place][preflight_archive((size_t)(entry - c->labels.entry))]++;
    }
    for (k = 0; k < PREFLIGHT_ARCHIVES; k++)
        for (i = 0; i < c->place_count; i++)
            if (held[i][k] > (c->nih[k] < 0 ? 0 : held[c->nih[k]][k]))
                c->nih[k] = (int)i;
    free(held);
    return CHEX_OK;
}

/* Count the missing images at their expected places. */
static enum chex_status
place_missing(struct source_check *c, struct chex_error *err)
{
    enum chex_status status = find_nih(c, err);
    size_t k;

    if (status == CHEX_OK && (!c->preflight.whole || c->place_count == 1)) {
        *(c->place_count == 1 ? &c->place[0].missing : &c->nowhere) = c->preflight.missing;
        return CHEX_OK;
    }
    for (k = 0; status == CHEX_OK && k < PREFLIGHT_ARCHIVES; k++) {
        size_t missing = c->preflight.archive[k].wanted - c->preflight.archive[k].found;

        *(c->nih[k] < 0 ? &c->nowhere : &c->place[c->nih[k]].missing) += missing;
    }
    return status;
}

enum chex_status
source_sum(struct source_check *c, struct chex_error *err)
{
    enum chex_status status = gather_items(c, err);
    size_t k;

    if (status == CHEX_OK)
        status = keep_one(c, err);
    if (status != CHEX_OK)
        return status;
    for (k = 0; k < PREFLIGHT_ARCHIVES; k++)
        c->nih[k] = -1;
    count_items(c);
    c->repeated += c->source.repeated;
    c->missing = calloc(c->labels.count ? c->labels.count : 1, sizeof(*c->missing));
    if (!c->missing)
        return error_memory(err);
    /* Without rows or images there is nothing to compare. */
    if (c->labels_err.status != CHEX_OK || c->source_err.status != CHEX_OK) {
        c->count_of[SOURCE_EXTRA] = 0;
        return CHEX_OK;
    }
    count_missing(c);
    return place_missing(c, err);
}

const char *
source_fault_name(enum source_fault fault)
{
    static const char *const names[SOURCE_FAULTS] = {"good", "empty",    "short",   "type",    "unreadable", "large",
                                                     "lost", "conflict", "archive", "missing", "extra",      "row"};

    return names[fault];
}

bool
source_check_good(const struct source_check *c)
{
    unsigned i;

    for (i = SOURCE_GOOD + 1; i < SOURCE_FAULTS; i++)
        if (i != SOURCE_EXTRA && c->count_of[i] > 0)
            return false;
    return c->labels_err.status == CHEX_OK && c->source_err.status == CHEX_OK && c->source.unreadable == 0 &&
           c->count > 0;
}
