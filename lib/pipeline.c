/*
 * pipeline.c - see pipeline.h
 *
 * The calling thread watches (ticks) while others work; with one thread, or where none can be started, it works
 * itself and ticks between items.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "pipeline.h"

#include "progress.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define TICK_SECONDS 0.2

struct run {
    struct pipeline *pipeline;
    atomic_size_t next, done;
    atomic_bool failed;

    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t idle;  /* a thread has ended */
    unsigned running;
    bool have_error;
    size_t error_item;
    enum chex_status status;
    struct chex_error error;
};

static void
note_error(struct run *run, size_t item, enum chex_status status, const struct chex_error *err)
{
    atomic_store(&run->failed, true);
    pthread_mutex_lock(&run->lock);
    if (!run->have_error || item < run->error_item) {
        run->have_error = true;
        run->error_item = item;
        run->status = status;
        run->error = *err;
    }
    pthread_mutex_unlock(&run->lock);
}

static bool
stopping(const struct run *run)
{
    return atomic_load(&run->failed) || (run->pipeline->stop && atomic_load(run->pipeline->stop));
}

/* Work until nothing is left.  tick is for the calling thread alone. */
static void
work_on(struct run *run, bool tick)
{
    struct pipeline *p = run->pipeline;
    struct chex_error err = {.status = CHEX_OK};
    void *worker = p->worker_new ? p->worker_new(p->context) : NULL;
    double ticked = progress_clock();

    if (p->worker_new && !worker) {
        note_error(run, p->count, chex_fail_memory(&err), &err);
        return;
    }
    while (!stopping(run)) {
        size_t item = atomic_fetch_add(&run->next, 1);
        enum chex_status status;

        if (item >= p->count)
            break;
        status = p->work(p->context, worker, item, &err);
        if (status != CHEX_OK)
            note_error(run, item, status, &err);
        else
            atomic_fetch_add(&run->done, 1);
        if (tick && p->tick && progress_clock() - ticked >= TICK_SECONDS) {
            p->tick(p->context, atomic_load(&run->done));
            ticked = progress_clock();
        }
    }
    if (p->worker_free)
        p->worker_free(worker);
}

static void *
thread_main(void *argument)
{
    struct run *run = argument;

    work_on(run, false);
    pthread_mutex_lock(&run->lock);
    run->running--;
    pthread_cond_signal(&run->idle);
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

/* Start up to `wanted` threads with all signals blocked: they go to the calling thread.  Returns how many there are. */
static unsigned
start_threads(struct run *run, pthread_t *thread, unsigned wanted)
{
    sigset_t all, before;
    unsigned count = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (count < wanted) {
        pthread_mutex_lock(&run->lock);
        run->running++;
        pthread_mutex_unlock(&run->lock);
        if (pthread_create(&thread[count], NULL, thread_main, run) != 0) {
            pthread_mutex_lock(&run->lock);
            run->running--;
            pthread_mutex_unlock(&run->lock);
            break;
        }
        count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return count;
}

static void
watch(struct run *run)
{
    struct pipeline *p = run->pipeline;

    pthread_mutex_lock(&run->lock);
    while (run->running > 0) {
        struct timespec until;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)(TICK_SECONDS * 1e9);
        if (until.tv_nsec >= 1000000000L) {
            until.tv_nsec -= 1000000000L;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&run->idle, &run->lock, &until);
        if (p->tick) {
            pthread_mutex_unlock(&run->lock);
            p->tick(p->context, atomic_load(&run->done));
            pthread_mutex_lock(&run->lock);
        }
    }
    pthread_mutex_unlock(&run->lock);
}

enum chex_status
pipeline_run(struct pipeline *p, struct chex_error *err)
{
    struct run run = {.pipeline = p, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_condattr_t monotonic;
    unsigned wanted = p->threads > p->count ? (unsigned)p->count : p->threads;
    pthread_t *thread = wanted > 1 ? calloc(wanted, sizeof(*thread)) : NULL;
    unsigned started, i;

    /* A clock that never jumps. */
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&run.idle, &monotonic);
    pthread_condattr_destroy(&monotonic);
    started = thread ? start_threads(&run, thread, wanted) : 0;
    p->threads_used = started > 0 ? started : 1;
    if (started > 0)
        watch(&run);
    else
        work_on(&run, true);
    for (i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    free(thread);
    if (p->tick)
        p->tick(p->context, atomic_load(&run.done));
    pthread_cond_destroy(&run.idle);
    pthread_mutex_destroy(&run.lock);
    if (run.have_error) {
        if (err)
            *err = run.error;
        return run.status;
    }
    if (p->stop && atomic_load(p->stop) && atomic_load(&run.done) < p->count)
        return chex_fail(err, CHEX_ERR_STOPPED, "stopped on request");
    return CHEX_OK;
}
