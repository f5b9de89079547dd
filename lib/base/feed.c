/*
 * feed.c - see feed.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/feed.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* A buffer that grew beyond this is freed with its image: a rare large one leaves nothing behind. */
#define KEEP_CAPACITY (1u << 20)

struct feed {
    pthread_mutex_t lock;
    pthread_cond_t room, filled;
    struct feed_place *idle;         /* not in use */
    struct feed_place *first, *last; /* put and not taken */
    unsigned in_use;
    uint64_t bytes, max_bytes; /* reserved by those in use */
    bool closed;
    unsigned places;
    struct feed_place place[];
};

struct feed *
feed_new(unsigned places, uint64_t max_bytes)
{
    struct feed *f = calloc(1, sizeof(*f) + places * sizeof(f->place[0]));
    pthread_condattr_t monotonic;
    unsigned i;

    if (!f)
        return NULL;
    f->max_bytes = max_bytes;
    f->places = places;
    for (i = 0; i < places; i++) {
        f->place[i].next = f->idle;
        f->idle = &f->place[i];
    }
    pthread_mutex_init(&f->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&f->room, &monotonic);
    pthread_cond_init(&f->filled, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return f;
}

void
feed_free(struct feed *f)
{
    unsigned i;

    if (!f)
        return;
    for (i = 0; i < f->places; i++)
        buffer_release(&f->place[i].bytes);
    pthread_cond_destroy(&f->filled);
    pthread_cond_destroy(&f->room);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static struct timespec
wait_until(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += (long)(FEED_WAIT * 1e9);
    if (t.tv_nsec >= 1000000000L) {
        t.tv_nsec -= 1000000000L;
        t.tv_sec++;
    }
    return t;
}

/* One that is larger than the bound fits where nothing else is. */
static bool
fits(const struct feed *f, uint64_t size)
{
    return f->idle && (f->in_use == 0 || (size <= f->max_bytes && f->bytes <= f->max_bytes - size));
}

struct feed_place *
feed_reserve(struct feed *f, uint64_t size)
{
    struct timespec until = wait_until();
    struct feed_place *p = NULL;

    pthread_mutex_lock(&f->lock);
    while (!fits(f, size))
        if (pthread_cond_timedwait(&f->room, &f->lock, &until) == ETIMEDOUT)
            break;
    if (fits(f, size)) {
        p = f->idle;
        f->idle = p->next;
        f->in_use++;
        f->bytes += size;
        p->reserved = size;
        p->bytes.size = 0;
        p->why.status = CHEX_OK;
    }
    pthread_mutex_unlock(&f->lock);
    return p;
}

void
feed_put(struct feed *f, struct feed_place *p)
{
    pthread_mutex_lock(&f->lock);
    if (p->reserved > p->bytes.size) {
        f->bytes -= p->reserved - p->bytes.size;
        p->reserved = p->bytes.size;
        pthread_cond_signal(&f->room);
    }
    p->next = NULL;
    if (f->last)
        f->last->next = p;
    else
        f->first = p;
    f->last = p;
    pthread_cond_signal(&f->filled);
    pthread_mutex_unlock(&f->lock);
}

struct feed_place *
feed_take(struct feed *f, bool wait)
{
    struct timespec until = wait_until();
    struct feed_place *p;

    pthread_mutex_lock(&f->lock);
    while (wait && !f->first && !f->closed)
        if (pthread_cond_timedwait(&f->filled, &f->lock, &until) == ETIMEDOUT)
            break;
    p = f->first;
    if (p) {
        f->first = p->next;
        if (!f->first)
            f->last = NULL;
    }
    pthread_mutex_unlock(&f->lock);
    return p;
}

void
feed_return(struct feed *f, struct feed_place *p)
{
    if (p->bytes.capacity > KEEP_CAPACITY)
        buffer_release(&p->bytes);
    pthread_mutex_lock(&f->lock);
    f->in_use--;
    f->bytes -= p->reserved;
    p->reserved = 0;
    p->next = f->idle;
    f->idle = p;
    /* All of them: the next in line may be one for which it is still too narrow. */
    pthread_cond_broadcast(&f->room);
    pthread_mutex_unlock(&f->lock);
}

void
feed_close(struct feed *f)
{
    pthread_mutex_lock(&f->lock);
    f->closed = true;
    pthread_cond_broadcast(&f->filled);
    pthread_mutex_unlock(&f->lock);
}
