/*
 * convert_image.c - from the plan to full slots: one image at a time, by a team of threads
 *
 * The readers of convert_intake.c fetch encoded images, the workers here decode them and fill the slots.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_private.h"

#include "base/pipeline.h"
#include "base/progress.h"
#include "image/decode.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Rejects up to this number never end a run early: a few bad files of a small folder are no wrong folder. */
#define FEW_REJECTS 20

struct job {
    struct convert *convert;
    const struct convert_watch *watch;
    struct store *store;
    struct intake *intake;
    uint64_t reject_limit; /* more of them end the run */
    atomic_size_t processed;
    pthread_mutex_t lock; /* counts, and the call of watch->reject */
};

/* What a thread keeps from image to image. */
struct worker {
    struct feed_place *place; /* the image at hand */
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

/* Encoded image to sealed record in w->record. */
static enum chex_status
make_record(struct job *job, struct worker *w, const struct entry *entry, size_t shard, uint32_t index,
            struct image_traits *traits, struct chex_error *err)
{
    const struct plan *plan = &job->convert->plan;
    const struct feed_place *place = w->place;
    struct decode_limits limits = plan->spec.limits;
    struct record_values values;
    enum chex_status status = place->why.status;

    limits.stop = job->watch->stop;
    if (status != CHEX_OK)
        *err = place->why;
    else
        status = decode_image(&w->decoder, place->bytes.data, place->bytes.size, &limits, &w->image, traits, err);
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

enum chex_status
convert_fail_rejects(const struct convert *c, uint64_t rejects, struct chex_error *err)
{
    return chex_fail(err, CHEX_ERR_DAMAGED,
                     "stopped after %s rejects of %s images: is this the right folder? "
                     "(--allow-rejects raises the limit)",
                     COUNT_TEXT(rejects), COUNT_TEXT(c->counts.images));
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
        return convert_fail_rejects(c, rejects, err);
    return store_reject(job->store, shard, index, why, err);
}

/* Statuses that are the fault of one file: it is rejected, and the others go on. */
static bool
is_reject(enum chex_status status)
{
    return chex_status_is_data(status) || status == CHEX_ERR_READ || status == CHEX_ERR_MISSING;
}

static enum chex_status
convert_one(struct job *job, struct worker *w, size_t item, struct chex_error *err)
{
    struct convert *c = job->convert;
    struct image_traits traits = {0};
    struct chex_error why = {.status = CHEX_OK};
    size_t shard = plan_shard_of(&c->plan, item);
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
        if (status != CHEX_ERR_STOPPED)
            chex_context(err, status, "'%s'", entry->name);
    }
    if (status == CHEX_OK)
        atomic_fetch_add(&job->processed, 1);
    return status;
}

/* ---- what the pipeline calls ---------------------------------------------------------------------------------- */

static enum chex_status
work(void *context, void *argument, size_t item, struct chex_error *err)
{
    struct job *job = context;
    struct worker *w = argument;
    enum chex_status status = convert_one(job, w, item, err);

    feed_return(intake_feed(job->intake), w->place);
    w->place = NULL;
    return status;
}

static bool
next(void *context, void *argument, bool wait, size_t *item)
{
    struct job *job = context;
    struct worker *w = argument;

    w->place = feed_take(intake_feed(job->intake), wait);
    if (w->place)
        *item = w->place->item;
    return w->place != NULL;
}

static enum chex_status
read_step(void *context, unsigned reader, bool *more, struct chex_error *err)
{
    struct job *job = context;

    return intake_read(job->intake, reader, more, err);
}

static void
read_end(void *context)
{
    struct job *job = context;

    feed_close(intake_feed(job->intake));
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

uint64_t
convert_reject_limit(const struct convert *c)
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

/* All inputs once: what is wanted goes into its slot. */
static enum chex_status
run_pass(struct job *job, struct pipeline *pipeline, struct chex_error *err)
{
    struct convert *c = job->convert;
    enum chex_status status = intake_new(c, job->store, job->watch, &job->lock, &job->intake, err);

    if (status == CHEX_OK) {
        pipeline->readers = intake_readers(job->intake);
        status = pipeline_run(pipeline, err);
        c->threads_used = pipeline->threads_used;
    }
    intake_free(job->intake);
    job->intake = NULL;
    strays_sort(&c->strays);
    return status;
}

/* A second pass sees the archives as the first did. */
void
convert_forget_archives(struct convert *c)
{
    size_t i;

    for (i = 0; i < c->source.archive_count; i++)
        c->archive[i] = (struct convert_archive){.images = 0};
    c->archives_damaged = 0;
    c->repeated = c->source.repeated;
}

/* Are there shards that the disk failed to write?  Then all is as before them. */
static bool
begin_again(struct job *job)
{
    struct convert *c = job->convert;
    size_t processed = atomic_load(&job->processed);
    unsigned shards;
    uint64_t images = store_begun_anew(job->store, &shards);

    if (images == 0)
        return false;
    c->counts.shards_again += shards;
    c->counts.rejects = count_rejects(c, job->store);
    atomic_store(&job->processed, processed > images ? processed - (size_t)images : 0);
    convert_forget_archives(c);
    return true;
}

enum chex_status
convert_fill(struct convert *c, struct store *store, const struct convert_watch *watch, bool again,
             struct chex_error *err)
{
    struct job job = {
        .convert = c,
        .watch = watch,
        .store = store,
        .reject_limit = convert_reject_limit(c),
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    struct pipeline pipeline = {
        .count = c->plan.image_count,
        .threads = c->options->threads,
        .work = work,
        .worker_new = worker_new,
        .worker_free = worker_free,
        .context = &job,
        .tick = tick,
        .stop = watch->stop,
        .read = read_step,
        .read_end = read_end,
        .next = next,
    };
    enum chex_status status = again ? CHEX_OK : run_pass(&job, &pipeline, err);

    /* Shards that the disk failed to write are filled a second time. */
    while (status == CHEX_OK && begin_again(&job))
        status = run_pass(&job, &pipeline, err);
    pthread_mutex_destroy(&job.lock);
    return status;
}
