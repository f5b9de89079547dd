/*
 * inspect_walk.c - every record of a target; see inspect.h
 *
 * Where the pixels are not wanted they are not read: what is around them is a hundredth of a record of 256x256.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/inspect.h"

#include "base/sha256.h"
#include "base/threads.h"
#include "common/shell_word.h"
#include "dataset/tfrecord.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#define PIECE (1u << 20)
_Static_assert(sizeof(XXH128_canonical_t) == WALK_HASH_HEAD, "what is compared of every hash");

#define SMALL_IMAGE 4096 /* bytes that are not worth leaving out */

struct run {
    struct walk *w;
    bool whole; /* read records as they are */
    uint64_t total;
    _Atomic uint64_t done;
    pthread_mutex_t lock; /* for faults */
};

/* What a thread keeps from shard to shard. */
struct worker {
    struct run *run;
    struct buffer buffer;
    struct digest *digest;
    void *of_caller;
};

struct job {
    struct run *run;
    const struct chex_dataset *ds;
    const struct chex_shard_info *info;
    struct chex_shard *file;
    unsigned shard;
    struct worker *worker;
    uint64_t bad; /* records */
    int64_t first_bad;
    struct chex_error why; /* of the first */
};

static void
fault(struct run *run, const char *shard, int64_t index, uint64_t count, const struct chex_error *why)
{
    pthread_mutex_lock(&run->lock);
    run->w->faults += count;
    run->w->read_failed |= why->status == CHEX_ERR_READ;
    if (run->w->fault)
        run->w->fault(run->w->context, shard, index, count, why);
    pthread_mutex_unlock(&run->lock);
}

/* Read `count` records from first on, or of one record what is around the pixels. */
static enum chex_status
read_records(const struct job *j, uint32_t first, uint32_t count, struct chex_error *err)
{
    const struct layout *l = &j->ds->manifest.layout;
    uint64_t offset = (uint64_t)first * l->stride;
    size_t tail = l->pixel_offset + l->pixel_size, got[2];
    enum chex_status status;

    if (j->run->whole)
        return chex_shard_read(j->file, first, count, j->worker->buffer.data, err);
    status = file_pread(j->file->fd, offset, j->worker->buffer.data, l->pixel_offset, &got[0], err);
    if (status == CHEX_OK)
        status = file_pread(j->file->fd, offset + tail, j->worker->buffer.data + tail, l->stride - tail, &got[1], err);
    if (status == CHEX_OK && (got[0] < l->pixel_offset || got[1] < l->stride - tail))
        status = chex_fail(err, CHEX_ERR_TRUNCATED, "became shorter while it was read");
    if (status != CHEX_OK)
        chex_context(err, status, "'%s/%s'", j->ds->folder.path, j->info->name);
    return status;
}

static enum chex_status
look(const struct job *j, uint32_t index, const uint8_t *record, struct record_values *values, struct chex_error *why)
{
    const struct layout *l = &j->ds->manifest.layout;
    size_t data_size = l->stride - TFRECORD_FRAME;
    uint64_t unused;
    enum chex_status status = CHEX_OK;

    if (j->run->w->depth > WALK_TEXTS)
        status = tfrecord_length(record, l->stride, &unused, why);
    if (status == CHEX_OK && j->run->w->depth > WALK_TEXTS)
        status = tfrecord_check_data(record, data_size, why);
    if (status == CHEX_OK)
        status = layout_decode(l, record, values, why);
    if (status == CHEX_OK &&
        (values->shard != j->shard || values->index != index || strcmp(values->dataset_id, j->ds->info.id) != 0))
        status = chex_fail(why, CHEX_ERR_INCOMPATIBLE, "is not the record of this place");
    return status;
}

static enum chex_status
visit(struct job *j, uint32_t index, const uint8_t *record, struct chex_error *err)
{
    const struct layout *l = &j->ds->manifest.layout;
    struct record_values values;
    struct chex_error why;
    uint8_t hash[DIGEST_SIZE];
    XXH128_canonical_t same;
    struct walk_record r = {.shard = j->shard,
                            .index = index,
                            .split = j->ds->split[j->info->split].name,
                            .values = &values,
                            .worker = j->worker->of_caller};

    if (look(j, index, record, &values, &why) != CHEX_OK) {
        if (j->bad++ == 0) {
            j->first_bad = index;
            j->why = why;
        }
        return CHEX_OK;
    }
    if (j->run->w->depth > WALK_TEXTS)
        r.pixels = record + l->pixel_offset;
    if (j->worker->digest) {
        digest_start(j->worker->digest);
        digest_add(j->worker->digest, record + l->pixel_offset, l->pixel_size);
        digest_finish(j->worker->digest, hash);
        r.hash = hash;
    } else if (j->run->w->depth == WALK_XXH128) {
        XXH128_canonicalFromHash(&same, XXH3_128bits(record + l->pixel_offset, l->pixel_size));
        r.hash = same.digest;
    }
    return j->run->w->record(j->run->w->context, &r, err);
}

static enum chex_status
visit_shard(struct job *j, struct chex_error *err)
{
    size_t stride = j->ds->info.stride;
    uint32_t piece = j->run->whole && stride < PIECE ? (uint32_t)(PIECE / stride) : 1;
    uint32_t first, count, i;
    struct chex_error why;
    enum chex_status status = buffer_reserve(&j->worker->buffer, piece * stride, err);

    for (first = 0; first < j->info->record_count && status == CHEX_OK; first += count) {
        count = j->info->record_count - first < piece ? j->info->record_count - first : piece;
        if (read_records(j, first, count, &why) != CHEX_OK) {
            fault(j->run, j->info->name, -1, 1, &why);
            break;
        }
        for (i = 0; i < count && status == CHEX_OK; i++)
            status = visit(j, first + i, j->worker->buffer.data + i * stride, err);
        atomic_fetch_add(&j->run->done, count);
    }
    if (j->bad > 0)
        fault(j->run, j->info->name, j->first_bad, j->bad, &j->why);
    return status;
}

static enum chex_status
work(void *context, void *worker, size_t item, struct chex_error *err)
{
    struct run *run = context;
    const struct target *t = run->w->target;
    struct job j = {.run = run, .ds = t->dataset, .shard = t->first + (unsigned)item, .worker = worker};
    struct chex_error why;
    enum chex_status status;

    j.info = &t->dataset->shard[j.shard];
    status = chex_shard_open(t->dataset, j.shard, &j.file, &why);
    if (status == CHEX_ERR_MEMORY)
        return chex_fail_memory(err);
    if (status != CHEX_OK) {
        fault(run, j.info->name, -1, 1, &why);
        return CHEX_OK;
    }
    status = visit_shard(&j, err);
    chex_shard_close(j.file);
    return status;
}

static void
worker_free(void *worker)
{
    struct worker *w = worker;

    if (w->of_caller)
        w->run->w->worker_free(w->run->w->context, w->of_caller);
    digest_free(w->digest);
    buffer_release(&w->buffer);
    free(w);
}

static void *
worker_new(void *context)
{
    struct run *run = context;
    const struct walk *walk = run->w;
    struct worker *w = calloc(1, sizeof(*w));
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
tick(void *context, size_t done)
{
    struct run *run = context;

    (void)done;
    run->w->tick(run->w->context, atomic_load(&run->done), run->total);
}

enum chex_status
walk_run(struct walk *w, struct chex_error *err)
{
    const struct target *t = w->target;
    struct run run = {.w = w, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct parallel p = {.count = t->count,
                         .threads = w->threads,
                         .work = work,
                         .worker_new = worker_new,
                         .worker_free = worker_free,
                         .context = &run,
                         .tick = w->tick ? tick : NULL};
    enum chex_status status;
    unsigned i;

    w->faults = 0;
    w->read_failed = false;
    run.whole = w->depth > WALK_TEXTS || t->dataset->manifest.layout.pixel_size <= SMALL_IMAGE;
    for (i = 0; i < t->count; i++)
        run.total += t->dataset->shard[t->first + i].record_count;
    status = parallel_for(&p, err);
    pthread_mutex_destroy(&run.lock);
    return status;
}

void
inspect_walk_fault(void *context, const char *shard, int64_t index, uint64_t count, const struct chex_error *why)
{
    struct inspect *in = *(struct inspect **)context;
    char more[PROGRESS_THINGS] = "";

    if (count > 1)
        format_things(count - 1, "more record", more);
    if (index < 0)
        meter_fault(&in->meter, "%s: %s", in->program->name, why->text);
    else
        meter_fault(&in->meter, "%s: '%s' record %lld: %s%s%s%s", in->program->name, shard, (long long)index, why->text,
                    more[0] ? " (and " : "", more, more[0] ? ")" : "");
}

int
inspect_walk_code(struct inspect *in, const struct walk *w)
{
    char word[SHELL_WORD];

    if (w->faults == 0)
        return EXIT_GOOD;
    meter_fault(&in->meter, "%s: not all records could be used; next: chex-inspect --full %s", in->program->name,
                shell_word(w->target->path, word));
    return w->read_failed ? EXIT_OUTPUT : EXIT_DATA;
}
