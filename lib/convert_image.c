/*
 * convert_image.c - from the plan to full slots: one image at a time, by a team of threads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert_private.h"

#include "decode.h"
#include "pipeline.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* No image file of the data set is above a megabyte; a radiograph of 64 megapixels in 16 bits stays below this. */
#define MAX_FILE (256u << 20)

/* Rejects up to this number never end a run early: a few bad files of a small folder are no wrong folder. */
#define FEW_REJECTS 20

struct job {
    struct convert *convert;
    const struct convert_watch *watch;
    struct store *store;
    uint64_t reject_limit; /* more of them end the run */
    atomic_size_t processed;
    pthread_mutex_t lock; /* counts, and the call of watch->reject */
};

/* What a thread keeps from image to image. */
struct worker {
    struct buffer file;
    struct decoder decoder;
    struct image image;
    struct resampler resampler;
    uint8_t *record;
};

static void
worker_free(void *argument)
{
    struct worker *w = argument;

    if (!w)
        return;
    buffer_release(&w->file);
    decoder_release(&w->decoder);
    image_release(&w->image);
    resampler_release(&w->resampler);
    free(w->record);
    free(w);
}

static void *
worker_new(void *context)
{
    const struct job *job = context;
    struct worker *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->record = malloc(job->convert->plan.layout.stride);
    if (!w->record || decoder_init(&w->decoder, NULL) != CHEX_OK) {
        worker_free(w);
        return NULL;
    }
    return w;
}

/* The shard that image number `item` of the plan is in. */
static size_t
shard_of(const struct plan *plan, size_t item)
{
    size_t low = 0, high = plan->shard_count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (plan->shard[middle].first <= item)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool
name_matches(const char *name, enum image_container container)
{
    const char *dot = strrchr(name, '.');
    bool png = dot && strcasecmp(dot, ".png") == 0;

    return png == (container == IMAGE_PNG);
}

static void
count_traits(struct convert_counts *n, const struct image_traits *t, const char *name)
{
    n->rgba += t->container == IMAGE_PNG && t->channels == 4;
    n->colour += t->colour;
    n->composited += t->transparent;
    n->jpeg += t->container == IMAGE_JPEG;
    n->deep += t->bit_depth == 16;
    n->palette += t->palette;
    n->interlaced += t->interlaced;
    n->animated += t->animated;
    n->warned += t->warnings > 0;
    n->mismatched += !name_matches(name, t->container);
}

/* File to sealed record in w->record. */
static enum chex_status
make_record(struct job *job, struct worker *w, const struct entry *entry, size_t shard, uint32_t index,
            struct image_traits *traits, struct chex_error *err)
{
    const struct plan *plan = &job->convert->plan;
    const struct source_file *file = source_find(&job->convert->source, entry->name);
    struct record_values values;
    char path[4096];
    enum chex_status status;

    if (!file)
        return chex_fail(err, CHEX_ERR_BUG, "no file for planned image '%s'", entry->name);
    status = source_path(&job->convert->source, file, path, sizeof(path), err);
    if (status == CHEX_OK)
        status = file_read(AT_FDCWD, path, MAX_FILE, &w->file, err);
    if (status == CHEX_OK)
        status = decode_image(&w->decoder, w->file.data, w->file.size, &plan->spec.limits, &w->image, traits, err);
    if (status == CHEX_OK)
        status = resampler_run(&w->resampler, plan->spec.resize, &w->image, plan->spec.size, plan->spec.size,
                               w->record + plan->layout.pixel_offset, err);
    if (status != CHEX_OK)
        return status;
    plan_values(plan, entry, (uint32_t)shard, index, 1, &values);
    layout_encode(&plan->layout, &values, w->record);
    layout_seal(&plan->layout, w->record);
    return CHEX_OK;
}

/* Count and report a reject; an error where it is one too many. */
static enum chex_status
take_reject(struct job *job, const struct entry *entry, size_t shard, uint32_t index, const struct chex_error *why,
            struct chex_error *err)
{
    struct convert *c = job->convert;
    uint64_t rejects;

    pthread_mutex_lock(&job->lock);
    rejects = ++c->counts.rejects;
    if (job->watch->reject)
        job->watch->reject(job->watch->context, entry->name, why);
    pthread_mutex_unlock(&job->lock);
    if (c->options->strict)
        return chex_fail(err, CHEX_ERR_DAMAGED, "stopped at the first reject, as --strict asks: '%s': %s", entry->name,
                         why->text);
    if (rejects > job->reject_limit)
        return chex_fail(err, CHEX_ERR_DAMAGED,
                         "stopped after %llu rejects of %llu images: is this the right folder? "
                         "(--allow-rejects raises the limit)",
                         (unsigned long long)rejects, (unsigned long long)c->counts.images);
    return store_reject(job->store, shard, index, why, err);
}

/* Statuses that are the fault of one file: it is rejected, and the others go on. */
static bool
is_reject(enum chex_status status)
{
    return chex_status_is_data(status) || status == CHEX_ERR_READ || status == CHEX_ERR_MISSING;
}

static enum chex_status
convert_one(void *context, void *argument, size_t item, struct chex_error *err)
{
    struct job *job = context;
    struct convert *c = job->convert;
    struct worker *w = argument;
    struct image_traits traits = {0};
    struct chex_error why = {.status = CHEX_OK};
    size_t shard = shard_of(&c->plan, item);
    uint32_t index = (uint32_t)(item - c->plan.shard[shard].first);
    const struct entry *entry = &c->labels.entry[c->plan.image[item]];
    enum chex_status status;

    if (!store_wants(job->store, shard, index))
        return CHEX_OK;
    status = make_record(job, w, entry, shard, index, &traits, &why);
    if (status == CHEX_OK) {
        pthread_mutex_lock(&job->lock);
        count_traits(&c->counts, &traits, entry->name);
        pthread_mutex_unlock(&job->lock);
        status = store_put(job->store, shard, index, w->record, err);
    } else if (is_reject(status)) {
        status = take_reject(job, entry, shard, index, &why, err);
    } else {
        *err = why;
        chex_context(err, status, "'%s'", entry->name);
    }
    if (status == CHEX_OK)
        atomic_fetch_add(&job->processed, 1);
    return status;
}

static void
tick(void *context, size_t done)
{
    struct job *job = context;
    struct convert *c = job->convert;
    uint64_t rejects;

    (void)done;
    if (!job->watch->tick)
        return;
    pthread_mutex_lock(&job->lock);
    rejects = c->counts.rejects;
    pthread_mutex_unlock(&job->lock);
    job->watch->tick(job->watch->context, c, c->counts.resumed + atomic_load(&job->processed), rejects);
}

static uint64_t
reject_limit(const struct convert *c)
{
    const struct convert_options *o = c->options;
    uint64_t limit = c->counts.images / 100;
    uint64_t percent = c->counts.images * o->allow_reject_percent / 100;

    if (limit < FEW_REJECTS)
        limit = FEW_REJECTS;
    if (limit < o->allow_rejects)
        limit = o->allow_rejects;
    return limit < percent ? percent : limit;
}

/* Those that still count. */
static uint64_t
count_rejects(const struct convert *c, const struct store *store)
{
    const struct shard_result *result = store_results(store);
    uint64_t rejects = 0;
    size_t i;

    for (i = 0; i < c->plan.shard_count; i++)
        rejects += result[i].reject_count;
    return rejects;
}

enum chex_status
convert_fill(struct convert *c, struct store *store, const struct convert_watch *watch, struct chex_error *err)
{
    struct job job = {
        .convert = c,
        .watch = watch,
        .store = store,
        .reject_limit = reject_limit(c),
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    struct pipeline pipeline = {
        .count = c->plan.image_count,
        .threads = c->options->threads,
        .work = convert_one,
        .worker_new = worker_new,
        .worker_free = worker_free,
        .context = &job,
        .tick = tick,
        .stop = watch->stop,
    };
    enum chex_status status = pipeline_run(&pipeline, err);
    uint64_t unfilled, filled;
    unsigned shards;

    /* Shards that the disk failed to write are filled a second time. */
    while (status == CHEX_OK && (unfilled = store_unfilled(store, &shards)) > 0) {
        c->counts.shards_again += shards;
        c->counts.rejects = count_rejects(c, store);
        filled = c->plan.image_count - unfilled;
        atomic_store(&job.processed, (size_t)(filled > c->counts.resumed ? filled - c->counts.resumed : 0));
        status = pipeline_run(&pipeline, err);
    }
    c->threads_used = pipeline.threads_used;
    pthread_mutex_destroy(&job.lock);
    return status;
}
