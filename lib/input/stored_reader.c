/*
 * stored_reader.c - see stored_reader.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "input/stored_reader.h"

#include "input/stored_scan.h"

#include <stdlib.h>

/* The most threads that read: more would only wait for the same disk. */
#define MAX_THREADS 8

/* The item numbers of groups, for the order of errors: after all images (threads.h). */
#define FIRST_GROUP_ITEM (UINT64_C(1) << 63)

/* A wanted record. */
struct wanted_record {
    uint32_t dataset, shard, index;
    const struct planned_image *image;
};

struct stored_reader {
    atomic_size_t next; /* shard group */
    size_t groups;
    size_t *first; /* [groups + 1] the first place of each group: the wanted records of one shard */
    struct wanted_record place[];
};

static int
compare_places(const void *a, const void *b)
{
    const struct wanted_record *x = a, *y = b;

    if (x->dataset != y->dataset)
        return x->dataset < y->dataset ? -1 : 1;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* List the places of the wanted images in the order of the records. */
static size_t
list_places(const struct image_reader *r, struct wanted_record *out)
{
    size_t count = 0, i;

    for (i = 0; i < r->planned_count; i++) {
        const struct planned_image *image = &r->planned[i];
        const struct source_file *file = NULL;
        const struct stored_image *stored;

        if (image->wanted)
            file = source_find(r->source, r->labels->entry[image->row].name);
        if (!file)
            continue;
        stored = &r->source->stored[file->stored];
        out[count++] = (struct wanted_record){file->folder, stored->shard, stored->index, image};
    }
    qsort(out, count, sizeof(*out), compare_places);
    return count;
}

enum chex_status
stored_reader_new(struct image_reader *r, unsigned threads, struct stored_reader **out, struct chex_error *err)
{
    struct stored_reader *s = calloc(1, sizeof(*s) + r->planned_count * sizeof(s->place[0]));
    size_t *first = malloc((r->planned_count + 1) * sizeof(*first));
    size_t count, i;

    *out = s;
    if (!s || !first) {
        free(first);
        return error_memory(err);
    }
    s->first = first;
    count = list_places(r, s->place);
    for (i = 0; i < count; i++)
        if (i == 0 || s->place[i].shard != s->place[i - 1].shard || s->place[i].dataset != s->place[i - 1].dataset)
            first[s->groups++] = i;
    first[s->groups] = count;
    r->wanted = 1 + threads / 4;
    if (r->wanted > MAX_THREADS)
        r->wanted = MAX_THREADS;
    if (r->wanted > s->groups)
        r->wanted = s->groups > 0 ? (unsigned)s->groups : 1;
    return CHEX_OK;
}

void
stored_reader_free(struct stored_reader *s)
{
    if (s)
        free(s->first);
    free(s);
}

/* ---- one shard ------------------------------------------------------------------------------------------------ */

struct shard_reading {
    struct image_reader *reader;
    const struct chex_dataset *dataset;
    const struct chex_shard_info *shard;
    const struct wanted_record *next, *end; /* the wanted records that were not reached */
};

static bool
wants(void *context, uint32_t index)
{
    const struct shard_reading *s = context;

    return s->next < s->end && s->next->index == index;
}

/* Push the next wanted record: its pixels, or why it cannot be used; one of both is NULL. */
static enum chex_status
push(struct shard_reading *s, const uint8_t *pixels, const struct chex_error *why, struct chex_error *err)
{
    const struct record_layout *l = &s->dataset->manifest.layout;
    struct queue_entry *e = planned_image_reserve(s->reader->queue, s->next->image, pixels ? l->pixel_size : 0);

    if (!e)
        return error_stopped(err);
    if (why) {
        e->reason = *why;
        error_context(&e->reason, why->status, "'%s', record %u", s->shard->name, s->next->index);
    } else {
        e->width = l->width;
        e->height = l->height;
        buffer_append(&e->bytes, pixels, l->pixel_size, &e->reason);
    }
    queue_push(s->reader->queue, e);
    s->next++;
    return CHEX_OK;
}

static enum chex_status
visit(void *context, const struct scanned_record *record, struct chex_error *err)
{
    struct shard_reading *s = context;
    struct chex_error why = record->why;

    if (record->fault == RECORD_GOOD)
        return push(s, record->bytes + s->dataset->manifest.layout.pixel_offset, NULL, err);
    if (!chex_status_is_data(why.status)) /* a valid record of another place or data set */
        why.status = CHEX_ERR_DAMAGED;
    return push(s, NULL, &why, err);
}

/* Scan the open shard.  After a read error, continue with the record after it. */
static enum chex_status
scan_wanted(struct shard_reading *s, struct shard_scan *scan, struct chex_error *err)
{
    enum chex_status status;

    do {
        struct chex_error why;

        status = shard_scan(scan, &why);
        if (status == CHEX_ERR_READ && s->next < s->end) {
            status = push(s, NULL, &why, err);
            scan->next++;
            continue;
        }
        if (err)
            *err = why;
        break;
    } while (status == CHEX_OK);
    return status;
}

static enum chex_status
read_group(struct image_reader *r, const struct wanted_record *first, const struct wanted_record *end,
           struct chex_error *err)
{
    const struct chex_dataset *ds = r->source->dataset[first->dataset];
    struct shard_reading s = {.reader = r, .dataset = ds, .shard = &ds->shard[first->shard], .next = first, .end = end};
    struct shard_scan scan = {
        .shard = dataset_shard_identity(ds, first->shard),
        .records = s.shard->record_count,
        .wants = wants,
        .visit = visit,
        .context = &s,
        .stop = r->archive_options.stop,
    };
    struct chex_shard *shard;
    enum chex_status status = chex_shard_open(ds, first->shard, &shard, err);

    if (status != CHEX_OK)
        return status == CHEX_ERR_MEMORY ? status : error_context(err, CHEX_ERR_READ, "the input has changed");
    scan.fd = shard->fd;
    status = scan_wanted(&s, &scan, err);
    chex_shard_close(shard);
    if (status == CHEX_ERR_TRUNCATED)
        return error_context(err, CHEX_ERR_READ, "'%s/%s'", ds->folder.path, s.shard->name);
    return status == CHEX_ERR_STOPPED ? CHEX_OK : status;
}

enum chex_status
stored_reader_run(struct image_reader *r, struct stored_reader *s, uint64_t *item, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t i;

    while (status == CHEX_OK && threads_running(r->threads) && (i = atomic_fetch_add(&s->next, 1)) < s->groups) {
        *item = FIRST_GROUP_ITEM + i;
        status = read_group(r, &s->place[s->first[i]], &s->place[s->first[i + 1]], err);
    }
    return status;
}
