/*
 * predict_run.c - see predict_run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_run.h"

#include "base/clock.h"
#include "common/shell_word.h"
#include "convert/convert.h"
#include "input/entry_decode.h"
#include "predict/predict_batches.h"
#include "predict/predict_gate.h"
#include "predict/predict_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const doubt_names[DOUBTS] = {"blank", "colour", "aspect", "small", "turned", "inverted"};

static const char *const doubt_texts[DOUBTS] = {
    "blank: hardly any gray levels",         "coloured",           "one side is more than twice as long as the other",
    "smaller than the input of the network", "fits better turned", "fits better inverted",
};

struct predict_job {
    const struct predict_options *o;
    const struct models *models;
    const struct images *images;
    const struct predict_watch *watch;
    struct results *results;
    struct threads threads;
    struct image_reader reader;
    struct queue *queue;
    struct batches *batches;
    uint32_t largest;     /* input of the models */
    atomic_uint decoders; /* threads that have not ended */
    atomic_size_t done;
    pthread_mutex_t lock; /* protects `results` and the calls of the watch except tick */
};

/* Per-thread buffers and decoders, reused for every image. */
struct predict_worker {
    struct predict_job *job;
    struct decoder decoder[ENTRIES_TOGETHER];
    struct image image[ENTRIES_TOGETHER];
    struct resampler resampler, area; /* to the size of the models; to that of the gate */
    uint8_t *pixels;
};

static enum chex_status
worker_init(struct predict_worker *w, struct predict_job *job, struct chex_error *err)
{
    unsigned i;

    *w = (struct predict_worker){.job = job, .pixels = malloc((size_t)job->models->size * job->models->size)};
    if (!w->pixels)
        return error_memory(err);
    for (i = 0; i < ENTRIES_TOGETHER; i++)
        if (decoder_init(&w->decoder[i], NULL) != CHEX_OK)
            return error_memory(err);
    return CHEX_OK;
}

static void
worker_release(struct predict_worker *w)
{
    unsigned i;

    for (i = 0; i < ENTRIES_TOGETHER; i++) {
        decoder_release(&w->decoder[i]);
        image_release(&w->image[i]);
    }
    resampler_release(&w->resampler);
    resampler_release(&w->area);
    free(w->pixels);
}

/* ---- one image --------------------------------------------------------------------------------------------------- */

/* Record and report a refusal. */
static enum chex_status
refuse(struct predict_job *job, uint32_t row, enum chex_status reason, const char *text, struct chex_error *err)
{
    struct image_result *r = &job->results->image[row];
    const char *copy;

    pthread_mutex_lock(&job->lock);
    copy = arena_copy(&job->results->strings, text, strlen(text));
    r->refused = reason;
    r->detail = copy;
    job->results->refused++;
    if (copy && job->watch->refuse)
        job->watch->refuse(job->watch->context, job->images->names.entry[row].name, text);
    pthread_mutex_unlock(&job->lock);
    atomic_fetch_add(&job->done, 1);
    return copy ? CHEX_OK : error_memory(err);
}

static bool
is_blank(const uint8_t *pixels, size_t count)
{
    uint8_t least = UINT8_MAX, most = 0;
    size_t i;

    for (i = 0; i < count; i++) {
        least = pixels[i] < least ? pixels[i] : least;
        most = pixels[i] > most ? pixels[i] : most;
    }
    return most - least < BLANK_LEVELS;
}

/* A record of a data set has lost its colours and its size, so only its pixels are looked at. */
static unsigned
find_doubts(const struct predict_worker *w, const struct queue_entry *e, const struct decode_job *decoded)
{
    const struct image *image = decoded->out;
    unsigned doubts = 0;

    if (is_blank(w->pixels, (size_t)w->job->models->size * w->job->models->size))
        doubts |= DOUBT_BLANK;
    if (e->width > 0)
        return doubts;
    if (decoded->traits.colour)
        doubts |= DOUBT_COLOUR;
    if ((uint64_t)image->width > 2 * (uint64_t)image->height || (uint64_t)image->height > 2 * (uint64_t)image->width)
        doubts |= DOUBT_ASPECT;
    if (image->width < w->job->largest || image->height < w->job->largest)
        doubts |= DOUBT_SMALL;
    return doubts;
}

/* Refuse a doubtful image, with the first doubt as the reason. */
static enum chex_status
refuse_doubtful(struct predict_job *job, uint32_t row, unsigned doubts, struct chex_error *err)
{
    char fit[PREDICT_GATE_TEXT];
    unsigned i = 0;

    while (!(doubts >> i & 1))
        i++;
    job->results->image[row].doubts = doubts;
    if (1u << i == DOUBT_TURNED || 1u << i == DOUBT_INVERTED)
        return refuse(job, row, CHEX_ERR_UNSUPPORTED, predict_gate_text(&job->results->image[row].gate, fit), err);
    return refuse(job, row, CHEX_ERR_UNSUPPORTED, doubt_texts[i], err);
}

/* Add the command that converts a DICOM file which is named as an image. */
static void
explain_dicom(const struct queue_entry *e, const char *name, struct chex_error *why)
{
    char word[SHELL_WORD];

    if (e->bytes.size >= 132 && memcmp(e->bytes.data + 128, "DICM", 4) == 0)
        error_set(why, why->status, "looks like DICOM; " DICOM_HINT, shell_word(name, word));
}

static enum chex_status
take_image(struct predict_worker *w, const struct queue_entry *e, const struct decode_job *decoded,
           struct chex_error *err)
{
    struct predict_job *job = w->job;
    struct chex_error why = decoded->err;
    enum chex_status status = decoded->status;
    unsigned doubts, turned = 0;

    if (status == CHEX_OK)
        status = entry_shrink(e, decoded, &w->resampler, job->models->resize, job->models->size, w->pixels, &why);
    if (status == CHEX_ERR_NOT_IMAGE)
        explain_dicom(e, job->images->names.entry[e->row].name, &why);
    if (status != CHEX_OK && status_is_of_input(status) && !convert_is_read_error(&why))
        return refuse(job, e->row, status, why.text, err);
    if (status != CHEX_OK) {
        *err = why;
        return status == CHEX_ERR_STOPPED ? status
                                          : error_context(err, status, "'%s'", job->images->names.entry[e->row].name);
    }
    if (e->width == 0) {
        job->results->image[e->row].width = decoded->out->width;
        job->results->image[e->row].height = decoded->out->height;
    }
    doubts = find_doubts(w, e, decoded);
    if (!(doubts & DOUBT_BLANK))
        status = predict_gate_check(job->models, &w->area, w->pixels, &job->results->image[e->row].gate, &turned, err);
    if (status != CHEX_OK)
        return status;
    doubts |= turned;
    if (doubts != 0 && job->o->strict)
        return refuse_doubtful(job, e->row, doubts, err);
    job->results->image[e->row].doubts = doubts;
    (void)batches_put(job->batches, e->row, w->pixels); /* if the run is ending, the caller notices it too */
    return CHEX_OK;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static enum chex_status
decode(void *context, uint64_t *item, struct chex_error *err)
{
    struct predict_job *job = context;
    struct decode_limits limits = spec_default().limits;
    struct queue_entry *e[ENTRIES_TOGETHER];
    struct decode_job decoded[ENTRIES_TOGETHER];
    struct predict_worker w;
    unsigned count, i;
    enum chex_status status = worker_init(&w, job, err);

    limits.max_pixels = job->o->max_pixels;
    limits.min_side = 1; /* smaller images than a conversion takes are doubtful, DOUBT_SMALL */
    limits.stop = job->watch->stop;
    while (status == CHEX_OK && (count = queue_pop(job->queue, e, ENTRIES_TOGETHER)) > 0) {
        entries_decode(e, count, &limits, w.decoder, w.image, decoded);
        for (i = 0; i < count; i++) {
            *item = e[i]->row;
            if (status == CHEX_OK)
                status = take_image(&w, e[i], &decoded[i], err);
            queue_return(job->queue, e[i]);
        }
    }
    worker_release(&w);
    if (atomic_fetch_sub(&job->decoders, 1) == 1 && status == CHEX_OK)
        batches_close(job->batches);
    return status;
}

/* Store the outputs of an image. */
static enum chex_status
keep_scores(void *context, uint32_t row, const float *logit, const float *probability, struct chex_error *err)
{
    struct predict_job *job = context;
    struct results *r = job->results;
    size_t m, k;

    for (m = 0; m < r->members; m++) {
        size_t at = (m * r->count + row) * r->outputs;

        for (k = 0; k < r->outputs; k++)
            if (!isfinite(logit[m * r->outputs + k]))
                return refuse(job, row, CHEX_ERR_DIVERGED, "an output of the network is not finite", err);
        memcpy(r->logit + at, logit + m * r->outputs, r->outputs * sizeof(float));
        memcpy(r->probability + at, probability + m * r->outputs, r->outputs * sizeof(float));
    }
    r->image[row].refused = CHEX_OK;
    atomic_fetch_add(&job->done, 1);
    return CHEX_OK;
}

static enum chex_status
pass_maps(void *context, uint32_t row, const uint8_t *pixels, const float *map, struct chex_error *err)
{
    const struct predict_job *job = context;

    return job->watch->mapped(job->watch->context, row, pixels, map, err);
}

static enum chex_status
score(void *context, uint64_t *item, struct chex_error *err)
{
    struct predict_job *job = context;
    const struct scoring s = {.models = job->models,
                              .tta = job->o->tta,
                              .batches = job->batches,
                              .scored = keep_scores,
                              .mapped = job->watch->mapped ? pass_maps : NULL,
                              .context = job};

    (void)item;
    return score_batches(&s, err);
}

static void
tick(void *context)
{
    struct predict_job *job = context;
    uint64_t refused;

    pthread_mutex_lock(&job->lock);
    refused = job->results->refused;
    pthread_mutex_unlock(&job->lock);
    if (job->watch->tick)
        job->watch->tick(job->watch->context, atomic_load(&job->done), refused);
}

static void
note_damaged(void *context, const char *path, const struct archive_fault *fault)
{
    struct predict_job *job = context;

    pthread_mutex_lock(&job->lock);
    if (job->watch->damaged)
        job->watch->damaged(job->watch->context, path, fault);
    pthread_mutex_unlock(&job->lock);
}

/* Run all threads.  This thread scores. */
static enum chex_status
run_threads(struct predict_job *job, unsigned threads, struct chex_error *err)
{
    const struct chex_error none = {.status = CHEX_ERR_MEMORY, .text = "cannot start threads"};
    unsigned started;

    threads_init(&job->threads);
    atomic_store(&job->decoders, threads);
    started = threads_start(&job->threads, job->reader.wanted, image_reader_run, &job->reader);
    if (started > 0)
        started = threads_start(&job->threads, threads, decode, job);
    if (started == 0)
        threads_fail(&job->threads, 0, &none);
    else if (atomic_fetch_sub(&job->decoders, threads - started) == threads - started)
        batches_close(job->batches); /* those that were started have ended already */
    threads_call(&job->threads, score, job);
    return threads_end(&job->threads, err);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static enum chex_status
results_init(struct results *r, const struct models *models, size_t count, struct chex_error *err)
{
    size_t values = models->count * (count ? count : 1), bytes, i;

    *r = (struct results){.count = count, .members = models->count, .outputs = models->outputs};
    if (!size_mul(values, models->outputs * sizeof(float), &bytes))
        return error_memory(err);
    r->image = calloc(count ? count : 1, sizeof(*r->image));
    r->logit = malloc(bytes);
    r->probability = malloc(bytes);
    if (!r->image || !r->logit || !r->probability)
        return error_memory(err);
    for (i = 0; i < count; i++)
        r->image[i].refused = CHEX_ERR_MISSING;
    return CHEX_OK;
}

/* Refuse the images that never came, because their archive is damaged.  Count the doubtful ones. */
static enum chex_status
end_results(struct predict_job *job, struct chex_error *err)
{
    struct results *r = job->results;
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; status == CHEX_OK && i < r->count; i++) {
        if (r->image[i].refused != CHEX_OK && !r->image[i].detail)
            status = refuse(job, (uint32_t)i, CHEX_ERR_DAMAGED, "lost: its archive is damaged", err);
        r->doubtful += r->image[i].refused == CHEX_OK && r->image[i].doubts != 0;
    }
    return status;
}

static enum chex_status
run_reader(struct predict_job *job, struct images *images, unsigned threads, struct chex_error *err)
{
    enum chex_status status;

    job->reader = (struct image_reader){
        .labels = &images->names,
        .source = &images->source,
        .planned = images->planned,
        .planned_count = images->count,
        .archive_options = images_archive_options(images, job->watch->stop),
        .max_size = CONVERT_MAX_FILE,
        .threads = &job->threads,
        .damaged = note_damaged,
        .context = job,
        .content = images->content,
        .unlabeled = &images->others,
    };
    status = image_reader_init(&job->reader, threads, err);
    /* As in a conversion: the images in progress and as many waiting, and one per reading thread. */
    job->queue = queue_new(&job->threads, threads,
                           ENTRIES_TOGETHER * (threads + (threads < 16 ? threads : 16)) + job->reader.wanted + 2,
                           (uint64_t)(32 + threads) << 20);
    job->batches = batches_new(&job->threads, job->models->batch, (size_t)job->models->size * job->models->size);
    if (status == CHEX_OK && (!job->queue || !job->batches))
        status = error_memory(err);
    job->reader.queue = job->queue;
    if (status == CHEX_OK)
        status = run_threads(job, threads, err);
    if (status == CHEX_OK && job->watch->stop && atomic_load(job->watch->stop))
        status = error_stopped(err);
    queue_free(job->queue);
    batches_free(job->batches);
    image_reader_release(&job->reader);
    return status;
}

enum chex_status
predict_run(const struct predict_options *o, unsigned threads, const struct models *models, struct images *images,
            const struct predict_watch *watch, struct results *out, struct chex_error *err)
{
    struct predict_job job = {.o = o,
                              .models = models,
                              .images = images,
                              .watch = watch,
                              .results = out,
                              .threads = {.stop = watch->stop, .tick = tick},
                              .lock = PTHREAD_MUTEX_INITIALIZER};
    double began = clock_now();
    enum chex_status status = results_init(out, models, images->count, err);
    size_t i;

    job.threads.context = &job;
    for (i = 0; i < models->count; i++)
        if (models->model[i].state.side > job.largest)
            job.largest = models->model[i].state.side;
    if (status == CHEX_OK && images->count > 0)
        status = run_reader(&job, images, threads, err);
    if (status == CHEX_OK)
        status = end_results(&job, err);
    pthread_mutex_destroy(&job.lock);
    out->seconds = clock_now() - began;
    return status;
}

void
results_release(struct results *r)
{
    free(r->image);
    free(r->logit);
    free(r->probability);
    arena_release(&r->strings);
    *r = (struct results){.count = 0};
}
