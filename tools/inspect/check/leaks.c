/*
 * leaks.c - check --leaks: detects leaks between splits; see inspect.h
 *
 * The action reads the records and answers three questions.  Is a patient in two splits?  Is an image (by SHA-256 of
 * its pixels) in two splits?  Does the prevalence of a finding differ between splits?  The first two are faults, and so
 * are nearly equal images in two splits, which --near finds.  The third is not a fault, but then the thresholds and
 * class weights of one split do not fit the other.
 *
 * Images of one patient are correlated, so images are not independent samples: see ratio.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/check/check.h"
#include "inspect/check/near.h"

#include <stdlib.h>
#include <string.h>

/* ---- reading ----------------------------------------------------------------------------------------------------- */

struct split_reading {
    struct split_check *check;
    pthread_mutex_t lock;
};

/* Several threads call this; each record writes its own element. */
static enum chex_status
on_record(void *context, const struct walk_record *r, struct chex_error *err)
{
    struct split_reading *reading = context;
    struct split_check *c = reading->check;
    struct seen *seen = &c->seen[r->number];

    if (r->values->weight != 1)
        return CHEX_OK;
    memcpy(seen->hash, r->hash, sizeof(seen->hash));
    seen->shard = r->shard;
    seen->index = r->index;
    seen->number = (uint32_t)r->number;
    seen->split = c->dataset->shard[r->shard].split;
    if (c->near)
        near_describe(r->pixels, c->dataset->info.width, c->dataset->info.height, &c->near->image[r->number]);
    pthread_mutex_lock(&reading->lock);
    seen->name = arena_copy(&c->strings, r->values->name.data, r->values->name.size);
    seen->patient = arena_copy(&c->strings, r->values->patient.data, r->values->patient.size);
    seen->label = (const uint8_t *)arena_copy(&c->strings, (const char *)r->values->label,
                                              c->dataset->info.finding_count);
    pthread_mutex_unlock(&reading->lock);
    return seen->name && seen->patient && seen->label ? CHEX_OK : error_memory(err);
}

/* Remove the elements without an image: padding and unreadable records. */
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
    size_t records = dataset_records(c->dataset);
    enum chex_status status;

    c->seen = calloc(records ? records : 1, sizeof(*c->seen));
    if (!c->seen)
        return error_memory(err);
    c->count = records;
    pthread_mutex_init(&r->lock, NULL);
    status = walk_run(w, err);
    pthread_mutex_destroy(&r->lock);
    close_gaps(c);
    return status;
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

static enum chex_status
write_certificate(const struct inspect *in, const struct target *t, struct split_check *c, struct chex_error *err)
{
    if (t->kind != TARGET_DATASET || in->have_result)
        return error_set(err, CHEX_ERR_USAGE, "--certificate takes one PATH, the folder of a data set");
    return certificate_write(c, in->options->certificate, c->certificate, err);
}

int
inspect_split(struct inspect *in, struct target *t)
{
    struct split_check c = {.in = in, .path = t->path, .dataset = t->dataset};
    struct split_reading r = {.check = &c};
    struct walk w = {.in = in,
                     .target = t,
                     .progress = "",
                     .depth = WALK_SHA256,
                     .record = on_record,
                     .context = &r,
                     .threads = in->common->threads};
    struct near_search near = {.image = NULL};
    enum chex_status status = CHEX_OK;
    struct chex_error err;
    int code;

    if (in->options->near) {
        c.near = &near;
        status = near_init(&near, in, t->dataset, &err);
    }
    if (status == CHEX_OK)
        status = read_records(&r, &w, &err);
    if (status == CHEX_OK)
        status = split_check_run(&c, &err);
    if (status == CHEX_OK && c.near)
        status = near_find(&near, &c, &err);
    c.faults = w.faults;
    if (status == CHEX_OK && in->options->certificate)
        status = write_certificate(in, t, &c, &err);
    if (status != CHEX_OK) {
        code = inspect_fail(in, t->path, &err);
    } else {
        inspect_print_result(in, &split_check_result, &c);
        code = inspect_walk_code(&w);
        if (c.shared_patients > 0 || c.shared_images > 0 || near.pair_count > 0 || near.too_many)
            code = inspect_worse(code, EXIT_DATA);
    }
    near_release(&near);
    free(c.by_hash);
    free(c.seen);
    arena_release(&c.strings);
    return code;
}
