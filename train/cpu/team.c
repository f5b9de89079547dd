/*
 * team.c - implements team.h
 *
 * A step has about a thousand short parallel parts, so a thread spins for some microseconds before it sleeps.  It does
 * not spin longer, because other processes (ranks of a job) may need its CPU.  With more threads than CPUs it does not
 * spin at all, because the thread that it waits for could not run meanwhile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/team.h"

#include <pthread.h>
#ifdef __linux__
#include <sched.h>
#endif
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define LOOKS 300 /* spins, about 5 to 20 microseconds */

struct team {
    unsigned threads, started; /* including the caller; running workers */
    int looks;
    pthread_t *worker;
    pthread_mutex_t mutex;
    pthread_cond_t begin, end;
    atomic_uint round;  /* changes when a new round starts */
    atomic_uint active; /* workers that have not finished this round */
    atomic_bool stop;
    atomic_size_t next;
    atomic_uint numbers;
    size_t count;
    team_task *task;
    void *context;
};

/* Returns the CPUs that this process may use. */
static unsigned
processors(void)
{
#ifdef __linux__
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return (unsigned)CPU_COUNT(&set);
#endif
    return 1;
}

static void
relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void
work(struct team *t, unsigned thread)
{
    size_t i;

    while ((i = atomic_fetch_add(&t->next, 1)) < t->count)
        t->task(t->context, i, thread);
}

static void
await_round(struct team *t, unsigned seen)
{
    int looks;

    for (looks = 0; looks < t->looks; looks++) {
        if (atomic_load(&t->round) != seen)
            return;
        relax();
    }
    pthread_mutex_lock(&t->mutex);
    while (atomic_load(&t->round) == seen)
        pthread_cond_wait(&t->begin, &t->mutex);
    pthread_mutex_unlock(&t->mutex);
}

static void *
worker_main(void *context)
{
    struct team *t = context;
    unsigned thread = 1 + atomic_fetch_add(&t->numbers, 1), seen = 0;

    for (;;) {
        await_round(t, seen);
        seen++;
        if (atomic_load(&t->stop))
            return NULL;
        work(t, thread);
        if (atomic_fetch_sub(&t->active, 1) == 1) {
            pthread_mutex_lock(&t->mutex);
            pthread_cond_signal(&t->end);
            pthread_mutex_unlock(&t->mutex);
        }
    }
}

static void
begin_round(struct team *t)
{
    atomic_store(&t->next, 0);
    atomic_store(&t->active, t->started);
    pthread_mutex_lock(&t->mutex);
    atomic_fetch_add(&t->round, 1);
    pthread_cond_broadcast(&t->begin);
    pthread_mutex_unlock(&t->mutex);
}

void
team_run(struct team *t, size_t count, team_task *task, void *context)
{
    int looks;

    t->count = count;
    t->task = task;
    t->context = context;
    if (t->started == 0 || count < 2) {
        size_t i;

        for (i = 0; i < count; i++)
            task(context, i, 0);
        return;
    }
    begin_round(t);
    work(t, 0);
    for (looks = 0; looks < t->looks; looks++) {
        if (atomic_load(&t->active) == 0)
            return;
        relax();
    }
    pthread_mutex_lock(&t->mutex);
    while (atomic_load(&t->active) > 0)
        pthread_cond_wait(&t->end, &t->mutex);
    pthread_mutex_unlock(&t->mutex);
}

enum chex_status
team_new(unsigned threads, struct team **out, struct chex_error *err)
{
    struct team *t = calloc(1, sizeof(*t));

    *out = NULL;
    if (!t)
        return error_memory(err);
    t->threads = threads;
    t->looks = threads <= processors() ? LOOKS : 0;
    t->worker = calloc(threads, sizeof(*t->worker));
    if (!t->worker) {
        free(t);
        return error_memory(err);
    }
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->begin, NULL);
    pthread_cond_init(&t->end, NULL);
    for (; t->started + 1 < threads; t->started++) {
        if (pthread_create(&t->worker[t->started], NULL, worker_main, t) != 0) {
            team_free(t);
            return error_set(err, CHEX_ERR_MEMORY, "cannot start a thread");
        }
    }
    *out = t;
    return CHEX_OK;
}

void
team_free(struct team *t)
{
    unsigned i;

    if (!t)
        return;
    atomic_store(&t->stop, true);
    begin_round(t);
    for (i = 0; i < t->started; i++)
        pthread_join(t->worker[i], NULL);
    pthread_cond_destroy(&t->begin);
    pthread_cond_destroy(&t->end);
    pthread_mutex_destroy(&t->mutex);
    free(t->worker);
    free(t);
}
