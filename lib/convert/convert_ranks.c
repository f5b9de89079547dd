/*
 * convert_ranks.c - runs a conversion in one process or with several ranks
 *
 * Each rank converts its part, then rank 0 publishes.  Rank 0 takes the folder's lock before it prepares the folder,
 * and keeps it to the end.  The ranks meet after each step (rank_work.h), so an error of one rank ends all ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_run.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* On NFS other hosts may see a new name late.  The ranks try this many times, 0.2 s apart. */
#define FOLDER_TRIES 50

/* Write one line for each property that must be equal on all ranks; the error message quotes the line that differs. */
static void
describe(const struct convert *c, const char *purpose, char *text, size_t size)
{
    const struct convert_options *o = c->options;
    char spec[SPEC_TEXT];

    spec_format(&c->plan.spec, spec, sizeof(spec));
    snprintf(text, size,
             "purpose %s\nversion %s\noutput %.1024s\noptions %s%s%s%s%s%s%" PRIu64 " %u%%\n%s\ndata set %s\n", purpose,
             chex_version(), o->out ? o->out : "", o->force ? "force, " : "", o->repair ? "repair, " : "",
             o->break_lock ? "break-lock, " : "", o->verify ? "verify, " : "", o->strict ? "strict, " : "",
             o->index_dali ? "index dali, allow-rejects " : "allow-rejects ", o->allow_rejects, o->allow_reject_percent,
             spec, c->plan.dataset_id);
}

enum chex_status
convert_compare(const struct convert *c, const char *purpose, enum chex_status status, struct chex_error *err)
{
    char text[2048 + WHERE_TEXT] = "";

    if (!c->ranks)
        return status;
    if (status == CHEX_OK)
        describe(c, purpose, text, sizeof(text));
    return collective_compare(c->ranks, status, text, err);
}

/* Open the folder and check that it is the one that rank 0 uses: then it contains the lock of rank 0. */
static enum chex_status
follow_rank_0(struct convert_run *r, struct chex_error *err)
{
    const char *path = r->c->options->out;
    int tries;

    for (tries = 0; tries < FOLDER_TRIES; tries++) {
        if (folder_open(path, false, &r->folder, err) == CHEX_OK && lock_is_held(&r->folder))
            return CHEX_OK;
        folder_close(&r->folder);
        r->folder = (struct folder){.fd = -1};
        backoff(0.2);
        rank_work_poll(r->work);
    }
    return error_set(
        err, CHEX_ERR_WRITE,
        "'%s' is not the folder that rank 0 sees: the output must be on a file system that all ranks share", path);
}

/* Rank 0 takes the lock for all ranks and prepares the folder. */
static enum chex_status
open_output(struct convert_run *r, struct chex_error *err)
{
    enum chex_status status = collective_rank(r->work->ranks) == 0 ? run_open_output(r, err) : CHEX_OK;
    uint64_t complete = r->c->resumed.complete;

    status = rank_work_meet(r->work, status, &complete, 1, err);
    r->c->resumed.complete = status == CHEX_OK && complete > 0;
    return status;
}

/* Every rank opens its part.  The meeting adds up the finished images and the space that all parts need. */
static enum chex_status
resume_parts(struct convert_run *r, struct chex_error *err)
{
    int rank = collective_rank(r->work->ranks);
    enum chex_status status = rank == 0 ? CHEX_OK : follow_rank_0(r, err);
    struct store_state *s = &r->c->resumed;
    uint64_t sum[6] = {0};

    r->part = (struct part){(unsigned)rank, (unsigned)collective_size(r->work->ranks)};
    if (status == CHEX_OK)
        status = run_resume(r, err);
    if (status == CHEX_OK)
        memcpy(sum, (const uint64_t[]){s->shards, s->images, s->shards_done, s->images_done, s->slots_full, r->needed},
               sizeof(sum));
    status = rank_work_meet(r->work, status, sum, 6, err);
    *s = (struct store_state){
        .shards = sum[0], .images = sum[1], .shards_done = sum[2], .images_done = sum[3], .slots_full = sum[4]};
    r->needed = sum[5];
    return status;
}

/* The counts of image properties: from rgba to the end of the struct. */
#define NOTICED      offsetof(struct convert_counts, rgba)
#define NOTICED_SIZE (sizeof(struct convert_counts) - NOTICED)

static enum chex_status
fill_parts(struct convert_run *r, struct chex_error *err)
{
    uint64_t sum[NOTICED_SIZE / sizeof(uint64_t)];
    enum chex_status status = run_begin(r, err);

    if (status == CHEX_OK)
        status = run_read_inputs(r, err);
    store_free(r->store); /* close this part before rank 0 opens the whole data set */
    r->store = NULL;
    memcpy(sum, (char *)&r->c->counts + NOTICED, NOTICED_SIZE);
    status = rank_work_meet(r->work, status, sum, NOTICED_SIZE / sizeof(*sum), err);
    memcpy((char *)&r->c->counts + NOTICED, sum, NOTICED_SIZE);
    return status;
}

/* Rank 0 opens the whole data set, completes it and publishes it. */
static enum chex_status
publish_parts(struct convert_run *r, struct chex_error *err)
{
    const struct store_state before = r->c->resumed;
    enum chex_status status = CHEX_OK;

    r->publishing = true;
    r->part = (struct part){0};
    r->c->counts.rejects = 0;
    if (collective_rank(r->work->ranks) == 0)
        status = run_all(r, err);
    r->c->resumed = before;
    return rank_work_meet(r->work, status, NULL, 0, err);
}

static enum chex_status
run_ranks(struct convert_run *r, struct chex_error *err)
{
    struct convert *c = r->c;
    enum chex_status status = open_output(r, err);

    if (status != CHEX_OK || c->resumed.complete)
        return status;
    status = resume_parts(r, err);
    if (status == CHEX_OK)
        status = fill_parts(r, err);
    if (status == CHEX_OK)
        status = publish_parts(r, err);
    c->counts.images = c->plan.image_count;
    c->counts.resumed = c->resumed.images_done + c->resumed.slots_full;
    return status;
}

/* Run a single process on all shards, or on the part of --part. */
static enum chex_status
run_alone(struct convert_run *r, struct chex_error *err)
{
    enum chex_status status = run_open_output(r, err);

    return status != CHEX_OK || r->c->resumed.complete ? status : run_all(r, err);
}

enum chex_status
convert_run(struct convert *c, const struct convert_watch *watch, struct chex_error *err)
{
    double started = clock_now();
    struct rank_work work = {.ranks = c->ranks};
    struct convert_run r = {
        .c = c, .watch = watch, .stop = watch->stop, .part = c->options->part, .folder = {.fd = -1}};
    enum chex_status status;

    c->running = true;
    if (c->ranks && collective_size(c->ranks) > 1) {
        r.work = &work;
        r.stop = &work.stop;
    }
    status = r.work ? run_ranks(&r, err) : run_alone(&r, err);
    status = run_close_output(&r, status, err);
    c->seconds = clock_now() - started;
    return status;
}
