/*
 * convert_intake.c - the readers: loose files in the order of the plan, archives from their beginning to their end
 *
 * A reader that has nothing left of one kind goes on with the other.  Every archive is read to its end, even when all
 * images are there: its checksums are at the end, and so may be a second image of some name.  The bytes of the data
 * set must not depend on which of two came first, so for every row the hash of what an archive held is kept, and
 * a second one has to agree, as it has to with a loose file of that name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_private.h"

#include "base/keyed_hash.h"
#include "io/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A loose file is read without asking for its size before, as long as it is not above this. */
#define USUAL_FILE (1u << 20)

/* Threads that read loose files at most: beyond, more only wait for the same disk. */
#define MAX_LOOSE    16
#define MAX_ARCHIVES 8

#define NOT_PLANNED UINT32_MAX

/* What an archive held for a row. */
struct arrival {
    uint64_t hash;    /* 0: nothing yet */
    uint32_t archive; /* of the first one */
};

struct reader {
    bool wants_archive; /* its first choice */
    struct image_archive *archive;
    size_t archive_index;
    /* an image for which there was no room yet */
    bool pending;
    size_t item;
    uint64_t room; /* to be reserved */
    uint64_t size; /* of the member, where it is known */
};

struct intake {
    struct convert *convert;
    const struct store *store;
    const struct convert_watch *watch;
    struct feed *feed;
    uint32_t *item_of; /* [labels.count] planned image of a row, or NOT_PLANNED; with archives only */
    atomic_size_t next_item, next_archive;
    struct reader *reader;
    unsigned readers;
    pthread_mutex_t *watch_lock;
    pthread_mutex_t lock;    /* for what follows, and what the convert says about archives */
    struct arrival *arrival; /* [labels.count] */
    struct hash_key key;     /* of its hashes */
};

/* ---- making --------------------------------------------------------------------------------------------------- */

static enum chex_status
map_rows(struct intake *in, struct chex_error *err)
{
    const struct convert *c = in->convert;
    size_t i, rows = c->labels.count ? c->labels.count : 1;

    in->item_of = malloc(rows * sizeof(*in->item_of));
    in->arrival = calloc(rows, sizeof(*in->arrival));
    if (!in->item_of || !in->arrival)
        return chex_fail_memory(err);
    for (i = 0; i < c->labels.count; i++)
        in->item_of[i] = NOT_PLANNED;
    for (i = 0; i < c->plan.image_count; i++)
        in->item_of[c->plan.image[i]] = (uint32_t)i;
    return CHEX_OK;
}

static unsigned
at_most(size_t n, size_t limit)
{
    return (unsigned)(n < limit ? n : limit);
}

enum chex_status
intake_new(struct convert *c, const struct store *store, const struct convert_watch *watch, pthread_mutex_t *watch_lock,
           struct intake **out, struct chex_error *err)
{
    /* Decompressing takes a sixth of the time of decoding or less; opening a file over a network about as long. */
    unsigned threads = c->options->threads, i;
    unsigned archives = at_most(c->source.archive_count, at_most(1 + threads / 4, MAX_ARCHIVES));
    unsigned loose = c->source.count > 0 ? at_most(1 + threads / 2, MAX_LOOSE) : 0;
    struct intake *in = calloc(1, sizeof(*in));
    enum chex_status status = CHEX_OK;

    *out = NULL;
    if (!in)
        return chex_fail_memory(err);
    in->convert = c;
    in->store = store;
    in->watch = watch;
    in->watch_lock = watch_lock;
    hash_key_make(&in->key);
    pthread_mutex_init(&in->lock, NULL);
    in->readers = archives + loose > 0 ? archives + loose : 1;
    in->reader = calloc(in->readers, sizeof(*in->reader));
    /* One image at work and one ahead for each thread, one for each reader; the bytes are for images of a megabyte. */
    in->feed = feed_new(threads + at_most(threads, 16) + in->readers + 2, (uint64_t)(32 + threads) << 20);
    for (i = 0; in->reader && i < in->readers; i++)
        in->reader[i].wants_archive = i < archives;
    if (!in->reader || !in->feed)
        status = chex_fail_memory(err);
    if (status == CHEX_OK && c->source.archive_count > 0)
        status = map_rows(in, err);
    if (status != CHEX_OK) {
        intake_free(in);
        return status;
    }
    *out = in;
    return CHEX_OK;
}

void
intake_free(struct intake *in)
{
    unsigned i;

    if (!in)
        return;
    for (i = 0; in->reader && i < in->readers; i++)
        image_archive_close(in->reader[i].archive);
    free(in->reader);
    feed_free(in->feed);
    free(in->item_of);
    free(in->arrival);
    pthread_mutex_destroy(&in->lock);
    free(in);
}

unsigned
intake_readers(const struct intake *in)
{
    return in->readers;
}

struct feed *
intake_feed(struct intake *in)
{
    return in->feed;
}

static bool
wants(const struct intake *in, size_t item)
{
    const struct plan *plan = &in->convert->plan;
    size_t shard = plan_shard_of(plan, item);

    return store_wants(in->store, shard, (uint32_t)(item - plan->shard[shard].first));
}

/* ---- loose files ---------------------------------------------------------------------------------------------- */

static const char *
name_of(const struct intake *in, size_t item)
{
    const struct convert *c = in->convert;

    return c->labels.entry[c->plan.image[item]].name;
}

/* The path of the loose file for a row; false where there is none. */
static bool
loose_path(const struct intake *in, const char *name, char *path, size_t size)
{
    const struct source *source = &in->convert->source;
    const struct source_file *file = source_find(source, name);

    return file && source_path(source, file, path, size, NULL) == CHEX_OK;
}

/* The next one that is wanted into r->item; false at the end. */
static bool
next_loose(struct intake *in, struct reader *r)
{
    for (;;) {
        size_t item = atomic_fetch_add(&in->next_item, 1);

        if (item >= in->convert->plan.image_count)
            return false;
        if (wants(in, item) && source_find(&in->convert->source, name_of(in, item))) {
            r->item = item;
            r->room = USUAL_FILE;
            return true;
        }
    }
}

static bool
read_loose(struct intake *in, struct reader *r)
{
    struct feed_place *p;
    char path[4096];
    bool fits;

    if (!r->pending && !next_loose(in, r))
        return false;
    r->pending = true;
    p = feed_reserve(in->feed, r->room);
    if (!p)
        return true;
    p->item = r->item;
    r->pending = false;
    fits = loose_path(in, name_of(in, r->item), path, sizeof(path));
    if (!fits)
        chex_fail(&p->why, CHEX_ERR_LIMIT, "the path is too long");
    else
        file_read(AT_FDCWD, path, r->room, &p->bytes, &p->why);
    if (fits && p->why.status == CHEX_ERR_LIMIT && r->room == USUAL_FILE) {
        struct stat st;

        /* A large one: once more, with as much room as it takes. */
        if (stat(path, &st) == 0 && st.st_size > USUAL_FILE && st.st_size <= CONVERT_MAX_FILE) {
            r->room = (uint64_t)st.st_size;
            r->pending = true;
            feed_return(in->feed, p);
            return true;
        }
        p->why.status = CHEX_OK;
        file_read(AT_FDCWD, path, CONVERT_MAX_FILE, &p->bytes, &p->why);
    }
    if (p->why.status != CHEX_OK)
        p->bytes.size = 0;
    feed_put(in->feed, p);
    return true;
}

/* ---- two of one name ------------------------------------------------------------------------------------------ */

static enum chex_status
fail_twice(const char *name, const char *a, const char *b, struct chex_error *err)
{
    return chex_fail(err, CHEX_ERR_USAGE,
                     "'%s' found twice with different content: '%s' and '%s' (leave one out, and begin anew with "
                     "--force)",
                     name, a, b);
}

/* Never 0.  Of an image that is too large to be read: of its size. */
static uint64_t
hash_of(const struct hash_key *key, const struct feed_place *p, uint64_t size)
{
    uint64_t sum = p->bytes.size > 0 ? keyed_hash(key, p->bytes.data, p->bytes.size) : 0;

    return (sum ^ size << 1) | UINT64_C(1) << 63;
}

/* *same: it is what the loose file of this name is.  One that is no file, or may not be read, is different. */
static enum chex_status
compare_with_loose(const struct feed_place *p, uint64_t size, const char *path, bool *same, struct chex_error *err)
{
    struct buffer b = {0};
    struct stat st;
    enum chex_status status;

    if (p->why.status != CHEX_OK) {
        *same = stat(path, &st) == 0 && (uint64_t)st.st_size == size;
        return CHEX_OK;
    }
    status = file_read(AT_FDCWD, path, CONVERT_MAX_FILE, &b, err);
    *same = status == CHEX_OK && b.size == size && (size == 0 || memcmp(b.data, p->bytes.data, size) == 0);
    buffer_release(&b);
    if (status == CHEX_ERR_READ)
        return chex_context(err, status, "'%s', to be compared with the image of this name in an archive", path);
    return status == CHEX_ERR_MEMORY ? status : CHEX_OK;
}

/* Compare with what was there under this name; *first: nothing was. */
static enum chex_status
note_arrival(struct intake *in, const struct reader *r, const struct feed_place *p, uint64_t size, bool *first,
             struct chex_error *err)
{
    struct convert *c = in->convert;
    const char *name = name_of(in, p->item), *here = c->source.archive[r->archive_index];
    uint64_t hash = hash_of(&in->key, p, size);
    struct arrival *a = &in->arrival[c->plan.image[p->item]], before;
    char path[4096];

    *first = false;
    if (loose_path(in, name, path, sizeof(path))) {
        bool same;
        enum chex_status status = compare_with_loose(p, size, path, &same, err);

        if (status != CHEX_OK)
            return status;
        if (!same)
            return fail_twice(name, path, here, err);
    }
    pthread_mutex_lock(&in->lock);
    before = *a;
    if (before.hash == 0)
        *a = (struct arrival){hash, (uint32_t)r->archive_index};
    c->repeated += before.hash == hash || source_find(&c->source, name);
    pthread_mutex_unlock(&in->lock);
    if (before.hash != 0 && before.hash != hash) {
        bool later = before.archive > r->archive_index;
        const char *there = c->source.archive[before.archive];

        return fail_twice(name, later ? here : there, later ? there : here, err);
    }
    *first = before.hash == 0 && !source_find(&c->source, name);
    return CHEX_OK;
}

/* ---- archives ------------------------------------------------------------------------------------------------- */

/* The next archive, opened; false where there is none, or (then *status says so) where it cannot be opened. */
static bool
open_next(struct intake *in, struct reader *r, enum chex_status *status, struct chex_error *err)
{
    struct convert *c = in->convert;
    const struct image_archive_options options = {c->utf8, c->options->max_memory, in->watch->stop};
    const char *path;

    r->archive_index = atomic_fetch_add(&in->next_archive, 1);
    if (r->archive_index >= c->source.archive_count)
        return false;
    path = c->source.archive[r->archive_index];
    *status = image_archive_open(path, &options, &r->archive, err);
    /* It could be opened when the run began: whatever is wrong now, the input is not there any more. */
    if (*status != CHEX_OK && *status != CHEX_ERR_STOPPED)
        *status = chex_context(err, *status == CHEX_ERR_MEMORY ? *status : CHEX_ERR_MISSING, "'%s'", path);
    return *status == CHEX_OK;
}

/* It is read to its end, or as far as it goes. */
static void
close_archive(struct intake *in, struct reader *r)
{
    struct convert *c = in->convert;
    struct convert_archive *result = &c->archive[r->archive_index];
    const struct archive_fault *fault = image_archive_fault(r->archive);

    result->others = image_archive_others(r->archive);
    if (fault) {
        pthread_mutex_lock(in->watch_lock);
        result->damaged = true;
        result->fault = *fault;
        c->archives_damaged++;
        if (in->watch->damaged)
            in->watch->damaged(in->watch->context, c->source.archive[r->archive_index], fault);
        pthread_mutex_unlock(in->watch_lock);
    }
    image_archive_close(r->archive);
    r->archive = NULL;
}

/* The row of a member, or what else it is. */
static enum chex_status
look_at_member(struct intake *in, struct reader *r, const struct image_member *m, struct chex_error *err)
{
    struct convert *c = in->convert;
    const struct entry *entry = labels_find(&c->labels, m->name);
    enum chex_status status = CHEX_OK;

    c->archive[r->archive_index].images++;
    if (!entry) {
        pthread_mutex_lock(&in->lock);
        status = unlabeled_add(&c->unlabeled, m->name, err);
        pthread_mutex_unlock(&in->lock);
    } else if (in->item_of[entry - c->labels.entry] != NOT_PLANNED) {
        r->item = in->item_of[entry - c->labels.entry];
        /* One too large takes no room: it will not be read. */
        r->room = !m->size_known ? CONVERT_MAX_FILE : m->size > CONVERT_MAX_FILE ? 0 : m->size;
        r->size = m->size;
        r->pending = true;
    }
    return status;
}

/* The member at hand, for which there is room. */
static enum chex_status
take_member(struct intake *in, struct reader *r, struct feed_place *p, struct chex_error *err)
{
    enum chex_status status = image_archive_read(r->archive, CONVERT_MAX_FILE, &p->bytes, &p->why);
    bool first = false;

    p->item = r->item;
    if (status == CHEX_OK || status == CHEX_ERR_LIMIT) {
        uint64_t size = status == CHEX_OK ? p->bytes.size : r->size;

        if (status != CHEX_OK)
            p->bytes.size = 0;
        status = note_arrival(in, r, p, size, &first, err);
    } else if (status == CHEX_ERR_DAMAGED) {
        /* Lost: whether that leaves a slot without its image is seen when all is read. */
        status = CHEX_OK;
    } else {
        *err = p->why;
    }
    if (status == CHEX_OK && first && wants(in, p->item))
        feed_put(in->feed, p);
    else
        feed_return(in->feed, p);
    return status;
}

static enum chex_status
read_archive(struct intake *in, struct reader *r, bool *more, struct chex_error *err)
{
    struct image_member member;
    enum chex_status status = CHEX_OK;
    bool found = true;

    if (!r->archive && !open_next(in, r, &status, err)) {
        *more = false;
        return status;
    }
    if (!r->pending)
        status = image_archive_next(r->archive, &member, &found, err);
    if (status == CHEX_OK && !found) {
        close_archive(in, r);
        return CHEX_OK;
    }
    if (status == CHEX_OK && !r->pending)
        status = look_at_member(in, r, &member, err);
    if (status == CHEX_OK && r->pending) {
        struct feed_place *p = feed_reserve(in->feed, r->room);

        if (p) {
            r->pending = false;
            status = take_member(in, r, p, err);
        }
    }
    return status;
}

/* ---- both ----------------------------------------------------------------------------------------------------- */

enum chex_status
intake_read(struct intake *in, unsigned reader, bool *more, struct chex_error *err)
{
    struct reader *r = &in->reader[reader];
    enum chex_status status = CHEX_OK;

    *more = true;
    if (r->wants_archive) {
        status = read_archive(in, r, more, err);
        if (status == CHEX_OK && !*more) {
            r->wants_archive = false;
            *more = read_loose(in, r);
        }
    } else if (!read_loose(in, r)) {
        /* Nothing loose is left: help with the archives, or it was the end. */
        status = read_archive(in, r, more, err);
        r->wants_archive = *more;
    }
    return status;
}
