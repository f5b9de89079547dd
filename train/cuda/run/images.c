/*
 * images.c - copies images to the device: micro-batches to a slot, and the images of --cache device to a store; see
 * plan.h
 *
 * cuda_feed() copies the micro-batch into pinned memory before it returns; the copy stream moves it to the device.  The
 * part of a slot in front of the pixels is always copied.  The pixels are copied only if an image is not in the store.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/run/plan.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- the store --------------------------------------------------------------------------------------------------- */

struct image_store {
    int device;
    size_t image; /* bytes of one image */
    uint8_t *pixels;
    cudaStream_t stream;
    pthread_mutex_t lock; /* for the stream: each put() waits only for its own copy */
};

enum chex_status
cuda_store_new(struct device *device, uint32_t images, unsigned source, struct image_store **out,
               struct chex_error *err)
{
    const struct cuda_device *d = (const struct cuda_device *)(const void *)device;
    struct image_store *s = calloc(1, sizeof(*s));
    void *pixels = NULL;
    size_t bytes;
    cudaError_t e;

    *out = NULL;
    if (!s)
        return error_memory(err);
    pthread_mutex_init(&s->lock, NULL);
    s->device = d->number;
    s->image = (size_t)source * source;
    if (!size_mul(s->image, images, &bytes)) {
        cuda_store_free(s);
        return error_memory(err);
    }
    e = cudaSetDevice(s->device);
    if (e == cudaSuccess)
        e = cudaMalloc(&pixels, bytes > 0 ? bytes : 1);
    s->pixels = pixels;
    if (e == cudaSuccess)
        e = cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking);
    if (e != cudaSuccess) {
        cuda_store_free(s);
        return cuda_check(e, "room for the images", err);
    }
    *out = s;
    return CHEX_OK;
}

enum chex_status
cuda_store_put(struct image_store *store, uint32_t image, const uint8_t *pixels, struct chex_error *err)
{
    cudaError_t e;

    pthread_mutex_lock(&store->lock);
    e = cudaSetDevice(store->device);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(store->pixels + image * store->image, pixels, store->image, cudaMemcpyHostToDevice,
                            store->stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(store->stream);
    pthread_mutex_unlock(&store->lock);
    return cuda_check(e, "copying an image", err);
}

/* After an error of a kernel nothing can be freed; the end of the process frees the device. */
void
cuda_store_free(struct image_store *store)
{
    if (!store)
        return;
    (void)cudaSetDevice(store->device);
    if (store->stream)
        (void)cudaStreamDestroy(store->stream);
    if (store->pixels)
        (void)cudaFree(store->pixels);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

/* ---- micro-batches ----------------------------------------------------------------------------------------------- */

static bool
counts(const struct batch *batch, unsigned i)
{
    return !batch->weight || batch->weight[i] != 0;
}

/* Returns true if the image is not in the store. */
static bool
is_in_pixels(const struct batch *batch, unsigned i)
{
    return !batch->index || batch->index[i] == STORE_NONE;
}

static void
fill_block(const struct batch *batch, unsigned size, unsigned number, struct batch_block *out)
{
    unsigned i;

    *out = (struct batch_block){.scale = batch->scale, .number = number};
    for (i = 0; i < size; i++)
        out->images += counts(batch, i);
    if (out->images == 0)
        out->images = 1;
}

/* Returns true if a kernel reads image i: it counts, or it is the partner of one that does. */
static bool
is_read(const struct batch *batch, unsigned i, unsigned size)
{
    return (i < size && counts(batch, i)) || (batch->mix && i > 0 && batch->mix[i - 1] > 0 && counts(batch, i - 1));
}

/* Returns true if any pixels must be copied to the device. */
static bool
fill_images(const struct plan *plan, const struct batch *batch, const struct crop *crop, char *slot)
{
    const struct cuda_slot *at = &plan->layout.slot;
    size_t image = (size_t)plan->options.source * plan->options.source;
    uint32_t *index = (uint32_t *)(void *)(slot + at->index);
    struct crop_place *place = (struct crop_place *)(void *)(slot + at->crop);
    float *weight = (float *)(void *)(slot + at->weight);
    unsigned size = plan->options.batch, images = size + (batch->mix ? 1 : 0), i;
    bool any = false;

    for (i = 0; i < images; i++) {
        bool read = is_read(batch, i, size), here = read && is_in_pixels(batch, i);

        index[i] = read && !here ? batch->index[i] : STORE_NONE;
        place[i] = cuda_crop_place(&crop[i]);
        if (i < size)
            weight[i] = batch->weight ? batch->weight[i] : 1;
        if (here)
            memcpy(slot + at->pixels + i * image, batch->pixels + i * image, image);
        any |= here;
    }
    return any;
}

static void
fill_black(const struct plan *plan, char *slot)
{
    const struct cuda_slot *at = &plan->layout.slot;
    uint32_t *index = (uint32_t *)(void *)(slot + at->index);
    float *weight = (float *)(void *)(slot + at->weight);
    unsigned i;

    memset(slot, 0, at->bytes);
    ((struct batch_block *)(void *)(slot + at->block))->images = plan->options.batch;
    for (i = 0; i < plan->options.batch; i++) {
        index[i] = STORE_NONE;
        weight[i] = 1;
    }
}

/* Returns the number of bytes to copy. */
static size_t
fill_slot(const struct plan *plan, const struct batch *batch, const struct cuda_feed *how, char *slot)
{
    const struct graph *g = plan->options.graph;
    size_t labels = (size_t)plan->options.batch * g->buffer[g->output].channels;
    size_t mixes = plan->options.batch * sizeof(*batch->mix);
    const struct cuda_slot *at = &plan->layout.slot;

    if (!batch) {
        fill_black(plan, slot);
        return at->bytes;
    }
    fill_block(batch, plan->options.batch, how->number, (struct batch_block *)(void *)(slot + at->block));
    if (batch->label)
        memcpy(slot + at->label, batch->label, labels);
    else
        memset(slot + at->label, 0, labels);
    if (batch->mix)
        memcpy(slot + at->mix, batch->mix, mixes);
    else if (plan->options.mixup)
        memset(slot + at->mix, 0, mixes);
    return fill_images(plan, batch, how->crop, slot) && !how->seen ? at->bytes : at->pixels;
}

/*
 * The launches hold the address of one store.  For another store, change them and record the graphs with these launches
 * again.
 */
static enum chex_status
use_store(struct plan *plan, const struct batch *batch, struct chex_error *err)
{
    struct cuda_list *list = plan->layout.list;
    const uint8_t *store = batch && batch->index && batch->store ? batch->store->pixels : NULL;
    enum chex_status status;

    if (!store || store == list[CUDA_LIST_INPUT0].op->args.input.store)
        return CHEX_OK;
    status = cuda_drain(plan, "taking another store of images", err);
    if (status != CHEX_OK)
        return status;
    cuda_drop_graphs(plan, HOLDS_FORWARD | HOLDS_SCORE);
    list[CUDA_LIST_INPUT0].op->args.input.store = store;
    list[CUDA_LIST_INPUT1].op->args.input.store = store;
    return CHEX_OK;
}

enum chex_status
cuda_feed(struct plan *plan, const struct batch *batch, const struct cuda_feed *how, struct chex_error *err)
{
    unsigned ring = (unsigned)(plan->batches % CUDA_RING);
    const struct cuda_copy *copy = &plan->copy[(plan->batches + 1) % CUDA_COPIES];
    enum chex_status status = use_store(plan, batch, err);
    size_t bytes;
    cudaError_t e;

    if (status == CHEX_OK)
        status = cuda_wait(plan, plan->copied[ring], "waiting for a micro-batch to be copied", err);
    if (status != CHEX_OK)
        return status;
    bytes = fill_slot(plan, batch, how, plan->ring[ring]);
    e = cudaStreamWaitEvent(plan->copies, plan->taken[how->slot], 0);
    if (e == cudaSuccess)
        e = cudaEventRecord(copy->begin, plan->copies);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync((void *)plan->layout.slots[how->slot], plan->ring[ring], bytes, cudaMemcpyHostToDevice,
                            plan->copies);
    if (e == cudaSuccess)
        e = cudaEventRecord(copy->end, plan->copies);
    if (e == cudaSuccess)
        e = cudaEventRecord(plan->copied[ring], plan->copies);
    if (e == cudaSuccess)
        e = cudaStreamWaitEvent(plan->compute, plan->copied[ring], 0);
    if (e != cudaSuccess)
        return cuda_check(e, "copying a micro-batch to the GPU", err);
    plan->batches++;
    plan->slot = how->slot;
    return CHEX_OK;
}
