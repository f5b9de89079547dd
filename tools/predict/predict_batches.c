/*
 * predict_batches.c - see predict_batches.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_batches.h"

#include "backend/backend.h"

#include <stdlib.h>
#include <string.h>

/* Micro-batches in memory: those that are scored, one that is full and one that gets images. */
#define RING (SCORES_IN_FLIGHT + 2)

struct batches {
    struct threads *threads;
    unsigned size;
    size_t image_bytes;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct micro_batch ring[RING];     /* number n is at n % RING */
    uint64_t current, taken, returned; /* numbers: of the one that gets images; of those taken and returned */
    bool closed;
};

struct batches *
batches_new(struct threads *threads, unsigned size, size_t image_bytes)
{
    struct batches *b = calloc(1, sizeof(*b));
    bool there = b != NULL;
    unsigned i;

    if (!b)
        return NULL;
    b->threads = threads;
    b->size = size;
    b->image_bytes = image_bytes;
    pthread_mutex_init(&b->lock, NULL);
    threads_cond_init(&b->changed);
    for (i = 0; i < RING; i++) {
        b->ring[i].row = calloc(size, sizeof(uint32_t));
        b->ring[i].pixels = calloc(size, image_bytes);
        there &= b->ring[i].row && b->ring[i].pixels;
    }
    if (there)
        return b;
    batches_free(b);
    return NULL;
}

void
batches_free(struct batches *b)
{
    unsigned i;

    if (!b)
        return;
    for (i = 0; i < RING; i++) {
        free(b->ring[i].row);
        free(b->ring[i].pixels);
    }
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

bool
batches_put(struct batches *b, uint32_t row, const uint8_t *pixels)
{
    struct micro_batch *m;
    bool running = true;

    pthread_mutex_lock(&b->lock);
    while (b->current - b->returned >= RING && (running = threads_running(b->threads)))
        threads_cond_wait(&b->changed, &b->lock);
    if (running) {
        m = &b->ring[b->current % RING];
        m->row[m->count] = row;
        memcpy(m->pixels + m->count++ * b->image_bytes, pixels, b->image_bytes);
        if (m->count == b->size) {
            b->current++;
            pthread_cond_broadcast(&b->changed);
        }
    }
    pthread_mutex_unlock(&b->lock);
    return running;
}

void
batches_close(struct batches *b)
{
    pthread_mutex_lock(&b->lock);
    b->closed = true;
    if (b->current - b->returned < RING && b->ring[b->current % RING].count > 0)
        b->current++;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

const struct micro_batch *
batches_take(struct batches *b)
{
    const struct micro_batch *m = NULL;

    pthread_mutex_lock(&b->lock);
    while (threads_running(b->threads) && b->taken == b->current && !b->closed)
        threads_cond_wait(&b->changed, &b->lock);
    if (threads_running(b->threads) && b->taken < b->current)
        m = &b->ring[b->taken++ % RING];
    pthread_mutex_unlock(&b->lock);
    return m;
}

void
batches_return(struct batches *b)
{
    pthread_mutex_lock(&b->lock);
    b->ring[b->returned++ % RING].count = 0;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}
