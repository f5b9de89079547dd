/*
 * walk.c - reads every record of a target, with one or more threads; see inspect.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/inspect.h"

#include "base/sha256.h"
#include "base/threads.h"
#include "common/shell_word.h"
#include "dataset/format.h"
#include "dataset/shard_scan.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

_Static_assert(sizeof(XXH128_canonical_t) == WALK_HASH_HEAD, "what is compared of every hash");

struct walk_run {
    struct walk *w;
    struct where where; /* of the options, resolved for this data set */
    uint64_t total;
    _Atomic uint64_t done;
    pthread_mutex_t lock; /* for faults */
    struct progress progress;
};

/* The state of one thread. */
struct walk_worker {
    struct walk_run *run;
    struct digest *digest;
    void *of_caller;
};

struct walk_job {
    struct walk_run *run;
    const struct record_layout *layout;
    const char *split;
    unsigned shard;
    uint64_t first; /* index of its first record in the data set */
    struct walk_worker *worker;
    uint64_t bad; /* records */
    int64_t first_bad;
    struct chex_error why; /* the first fault */
};

uint64_t
dataset_records(const struct chex_dataset *ds)
{
    uint64_t records = 0;
    unsigned i;

    for (i = 0; i < ds->info.shard_count; i++)
        records += ds->shard[i].record_count;
    return records;
}

uint64_t
dataset_bytes(const struct chex_dataset *ds)
{
    uint64_t bytes = 0;
    unsigned i;

    for (i = 0; i < ds->info.shard_count; i++)
        bytes += ds->shard[i].size;
    return bytes;
}

static void
print_fault(struct inspect *in, const char *shard, int64_t index, uint64_t count, const struct chex_error *why)
{
    char more[FORMAT_THINGS] = "";

    if (count > 1)
        format_things(count - 1, "more record", more);
    if (index < 0)
        progress_line_fault(&in->line, "%s: %s", in->program->name, why->text);
    else
        progress_line_fault(&in->line, "%s: '%s' record %lld: %s%s%s%s", in->program->name, shard, (long long)index,
                            why->text, more[0] ? " (and " : "", more, more[0] ? ")" : "");
}

static void
fault(struct walk_run *run, const char *shard, int64_t index, uint64_t count, const struct chex_error *why)
{
    pthread_mutex_lock(&run->lock);
    run->w->faults += count;
    run->w->read_failed |= why->status == CHEX_ERR_READ || error_is_denied(why);
    if (run->w->fault)
        run->w->fault(run->w->context, shard, index, count, why);
    print_fault(run->w->in, shard, index, count, why);
    pthread_mutex_unlock(&run->lock);
}

static enum chex_status
visit(void *context, const struct scanned_record *record, struct chex_error *err)
{
    struct walk_job *j = context;
    const uint8_t *pixels = record->bytes + j->layout->pixel_offset;
    uint8_t hash[DIGEST_SIZE];
    XXH128_canonical_t same;
    struct walk_record r = {.shard = j->shard,
                            .index = record->index,
                            .split = j->split,
                            .values = &record->values,
                            .worker = j->worker->of_caller,
                            .number = j->first + record->index};

    atomic_fetch_add(&j->run->done, 1);
    if (record->fault != RECORD_GOOD) {
        if (j->bad++ == 0) {
            j->first_bad = record->index;
            j->why = record->why;
        }
        return CHEX_OK;
    }
    r.selected = where_holds(&j->run->where, &record->values, j->split);
    if (j->run->w->depth > WALK_TEXTS)
        r.pixels = pixels;
    if (j->worker->digest) {
        digest_start(j->worker->digest);
        digest_add(j->worker->digest, pixels, j->layout->pixel_size);
        digest_finish(j->worker->digest, hash);
        r.hash = hash;
    } else if (j->run->w->depth == WALK_XXH128) {
        XXH128_canonicalFromHash(&same, XXH3_128bits(pixels, j->layout->pixel_size));
        r.hash = same.digest;
    }
    return j->run->w->record(j->run->w->context, &r, err);
}

static enum chex_status
work(void *context, void *worker, size_t item, struct chex_error *err)
{
    struct walk_run *run = context;
    const struct chex_dataset *ds = run->w->target->dataset;
    unsigned shard = run->w->target->first + (unsigned)item;
    const struct chex_shard_info *info = &ds->shard[shard];
    struct walk_job j = {.run = run,
                         .layout = &ds->manifest.layout,
                         .split = ds->split[info->split].name,
                         .shard = shard,
                         .worker = worker};
    struct shard_scan scan = {.shard = dataset_shard_identity(ds, shard),
                              .records = info->record_count,
                              .texts = run->w->depth == WALK_TEXTS,
                              .visit = visit,
                              .context = &j};
    struct chex_shard *file;
    struct chex_error why;
    unsigned i;
    enum chex_status status = chex_shard_open(ds, shard, &file, &why);

    if (status == CHEX_ERR_MEMORY)
        return error_memory(err);
    if (status != CHEX_OK) {
        fault(run, info->name, -1, 1, &why);
        return CHEX_OK;
    }
    for (i = 0; i < shard; i++)
        j.first += ds->shard[i].record_count;
    scan.fd = file->fd;
    status = shard_scan(&scan, err);
    chex_shard_close(file);
    if (status == CHEX_ERR_READ || status == CHEX_ERR_TRUNCATED) {
        error_set(&why, status, "'%s/%s': %s", ds->folder.path, info->name, err->text);
        fault(run, info->name, -1, 1, &why);
        status = CHEX_OK;
    }
    if (j.bad > 0)
        fault(run, info->name, j.first_bad, j.bad, &j.why);
    return status;
}

static void
worker_free(void *worker)
{
    struct walk_worker *w = worker;

    if (w->of_caller)
        w->run->w->worker_free(w->run->w->context, w->of_caller);
    digest_free(w->digest);
    free(w);
}

static void *
worker_new(void *context)
{
    struct walk_run *run = context;
    const struct walk *walk = run->w;
    struct walk_worker *w = calloc(1, sizeof(*w));
    bool good = w != NULL;

    if (!good)
        return NULL;
    w->run = run;
    if (walk->depth == WALK_SHA256)
        good = (w->digest = digest_new()) != NULL;
    if (good && walk->worker_new)
        good = (w->of_caller = walk->worker_new(walk->context)) != NULL;
    if (good)
        return w;
    worker_free(w);
    return NULL;
}

static void
tick(void *context, size_t finished)
{
    struct walk_run *run = context;
    const struct walk *w = run->w;
    char text[256], a[FORMAT_TEXT], b[FORMAT_TEXT], left[FORMAT_TEXT];
    uint64_t done = atomic_load(&run->done);
    double seconds;

    (void)finished;
    if (run->progress.started == 0)
        progress_start(&run->progress, run->total);
    progress_update(&run->progress, done);
    if (run->total == 0 || !progress_line_due(&w->in->line))
        return;
    seconds = progress_left(&run->progress);
    snprintf(text, sizeof(text), "reading %s%s%3u %%  %s/%s records  %s left", w->progress, w->progress[0] ? "  " : " ",
             (unsigned)(100 * done / run->total), format_count(done, a), format_count(run->total, b),
             seconds < 0 ? "?" : format_seconds(seconds, left));
    progress_line_update(&w->in->line, text);
}

enum chex_status
inspect_resolve_where(const struct target *t, struct where *where, struct chex_error *err)
{
    const struct chex_dataset *ds = t->dataset;
    const char *split[SPLIT_MAX];
    enum chex_status status = where_resolve(where, &ds->manifest.findings, err);

    for (unsigned i = 0; i < ds->info.split_count; i++)
        split[i] = ds->split[i].name;
    if (status == CHEX_OK && ds->info.split_count > 0)
        status = where_check_splits(where, split, ds->info.split_count, err);
    return status == CHEX_OK ? status : error_context(err, status, "--where");
}

enum chex_status
walk_run(struct walk *w, struct chex_error *err)
{
    const struct target *t = w->target;
    struct walk_run run = {.w = w, .where = w->in->options->where, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct parallel p = {.count = t->count,
                         .threads = w->threads,
                         .work = work,
                         .worker_new = worker_new,
                         .worker_free = worker_free,
                         .context = &run,
                         .tick = w->progress ? tick : NULL};
    enum chex_status status = inspect_resolve_where(t, &run.where, err);
    unsigned i;

    w->faults = 0;
    w->read_failed = false;
    for (i = 0; i < t->count; i++)
        run.total += t->dataset->shard[t->first + i].record_count;
    if (status == CHEX_OK)
        status = parallel_for(&p, err);
    pthread_mutex_destroy(&run.lock);
    if (w->progress)
        progress_line_clear(&w->in->line);
    return status;
}

int
inspect_walk_code(const struct walk *w)
{
    char word[SHELL_WORD];

    if (w->faults == 0)
        return EXIT_GOOD;
    progress_line_fault(&w->in->line, "%s: not all records could be used; next: chex-inspect check --full %s",
                        w->in->program->name, shell_word(w->target->path, word));
    return w->read_failed ? EXIT_MISSING : EXIT_DATA;
}
