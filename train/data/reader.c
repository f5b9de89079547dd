/*
 * reader.c - implements reader.h
 *
 * Each record of the data set has a state byte: the thread that sets RECORD_TAKEN stores the record in memory, and then
 * sets RECORD_KEPT.  Files are opened on first use.  With very many shards, files that were not used recently are
 * closed again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "data/reader.h"

#include "dataset/dataset.h"
#include "dataset/record.h"
#include "dataset/tfrecord.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const reader_check_names[] = {
    [READER_FIRST] = "first", [READER_ALWAYS] = "always", [READER_NEVER] = "never", NULL};

#define RECORD_CHECKED 1
#define RECORD_TAKEN   2
#define RECORD_KEPT    4

#define CHUNK (1u << 20) /* bytes per read of reader_fill() */

enum { FROM_STAGED, FROM_DATASET, PLACES };

/* An open shard. */
struct handle {
    struct chex_shard *file;
    unsigned users;
    bool recent; /* used since the last sweep of the clock algorithm */
};

struct reader {
    struct reader_options o;
    size_t stride;
    unsigned shards;
    bool *keep;                  /* [shards] */
    uint64_t *first;             /* [shards + 1]: number of the first record of a shard */
    _Atomic uint8_t *state;      /* [records] */
    uint32_t *image;             /* [shards]: store number of the first record of a shard, or STORE_NONE */
    size_t pixel_offset, pixels; /* in a record */
    _Atomic(uint8_t *) *memory;  /* [shards]: records of a shard without their pixels; NULL: not allocated */
    atomic_bool full;            /* memory ran out: no more records are kept */
    atomic_bool stop;
    atomic_uint next; /* next shard for a thread of reader_fill() */
    atomic_uint_fast64_t read, kept, reread;

    pthread_mutex_t lock;          /* protects the following members */
    struct handle *handle[PLACES]; /* [shards] */
    unsigned open, most_open, hand;

    pthread_t *thread;
    unsigned threads;
};

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Close a file that is neither in use nor recently used.  The caller holds the lock. */
static void
close_one(struct reader *r)
{
    unsigned tries;

    for (tries = 0; tries < 2 * PLACES * r->shards; tries++) {
        unsigned at = r->hand++ % (PLACES * r->shards);
        struct handle *h = &r->handle[at / r->shards][at % r->shards];

        if (!h->file || h->users > 0)
            continue;
        if (!h->recent) {
            chex_shard_close(h->file);
            h->file = NULL;
            r->open--;
            return;
        }
        h->recent = false;
    }
}

static const struct chex_dataset *
dataset_of(const struct reader *r, unsigned place)
{
    return place == FROM_STAGED ? r->o.staged : r->o.ds;
}

/* Open a shard and count a user; CHEX_ERR_MISSING also if the data set has no copy. */
static enum chex_status
handle_take(struct reader *r, unsigned place, unsigned shard, struct handle **out, struct chex_error *err)
{
    struct handle *h = &r->handle[place][shard];
    enum chex_status status = CHEX_OK;

    if (!dataset_of(r, place))
        return CHEX_ERR_MISSING;
    pthread_mutex_lock(&r->lock);
    if (!h->file) {
        if (r->open >= r->most_open)
            close_one(r);
        status = chex_shard_open(dataset_of(r, place), shard, &h->file, err);
        r->open += status == CHEX_OK;
    }
    h->users += status == CHEX_OK;
    h->recent = true;
    pthread_mutex_unlock(&r->lock);
    *out = h;
    return status;
}

static void
handle_return(struct reader *r, struct handle *h)
{
    pthread_mutex_lock(&r->lock);
    h->users--;
    pthread_mutex_unlock(&r->lock);
}

/* Read from the data set or the copy.  uncached: bypass the page cache as far as the system allows. */
static enum chex_status
read_from(struct reader *r, unsigned place, unsigned shard, uint32_t first, uint32_t count, bool uncached, uint8_t *out,
          struct chex_error *err)
{
    struct handle *h;
    enum chex_status status = handle_take(r, place, shard, &h, err);

    if (status != CHEX_OK)
        return status;
    if (uncached)
        (void)posix_fadvise(h->file->fd, (off_t)(first * r->stride), (off_t)(count * r->stride), POSIX_FADV_DONTNEED);
    status = chex_shard_read(h->file, first, count, out, err);
    handle_return(r, h);
    return status;
}

/* Read from the copy if it is readable, otherwise from the data set. */
static enum chex_status
read_records(struct reader *r, unsigned shard, uint32_t first, uint32_t count, uint8_t *out, struct chex_error *err)
{
    struct chex_error ignored;

    atomic_fetch_add_explicit(&r->read, count, memory_order_relaxed);
    if (r->o.staged && read_from(r, FROM_STAGED, shard, first, count, false, out, &ignored) == CHEX_OK)
        return CHEX_OK;
    return read_from(r, FROM_DATASET, shard, first, count, false, out, err);
}

void
reader_expect(struct reader *r, unsigned shard, uint32_t index)
{
    struct chex_error ignored;
    struct handle *h;

    if (atomic_load(&r->state[r->first[shard] + index]) & RECORD_KEPT)
        return;
    if (handle_take(r, FROM_STAGED, shard, &h, &ignored) != CHEX_OK &&
        handle_take(r, FROM_DATASET, shard, &h, &ignored) != CHEX_OK)
        return;
    (void)posix_fadvise(h->file->fd, (off_t)(index * r->stride), (off_t)r->stride, POSIX_FADV_WILLNEED);
    handle_return(r, h);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Returns the memory for the records of a shard, or NULL. */
static uint8_t *
shard_memory(struct reader *r, unsigned shard)
{
    uint8_t *memory = atomic_load_explicit(&r->memory[shard], memory_order_acquire);

    if (memory || atomic_load(&r->full))
        return memory;
    pthread_mutex_lock(&r->lock);
    memory = atomic_load(&r->memory[shard]);
    if (!memory) {
        memory = malloc((r->first[shard + 1] - r->first[shard]) * (r->stride - r->pixels));
        atomic_store_explicit(&r->memory[shard], memory, memory_order_release);
        if (!memory)
            atomic_store(&r->full, true);
    }
    pthread_mutex_unlock(&r->lock);
    return memory;
}

static void
mark_kept(struct reader *r, uint64_t number)
{
    atomic_fetch_or_explicit(&r->state[number], RECORD_KEPT, memory_order_release);
    atomic_fetch_add_explicit(&r->kept, 1, memory_order_relaxed);
}

/* Store a good record that this thread has taken: pixels to the keeper, the bytes before and after them to memory. */
static void
put_record(struct reader *r, unsigned shard, uint32_t index, const uint8_t *record)
{
    size_t end = r->pixel_offset + r->pixels;
    uint8_t *to = atomic_load(&r->memory[shard]) + index * (r->stride - r->pixels);
    const struct image_keeper *k = &r->o.keeper;
    struct chex_error ignored;

    memcpy(to, record, r->pixel_offset);
    memcpy(to + r->pixel_offset, record + end, r->stride - end);
    if (k->put(k->store, r->image[shard] + index, record + r->pixel_offset, &ignored) == CHEX_OK)
        mark_kept(r, r->first[shard] + index);
    else
        atomic_store(&r->full, true);
}

static enum chex_status
view_kept(struct reader *r, unsigned shard, uint32_t index, uint8_t *record, struct chex_record *view,
          struct chex_error *err)
{
    size_t end = r->pixel_offset + r->pixels;
    const uint8_t *from = atomic_load(&r->memory[shard]) + index * (r->stride - r->pixels);
    const struct image_keeper *k = &r->o.keeper;
    enum chex_status status;

    memcpy(record, from, r->pixel_offset);
    memcpy(record + end, from + r->pixel_offset, r->stride - end);
    status = chex_record_view(r->o.ds, shard, index, record, false, view, err);
    view->pixels = k->get ? k->get(k->store, r->image[shard] + index) : NULL;
    return status;
}

uint32_t
reader_image(const struct reader *r, unsigned shard, uint32_t index)
{
    return r->image[shard] == STORE_NONE ? STORE_NONE : r->image[shard] + index;
}

const struct image_store *
reader_store(const struct reader *r)
{
    return r->o.keeper.get ? NULL : r->o.keeper.store;
}

/* Keep a good record after a read, if its split is kept. */
static void
keep_record(struct reader *r, unsigned shard, uint32_t index, const uint8_t *record)
{
    uint64_t number = r->first[shard] + index;
    uint8_t *memory = r->keep[shard] ? shard_memory(r, shard) : NULL;

    if (memory && !(atomic_fetch_or(&r->state[number], RECORD_TAKEN) & RECORD_TAKEN))
        put_record(r, shard, index, record);
}

/* ---- one record -------------------------------------------------------------------------------------------------- */

static bool
is_to_be_checked(const struct reader *r, uint64_t number)
{
    if (r->o.check != READER_FIRST)
        return r->o.check == READER_ALWAYS;
    return !(atomic_load_explicit(&r->state[number], memory_order_relaxed) & RECORD_CHECKED);
}

enum chex_status
reader_read(struct reader *r, unsigned shard, uint32_t index, uint8_t *record, struct chex_record *view,
            struct chex_error *err)
{
    uint64_t number = r->first[shard] + index;
    bool check = is_to_be_checked(r, number);
    enum chex_status status;

    if (atomic_load_explicit(&r->state[number], memory_order_acquire) & RECORD_KEPT)
        return view_kept(r, shard, index, record, view, err);
    status = read_records(r, shard, index, 1, record, err);
    if (status == CHEX_OK)
        status = chex_record_view(r->o.ds, shard, index, record, check, view, err);
    if (chex_status_is_data(status)) {
        status = read_from(r, FROM_DATASET, shard, index, 1, true, record, err);
        if (status == CHEX_OK)
            status = chex_record_view(r->o.ds, shard, index, record, r->o.check != READER_NEVER, view, err);
        if (status == CHEX_OK)
            atomic_fetch_add(&r->reread, 1);
        check = false; /* the next read may return other bytes, e.g. from a damaged copy */
    }
    if (status != CHEX_OK)
        return status;
    if (check)
        atomic_fetch_or_explicit(&r->state[number], RECORD_CHECKED, memory_order_relaxed);
    keep_record(r, shard, index, record);
    return CHEX_OK;
}

char *
reader_describe(struct reader *r, unsigned shard, uint32_t index, uint8_t *record, char out[READER_TEXT])
{
    struct record_values values = {.weight = 0};
    struct chex_error ignored;

    if (read_from(r, FROM_DATASET, shard, index, 1, true, record, &ignored) == CHEX_OK) {
        put_u64le(record, r->stride - TFRECORD_FRAME); /* ignore a wrong length, so that the rest is parsed */
        (void)record_decode(&r->o.ds->manifest.layout, record, &values, &ignored);
    }
    snprintf(out, READER_TEXT, "'%s' record %u%s%.*s%s", chex_dataset_shard(r->o.ds, shard)->name, index,
             values.name.size > 0 ? " (" : "", (int)values.name.size, values.name.size > 0 ? values.name.data : "",
             values.name.size > 0 ? ")" : "");
    return out;
}

/* ---- filling the memory ------------------------------------------------------------------------------------------ */

/* Take up to `most` untaken records from `first` on; returns their number. */
static uint32_t
take_records(struct reader *r, unsigned shard, uint32_t first, uint32_t most)
{
    uint32_t taken = 0;

    while (taken < most && !(atomic_fetch_or(&r->state[r->first[shard] + first + taken], RECORD_TAKEN) & RECORD_TAKEN))
        taken++;
    return taken;
}

/* Keep a record only if it is good: the pass that needs a damaged one reads and reports it. */
static void
finish_record(struct reader *r, unsigned shard, uint32_t index, const uint8_t *record)
{
    uint64_t number = r->first[shard] + index;
    struct chex_record view;
    struct chex_error ignored;

    if (record &&
        chex_record_view(r->o.ds, shard, index, record, r->o.check != READER_NEVER, &view, &ignored) == CHEX_OK)
        put_record(r, shard, index, record);
    else
        atomic_fetch_and(&r->state[number], (uint8_t)~RECORD_TAKEN);
}

static void
fill_shard(struct reader *r, unsigned shard)
{
    uint32_t count = (uint32_t)(r->first[shard + 1] - r->first[shard]), i = 0, k;
    uint32_t most = r->stride < CHUNK ? (uint32_t)(CHUNK / r->stride) : 1;
    uint8_t *memory = shard_memory(r, shard), *chunk = memory ? malloc(most * r->stride) : NULL;
    struct chex_error ignored;

    while (chunk && i < count && !atomic_load(&r->stop)) {
        uint32_t taken = take_records(r, shard, i, count - i < most ? count - i : most);
        bool good = taken > 0 && read_records(r, shard, i, taken, chunk, &ignored) == CHEX_OK;

        for (k = 0; k < taken; k++)
            finish_record(r, shard, i + k, good ? chunk + k * r->stride : NULL);
        i += taken ? taken : 1;
    }
    free(chunk);
}

static void *
fill(void *argument)
{
    struct reader *r = argument;
    unsigned shard;

    while ((shard = atomic_fetch_add(&r->next, 1)) < r->shards && !atomic_load(&r->stop) && !atomic_load(&r->full))
        if (r->keep[shard])
            fill_shard(r, shard);
    return NULL;
}

enum chex_status
reader_fill(struct reader *r, unsigned threads, struct chex_error *err)
{
    unsigned i;

    r->thread = calloc(threads, sizeof(*r->thread));
    if (!r->thread)
        return error_memory(err);
    for (i = 0; i < threads && pthread_create(&r->thread[i], NULL, fill, r) == 0; i++)
        r->threads++;
    return r->threads > 0 ? CHEX_OK : error_set(err, CHEX_ERR_MEMORY, "no thread can be started");
}

/*
 * ---- start and end ------------------------------------------------------------------------------------------------
 */

static bool
make_arrays(struct reader *r)
{
    uint32_t image = 0;
    unsigned i;

    r->keep = calloc(r->shards + 1, sizeof(*r->keep));
    r->first = calloc(r->shards + 1, sizeof(*r->first));
    r->image = calloc(r->shards + 1, sizeof(*r->image));
    r->memory = calloc(r->shards + 1, sizeof(*r->memory));
    for (i = 0; i < PLACES; i++)
        r->handle[i] = calloc(r->shards + 1, sizeof(*r->handle[i]));
    if (!r->keep || !r->first || !r->image || !r->memory || !r->handle[FROM_STAGED] || !r->handle[FROM_DATASET])
        return false;
    for (i = 0; i < r->shards; i++) {
        const struct chex_shard_info *info = chex_dataset_shard(r->o.ds, i);

        r->keep[i] = r->o.keep && r->o.keep[info->split] && r->o.keeper.store;
        r->image[i] = r->keep[i] ? image : STORE_NONE;
        image += r->keep[i] ? info->record_count : 0;
        r->first[i + 1] = r->first[i] + info->record_count;
    }
    r->state = calloc(r->first[r->shards] + 1, sizeof(*r->state));
    return r->state != NULL;
}

enum chex_status
reader_new(const struct reader_options *options, struct reader **out, struct chex_error *err)
{
    struct reader *r = calloc(1, sizeof(*r));
    long files = sysconf(_SC_OPEN_MAX);

    *out = NULL;
    if (!r)
        return error_memory(err);
    r->o = *options;
    r->stride = chex_dataset_info(r->o.ds)->stride;
    r->shards = chex_dataset_info(r->o.ds)->shard_count;
    r->pixel_offset = r->o.ds->manifest.layout.pixel_offset;
    r->pixels = (size_t)chex_dataset_info(r->o.ds)->width * chex_dataset_info(r->o.ds)->height *
                chex_dataset_info(r->o.ds)->channels;
    r->most_open = files > 0 && files < 1L << 20 ? (unsigned)files / 2 : 1u << 19;
    pthread_mutex_init(&r->lock, NULL);
    if (!make_arrays(r)) {
        reader_free(r);
        return error_memory(err);
    }
    r->o.keep = NULL; /* need not outlive this call */
    *out = r;
    return CHEX_OK;
}

void
reader_free(struct reader *r)
{
    unsigned i, k;

    if (!r)
        return;
    atomic_store(&r->stop, true);
    for (i = 0; i < r->threads; i++)
        pthread_join(r->thread[i], NULL);
    for (i = 0; r->memory && i < r->shards; i++)
        free(atomic_load(&r->memory[i]));
    for (k = 0; k < PLACES; k++) {
        for (i = 0; r->handle[k] && i < r->shards; i++)
            chex_shard_close(r->handle[k][i].file);
        free(r->handle[k]);
    }
    pthread_mutex_destroy(&r->lock);
    free(r->thread);
    free(r->keep);
    free(r->first);
    free(r->image);
    free(r->state);
    free(r->memory);
    free(r);
}

struct reader_counts
reader_counts(const struct reader *r)
{
    return (struct reader_counts){atomic_load(&r->read), atomic_load(&r->kept), atomic_load(&r->reread)};
}

uint32_t
reader_images(const struct chex_dataset *ds, const bool *keep)
{
    uint32_t images = 0;
    unsigned i;

    for (i = 0; i < chex_dataset_info(ds)->shard_count; i++)
        if (keep[chex_dataset_shard(ds, i)->split])
            images += chex_dataset_shard(ds, i)->record_count;
    return images;
}

uint64_t
reader_size(const struct chex_dataset *ds, const bool *keep)
{
    uint64_t size = 0;
    unsigned i;

    for (i = 0; i < chex_dataset_info(ds)->shard_count; i++)
        if (keep[chex_dataset_shard(ds, i)->split])
            size += chex_dataset_shard(ds, i)->size;
    return size;
}
