/*
 * threads.c - see threads.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/threads.h"

#include "base/clock.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

struct thread {
    struct threads *all;
    thread_loop *loop;
    void *context;
    pthread_t id;
    struct thread *next;
};

void
threads_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void
threads_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(THREADS_WAIT * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(cond, lock, &until);
}

void
threads_init(struct threads *t)
{
    t->caller = pthread_self();
    t->ticked = clock_now();
    pthread_mutex_init(&t->lock, NULL);
    threads_cond_init(&t->ended);
}

void
threads_fail(struct threads *t, uint64_t item, const struct chex_error *why)
{
    pthread_mutex_lock(&t->lock);
    if (!atomic_load(&t->failed) || item < t->failed_item) {
        t->failed_item = item;
        t->error = *why;
    }
    atomic_store(&t->failed, true);
    pthread_mutex_unlock(&t->lock);
}

bool
threads_running(struct threads *t)
{
    if (t->tick && pthread_equal(pthread_self(), t->caller) && clock_now() - t->ticked >= THREADS_WAIT) {
        t->tick(t->context);
        t->ticked = clock_now();
    }
    return !atomic_load(&t->failed) && !(t->stop && atomic_load(t->stop));
}

void
threads_call(struct threads *t, thread_loop *loop, void *context)
{
    struct chex_error err = {.status = CHEX_OK};
    uint64_t item = UINT64_MAX;
    enum chex_status status = loop(context, &item, &err);

    err.status = status;
    if (status != CHEX_OK)
        threads_fail(t, item, &err);
}

static void *
thread_main(void *argument)
{
    struct thread *self = argument;
    struct threads *t = self->all;

    threads_call(t, self->loop, self->context);
    pthread_mutex_lock(&t->lock);
    t->running--;
    pthread_cond_signal(&t->ended);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static bool
start_one(struct threads *t, thread_loop *loop, void *context)
{
    struct thread *thread = malloc(sizeof(*thread));
    bool good;

    if (!thread)
        return false;
    *thread = (struct thread){.all = t, .loop = loop, .context = context, .next = t->started};
    pthread_mutex_lock(&t->lock);
    good = pthread_create(&thread->id, NULL, thread_main, thread) == 0;
    t->running += good;
    pthread_mutex_unlock(&t->lock);
    if (good)
        t->started = thread;
    else
        free(thread);
    return good;
}

unsigned
threads_start(struct threads *t, unsigned count, thread_loop *loop, void *context)
{
    sigset_t all, before;
    unsigned started = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < count && start_one(t, loop, context))
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

enum chex_status
threads_end(struct threads *t, struct chex_error *err)
{
    pthread_mutex_lock(&t->lock);
    while (t->running > 0) {
        threads_cond_wait(&t->ended, &t->lock);
        pthread_mutex_unlock(&t->lock);
        threads_running(t);
        pthread_mutex_lock(&t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    while (t->started) {
        struct thread *thread = t->started;

        t->started = thread->next;
        pthread_join(thread->id, NULL);
        free(thread);
    }
    if (t->tick)
        t->tick(t->context);
    pthread_cond_destroy(&t->ended);
    pthread_mutex_destroy(&t->lock);
    if (!atomic_load(&t->failed))
        return CHEX_OK;
    if (err)
        *err = t->error;
    return t->error.status;
}

/* ---- a parallel loop over numbers ------------------------------------------------------------------------------ */

struct numbers {
    struct parallel *parallel;
    struct threads threads;
    atomic_size_t next, done;
};

static enum chex_status
work_on_numbers(void *context, uint64_t *item, struct chex_error *err)
{
    struct numbers *n = context;
    struct parallel *p = n->parallel;
    void *worker = p->worker_new ? p->worker_new(p->context) : NULL;
    enum chex_status status = CHEX_OK;

    if (p->worker_new && !worker)
        return error_memory(err);
    while (status == CHEX_OK && threads_running(&n->threads) && (*item = atomic_fetch_add(&n->next, 1)) < p->count) {
        status = p->work(p->context, worker, (size_t)*item, err);
        if (status == CHEX_OK)
            atomic_fetch_add(&n->done, 1);
    }
    if (p->worker_free)
        p->worker_free(worker);
    return status;
}

static void
tick_numbers(void *context)
{
    struct numbers *n = context;

    n->parallel->tick(n->parallel->context, atomic_load(&n->done));
}

enum chex_status
parallel_for(struct parallel *p, struct chex_error *err)
{
    struct numbers n = {.parallel = p, .threads = {.stop = p->stop}};
    unsigned wanted = p->threads > p->count ? (unsigned)p->count : p->threads;
    enum chex_status status;

    if (p->tick) {
        n.threads.tick = tick_numbers;
        n.threads.context = &n;
    }
    threads_init(&n.threads);
    p->threads_used = wanted > 1 ? threads_start(&n.threads, wanted, work_on_numbers, &n) : 0;
    if (p->threads_used == 0) {
        p->threads_used = 1;
        threads_call(&n.threads, work_on_numbers, &n);
    }
    status = threads_end(&n.threads, err);
    /* Without an error, only a stop leaves items unfinished. */
    return status == CHEX_OK && atomic_load(&n.done) < p->count ? error_stopped(err) : status;
}
