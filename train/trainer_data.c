/*
 * trainer_data.c - where a run reads its images: a copy on a near disk, memory, the order of a shuffle; see trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "trainer_private.h"

#include "host_memory.h"
#include "progress.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of what is free, so much is not counted on: files that others read, what grows later. */
static uint64_t
usable(uint64_t available)
{
    return available - available / 4;
}

/* ---- decisions --------------------------------------------------------------------------------------------------- */

static bool
is_same_node(const struct trainer *t, int rank)
{
    return strcmp(collective_host(t->all, rank), collective_host(t->all, collective_rank(t->all))) == 0;
}

static int
ranks_of_node(const struct trainer *t)
{
    int rank, count = 0;

    for (rank = 0; rank < collective_size(t->all); rank++)
        count += is_same_node(t, rank);
    return count;
}

static uint64_t
split_size(const struct trainer *t, int split)
{
    const struct chex_split_info *s = split >= 0 ? chex_dataset_split(t->ds, (unsigned)split) : NULL;
    uint64_t size = 0;
    unsigned i;

    for (i = 0; s && i < s->shard_count; i++)
        size += chex_dataset_shard(t->ds, s->first_shard + i)->size;
    return size;
}

/* The node with the least memory decides for all. */
static enum chex_status
choose_window(struct trainer *t, uint64_t available, struct chex_error *err)
{
    struct buffer all = {0};
    enum chex_status status = collective_gather(t->all, &available, sizeof(available), &all, NULL, err);
    uint64_t least = available, one;
    int i;

    for (i = 0; status == CHEX_OK && i < collective_size(t->all); i++) {
        memcpy(&one, all.data + (size_t)i * sizeof(one), sizeof(one));
        least = one < least ? one : least;
    }
    buffer_release(&all);
    t->reading.window = t->o->window;
    if (t->o->choose_window)
        t->reading.window = order_choose_window(
            split_size(t, t->train), chex_dataset_split(t->ds, (unsigned)t->train)->shard_count, usable(least));
    return status;
}

/* What is read in every epoch is kept where there is room for it, once for each rank of the node. */
static enum chex_status
choose_cache(struct trainer *t, uint64_t available, struct chex_error *err)
{
    uint64_t ranks = (uint64_t)t->reading.node_ranks, room = usable(available) / ranks;
    char needed[PROGRESS_TEXT], there[PROGRESS_TEXT];

    t->reading.size = split_size(t, t->train) + split_size(t, t->validation);
    t->reading.available = available;
    t->reading.kept = t->o->cache == CACHE_HOST || (t->o->cache == CACHE_AUTO && t->reading.size <= room);
    if (t->o->cache != CACHE_HOST || t->reading.size <= available / ranks)
        return CHEX_OK;
    return chex_fail(err, CHEX_ERR_MEMORY, "--cache host needs %s for each of %d ranks of this machine, %s are free",
                     format_bytes(t->reading.size, needed), t->reading.node_ranks, format_bytes(available, there));
}

enum chex_status
trainer_choose_data(struct trainer *t, struct chex_error *err)
{
    uint64_t available;
    enum chex_status status;

    t->reading.node_ranks = ranks_of_node(t);
    if (t->o->evaluate_only)
        return CHEX_OK;
    available = host_memory_available();
    status = choose_window(t, available, err);
    return collective_agree(t->all, status == CHEX_OK ? choose_cache(t, available, err) : status, NULL, err);
}

enum chex_status
trainer_compare_window(const struct trainer *t, const struct folder *from, const char *name, struct chex_error *err)
{
    char kept[TRAINER_SHUFFLE], wanted[TRAINER_SHUFFLE];

    if (t->o->choose_window && t->reading.window != t->state.window)
        trainer_note(t, "the order stays that of this run: --shuffle %s", trainer_shuffle(t->state.window, kept));
    if (t->o->choose_window || t->o->window == t->state.window)
        return CHEX_OK;
    return chex_fail(err, CHEX_ERR_INCOMPATIBLE,
                     "cannot go on from '%s/%s': it was made with other options: shuffle %s -> %s", from->path, name,
                     trainer_shuffle(t->state.window, kept), trainer_shuffle(t->o->window, wanted));
}

/* ---- a copy on a near disk --------------------------------------------------------------------------------------- */

/* One rank of each node copies. */
static bool
is_copying_rank(const struct trainer *t)
{
    int rank;

    for (rank = 0; !is_same_node(t, rank); rank++)
        ;
    return rank == collective_rank(t->all);
}

static void
note_copy(const struct trainer *t, const struct staging_progress *p, double seconds)
{
    char copied[PROGRESS_TEXT], took[PROGRESS_TEXT];

    trainer_note(t, "%u shards in %s/chex-%s: %u were there, %s copied in %s", p->shards - p->left_out, t->o->stage,
                 chex_dataset_info(t->ds)->id, p->there, format_bytes(p->copied, copied),
                 format_seconds(seconds, took));
    if (p->left_out > 0)
        trainer_warn(t, "%u damaged shards are not copied but read where they are: %s", p->left_out, p->why);
}

enum { STAGE_BUSY = 1 };

/* All ranks meet again and again while some copy, so that nobody is taken for lost. */
static enum chex_status
wait_for_copies(struct trainer *t, struct staging *s, struct staging_progress *p, enum chex_status status,
                struct chex_error *err)
{
    static const struct timespec pause = {.tv_nsec = 50000000};
    bool told = false;
    uint64_t flags;

    do {
        flags = s && !staging_progress(s, p) ? STAGE_BUSY : 0;
        if (p->waiting && !told)
            trainer_note(t, "waiting: %s", p->why);
        told |= p->waiting;
        if (s && t->leads && t->w->staging && !p->waiting)
            t->w->staging(t->w->context, t, p->done, p->total);
        if (flags)
            nanosleep(&pause, NULL);
        status = collective_agree(t->all, status, &flags, err);
    } while (status == CHEX_OK && flags & STAGE_BUSY);
    return status;
}

static enum chex_status
stage(struct trainer *t, const bool *split, struct chex_error *err)
{
    const struct staging_options o = {.ds = t->ds,
                                      .folder = t->o->stage,
                                      .split = split,
                                      .threads = t->o->threads,
                                      .break_lock = t->o->break_lock,
                                      .stop = t->w->stop};
    struct staging *s = NULL;
    struct staging_progress p = {.total = 0};
    struct chex_error own;
    double since = progress_clock();
    bool copies = is_copying_rank(t);
    enum chex_status status = copies ? staging_start(&o, &s, err) : CHEX_OK, ended;

    status = wait_for_copies(t, s, &p, status, err);
    ended = staging_end(s, status == CHEX_OK ? err : &own);
    status = status == CHEX_OK ? ended : status;
    if (status == CHEX_OK && copies)
        note_copy(t, &p, progress_clock() - since);
    /* The others look only when it is there. */
    status = collective_agree(t->all, status, NULL, err);
    if (status == CHEX_OK)
        status = collective_agree(t->all, staging_open(t->o->stage, t->ds, &t->staged, err), NULL, err);
    return status;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static enum chex_status
open_reader(struct trainer *t, bool *split, struct chex_error *err)
{
    struct reader_options o = {.ds = t->ds, .staged = t->staged, .check = t->o->check};
    enum chex_status status;

    memset(split, 0, chex_dataset_info(t->ds)->split_count * sizeof(*split));
    if (t->train >= 0)
        split[t->train] = t->reading.kept;
    if (t->validation >= 0)
        split[t->validation] = t->reading.kept;
    o.keep = split;
    status = reader_new(&o, &t->reader, err);
    if (status == CHEX_OK && t->reading.kept && !trainer_is_complete(t))
        status = reader_fill(t->reader, 1, err);
    return status;
}

enum chex_status
trainer_open_data(struct trainer *t, struct chex_error *err)
{
    bool *split = calloc(chex_dataset_info(t->ds)->split_count, sizeof(*split));
    bool trains = !t->o->evaluate_only && !trainer_is_complete(t);
    enum chex_status status = split ? CHEX_OK : chex_fail_memory(err);

    status = collective_agree(t->all, status, NULL, err);
    if (status == CHEX_OK && t->o->stage) {
        if (trains)
            split[t->train] = true;
        if (trains && t->validation >= 0)
            split[t->validation] = true;
        if (t->test >= 0)
            split[t->test] = true;
        status = stage(t, split, err);
    }
    if (status == CHEX_OK)
        status = collective_agree(t->all, open_reader(t, split, err), NULL, err);
    free(split);
    return status;
}

void
trainer_close_data(struct trainer *t)
{
    reader_free(t->reader);
    chex_dataset_close(t->staged);
    t->reader = NULL;
    t->staged = NULL;
}

/* ---- what was not as it should be -------------------------------------------------------------------------------- */

enum chex_status
trainer_count_bad(struct trainer *t, struct chex_error *err)
{
    uint64_t own[2] = {loader_skipped(t->loader), reader_counts(t->reader).reread - t->reading.reread}, one[2],
             reread = 0;
    struct buffer all = {0};
    enum chex_status status = collective_gather(t->all, own, sizeof(own), &all, NULL, err);
    int i;

    for (i = 0; status == CHEX_OK && i < collective_size(t->all); i++) {
        memcpy(one, all.data + (size_t)i * sizeof(one), sizeof(one));
        t->result.skipped += one[0];
        reread += one[1];
    }
    t->reading.reread += own[1];
    if (reread > 0)
        trainer_warn(t,
                     "%s records were damaged when they were read, and good when they were read again: look at the "
                     "disk, the network or the memory of this machine",
                     COUNT_TEXT(reread));
    buffer_release(&all);
    return status;
}
