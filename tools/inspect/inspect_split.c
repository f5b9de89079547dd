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

struct split_reading {
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
    struct split_reading *reading = context;
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
    return seen->name && seen->patient ? CHEX_OK : error_memory(err);
}

static void
on_tick(void *context, uint64_t done, uint64_t total)
{
    struct split_reading *r = context;

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
read_records(struct split_reading *r, struct walk *w, struct chex_error *err)
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
        return error_memory(err);
    }
    pthread_mutex_init(&r->lock, NULL);
    status = walk_run(w, err);
    pthread_mutex_destroy(&r->lock);
    free(r->first);
    close_gaps(c);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

int
inspect_split(struct inspect *in, struct target *t)
{
    struct split_check c = {.in = in, .path = t->path, .dataset = t->dataset};
    struct split_reading r = {.in = in, .check = &c};
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

    progress_line_clear(&in->meter);
    if (status == CHEX_OK)
        status = split_check_run(&c, &err);
    if (status != CHEX_OK) {
        code = inspect_fail(in, t->path, &err);
    } else {
        c.faults = w.faults;
        inspect_print_result(in, &split_check_result, &c);
        code = inspect_walk_code(in, &w);
        if (c.shared_patients > 0 || c.shared_images > 0)
            code = inspect_worse(code, EXIT_DATA);
    }
    free(c.by_hash);
    free(c.seen);
    arena_release(&c.strings);
    return code;
}
