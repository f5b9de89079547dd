/*
 * convert_image.c - decodes the images of the plan into their slots, with several threads
 *
 * The threads of image_reader.c push encoded images into a queue.  The threads of this file pop them, decode and resize
 * them, and write the records into their slots.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_private.h"

#include "base/clock.h"
#include "base/number_format.h"
#include "convert/cross_check.h"
#include "convert/profile.h"
#include "image/decode.h"
#include "input/entry_decode.h"
#include "io/disk_reads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/*
 * A run does not end early for up to this number of rejects: a few bad files in a small folder do not mean that the
 * folder is wrong.
 */
#define FEW_REJECTS 20

/* More read errors than this end a pass early: then the disk or the network fails, not only a few blocks. */
#define FEW_UNREAD 20

struct job {
    struct convert *convert;
    const struct convert_watch *watch;
    struct store *store;   /* NULL with `profile` */
    uint64_t reject_limit; /* more rejects end the run */
    atomic_size_t processed;
    pthread_mutex_t lock; /* protects the counts and the calls of watch->reject, watch->unread and watch->damaged */
    /* Of one pass: */
    unsigned unread;                /* number of images with a read error; their slots stay empty */
    uint64_t first_unread;          /* item_of() the first of them in the order of the slots */
    struct chex_error unread_error; /* its error */
    struct threads threads;
    struct image_reader reader;
    struct queue *queue;
    struct profile *profile; /* convert_profile(): measure, and drop the records; NULL: a conversion */
};

/* Per-thread buffers and decoders, reused for every image. */
struct worker {
    struct job *job;
    struct decoder decoder[ENTRIES_TOGETHER];
    struct image image[ENTRIES_TOGETHER];
    struct image again; /* of cross_check() */
    struct resampler resampler;
    uint8_t *record;
    struct profile_thread measured;
};

static void
worker_release(struct worker *w)
{
    int i;

    for (i = 0; i < ENTRIES_TOGETHER; i++) {
        decoder_release(&w->decoder[i]);
        image_release(&w->image[i]);
    }
    image_release(&w->again);
    resampler_release(&w->resampler);
    profile_thread_release(&w->measured);
    free(w->record);
}

static enum chex_status
worker_init(struct worker *w, struct job *job, struct chex_error *err)
{
    *w = (struct worker){.job = job, .record = malloc(job->convert->plan.layout.stride)};
    if (!w->record || decoder_init(&w->decoder[0], NULL) != CHEX_OK || decoder_init(&w->decoder[1], NULL) != CHEX_OK)
        return error_memory(err);
    return profile_thread_begin(&w->measured, job->profile, w->decoder, ENTRIES_TOGETHER, err);
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

/* Decode the images of entries that have one, and store the result of each entry in its job. */
static void
decode_entries(struct worker *w, struct queue_entry *const *e, unsigned count, struct decode_job *job)
{
    struct decode_limits limits = w->job->convert->plan.spec.limits;

    limits.stop = w->job->watch->stop;
    profile_skip(&w->measured);
    entries_decode(e, count, &limits, w->decoder, w->image, job);
}

/* Decode an image again with libpng if --cross-check includes it, and compare. */
static enum chex_status
check_entry(struct worker *w, const struct queue_entry *e, const struct decode_job *job, bool *checked,
            struct chex_error *err)
{
    const struct convert *c = w->job->convert;
    struct decode_limits limits = c->plan.spec.limits;

    limits.stop = w->job->watch->stop;
    *checked = job->traits.fast && cross_check_includes(c->labels.entry[e->row].name, c->options->cross_check);
    return *checked ? cross_check(e->bytes.data, e->bytes.size, &limits, job->out, &w->again, err) : CHEX_OK;
}

/* Make a sealed record in w->record of a decoded image, or of the pixels of another data set. */
static enum chex_status
make_record(struct worker *w, const struct queue_entry *e, const struct decode_job *job, bool *checked,
            struct chex_error *err)
{
    const struct convert *c = w->job->convert;
    const struct slot_plan *plan = &c->plan;
    struct record_values values;
    enum chex_status status = job->status;

    if (status != CHEX_OK)
        *err = job->err;
    else if (e->width == 0)
        status = check_entry(w, e, job, checked, err);
    if (status == CHEX_OK)
        status = entry_shrink(e, job, &w->resampler, plan->spec.resize, plan->spec.size,
                              w->record + plan->layout.pixel_offset, err);
    profile_end_stage(&w->measured, PROFILE_RESIZE);
    if (status != CHEX_OK)
        return status;
    plan_values(plan, &c->labels.entry[e->row], e->shard, e->index, 1, &values);
    record_encode(&plan->layout, &values, w->record);
    record_seal(&plan->layout, w->record);
    return CHEX_OK;
}

enum chex_status
convert_fail_rejects(const struct convert *c, uint64_t rejects, struct chex_error *err)
{
    return error_set(err, CHEX_ERR_DAMAGED,
                     "stopped after %s rejects of %s images: is this the right folder? "
                     "(--allow-rejects raises the limit)",
                     COUNT_TEXT(rejects), COUNT_TEXT(c->counts.images));
}

/* Count and report a reject.  Fails if the limit is exceeded. */
static enum chex_status
take_reject(struct job *job, const struct queue_entry *e, const struct chex_error *why, struct chex_error *err)
{
    struct convert *c = job->convert;
    const char *name = c->labels.entry[e->row].name;
    uint64_t rejects;

    pthread_mutex_lock(&job->lock);
    rejects = ++c->counts.rejects;
    if (job->watch->reject)
        job->watch->reject(job->watch->context, name, why);
    pthread_mutex_unlock(&job->lock);
    if (c->options->strict)
        return error_set(err, CHEX_ERR_DAMAGED, "stopped at the first reject, as --strict asks: '%s': %s", name,
                         why->text);
    if (rejects > job->reject_limit)
        return convert_fail_rejects(c, rejects, err);
    return store_reject(job->store, e->shard, e->index, why, err);
}

/* Returns the item number for threads.h, which orders errors: the order of the slots. */
static uint64_t
item_of(const struct queue_entry *e)
{
    return (uint64_t)e->shard << 32 | e->index;
}

/* Set the error of a pass with unreadable images. */
static enum chex_status
fail_unread(const struct job *job, struct chex_error *err)
{
    *err = job->unread_error;
    if (job->unread > 1)
        error_context(err, CHEX_ERR_READ, "%u images cannot be read; the first", job->unread);
    return CHEX_ERR_READ;
}

/*
 * Count and report an image whose read failed after all retries.  The image may be good, so it is not rejected: its
 * slot stays empty, the other images are converted, and then the pass fails.
 */
static enum chex_status
take_unread(struct job *job, const struct queue_entry *e, const struct chex_error *why, struct chex_error *err)
{
    const char *name = job->convert->labels.entry[e->row].name;
    enum chex_status status = CHEX_OK;

    pthread_mutex_lock(&job->lock);
    if (job->unread++ == 0 || item_of(e) < job->first_unread) {
        job->first_unread = item_of(e);
        job->unread_error = *why;
        error_context(&job->unread_error, CHEX_ERR_READ, "'%s'", name);
    }
    if (job->watch->unread)
        job->watch->unread(job->watch->context, name, why);
    if (job->unread > FEW_UNREAD)
        status = fail_unread(job, err);
    pthread_mutex_unlock(&job->lock);
    return status;
}

bool
convert_is_read_error(const struct chex_error *why)
{
    if (error_is_denied(why))
        return true;
    /* An error without a cause means that the file changed while it was read. */
    return why->status == CHEX_ERR_READ && why->cause != 0;
}

static enum chex_status
convert_one(struct worker *w, const struct queue_entry *e, const struct decode_job *decoded, struct chex_error *err)
{
    struct job *job = w->job;
    struct convert *c = job->convert;
    const char *name = c->labels.entry[e->row].name;
    struct chex_error why = {.status = CHEX_OK};
    bool checked = false;
    enum chex_status status = make_record(w, e, decoded, &checked, &why);

    if (job->profile && (status == CHEX_OK || status_is_of_input(status) || convert_is_read_error(&why))) {
        profile_image(&w->measured, status == CHEX_OK ? w->record : NULL, c->plan.layout.stride, e->bytes.size);
        return CHEX_OK;
    }
    if (status == CHEX_OK) {
        pthread_mutex_lock(&job->lock);
        if (e->width == 0)
            count_traits(&c->counts, &decoded->traits, name);
        c->counts.cross_checked += checked;
        pthread_mutex_unlock(&job->lock);
        status = store_put(job->store, e->shard, e->index, w->record, err);
    } else if (convert_is_read_error(&why)) {
        return take_unread(job, e, &why, err);
    } else if (status_is_of_input(status)) { /* only this file: the run rejects it and continues */
        status = take_reject(job, e, &why, err);
    } else {
        *err = why;
        if (status != CHEX_ERR_STOPPED)
            error_context(err, status, "'%s'", name);
    }
    if (status == CHEX_OK)
        atomic_fetch_add(&job->processed, 1);
    return status;
}

/* ---- threads -------------------------------------------------------------------------------------------------- */

static enum chex_status
work(void *context, uint64_t *item, struct chex_error *err)
{
    struct job *job = context;
    struct worker w;
    struct queue_entry *e[ENTRIES_TOGETHER];
    struct decode_job decoded[ENTRIES_TOGETHER];
    unsigned count, i;
    enum chex_status status = worker_init(&w, job, err);

    while (status == CHEX_OK && (count = queue_pop(job->queue, e, ENTRIES_TOGETHER)) > 0) {
        decode_entries(&w, e, count, decoded);
        profile_end_stage(&w.measured, PROFILE_INFLATE);
        for (i = 0; i < count; i++) {
            if (status == CHEX_OK) {
                *item = item_of(e[i]);
                status = convert_one(&w, e[i], &decoded[i], err);
            }
            queue_return(job->queue, e[i]);
        }
    }
    profile_thread_end(&w.measured);
    worker_release(&w);
    return status;
}

static void
consume(void *context, struct queue_entry *e)
{
    struct worker *w = context;
    struct decode_job decoded;
    struct chex_error err;

    decode_entries(w, &e, 1, &decoded);
    if (convert_one(w, e, &decoded, &err) != CHEX_OK)
        threads_fail(&w->job->threads, item_of(e), &err);
}

/* Used if no thread can be started: read the images in this thread and decode each when it is pushed. */
static enum chex_status
work_alone(void *context, uint64_t *item, struct chex_error *err)
{
    struct job *job = context;
    struct worker w;
    enum chex_status status = worker_init(&w, job, err);

    queue_consume(job->queue, consume, &w);
    if (status == CHEX_OK)
        status = image_reader_run(&job->reader, item, err);
    worker_release(&w);
    return status;
}

/* With a profile: read, and count the CPU time of the thread. */
static enum chex_status
read_measured(void *context, uint64_t *item, struct chex_error *err)
{
    struct job *job = context;
    struct profile_thread t;
    enum chex_status status = profile_thread_begin(&t, job->profile, NULL, 0, err);

    if (status == CHEX_OK)
        status = image_reader_run(&job->reader, item, err);
    profile_end_stage(&t, PROFILE_READ);
    profile_thread_end(&t);
    profile_thread_release(&t);
    return status;
}

static unsigned
start_readers(struct job *job)
{
    if (job->profile)
        return threads_start(&job->threads, job->reader.wanted, read_measured, job);
    return threads_start(&job->threads, job->reader.wanted, image_reader_run, &job->reader);
}

static enum chex_status
run_threads(struct job *job, struct chex_error *err)
{
    struct convert *c = job->convert;
    unsigned started = 0, wanted = c->options->threads;
    enum chex_status status;

    if (wanted > c->plan.image_count)
        wanted = (unsigned)c->plan.image_count;
    threads_init(&job->threads);
    if (start_readers(job) == 0)
        threads_call(&job->threads, work_alone, job);
    else if (wanted < 2 || (started = threads_start(&job->threads, wanted, work, job)) == 0)
        threads_call(&job->threads, work, job);
    c->threads_used = started > 0 ? started : 1;
    status = threads_end(&job->threads, err);
    if (status == CHEX_OK && job->profile && !(job->watch->stop && atomic_load(job->watch->stop)))
        return CHEX_OK; /* after enough images */
    /* Without an error, only a stop leaves images in the queue. */
    return status == CHEX_OK && !queue_is_drained(job->queue) ? error_stopped(err) : status;
}

static void
tick(void *context)
{
    struct job *job = context;
    struct convert *c = job->convert;
    uint64_t rejects;

    if (job->profile && job->watch->stop && atomic_load(job->watch->stop))
        atomic_store(&job->profile->enough, true);
    if (!job->watch->tick)
        return;
    pthread_mutex_lock(&job->lock);
    rejects = c->counts.rejects;
    pthread_mutex_unlock(&job->lock);
    job->watch->tick(job->watch->context, c, c->counts.resumed + atomic_load(&job->processed), rejects);
}

static void
note_damaged(void *context, const char *path, const struct archive_fault *fault)
{
    struct job *job = context;

    pthread_mutex_lock(&job->lock);
    job->convert->archives_damaged++;
    if (job->watch->damaged)
        job->watch->damaged(job->watch->context, path, fault);
    pthread_mutex_unlock(&job->lock);
}

/* ---- passes --------------------------------------------------------------------------------------------------- */

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

/* Count the rejects of all shards, after the store has discarded some shards. */
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

/* List the images of the plan and whether their slots are empty; NULL when out of memory. */
static struct planned_image *
list_planned(const struct job *job)
{
    const struct slot_plan *plan = &job->convert->plan;
    struct planned_image *list = malloc((plan->image_count + 1) * sizeof(*list)), *next = list;
    uint32_t shard, index;

    for (shard = 0; list && shard < plan->shard_count; shard++)
        for (index = 0; index < plan->shard[shard].images; index++, next++)
            *next = (struct planned_image){plan->image[next - list], shard, index,
                                           !job->store || store_wants(job->store, shard, index)};
    return list;
}

/* Read all inputs once, and fill the empty slots. */
static enum chex_status
run_pass(struct job *job, struct chex_error *err)
{
    struct convert *c = job->convert;
    const unsigned threads = c->options->threads;
    struct planned_image *planned = list_planned(job);
    enum chex_status status;

    if (!planned)
        return error_memory(err);
    job->unread = 0;
    job->threads = (struct threads){
        .stop = job->profile ? &job->profile->enough : job->watch->stop, .tick = tick, .context = job};
    job->reader = (struct image_reader){
        .labels = &c->labels,
        .source = &c->source,
        .planned = planned,
        .planned_count = c->plan.image_count,
        .archive_options = {c->utf8, c->options->max_memory, job->watch->stop, labels_name_parts(&c->labels)},
        .max_size = CONVERT_MAX_FILE,
        .threads = &job->threads,
        .damaged = note_damaged,
        .context = job,
        .content = c->archive,
        .unlabeled = &c->unlabeled,
    };
    status = image_reader_init(&job->reader, threads, err);
    /*
     * Entries: the images in progress of each decoding thread, as many waiting (of 16 threads at most), and one per
     * reading thread.  Bytes: room for images of 1 MiB.
     */
    job->queue = queue_new(&job->threads,
                           ENTRIES_TOGETHER * (threads + (threads < 16 ? threads : 16)) + job->reader.wanted + 2,
                           (uint64_t)(32 + threads) << 20);
    if (status == CHEX_OK && !job->queue)
        status = error_memory(err);
    job->reader.queue = job->queue;
    if (status == CHEX_OK)
        status = run_threads(job, err);
    if (status == CHEX_OK && job->unread > 0)
        status = fail_unread(job, err);
    c->repeated += job->reader.repeated;
    unlabeled_sort(&c->unlabeled);
    queue_free(job->queue);
    image_reader_release(&job->reader);
    free(planned);
    return status;
}

/* The next pass reads the archives again, so it must start with empty results. */
void
convert_forget_archives(struct convert *c)
{
    size_t i;

    for (i = 0; i < c->source.archive_count; i++)
        c->archive[i] = (struct archive_content){.images = 0};
    c->archives_damaged = 0;
    c->repeated = c->source.repeated;
}

/*
 * Returns whether shards must be rewritten because writing them failed.  Then the counts are reset to their values
 * before these shards.
 */
static bool
has_rewrites(struct job *job)
{
    struct convert *c = job->convert;
    size_t processed = atomic_load(&job->processed);
    unsigned shards;
    uint64_t images = store_rewrites(job->store, &shards);

    if (images == 0)
        return false;
    c->counts.shards_rewritten += shards;
    c->counts.rejects = count_rejects(c, job->store);
    atomic_store(&job->processed, processed > images ? processed - (size_t)images : 0);
    convert_forget_archives(c);
    return true;
}

enum chex_status
convert_fill(struct convert *c, struct store *store, const struct convert_watch *watch, bool rewrite_only,
             struct chex_error *err)
{
    struct job job = {
        .convert = c,
        .watch = watch,
        .store = store,
        .reject_limit = convert_reject_limit(c),
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    enum chex_status status = rewrite_only ? CHEX_OK : run_pass(&job, err);

    while (status == CHEX_OK && has_rewrites(&job))
        status = run_pass(&job, err);
    pthread_mutex_destroy(&job.lock);
    return status;
}

enum chex_status
convert_profile(struct convert *c, size_t images, const struct convert_watch *watch, struct convert_profile *out,
                struct chex_error *err)
{
    struct profile profile = {.out = out, .limit = images, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct job job = {.convert = c, .watch = watch, .profile = &profile, .lock = PTHREAD_MUTEX_INITIALIZER};
    double began = clock_now(), cpu = clock_process();
    uint64_t before = 0, after = 0;
    bool counted = disk_reads(&before);
    enum chex_status status;

    *out = (struct convert_profile){.threads = c->options->threads};
    convert_forget_archives(c);
    status = run_pass(&job, err);
    out->threads = c->threads_used; /* fewer than asked for, if there are fewer images */
    out->seconds = clock_now() - began;
    out->cpu = clock_process() - cpu;
    out->disk_known = counted && disk_reads(&after);
    out->disk_bytes = out->disk_known ? after - before : 0;
    pthread_mutex_destroy(&job.lock);
    pthread_mutex_destroy(&profile.lock);
    if (status == CHEX_OK && out->images == 0)
        return error_set(err, CHEX_ERR_MISSING, "the inputs have no image of the plan to measure");
    return status;
}
