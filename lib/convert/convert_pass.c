/*
 * convert_pass.c - reads all inputs once, with several threads, and fills the slots of the plan
 *
 * The threads of image_reader.c push encoded images into a queue.  The threads of this file pop them, and
 * convert_image.c converts each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_image.h"

#include "base/clock.h"
#include "io/disk_reads.h"

#include <stdlib.h>

/*
 * A run does not end early for up to this number of rejects: a few bad files in a small folder do not mean that the
 * folder is wrong.
 */
#define FEW_REJECTS 20

/* ---- threads -------------------------------------------------------------------------------------------------- */

/* Several readers push neighbours in the wrong order.  In order, their records can be written together. */
static void
sort_by_slot(struct queue_entry **e, unsigned count)
{
    unsigned i, k;

    for (i = 1; i < count; i++) {
        struct queue_entry *moved = e[i];

        for (k = i; k > 0 && convert_item(e[k - 1]) > convert_item(moved); k--)
            e[k] = e[k - 1];
        e[k] = moved;
    }
}

static enum chex_status
work(void *context, uint64_t *item, struct chex_error *err)
{
    struct convert_job *job = context;
    struct convert_worker w;
    struct queue_entry *e[CONVERT_TOGETHER];
    unsigned count;
    enum chex_status status = convert_worker_init(&w, job, err);

    while (status == CHEX_OK && (count = queue_pop(job->queue, e, CONVERT_TOGETHER)) > 0) {
        sort_by_slot(e, count);
        status = convert_entries(&w, e, count, item, err);
        queue_return_all(job->queue, e, count);
    }
    profile_thread_end(&w.measured);
    convert_worker_release(&w);
    return status;
}

static void
consume(void *context, struct queue_entry *e)
{
    struct convert_worker *w = context;
    struct chex_error err;
    uint64_t item = 0;

    if (convert_entries(w, &e, 1, &item, &err) != CHEX_OK)
        threads_fail(&w->job->threads, item, &err);
}

/* Used if no thread can be started: read the images in this thread and decode each when it is pushed. */
static enum chex_status
work_alone(void *context, uint64_t *item, struct chex_error *err)
{
    struct convert_job *job = context;
    struct convert_worker w;
    enum chex_status status = convert_worker_init(&w, job, err);

    queue_consume(job->queue, consume, &w);
    if (status == CHEX_OK)
        status = image_reader_run(&job->reader, item, err);
    convert_worker_release(&w);
    return status;
}

/* With a profile: read, and count the CPU time of the thread. */
static enum chex_status
read_measured(void *context, uint64_t *item, struct chex_error *err)
{
    struct convert_job *job = context;
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
start_readers(struct convert_job *job)
{
    if (job->profile)
        return threads_start(&job->threads, job->reader.wanted, read_measured, job);
    return threads_start(&job->threads, job->reader.wanted, image_reader_run, &job->reader);
}

static enum chex_status
run_threads(struct convert_job *job, struct chex_error *err)
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
    struct convert_job *job = context;
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
    struct convert_job *job = context;

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
list_planned(const struct convert_job *job)
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
run_pass(struct convert_job *job, struct chex_error *err)
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
     * Entries: the images in progress of each decoding thread, as many waiting (of 16 threads at most), those of one
     * thread more, because readers sleep until half of the entries are unused, and one per reading thread.  Bytes: room
     * for images of 1 MiB.
     */
    job->queue = queue_new(&job->threads, threads,
                           CONVERT_TOGETHER * (threads + 1 + (threads < 16 ? threads : 16)) + job->reader.wanted + 2,
                           (uint64_t)(32 + threads) << 20);
    if (status == CHEX_OK && !job->queue)
        status = error_memory(err);
    job->reader.queue = job->queue;
    if (status == CHEX_OK)
        status = run_threads(job, err);
    if (status == CHEX_OK && job->unread > 0)
        status = convert_fail_unread(job, err);
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
has_rewrites(struct convert_job *job)
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
    struct convert_job job = {
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
    struct convert_job job = {.convert = c, .watch = watch, .profile = &profile, .lock = PTHREAD_MUTEX_INITIALIZER};
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
