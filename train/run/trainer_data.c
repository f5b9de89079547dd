/*
 * trainer_data.c - the sources of the images: a copy on a local disk, a cache in memory, the shuffle window; see
 * trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "backend/host.h"
#include "backend/host_memory.h"
#include "base/clock.h"
#include "base/number_format.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Leave a quarter of the available memory, for files of other processes and for growth. */
static uint64_t
usable(uint64_t available)
{
    return available - available / 4;
}

/* ---- decisions --------------------------------------------------------------------------------------------------- */

static uint64_t
split_size(const struct trainer_task *task, int split)
{
    const struct chex_split_info *s = split >= 0 ? chex_dataset_split(task->ds, (unsigned)split) : NULL;
    uint64_t size = 0;
    unsigned i;

    for (i = 0; s && i < s->shard_count; i++)
        size += chex_dataset_shard(task->ds, s->first_shard + i)->size;
    return size;
}

/* Choose the window by the node with the least memory. */
static enum chex_status
choose_window(const struct trainer_job *job, const struct trainer_task *task, struct trainer_images *images,
              uint64_t available, struct chex_error *err)
{
    struct buffer all = {0};
    enum chex_status status = collective_allgather(job->all, &available, sizeof(available), &all, NULL, err);
    uint64_t least = available, one, size;
    int i;

    for (i = 0; status == CHEX_OK && i < collective_size(job->all); i++) {
        memcpy(&one, all.data + (size_t)i * sizeof(one), sizeof(one));
        least = one < least ? one : least;
    }
    buffer_release(&all);
    images->reading.window = job->o->window;
    images->reading.shards = chex_dataset_split(task->ds, (unsigned)task->train)->shard_count;
    size = split_size(task, task->train);
    if (task->fold) { /* its images are in the shards of both splits */
        images->reading.shards += chex_dataset_split(task->ds, (unsigned)task->validation)->shard_count;
        size += split_size(task, task->validation);
    }
    if (job->o->choose_window)
        images->reading.window = order_choose_window(size, images->reading.shards, usable(least));
    return status;
}

/* Returns the bytes of the pixels, which are all that a device keeps. */
static uint64_t
pixel_size(const struct trainer_task *task)
{
    const struct chex_dataset_info *info = chex_dataset_info(task->ds);
    const int split[] = {task->train, task->validation};
    uint64_t size = 0;
    unsigned i, k;

    for (i = 0; i < 2; i++) {
        const struct chex_split_info *s = split[i] >= 0 ? chex_dataset_split(task->ds, (unsigned)split[i]) : NULL;

        for (k = 0; s && k < s->shard_count; k++)
            size += (uint64_t)chex_dataset_shard(task->ds, s->first_shard + k)->record_count * info->width *
                    info->height;
    }
    return size;
}

/* Choose a cache in device memory next to the plan, if the device has its own memory. */
static enum chex_status
choose_device_cache(const struct trainer_job *job, const struct trainer_task *task, const struct trainer_engine *engine,
                    struct trainer_images *images, struct chex_error *err)
{
    uint64_t size = pixel_size(task), there = engine->device->info.memory;
    char needed[FORMAT_TEXT], left[FORMAT_TEXT];

    if (!engine->device->info.own_memory || job->o->cache == CACHE_HOST || job->o->cache == CACHE_NONE)
        return CHEX_OK;
    there = there > engine->memory_all ? there - engine->memory_all : 0;
    images->reading.on_device = size <= (job->o->cache == CACHE_DEVICE ? there : usable(there));
    if (images->reading.on_device || job->o->cache == CACHE_AUTO)
        return CHEX_OK;
    return error_set(err, CHEX_ERR_MEMORY, "--cache device needs %s, %s are free there in addition to the network",
                     format_bytes_compared(size, there, needed), format_bytes_compared(there, size, left));
}

/* Returns the validation split if every epoch reads its shards, or -1. */
static int
validation_of_epochs(const struct trainer_job *job, const struct trainer_task *task)
{
    return job->o->storage_check && !task->fold ? -1 : task->validation;
}

/* Keep the splits of every epoch in memory if they fit, once per rank of the node. */
static enum chex_status
choose_cache(const struct trainer_job *job, const struct trainer_task *task, const struct trainer_engine *engine,
             struct trainer_images *images, uint64_t available, struct chex_error *err)
{
    uint64_t ranks = (uint64_t)images->reading.node_ranks, room = usable(available) / ranks;
    char needed[FORMAT_TEXT], there[FORMAT_TEXT];
    enum chex_status status = choose_device_cache(job, task, engine, images, err);

    images->reading.size = split_size(task, task->train) + split_size(task, validation_of_epochs(job, task));
    images->reading.available = available;
    images->reading.kept = images->reading.on_device || job->o->cache == CACHE_HOST ||
                           (job->o->cache == CACHE_AUTO && images->reading.size <= room);
    if (status != CHEX_OK || job->o->cache != CACHE_HOST || images->reading.size <= available / ranks)
        return status;
    return error_set(err, CHEX_ERR_MEMORY, "--cache host needs %s for each of %d ranks of this machine, %s are free",
                     format_bytes_compared(images->reading.size, available, needed), images->reading.node_ranks,
                     format_bytes_compared(available, images->reading.size, there));
}

enum chex_status
trainer_choose_data(const struct trainer_job *job, const struct trainer_task *task, const struct trainer_engine *engine,
                    struct trainer_images *images, struct chex_error *err)
{
    uint64_t available;
    enum chex_status status;

    images->reading.node_ranks = collective_local_size(job->all);
    if (job->o->evaluate_only)
        return CHEX_OK;
    available = host_memory_available();
    status = choose_window(job, task, images, available, err);
    return collective_agree(
        job->all, status == CHEX_OK ? choose_cache(job, task, engine, images, available, err) : status, NULL, err);
}

enum chex_status
trainer_compare_window(const struct trainer_job *job, const struct trainer_images *images,
                       const struct checkpoint_state *state, const struct folder *from, const char *name,
                       struct chex_error *err)
{
    char kept[TRAINER_SHUFFLE], wanted[TRAINER_SHUFFLE];

    if (job->o->choose_window && images->reading.window != state->window)
        trainer_note(job, "the order stays that of this run: --shuffle %s", trainer_shuffle(state->window, kept));
    if (job->o->choose_window || job->o->window == state->window)
        return CHEX_OK;
    return error_set(err, CHEX_ERR_INCOMPATIBLE,
                     "cannot resume from '%s/%s': it was made with other options: shuffle %s -> %s", from->path, name,
                     trainer_shuffle(state->window, kept), trainer_shuffle(job->o->window, wanted));
}

/* ---- a copy on a local disk -------------------------------------------------------------------------------------- */

static void
note_copy(const struct trainer_job *job, const struct trainer_task *task, const struct staging_progress *p,
          double seconds)
{
    char copied[FORMAT_TEXT], took[FORMAT_TEXT], name[STAGING_NAME];

    trainer_note(job, "%u shards in %s/%s: %u were there, %s copied in %s", p->shards - p->left_out, job->o->stage,
                 staging_name(task->ds, name), p->there, format_bytes(p->copied, copied),
                 format_seconds(seconds, took));
    if (p->left_out > 0)
        trainer_warn(job, "%u damaged shards are not copied but read where they are: %s", p->left_out, p->why);
}

enum { STAGE_BUSY = 1 };

/* All ranks keep meeting while some of them copy, so that no rank counts as lost. */
static enum chex_status
wait_for_copies(const struct trainer_job *job, struct staging *s, struct staging_progress *p, enum chex_status status,
                struct chex_error *err)
{
    bool told = false;
    uint64_t flags;

    do {
        flags = s && !staging_progress(s, p) ? STAGE_BUSY : 0;
        if (p->waiting && !told)
            trainer_note(job, "waiting: %s", p->why);
        told |= p->waiting;
        if (s && job->is_rank_0 && job->w->staging && !p->waiting)
            job->w->staging(job->w->context, job->trainer, p->done, p->total);
        if (flags)
            backoff(0.05);
        status = collective_agree(job->all, status, &flags, err);
    } while (status == CHEX_OK && flags & STAGE_BUSY);
    return status;
}

static enum chex_status
stage(const struct trainer_job *job, const struct trainer_task *task, struct trainer_images *images, const bool *split,
      struct chex_error *err)
{
    const struct staging_options o = {.ds = task->ds,
                                      .folder = job->o->stage,
                                      .split = split,
                                      .threads = job->o->threads,
                                      .break_lock = job->o->break_lock,
                                      .stop = job->w->stop};
    struct staging *s = NULL;
    struct staging_progress p = {.total = 0};
    struct chex_error own;
    double since = clock_now();
    bool copies = collective_local_rank(job->all) == 0; /* one rank per machine */
    enum chex_status status = copies ? staging_start(&o, &s, err) : CHEX_OK, ended;

    status = wait_for_copies(job, s, &p, status, err);
    ended = staging_end(s, status == CHEX_OK ? err : &own);
    status = status == CHEX_OK ? ended : status;
    if (status == CHEX_OK && copies)
        note_copy(job, task, &p, clock_now() - since);
    /* The other ranks open the copy after it is complete. */
    status = collective_agree(job->all, status, NULL, err);
    if (status == CHEX_OK)
        status = collective_agree(job->all, staging_open(job->o->stage, task->ds, &images->staged, err), NULL, err);
    return status;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/*
 * Create the store of the images.  If the device uses host memory, a plan can take images by number too.  A device with
 * its own memory receives the pixels of images in host memory with each micro-batch.
 */
static enum chex_status
open_keeper(const struct trainer_task *task, const struct trainer_engine *engine, struct trainer_images *images,
            const bool *split, struct chex_error *err)
{
    bool host = engine->device->info.own_memory && !images->reading.on_device;
    uint32_t count = reader_images(task->ds, split);

    images->keeper = host ? (struct image_keeper){.put = host_store_put, .get = host_store_pixels}
                          : (struct image_keeper){.put = engine->backend->store_put};
    return (host ? host_store_new : engine->backend->store_new)(engine->device, count, engine->options.source,
                                                                &images->keeper.store, err);
}

static enum chex_status
open_reader(struct trainer *t, bool *split, struct chex_error *err)
{
    struct reader_options o = {.ds = t->task.ds, .staged = t->images.staged, .check = t->job.o->check};
    enum chex_status status = CHEX_OK;

    memset(split, 0, chex_dataset_info(t->task.ds)->split_count * sizeof(*split));
    if (t->task.train >= 0)
        split[t->task.train] = t->images.reading.kept;
    if (validation_of_epochs(&t->job, &t->task) >= 0)
        split[t->task.validation] = t->images.reading.kept;
    if (t->images.reading.kept)
        status = open_keeper(&t->task, &t->engine, &t->images, split, err);
    o.keep = split;
    o.keeper = t->images.keeper;
    if (status == CHEX_OK)
        status = reader_new(&o, &t->images.reader, err);
    if (status == CHEX_OK && t->images.reading.kept && !trainer_is_complete(&t->job, &t->state))
        status = reader_fill(t->images.reader, 1, err);
    return status;
}

enum chex_status
trainer_open_data(struct trainer *t, struct chex_error *err)
{
    bool *split = calloc(chex_dataset_info(t->task.ds)->split_count, sizeof(*split));
    bool trains = !t->job.o->evaluate_only && !trainer_is_complete(&t->job, &t->state);
    enum chex_status status = split ? CHEX_OK : error_memory(err);

    status = collective_agree(t->job.all, status, NULL, err);
    if (status == CHEX_OK && t->job.o->stage) {
        if (trains)
            split[t->task.train] = true;
        if (trains && t->task.validation >= 0)
            split[t->task.validation] = true;
        if (t->task.test >= 0)
            split[t->task.test] = true;
        if (t->task.fold && (t->task.test == t->task.train || t->task.test == t->task.validation))
            split[t->task.train] = split[t->task.validation] = true;
        status = stage(&t->job, &t->task, &t->images, split, err);
    }
    if (status == CHEX_OK)
        status = collective_agree(t->job.all, open_reader(t, split, err), NULL, err);
    free(split);
    return status;
}

void
trainer_close_data(const struct trainer_engine *engine, struct trainer_images *images)
{
    reader_free(images->reader);
    if (images->keeper.store)
        (images->keeper.get ? host_store_free : engine->backend->store_free)(images->keeper.store);
    chex_dataset_close(images->staged);
    images->keeper.store = NULL;
    images->reader = NULL;
    images->staged = NULL;
}

/* ---- damaged records --------------------------------------------------------------------------------------------- */

static int
compare_places(const void *a, const void *b)
{
    const struct sample_place *x = a, *y = b;

    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static bool
is_told(const struct trainer_images *images, const struct sample_place *place)
{
    const struct sample_place *told = (const struct sample_place *)images->told.data;
    size_t i;

    for (i = 0; i < images->told.size / sizeof(*told); i++)
        if (compare_places(&told[i], place) == 0)
            return true;
    return false;
}

/*
 * Report a record.  If it is good now, the network caused the damage, or this process kept it from before the damage.
 */
static void
report_record(const struct trainer_job *job, const struct trainer_images *images, const struct sample_place *at,
              const char *what, uint8_t *record)
{
    struct chex_error why = {.text = "it was damaged when it was read, and is good now"};
    struct chex_record view;
    char text[READER_TEXT];

    if (reader_read(images->reader, at->shard, at->index, record, &view, &why) == CHEX_OK && !view.weight)
        snprintf(why.text, sizeof(why.text), "a padding record where an image was");
    trainer_warn(job, "%s: %s; %s", reader_describe(images->reader, at->shard, at->index, record, text), why.text,
                 what);
}

enum chex_status
trainer_report_bad_records(const struct trainer_job *job, const struct trainer_task *task,
                           struct trainer_images *images, struct trainer_result *result, struct sample_place *place,
                           size_t count, const char *what, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    uint8_t *record;
    size_t i;

    if (!job->is_rank_0 || count == 0)
        return CHEX_OK;
    record = malloc(chex_dataset_info(task->ds)->stride);
    if (!record)
        return error_memory(err);
    qsort(place, count, sizeof(*place), compare_places);
    for (i = 0; status == CHEX_OK && i < count; i++) {
        if (is_told(images, &place[i]))
            continue;
        report_record(job, images, &place[i], what, record);
        status = buffer_append(&images->told, &place[i], sizeof(place[i]), err);
        result->damaged++;
    }
    free(record);
    return status;
}

enum chex_status
trainer_count_unreadable(struct trainer *t, struct chex_error *err)
{
    struct samples *s = t->task.fold ? &t->task.fold->unreadable : NULL;
    enum chex_status status;

    if (!s || s->count == 0)
        return CHEX_OK;
    if (t->state.step == 0 && t->state.epoch == 0)
        t->state.skipped = s->count; /* once for the whole run, which may start here again */
    t->result.skipped = t->state.skipped > s->count ? t->state.skipped : s->count;
    status = trainer_report_bad_records(&t->job, &t->task, &t->images, &t->result, s->place, s->count,
                                        "it is in no fold", err);
    return collective_agree(t->job.all, status, NULL, err);
}

/* Gather the skipped records of all ranks. */
static enum chex_status
take_skipped(const struct trainer_job *job, const struct trainer_pass *pass, uint64_t end, struct buffer *all,
             struct chex_error *err)
{
    struct buffer own = {0};
    enum chex_status status = collective_agree(job->all, loader_take_skipped(pass->loader, end, &own, err), NULL, err);

    if (status == CHEX_OK)
        status = collective_allgather(job->all, own.data, own.size, all, NULL, err);
    buffer_release(&own);
    return status;
}

/* Sum over the ranks the records that were good in the second read. */
static enum chex_status
count_reread(const struct trainer_job *job, struct trainer_images *images, struct chex_error *err)
{
    uint64_t own = reader_counts(images->reader).reread - images->reading.reread, one, reread = 0;
    struct buffer all = {0};
    enum chex_status status = collective_allgather(job->all, &own, sizeof(own), &all, NULL, err);
    int i;

    for (i = 0; status == CHEX_OK && i < collective_size(job->all); i++) {
        memcpy(&one, all.data + (size_t)i * sizeof(one), sizeof(one));
        reread += one;
    }
    images->reading.reread += own;
    if (reread > 0)
        trainer_warn(job,
                     "%s records were damaged when they were read, and good when they were read again: look at the "
                     "disk, the network or the memory of this machine",
                     COUNT_TEXT(reread));
    buffer_release(&all);
    return status;
}

enum chex_status
trainer_count_bad(struct trainer *t, struct chex_error *err)
{
    struct buffer all = {0};
    enum chex_status status = count_reread(&t->job, &t->images, err);
    size_t count;

    if (status == CHEX_OK)
        status = take_skipped(&t->job, &t->pass, t->state.batches * t->task.global, &all, err);
    count = all.size / sizeof(struct sample_place);
    if (status == CHEX_OK) {
        t->state.skipped += count;
        t->result.skipped += count;
        status = trainer_report_bad_records(&t->job, &t->task, &t->images, &t->result,
                                            (struct sample_place *)(void *)all.data, count,
                                            "the next good one in the order replaces it", err);
        status = collective_agree(t->job.all, status, NULL, err);
    }
    buffer_release(&all);
    return status;
}
