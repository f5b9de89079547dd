/*
 * queue.c - see queue.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/queue.h"

#include <stdlib.h>

/* A buffer that grew beyond this size is freed after its image, so that a rare large image does not occupy memory. */
#define KEEP_CAPACITY (1u << 20)

/* Producers that wait for an entry are woken when half of the entries are unused, or as many as these. */
#define WAKE 16

struct queue {
    struct threads *threads;
    void (*consume)(void *context, struct queue_entry *e);
    void *context;
    uint64_t max_bytes;
    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t room, pushed;
    struct queue_entry *unused;
    struct queue_entry *first, *last; /* entries pushed but not popped */
    unsigned queued;                  /* their number */
    unsigned in_use;
    unsigned wait_bytes; /* producers that wait for bytes, not for an entry */
    uint64_t bytes;      /* reserved by all entries in use */
    bool closed;
    unsigned consumers, entries;
    struct queue_entry entry[];
};

struct queue *
queue_new(struct threads *threads, unsigned consumers, unsigned entries, uint64_t max_bytes)
{
    struct queue *q = calloc(1, sizeof(*q) + entries * sizeof(q->entry[0]));
    unsigned i;

    if (!q)
        return NULL;
    q->threads = threads;
    q->max_bytes = max_bytes;
    q->consumers = consumers;
    q->entries = entries;
    for (i = 0; i < entries; i++) {
        q->entry[i].next = q->unused;
        q->unused = &q->entry[i];
    }
    pthread_mutex_init(&q->lock, NULL);
    threads_cond_init(&q->room);
    threads_cond_init(&q->pushed);
    return q;
}

void
queue_free(struct queue *q)
{
    unsigned i;

    if (!q)
        return;
    for (i = 0; i < q->entries; i++)
        buffer_release(&q->entry[i].bytes);
    pthread_cond_destroy(&q->pushed);
    pthread_cond_destroy(&q->room);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

void
queue_consume(struct queue *q, void (*consume)(void *context, struct queue_entry *e), void *context)
{
    q->consume = consume;
    q->context = context;
}

/* Wait for a change, with the lock held, but unlock it while this thread ticks.  Returns false if the run is ending. */
static bool
wait_for(struct queue *q, pthread_cond_t *change)
{
    bool running;

    threads_cond_wait(change, &q->lock);
    pthread_mutex_unlock(&q->lock);
    running = threads_running(q->threads);
    pthread_mutex_lock(&q->lock);
    return running;
}

/* An image larger than the limit fits if no other entry is in use. */
static bool
fits(const struct queue *q, uint64_t size)
{
    return q->unused && (q->in_use == 0 || (size <= q->max_bytes && q->bytes <= q->max_bytes - size));
}

/*
 * Returns whether waiting producers can go on.  One that waits for bytes must look each time whether they are enough.
 * Producers that wait for an entry hold none, and the others return theirs or push them, so enough become unused.
 */
static bool
has_room(const struct queue *q)
{
    unsigned unused = q->entries - q->in_use;

    return unused > 0 && (q->wait_bytes > 0 || unused * 2 >= q->entries || unused >= WAKE);
}

static bool
wait_for_room(struct queue *q)
{
    const bool for_bytes = q->unused;
    bool running;

    q->wait_bytes += for_bytes;
    running = wait_for(q, &q->room);
    q->wait_bytes -= for_bytes;
    return running;
}

struct queue_entry *
queue_reserve(struct queue *q, uint64_t size)
{
    bool running = threads_running(q->threads);
    struct queue_entry *e = NULL;

    pthread_mutex_lock(&q->lock);
    while (running && !fits(q, size))
        running = wait_for_room(q);
    if (running) {
        e = q->unused;
        q->unused = e->next;
        q->in_use++;
        q->bytes += size;
        e->reserved = size;
        e->bytes.size = 0;
        e->width = e->height = 0;
        e->reason.status = CHEX_OK;
    }
    pthread_mutex_unlock(&q->lock);
    return e;
}

void
queue_push(struct queue *q, struct queue_entry *e)
{
    bool room = false;

    if (q->consume) {
        q->consume(q->context, e);
        queue_return(q, e);
        return;
    }
    pthread_mutex_lock(&q->lock);
    if (e->reserved > e->bytes.size) {
        q->bytes -= e->reserved - e->bytes.size;
        e->reserved = e->bytes.size;
        room = q->unused && q->wait_bytes > 0;
    }
    e->next = NULL;
    if (q->last)
        q->last->next = e;
    else
        q->first = e;
    q->last = e;
    q->queued++;
    pthread_mutex_unlock(&q->lock);
    /* After unlocking, because the woken thread needs the lock. */
    pthread_cond_signal(&q->pushed);
    if (room)
        pthread_cond_signal(&q->room);
}

/* Returns how many entries a consumer takes: a pair, or more if as many are left for each of the others. */
static unsigned
share(const struct queue *q, unsigned most)
{
    unsigned each = q->queued / q->consumers;

    return most <= 2 || each >= most ? most : each > 2 ? each : 2;
}

unsigned
queue_pop(struct queue *q, struct queue_entry **e, unsigned most)
{
    bool running = threads_running(q->threads);
    unsigned count = 0;

    pthread_mutex_lock(&q->lock);
    while (running && !q->first && !q->closed)
        running = wait_for(q, &q->pushed);
    most = share(q, most);
    while (running && q->first && count < most) {
        e[count++] = q->first;
        q->queued--;
        q->first = q->first->next;
        if (!q->first)
            q->last = NULL;
    }
    pthread_mutex_unlock(&q->lock);
    return count;
}

void
queue_return_all(struct queue *q, struct queue_entry *const *e, unsigned count)
{
    unsigned i;
    bool room;

    for (i = 0; i < count; i++)
        if (e[i]->bytes.capacity > KEEP_CAPACITY)
            buffer_release(&e[i]->bytes);
    pthread_mutex_lock(&q->lock);
    for (i = 0; i < count; i++) {
        q->in_use--;
        q->bytes -= e[i]->reserved;
        e[i]->reserved = 0;
        e[i]->next = q->unused;
        q->unused = e[i];
    }
    room = has_room(q);
    pthread_mutex_unlock(&q->lock);
    /* Wake all waiting threads: the next one may need more room than there is. */
    if (room)
        pthread_cond_broadcast(&q->room);
}

void
queue_return(struct queue *q, struct queue_entry *e)
{
    queue_return_all(q, &e, 1);
}

void
queue_close(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->pushed);
    pthread_mutex_unlock(&q->lock);
}

bool
queue_is_drained(struct queue *q)
{
    bool drained;

    pthread_mutex_lock(&q->lock);
    drained = q->closed && !q->first;
    pthread_mutex_unlock(&q->lock);
    return drained;
}
