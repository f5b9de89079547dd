/*
 * convert_image.c - decodes and resizes images of the queue, and writes their records into their slots
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_image.h"

#include "base/number_format.h"
#include "convert/cross_check.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* More read errors than this end a pass early: then the disk or the network fails, not only a few blocks. */
#define FEW_UNREAD 20

/* Bytes of the records that a thread keeps before it writes them, if they are more than one. */
#define RECORDS_SIZE (1u << 20)

void
convert_worker_release(struct convert_worker *w)
{
    int i;

    for (i = 0; i < ENTRIES_TOGETHER; i++) {
        decoder_release(&w->decoder[i]);
        image_release(&w->image[i]);
    }
    image_release(&w->again);
    resampler_release(&w->resampler);
    profile_thread_release(&w->measured);
    free(w->records);
}

enum chex_status
convert_worker_init(struct convert_worker *w, struct convert_job *job, struct chex_error *err)
{
    const size_t stride = job->convert->plan.layout.stride;

    *w = (struct convert_worker){.job = job, .room = CONVERT_TOGETHER};
    while (w->room > 1 && stride > RECORDS_SIZE / w->room)
        w->room--;
    w->records = malloc(w->room * stride);
    if (!w->records || decoder_init(&w->decoder[0], NULL) != CHEX_OK || decoder_init(&w->decoder[1], NULL) != CHEX_OK)
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
decode_entries(struct convert_worker *w, struct queue_entry *const *e, unsigned count, struct decode_job *job)
{
    struct decode_limits limits = w->job->convert->plan.spec.limits;

    limits.stop = w->job->watch->stop;
    profile_skip(&w->measured);
    entries_decode(e, count, &limits, w->decoder, w->image, job);
}

/* Decode an image again with libpng if --cross-check includes it, and compare. */
static enum chex_status
check_entry(struct convert_worker *w, const struct queue_entry *e, const struct decode_job *job, bool *checked,
            struct chex_error *err)
{
    const struct convert *c = w->job->convert;
    struct decode_limits limits = c->plan.spec.limits;

    limits.stop = w->job->watch->stop;
    *checked = job->traits.fast && cross_check_includes(c->labels.entry[e->row].name, c->options->cross_check);
    return *checked ? cross_check(e->bytes.data, e->bytes.size, &limits, job->out, &w->again, err) : CHEX_OK;
}

/* Make a sealed record of a decoded image, or of the pixels of another data set. */
static enum chex_status
make_record(struct convert_worker *w, const struct queue_entry *e, const struct decode_job *job, uint8_t *record,
            bool *checked, struct chex_error *err)
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
                              record + plan->layout.pixel_offset, err);
    profile_end_stage(&w->measured, PROFILE_RESIZE);
    if (status != CHEX_OK)
        return status;
    plan_values(plan, &c->labels.entry[e->row], e->shard, e->index, 1, &values);
    record_encode(&plan->layout, &values, record);
    record_seal(&plan->layout, record);
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
take_reject(struct convert_job *job, const struct queue_entry *e, const struct chex_error *why, struct chex_error *err)
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
item_of_slot(uint32_t shard, uint32_t index)
{
    return (uint64_t)shard << 32 | index;
}

uint64_t
convert_item(const struct queue_entry *e)
{
    return item_of_slot(e->shard, e->index);
}

/* Set the error of a pass with unreadable images. */
enum chex_status
convert_fail_unread(const struct convert_job *job, struct chex_error *err)
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
take_unread(struct convert_job *job, const struct queue_entry *e, const struct chex_error *why, struct chex_error *err)
{
    const char *name = job->convert->labels.entry[e->row].name;
    enum chex_status status = CHEX_OK;

    pthread_mutex_lock(&job->lock);
    if (job->unread++ == 0 || convert_item(e) < job->first_unread) {
        job->first_unread = convert_item(e);
        job->unread_error = *why;
        error_context(&job->unread_error, CHEX_ERR_READ, "'%s'", name);
    }
    if (job->watch->unread)
        job->watch->unread(job->watch->context, name, why);
    if (job->unread > FEW_UNREAD)
        status = convert_fail_unread(job, err);
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

/* Write the waiting records.  After an error, *item is the number of the first. */
static enum chex_status
put_waiting(struct convert_worker *w, uint64_t *item, struct chex_error *err)
{
    const uint32_t count = w->waiting;
    enum chex_status status;

    if (count == 0)
        return CHEX_OK;
    w->waiting = 0;
    status = store_put(w->job->store, w->shard, w->index, count, w->records, err);
    if (status == CHEX_OK)
        atomic_fetch_add(&w->job->processed, count);
    else
        *item = item_of_slot(w->shard, w->index);
    return status;
}

/* Make room for the record of an entry after the waiting ones: write them if its slot does not follow theirs. */
static enum chex_status
place_record(struct convert_worker *w, const struct queue_entry *e, uint64_t *item, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    if (w->waiting == w->room || e->shard != w->shard || e->index != w->index + w->waiting)
        status = put_waiting(w, item, err);
    if (w->waiting == 0) {
        w->shard = e->shard;
        w->index = e->index;
    }
    return status;
}

static enum chex_status
convert_one(struct convert_worker *w, const struct queue_entry *e, const struct decode_job *decoded, uint64_t *item,
            struct chex_error *err)
{
    struct convert_job *job = w->job;
    struct convert *c = job->convert;
    const size_t stride = c->plan.layout.stride;
    const char *name = c->labels.entry[e->row].name;
    struct chex_error why = {.status = CHEX_OK};
    bool checked = false;
    enum chex_status status = place_record(w, e, item, err);
    uint8_t *record = w->records + w->waiting * stride;

    if (status != CHEX_OK)
        return status;
    *item = convert_item(e);
    status = make_record(w, e, decoded, record, &checked, &why);
    if (job->profile && (status == CHEX_OK || status_is_of_input(status) || convert_is_read_error(&why))) {
        profile_image(&w->measured, status == CHEX_OK ? record : NULL, stride, e->bytes.size);
        return CHEX_OK;
    }
    if (status == CHEX_OK) {
        pthread_mutex_lock(&job->lock);
        if (e->width == 0)
            count_traits(&c->counts, &decoded->traits, name);
        c->counts.cross_checked += checked;
        pthread_mutex_unlock(&job->lock);
        w->waiting++;
        return CHEX_OK;
    }
    if (convert_is_read_error(&why))
        return take_unread(job, e, &why, err);
    if (status_is_of_input(status)) { /* only this file: the run rejects it and continues */
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

enum chex_status
convert_entries(struct convert_worker *w, struct queue_entry *const *e, unsigned count, uint64_t *item,
                struct chex_error *err)
{
    struct decode_job decoded[ENTRIES_TOGETHER];
    enum chex_status status = CHEX_OK;
    struct chex_error other;
    uint64_t other_item;
    unsigned i, k, pair;

    for (i = 0; status == CHEX_OK && i < count; i += pair) {
        pair = count - i < ENTRIES_TOGETHER ? count - i : ENTRIES_TOGETHER;
        decode_entries(w, e + i, pair, decoded);
        profile_end_stage(&w->measured, PROFILE_INFLATE);
        for (k = 0; status == CHEX_OK && k < pair; k++)
            status = convert_one(w, e[i + k], &decoded[k], item, err);
    }
    if (status == CHEX_OK)
        return put_waiting(w, item, err);
    /* The images before a stop or a failure are done.  The first failure is the one to report. */
    put_waiting(w, &other_item, &other);
    return status;
}
