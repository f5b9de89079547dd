/*
 * store.c - images in device memory; see plan.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/run/plan.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdlib.h>

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

const uint8_t *
cuda_store_pixels(const struct image_store *store)
{
    return store->pixels;
}
