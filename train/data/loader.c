/*
 * loader.c - implements loader.h
 *
 * The loader has a ring of `ahead` batches.  Each worker fills whole micro-batches.  Batch n uses slot n % ahead, and
 * is started after that slot has been returned.  The caller takes batches in order.  Before a worker reads a batch, it
 * requests readahead for a later one, so that the disk stays busy with any number of workers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "data/loader.h"

#include "base/clock.h"
#include "math/loss.h"
#include "math/random.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const char *const augment_names[] = {"none", "crop", "flip", "flip,crop", NULL};

enum place_state { PLACE_EMPTY, PLACE_FILLING, PLACE_FULL, PLACE_TAKEN };

struct place {
    struct loaded loaded;
    uint8_t *pixels, *label;
    uint32_t *index;
    struct crop *crop;
    float *mix; /* NULL without mix-up */
    uint32_t *sample;
    struct loaded_text *text;
    enum place_state state;
};

struct loader {
    struct loader_options o;
    unsigned source;
    size_t stride, image_size, outputs;
    struct reader *reader, *own; /* own: NULL if the caller provides one */
    uint64_t expect;             /* readahead distance in micro-batches */
    struct place *place;         /* [ahead] */
    pthread_t *thread;
    unsigned threads;

    pthread_mutex_t lock; /* protects the following members */
    pthread_cond_t filled, freed;
    uint64_t begun, given; /* micro-batches */
    bool stop;
    bool failed;
    uint64_t failed_at; /* the lowest failed batch; earlier ones are still returned */
    struct chex_error error;
    double waited;
    struct buffer skipped; /* struct skipped that no call has returned yet */
};

/* A damaged record, and its position in the pass. */
struct skipped {
    struct sample_place place;
    uint64_t position;
};

/* ---- one batch ------------------------------------------------------------------------------------------------- */

/* Returns a number from -most to most, a function of the purpose and (seed, epoch, place). */
static double
draw_within(const struct loader_options *o, const struct sample_place *place, enum random_purpose purpose, double most)
{
    const struct random_stream stream = {o->seed, purpose, o->epoch, place->shard};

    return (2 * random_uniform(&stream, place->index) - 1) * most;
}

struct crop
loader_crop(const struct loader_options *o, const struct sample_place *place, unsigned source)
{
    const struct random_stream stream = {o->seed, RANDOM_AUGMENT, o->epoch, place->shard};
    unsigned room = source - o->side, number = 3 * place->index;
    struct crop crop = {.x = (uint16_t)(room / 2), .y = (uint16_t)(room / 2)};

    if (o->augment & AUGMENT_CROP) {
        crop.x = (uint16_t)random_below(&stream, number, room + 1);
        crop.y = (uint16_t)random_below(&stream, number + 1, room + 1);
    }
    if (o->augment & AUGMENT_FLIP)
        crop.flip = random_below(&stream, number + 2, 2);
    if (o->rotate > 0)
        crop_rotate(&crop, draw_within(o, place, RANDOM_ROTATE, o->rotate));
    if (o->brightness > 0)
        crop.gain = (int32_t)lrint(draw_within(o, place, RANDOM_BRIGHTNESS, o->brightness) * CROP_GAIN);
    return crop;
}

float
loader_mix(const struct loader_options *o, const struct sample_place *place)
{
    const struct random_stream stream = {o->seed, RANDOM_MIXUP, o->epoch, place->shard};

    return (float)rint(random_beta(&stream, place->index, o->mixup) * MIX_ONE) / MIX_ONE;
}

/* Read and parse one sample. */
static enum chex_status
read_sample(struct loader *l, const struct sample_place *at, uint8_t *record, struct chex_record *view,
            struct chex_error *err)
{
    enum chex_status status = reader_read(l->reader, at->shard, at->index, record, view, err);

    if (status == CHEX_OK && !view->weight)
        status = error_set(err, CHEX_ERR_DAMAGED, "a padding record where an image was");
    return status;
}

static enum chex_status
note_skipped(struct loader *l, const struct sample_place *place, uint64_t position, struct chex_error *err)
{
    const struct skipped skipped = {.place = *place, .position = position};
    enum chex_status status;

    pthread_mutex_lock(&l->lock);
    status = buffer_append(&l->skipped, &skipped, sizeof(skipped), err);
    pthread_mutex_unlock(&l->lock);
    return status;
}

/*
 * Find the sample at this position of the order, or the next good one after it; sets *sample to its index.
 * only_partner: the image is not one of this micro-batch.
 */
static enum chex_status
find_sample(struct loader *l, uint64_t position, bool only_partner, uint8_t *record, struct chex_record *view,
            uint32_t *sample, struct chex_error *err)
{
    const struct samples *s = l->o.samples;
    enum chex_status status = CHEX_OK;
    size_t tries;

    for (tries = 0; tries < s->count; tries++) {
        *sample = l->o.order[(position + tries) % s->count];
        status = read_sample(l, &s->place[*sample], record, view, err);
        if (status == CHEX_OK || !chex_status_is_data(status) || !l->o.skip_bad)
            break;
    }
    /* Note only the record of this position: another damaged record has its own position, and padding has no sample. */
    if (status == CHEX_OK && tries > 0 && position < s->count && !only_partner)
        return note_skipped(l, &s->place[l->o.order[position]], position, err);
    if (status != CHEX_OK) {
        const struct sample_place *at = &s->place[*sample];
        char text[READER_TEXT];

        return error_context(err, status, "%s", reader_describe(l->reader, at->shard, at->index, record, text));
    }
    return CHEX_OK;
}

static uint64_t
first_position(const struct loader_options *o, uint64_t number)
{
    return o->start + number / o->each * o->stride + number % o->each * o->batch;
}

/* The strict record parser limits the sizes. */
static void
keep_texts(const struct chex_record *view, struct loaded_text *out)
{
    out->name_size = (uint8_t)view->name.size;
    out->patient_size = (uint8_t)view->patient.size;
    out->view_size = (uint8_t)view->view.size;
    out->sex = view->sex;
    out->age = view->age;
    memcpy(out->name, view->name.data, out->name_size);
    memcpy(out->patient, view->patient.data, out->patient_size);
    memcpy(out->view, view->view.data, out->view_size);
}

/* Returns the store number of a sample that the device keeps. */
static uint32_t
image_of(const struct loader *l, uint32_t sample)
{
    const struct sample_place *at = &l->o.samples->place[sample];

    return reader_image(l->reader, at->shard, at->index);
}

/* Returns the images that a micro-batch reads: with mix-up also the partner of its last one. */
static size_t
images_read(const struct loader_options *o)
{
    return (size_t)o->batch + (o->mixup > 0);
}

/* Combine the labels of each mixed image with those of its partner. */
static void
mix_labels(const struct loader *l, struct place *p)
{
    uint8_t *own = p->label;
    size_t i, k;

    for (i = 0; i < l->o.batch; i++) {
        p->mix[i] = loader_mix(&l->o, &l->o.samples->place[p->sample[i]]);
        for (k = 0; k < l->outputs; k++, own++)
            if (p->mix[i] > 0)
                *own = loss_mixed_label(*own, own[l->outputs]);
    }
}

static enum chex_status
fill(struct loader *l, struct place *p, uint64_t number, uint8_t *record, struct chex_error *err)
{
    uint64_t position = first_position(&l->o, number);
    unsigned i, images = (unsigned)images_read(&l->o);

    p->loaded.number = number;
    p->loaded.images = 0;
    for (i = 0; i < images; i++, position++) {
        bool only_partner = i == l->o.batch;
        struct chex_record view;
        enum chex_status status = find_sample(l, position, only_partner, record, &view, &p->sample[i], err);

        if (status != CHEX_OK)
            return status;
        p->index[i] = view.pixels ? STORE_NONE : image_of(l, p->sample[i]);
        if (view.pixels)
            memcpy(p->pixels + i * l->image_size, view.pixels, l->image_size);
        memcpy(p->label + i * l->outputs, view.label, l->outputs);
        keep_texts(&view, &p->text[i]);
        p->crop[i] = loader_crop(&l->o, &l->o.samples->place[p->sample[i]], l->source);
        if (only_partner)
            continue;
        p->loaded.weights[i] = position < l->o.samples->count ? 1 : 0;
        p->loaded.images += position < l->o.samples->count;
    }
    if (p->mix)
        mix_labels(l, p);
    return CHEX_OK;
}

/* ---- readahead ------------------------------------------------------------------------------------------------- */

/* Request readahead for the samples of a micro-batch. */
static void
expect(struct loader *l, uint64_t number)
{
    const struct samples *s = l->o.samples;
    uint64_t position = first_position(&l->o, number), i;

    for (i = position; i < position + l->o.batch && i < s->count; i++)
        reader_expect(l->reader, s->place[l->o.order[i]].shard, s->place[l->o.order[i]].index);
}

/* Before batch `number` is read: request readahead for batch number + expect; at the start for all batches up to it. */
static void
look_ahead(struct loader *l, uint64_t number)
{
    uint64_t last = number + l->expect, i;

    for (i = number == 0 ? 1 : last; l->expect > 0 && i <= last && i < l->o.count; i++)
        expect(l, i);
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

/* Get the number of the next micro-batch to fill; returns false if there is none or the loader ends. */
static bool
take_number(struct loader *l, uint64_t *number)
{
    bool got = false;

    pthread_mutex_lock(&l->lock);
    while (!l->stop && !l->failed && l->begun < l->o.count && l->place[l->begun % l->o.ahead].state != PLACE_EMPTY)
        pthread_cond_wait(&l->freed, &l->lock);
    if (!l->stop && !l->failed && l->begun < l->o.count) {
        *number = l->begun++;
        l->place[*number % l->o.ahead].state = PLACE_FILLING;
        got = true;
    }
    pthread_mutex_unlock(&l->lock);
    return got;
}

static void
note_failure(struct loader *l, uint64_t number, const struct chex_error *err)
{
    if (!l->failed || number < l->failed_at) {
        l->failed_at = number;
        l->error = *err;
    }
    l->failed = true;
    pthread_cond_broadcast(&l->freed);
}

static void *
work(void *argument)
{
    struct loader *l = argument;
    uint8_t *record = malloc(l->stride);
    struct chex_error err = {.status = CHEX_OK};
    uint64_t number;

    while (take_number(l, &number)) {
        struct place *p = &l->place[number % l->o.ahead];
        enum chex_status status;

        look_ahead(l, number);
        status = record ? fill(l, p, number, record, &err) : error_memory(&err);
        pthread_mutex_lock(&l->lock);
        if (status == CHEX_OK)
            p->state = PLACE_FULL;
        else
            note_failure(l, number, &err);
        pthread_cond_broadcast(&l->filled);
        pthread_mutex_unlock(&l->lock);
    }
    free(record);
    return NULL;
}

/* ---- start and end --------------------------------------------------------------------------------------------- */

static bool
make_place(const struct loader *l, struct place *p)
{
    size_t images = images_read(&l->o);

    p->pixels = malloc(images * l->image_size);
    p->index = malloc(images * sizeof(*p->index));
    p->label = malloc(images * l->outputs);
    p->crop = malloc(images * sizeof(*p->crop));
    p->mix = l->o.mixup > 0 ? malloc(images * sizeof(*p->mix)) : NULL;
    p->sample = malloc(images * sizeof(*p->sample));
    p->text = malloc(images * sizeof(*p->text));
    p->loaded.weights = malloc(images * sizeof(*p->loaded.weights));
    p->loaded.sample = p->sample;
    p->loaded.text = p->text;
    p->loaded.batch = (struct batch){.pixels = p->pixels,
                                     .index = p->index,
                                     .store = reader_store(l->reader),
                                     .crop = p->crop,
                                     .label = p->label,
                                     .weight = p->loaded.weights,
                                     .mix = p->mix,
                                     .scale = 1};
    return p->pixels && p->index && p->label && p->crop && (p->mix || !(l->o.mixup > 0)) && p->sample && p->text &&
           p->loaded.weights;
}

static bool
make_places(struct loader *l)
{
    unsigned i;

    l->place = calloc(l->o.ahead, sizeof(*l->place));
    l->thread = calloc(l->o.threads, sizeof(*l->thread));
    if (!l->place || !l->thread)
        return false;
    for (i = 0; i < l->o.ahead; i++)
        if (!make_place(l, &l->place[i]))
            return false;
    return true;
}

static enum chex_status
make_reader(struct loader *l, struct chex_error *err)
{
    const struct reader_options o = {.ds = l->o.ds, .check = l->o.check_crc ? READER_ALWAYS : READER_NEVER};
    enum chex_status status = l->o.reader ? CHEX_OK : reader_new(&o, &l->own, err);

    l->reader = l->o.reader ? l->o.reader : l->own;
    return status;
}

enum chex_status
loader_start(const struct loader_options *options, struct loader **out, struct chex_error *err)
{
    const struct chex_dataset_info *info = chex_dataset_info(options->ds);
    struct loader *l = calloc(1, sizeof(*l));
    enum chex_status status;
    unsigned i;

    *out = NULL;
    if (!l)
        return error_memory(err);
    l->o = *options;
    l->expect = (l->o.expect + l->o.batch - 1) / l->o.batch;
    l->source = info->width;
    l->stride = info->stride;
    l->image_size = (size_t)info->width * info->height;
    l->outputs = info->finding_count;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->filled, NULL);
    pthread_cond_init(&l->freed, NULL);
    status = make_reader(l, err);
    if (status == CHEX_OK && !make_places(l))
        status = error_memory(err);
    if (status != CHEX_OK) {
        loader_free(l);
        return status;
    }
    for (i = 0; i < l->o.threads && pthread_create(&l->thread[i], NULL, work, l) == 0; i++)
        l->threads++;
    if (l->threads == 0) {
        loader_free(l);
        return error_set(err, CHEX_ERR_MEMORY, "no thread can be started");
    }
    *out = l;
    return CHEX_OK;
}

void
loader_free(struct loader *l)
{
    unsigned i;

    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->freed);
    pthread_mutex_unlock(&l->lock);
    for (i = 0; i < l->threads; i++)
        pthread_join(l->thread[i], NULL);
    for (i = 0; l->place && i < l->o.ahead; i++) {
        free(l->place[i].pixels);
        free(l->place[i].index);
        free(l->place[i].label);
        free(l->place[i].crop);
        free(l->place[i].mix);
        free(l->place[i].sample);
        free(l->place[i].text);
        free(l->place[i].loaded.weights);
    }
    reader_free(l->own);
    buffer_release(&l->skipped);
    pthread_cond_destroy(&l->filled);
    pthread_cond_destroy(&l->freed);
    pthread_mutex_destroy(&l->lock);
    free(l->place);
    free(l->thread);
    free(l);
}

/* ---- consumer -------------------------------------------------------------------------------------------------- */

enum chex_status
loader_next(struct loader *l, struct loaded **out, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    struct place *p;

    *out = NULL;
    pthread_mutex_lock(&l->lock);
    p = &l->place[l->given % l->o.ahead];
    if (l->given < l->o.count && p->state != PLACE_FULL && !(l->failed && l->failed_at <= l->given)) {
        double since = clock_now();

        while (p->state != PLACE_FULL && !(l->failed && l->failed_at <= l->given))
            pthread_cond_wait(&l->filled, &l->lock);
        l->waited += clock_now() - since;
    }
    if (l->given < l->o.count && p->state == PLACE_FULL) {
        p->state = PLACE_TAKEN;
        l->given++;
        *out = &p->loaded;
    } else if (l->given < l->o.count) {
        status = l->error.status;
        if (err)
            *err = l->error;
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}

void
loader_return(struct loader *l, struct loaded *b)
{
    pthread_mutex_lock(&l->lock);
    l->place[b->number % l->o.ahead].state = PLACE_EMPTY;
    pthread_cond_broadcast(&l->freed);
    pthread_mutex_unlock(&l->lock);
}

double
loader_wait(const struct loader *l)
{
    return l->waited;
}

enum chex_status
loader_take_skipped(struct loader *l, uint64_t end, struct buffer *places, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    struct skipped *s;
    size_t count, kept = 0, i;

    pthread_mutex_lock(&l->lock);
    s = (struct skipped *)(void *)l->skipped.data;
    count = l->skipped.size / sizeof(*s);
    for (i = 0; i < count; i++) {
        if (status == CHEX_OK && s[i].position < end)
            status = buffer_append(places, &s[i].place, sizeof(s[i].place), err);
        else
            s[kept++] = s[i];
    }
    l->skipped.size = kept * sizeof(*s);
    pthread_mutex_unlock(&l->lock);
    return status;
}
