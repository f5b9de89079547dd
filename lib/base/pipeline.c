/*
 * pipeline.c - see pipeline.h
 *
 * The calling thread watches (ticks) while others work; with one thread, or where none can be started, it works
 * itself and ticks between items.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/pipeline.h"

#include "base/progress.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

struct run {
    struct pipeline *pipeline;
    atomic_size_t next, done;
    atomic_bool failed;
    atomic_bool drained; /* items of readers: all were handed out */
    atomic_uint readers; /* that are at work */
    atomic_uint next_reader;

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

/* ---- readers -------------------------------------------------------------------------------------------------- */

/* One step of a reader; false when it has come to its end, or to an error. */
static bool
read_step(struct run *run, unsigned reader)
{
    struct pipeline *p = run->pipeline;
    struct chex_error err = {.status = CHEX_OK};
    bool more = true;
    enum chex_status status = p->read(p->context, reader, &more, &err);

    if (status != CHEX_OK)
        note_error(run, p->count + reader, status, &err);
    return status == CHEX_OK && more;
}

static void
reader_ends(struct run *run)
{
    if (atomic_fetch_sub(&run->readers, 1) == 1 && run->pipeline->read_end)
        run->pipeline->read_end(run->pipeline->context);
}

static void *
reader_main(void *argument)
{
    struct run *run = argument;
    unsigned reader = atomic_fetch_add(&run->next_reader, 1);

    while (!stopping(run)) {
        if (!read_step(run, reader)) {
            /* One that was stopped has not come to its end: the workers must not take it for that. */
            if (!stopping(run))
                reader_ends(run);
            break;
        }
    }
    return NULL;
}

/* ---- workers -------------------------------------------------------------------------------------------------- */

enum next { NEXT_ITEM, NEXT_NOTHING, NEXT_END };

/* *alone: no thread reads, so this one does, between its items; it becomes false when all is read. */
static enum next
next_item(struct run *run, void *worker, bool *alone, size_t *item)
{
    struct pipeline *p = run->pipeline;
    bool all_read = !*alone && atomic_load(&run->readers) == 0;

    if (p->readers == 0) {
        *item = atomic_fetch_add(&run->next, 1);
        return *item < p->count ? NEXT_ITEM : NEXT_END;
    }
    if (p->next(p->context, worker, !*alone, item))
        return NEXT_ITEM;
    if (all_read) {
        /* Nobody was reading any more before it was looked: what is in other hands is the last. */
        atomic_store(&run->drained, true);
        return NEXT_END;
    }
    if (*alone && !read_step(run, 0) && !stopping(run)) {
        *alone = false;
        reader_ends(run);
    }
    return NEXT_NOTHING;
}

/* Work until nothing is left.  tick is for the calling thread alone. */
static void
work_on(struct run *run, bool tick, bool alone)
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
        size_t item;
        enum next next = next_item(run, worker, &alone, &item);
        enum chex_status status = CHEX_OK;

        if (next == NEXT_END)
            break;
        if (next == NEXT_ITEM) {
            status = p->work(p->context, worker, item, &err);
            if (status != CHEX_OK)
                note_error(run, item, status, &err);
            else
                atomic_fetch_add(&run->done, 1);
        }
        if (tick && p->tick && progress_clock() - ticked >= PIPELINE_WAIT) {
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

    work_on(run, false, false);
    pthread_mutex_lock(&run->lock);
    run->running--;
    pthread_cond_signal(&run->idle);
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

/* ---- threads -------------------------------------------------------------------------------------------------- */

/* Start up to `wanted` threads with all signals blocked: they go to the calling thread.  Returns how many there are. */
static unsigned
start_threads(struct run *run, pthread_t *thread, unsigned wanted, void *(*start)(void *))
{
    bool works = start == thread_main;
    sigset_t all, before;
    unsigned count = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (count < wanted) {
        pthread_mutex_lock(&run->lock);
        run->running += works;
        pthread_mutex_unlock(&run->lock);
        if (pthread_create(&thread[count], NULL, start, run) != 0) {
            pthread_mutex_lock(&run->lock);
            run->running -= works;
            pthread_mutex_unlock(&run->lock);
            break;
        }
        count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return count;
}

/*
 * Start the readers.  Each that is wanted counts as at work before it begins, so that nobody sees an end too early;
 * those that could not be started are taken back.
 */
static unsigned
start_readers(struct run *run, pthread_t *thread)
{
    unsigned wanted = run->pipeline->readers, started, i;

    atomic_store(&run->readers, wanted);
    started = thread ? start_threads(run, thread, wanted, reader_main) : 0;
    /* With none, the calling thread is reader 0. */
    for (i = started > 0 ? started : 1; i < wanted; i++)
        reader_ends(run);
    return started;
}

static void
watch(struct run *run)
{
    struct pipeline *p = run->pipeline;

    pthread_mutex_lock(&run->lock);
    while (run->running > 0) {
        struct timespec until;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)(PIPELINE_WAIT * 1e9);
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

/* Did a stop leave something undone? */
static bool
was_stopped(const struct run *run)
{
    const struct pipeline *p = run->pipeline;

    if (!p->stop || !atomic_load(p->stop))
        return false;
    return p->readers > 0 ? !atomic_load(&run->drained) : atomic_load(&run->done) < p->count;
}

static void
run_threads(struct run *run)
{
    struct pipeline *p = run->pipeline;
    unsigned wanted = p->threads > p->count ? (unsigned)p->count : p->threads;
    pthread_t *reader = p->readers > 0 ? calloc(p->readers, sizeof(*reader)) : NULL;
    pthread_t *thread = wanted > 1 ? calloc(wanted, sizeof(*thread)) : NULL;
    unsigned reading = p->readers > 0 ? start_readers(run, reader) : 0, started = 0, i;

    /* Workers without readers would wait for ever: then all is done here. */
    if (thread && (reading > 0 || p->readers == 0))
        started = start_threads(run, thread, wanted, thread_main);
    p->threads_used = started > 0 ? started : 1;
    if (started > 0)
        watch(run);
    else
        work_on(run, true, p->readers > 0 && reading == 0);
    for (i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    for (i = 0; i < reading; i++)
        pthread_join(reader[i], NULL);
    free(thread);
    free(reader);
}

enum chex_status
pipeline_run(struct pipeline *p, struct chex_error *err)
{
    struct run run = {.pipeline = p, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_condattr_t monotonic;

    /* A clock that never jumps. */
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&run.idle, &monotonic);
    pthread_condattr_destroy(&monotonic);
    run_threads(&run);
    if (p->tick)
        p->tick(p->context, atomic_load(&run.done));
    pthread_cond_destroy(&run.idle);
    pthread_mutex_destroy(&run.lock);
    if (run.have_error) {
        if (err)
            *err = run.error;
        return run.status;
    }
    if (was_stopped(&run))
        return chex_fail_stopped(err);
    return CHEX_OK;
}
