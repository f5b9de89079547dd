/*
 * late_store.c - images in pages that only the device may access; see late.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "late.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Pages that only the device may access, and a put in flight. */
struct image_store {
    void *pages;
    size_t size, image;
};

static pthread_mutex_t store_lock = PTHREAD_MUTEX_INITIALIZER;

static void
protect_store(const struct image_store *s, bool open)
{
    if (mprotect(s->pages, s->size, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
        abort();
}

enum chex_status
late_store_new(struct device *device, uint32_t images, unsigned source, struct image_store **out,
               struct chex_error *err)
{
    struct image_store *s = calloc(1, sizeof(*s));

    s->image = (size_t)source * source;
    s->size = images * s->image + 1;
    s->pages = mmap(NULL, s->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *out = s;
    (void)device;
    (void)err;
    return CHEX_OK;
}

enum chex_status
late_store_put(struct image_store *s, uint32_t image, const uint8_t *pixels, struct chex_error *err)
{
    (void)err;
    pthread_mutex_lock(&store_lock);
    protect_store(s, true);
    memcpy((uint8_t *)s->pages + image * s->image, pixels, s->image);
    protect_store(s, false);
    pthread_mutex_unlock(&store_lock);
    return CHEX_OK;
}

void
late_store_free(struct image_store *s)
{
    if (s)
        munmap(s->pages, s->size);
    free(s);
}

uint8_t *
late_gather_pixels(const struct batch *b, size_t n, size_t image)
{
    uint8_t *pixels = calloc(n, image);

    pthread_mutex_lock(&store_lock);
    if (b->store)
        protect_store(b->store, true);
    for (size_t i = 0; i < n; i++)
        memcpy(pixels + i * image,
               b->index && b->index[i] != STORE_NONE ? (uint8_t *)b->store->pages + b->index[i] * image
                                                     : b->pixels + i * image,
               image);
    if (b->store)
        protect_store(b->store, false);
    pthread_mutex_unlock(&store_lock);
    return pixels;
}
