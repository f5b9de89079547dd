/*
 * inspect_split.c - --check-split: does one split tell about another? see inspect.h
 *
 * Three questions, answered from the records: is a patient in two splits, is an image (by SHA-256 of its pixels) in
 * two splits, does the prevalence of a finding differ between splits.  The first two are faults.  The third is none,
 * but then thresholds and class weights of one split do not fit the other.
 *
 * Images of one patient are alike, so images are no independent draws: see ratio.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/inspect_split.h"

#include <stdlib.h>
#include <string.h>

/* ---- reading --------------------------------------------------------------------------------------------------- */

struct reading {
    struct inspect *in; /* first: inspect_walk_fault() */
    struct split_check *check;
    uint32_t *first; /* [shard]: number of its first record */
    pthread_mutex_t lock;
    struct progress progress;
};

/* Several threads; each record has its own place. */
static enum chex_status
on_record(void *context, const struct walk_record *r, struct chex_error *err)
{
    struct reading *reading = context;
    struct split_check *c = reading->check;
    struct seen *seen = &c->seen[reading->first[r->shard] + r->index];

    if (r->values->weight != 1)
        return CHEX_OK;
    memcpy(seen->hash, r->hash, sizeof(seen->hash));
    seen->findings = r->values->findings;
    seen->shard = r->shard;
    seen->index = r->index;
    seen->split = c->dataset->shard[r->shard].split;
    pthread_mutex_lock(&reading->lock);
    seen->name = arena_copy(&c->strings, r->values->name.data, r->values->name.size);
    seen->patient = arena_copy(&c->strings, r->values->patient.data, r->values->patient.size);
    pthread_mutex_unlock(&reading->lock);
    return seen->name && seen->patient ? CHEX_OK : chex_fail_memory(err);
}

static void
on_tick(void *context, uint64_t done, uint64_t total)
{
    struct reading *r = context;

    inspect_tick(r->in, &r->progress, "", done, total);
}

/* Leave out the places without an image: filling, and what could not be read. */
static void
close_gaps(struct split_check *c)
{
    size_t i, kept = 0;

    for (i = 0; i < c->count; i++)
        if (c->seen[i].patient)
            c->seen[kept++] = c->seen[i];
    c->count = kept;
}

static enum chex_status
read_records(struct reading *r, struct walk *w, struct chex_error *err)
{
    struct split_check *c = r->check;
    const struct chex_dataset *ds = c->dataset;
    enum chex_status status;
    unsigned i;

    r->first = calloc(ds->info.shard_count, sizeof(*r->first));
    for (i = 0; r->first && i < ds->info.shard_count; i++) {
        r->first[i] = (uint32_t)c->count;
        c->count += ds->shard[i].record_count;
    }
    c->seen = calloc(c->count ? c->count : 1, sizeof(*c->seen));
    if (!r->first || !c->seen) {
        c->count = 0;
        free(r->first);
        return chex_fail_memory(err);
    }
    pthread_mutex_init(&r->lock, NULL);
    status = walk_run(w, err);
    pthread_mutex_destroy(&r->lock);
    free(r->first);
    close_gaps(c);
    return status;
}

/* ---- patients -------------------------------------------------------------------------------------------------- */

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

/* The images of one patient, seen[0 .. count - 1], into the sums of their splits. */
static void
add_patient(struct split_check *c, const struct seen *seen, size_t count)
{
    uint32_t images[SPLIT_MAX] = {0}, with[SPLIT_MAX][CHEX_FINDINGS] = {{0}};
    unsigned splits = 0, s, f;
    size_t i;

    for (i = 0; i < count; i++) {
        images[seen[i].split]++;
        for (f = 0; f < CHEX_FINDINGS; f++)
            with[seen[i].split][f] += seen[i].findings >> f & 1;
    }
    for (s = 0; s < c->dataset->info.split_count; s++) {
        if (images[s] == 0)
            continue;
        splits++;
        c->sums[s].patients++;
        for (f = 0; f < CHEX_FINDINGS; f++)
            ratio_add(&c->sums[s].finding[f], images[s], with[s][f]);
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

/* ---- images ---------------------------------------------------------------------------------------------------- */

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
        return chex_fail_memory(err);
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

/* ---- the checks ------------------------------------------------------------------------------------------------ */

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

/* ---- the whole ------------------------------------------------------------------------------------------------- */

int
inspect_split(struct inspect *in, struct target *t)
{
    struct split_check c = {.dataset = t->dataset};
    struct reading r = {.in = in, .check = &c};
    struct walk w = {.target = t,
                     .depth = WALK_SHA256,
                     .record = on_record,
                     .fault = inspect_walk_fault,
                     .tick = on_tick,
                     .context = &r,
                     .threads = in->common->threads};
    struct chex_error err;
    int code;
    enum chex_status status = read_records(&r, &w, &err);

    meter_clear(&in->meter);
    if (status == CHEX_OK)
        status = split_check_run(&c, &err);
    if (status != CHEX_OK) {
        code = inspect_fail(in, t->path, &err);
    } else {
        if (in->common->json)
            inspect_json_add(in, split_check_json(&c, t->path, w.faults));
        else if (in->options->format != ROWS_TABLE)
            split_check_rows(in, &c);
        else
            split_check_print(in, &c);
        code = inspect_walk_code(in, &w);
        if (c.shared_patients > 0 || c.shared_images > 0)
            code = inspect_worse(code, EXIT_DATA);
    }
    free(c.by_hash);
    free(c.seen);
    arena_release(&c.strings);
    return code;
}
