/*
 * test_threads.c - several threads process many items (threads.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/clock.h"
#include "base/threads.h"
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ITEMS = 3000 };

static const unsigned thread_counts[] = {1, 2, 3, 8, 32};
enum { COUNTS = sizeof(thread_counts) / sizeof(thread_counts[0]) };

/* What the threads of a run see and count. */
struct job {
    atomic_uint seen[ITEMS];
    atomic_uint workers, freed, refused; /* refused: number of workers that still fail to start */
    size_t fail_from;                    /* items from here on fail */
    atomic_bool stop;
    size_t stop_at;
    pthread_barrier_t *together; /* the first items wait for each other here */
    size_t together_count;
    size_t ticks, last_tick;
    pthread_t caller;
    atomic_uint mistakes; /* only the main thread may use Check's assertions */
};

static struct job job;
static struct chex_error err;

static void
setup(void)
{
    memset(&job, 0, sizeof(job));
    job.fail_from = job.stop_at = ITEMS;
    job.caller = pthread_self();
}

static void *
worker_new(void *context)
{
    (void)context;
    for (unsigned left = atomic_load(&job.refused); left > 0;)
        if (atomic_compare_exchange_weak(&job.refused, &left, left - 1))
            return NULL;
    atomic_fetch_add(&job.workers, 1);
    return calloc(1, sizeof(unsigned));
}

static void
worker_free(void *worker)
{
    atomic_fetch_add(&job.freed, 1);
    free(worker);
}

static enum chex_status
work(void *context, void *worker, size_t item, struct chex_error *e)
{
    unsigned *mine = worker;
    sigset_t mask;

    if (mine)
        ++*mine; /* private to a thread: a sanitizer would detect two threads that share it */
    atomic_fetch_add(&job.mistakes, context != &job || item >= ITEMS);
    atomic_fetch_add(&job.seen[item], 1);
    if (!pthread_equal(pthread_self(), job.caller)) {
        /* Only the calling thread handles signals. */
        pthread_sigmask(SIG_SETMASK, NULL, &mask);
        atomic_fetch_add(&job.mistakes, !sigismember(&mask, SIGINT) || !sigismember(&mask, SIGTERM));
    }
    if (job.together && item < job.together_count)
        pthread_barrier_wait(job.together);
    if (item == job.stop_at)
        atomic_store(&job.stop, true);
    if (item >= job.fail_from)
        return error_set(e, CHEX_ERR_LIMIT, "item %zu", item);
    return CHEX_OK;
}

static void
tick(void *context, size_t done)
{
    atomic_fetch_add(&job.mistakes, context != &job || done < job.last_tick || done > ITEMS ||
                                        !pthread_equal(pthread_self(), job.caller));
    job.last_tick = done;
    job.ticks++;
}

static struct parallel
parallel_of(size_t count, unsigned threads)
{
    return (struct parallel){.count = count,
                             .threads = threads,
                             .work = work,
                             .worker_new = worker_new,
                             .worker_free = worker_free,
                             .context = &job,
                             .tick = tick,
                             .stop = &job.stop};
}

/* Requires that every item up to here was seen exactly once. */
static void
expect_seen(size_t up_to)
{
    for (size_t i = 0; i < ITEMS; i++) {
        unsigned seen = atomic_load(&job.seen[i]);

        if (seen > 1 || (i < up_to && seen != 1))
            ck_abort_msg("item %zu was seen %u times", i, seen);
    }
    ck_assert_uint_eq(atomic_load(&job.workers), atomic_load(&job.freed));
    ck_assert_uint_eq(atomic_load(&job.mistakes), 0);
}

TEST_CASE("store", "threads", setup, NULL);

TEST(every_item_is_worked_on_once)
{
    for (size_t i = 0; i < COUNTS; i++) {
        struct parallel p;

        setup();
        p = parallel_of(ITEMS, thread_counts[i]);
        ck_assert_int_eq(parallel_for(&p, &err), CHEX_OK);
        expect_seen(ITEMS);
        ck_assert_uint_eq(p.threads_used, thread_counts[i]);
        ck_assert_uint_eq(atomic_load(&job.workers), thread_counts[i]);
        ck_assert_uint_ge(job.ticks, 1);
        ck_assert_uint_eq(job.last_tick, ITEMS); /* once at the end */
    }
}

TEST(no_more_threads_than_items_are_started)
{
    for (size_t count = 0; count <= 3; count++) {
        for (unsigned threads = 0; threads <= 32; threads += 8) {
            struct parallel p;

            setup();
            p = parallel_of(count, threads);
            ck_assert_int_eq(parallel_for(&p, &err), CHEX_OK);
            expect_seen(count);
            ck_assert_uint_ge(p.threads_used, 1);
            ck_assert_uint_le(p.threads_used, count ? count : 1);
        }
    }
}

TEST(workers_ticks_and_stop_may_be_left_out)
{
    struct parallel p = parallel_of(ITEMS, 3);

    p.worker_new = NULL;
    p.worker_free = NULL;
    p.tick = NULL;
    p.stop = NULL;
    ck_assert_int_eq(parallel_for(&p, &err), CHEX_OK);
    ck_assert_uint_eq(job.ticks, 0);
    expect_seen(ITEMS);
}

/* The first eight items fail at the same time; the error of the first is returned, whichever thread is fastest. */
TEST(the_error_of_the_lowest_item_is_returned)
{
    for (unsigned round = 0; round < 20; round++) {
        pthread_barrier_t together;
        struct parallel p;

        setup();
        ck_assert_int_eq(pthread_barrier_init(&together, NULL, 8), 0);
        job.together = &together;
        job.together_count = 8;
        job.fail_from = 0;
        p = parallel_of(ITEMS, 8);
        ck_assert_int_eq(parallel_for(&p, &err), CHEX_ERR_LIMIT);
        ck_assert_int_eq(err.status, CHEX_ERR_LIMIT);
        ck_assert_str_eq(err.text, "item 0");
        expect_seen(8);
        pthread_barrier_destroy(&together);
    }
}

TEST(a_failure_ends_the_run)
{
    for (size_t i = 0; i < COUNTS; i++) {
        struct parallel p;
        size_t seen = 0;

        setup();
        job.fail_from = 100;
        p = parallel_of(ITEMS, thread_counts[i]);
        ck_assert_int_eq(parallel_for(&p, &err), CHEX_ERR_LIMIT);
        ck_assert_str_eq(err.text, "item 100");
        expect_seen(101);
        for (size_t k = 0; k < ITEMS; k++)
            seen += atomic_load(&job.seen[k]);
        /* A thread starts at most one more item while another one fails. */
        ck_assert_uint_le(seen, 101 + thread_counts[i]);
        ck_assert_uint_eq(job.last_tick, 100);
    }
}

TEST(a_run_stops_on_request)
{
    for (size_t i = 0; i < COUNTS; i++) {
        struct parallel p;

        setup();
        job.stop_at = 200;
        p = parallel_of(ITEMS, thread_counts[i]);
        ck_assert_int_eq(parallel_for(&p, &err), CHEX_ERR_STOPPED);
        ck_assert_str_eq(err.text, "stopped on request");
        expect_seen(201);
        /* A stop before the start: nothing is done. */
        setup();
        atomic_store(&job.stop, true);
        ck_assert_int_eq(parallel_for(&p, &err), CHEX_ERR_STOPPED);
        ck_assert_uint_eq(atomic_load(&job.seen[0]), 0);
        expect_seen(0);
    }
}

TEST(a_request_after_the_last_item_is_too_late)
{
    struct parallel p = parallel_of(ITEMS, 1);

    job.stop_at = ITEMS - 1;
    ck_assert_int_eq(parallel_for(&p, &err), CHEX_OK);
    expect_seen(ITEMS);
}

TEST(a_failure_counts_more_than_a_request)
{
    struct parallel p = parallel_of(ITEMS, 2);

    job.stop_at = job.fail_from = 10;
    ck_assert_int_eq(parallel_for(&p, &err), CHEX_ERR_LIMIT);
}

TEST(without_memory_for_a_worker_the_run_ends)
{
    for (size_t i = 0; i < COUNTS; i++) {
        struct parallel p;

        setup();
        atomic_store(&job.refused, 1);
        p = parallel_of(ITEMS, thread_counts[i]);
        ck_assert_int_eq(parallel_for(&p, &err), CHEX_ERR_MEMORY);
        ck_assert_str_eq(err.text, "out of memory");
        expect_seen(0);
    }
}

/* ---- ticks ---------------------------------------------------------------------------------------------------- */

static enum chex_status
slow_work(void *context, void *worker, size_t item, struct chex_error *e)
{
    const struct timespec pause = {.tv_nsec = 60000000};

    nanosleep(&pause, NULL);
    return work(context, worker, item, e);
}

TEST(the_caller_ticks_while_others_work)
{
    for (unsigned threads = 1; threads <= 2; threads++) {
        double begun = clock_now();
        struct parallel p;

        setup();
        p = parallel_of(6 * threads, threads); /* at least 0.36 s */
        p.work = slow_work;
        ck_assert_int_eq(parallel_for(&p, &err), CHEX_OK);
        expect_seen(6 * threads);
        ck_assert_uint_ge(job.ticks, 2);
        /* The last tick is at the end; all others are at least THREADS_WAIT apart. */
        ck_assert_uint_le(job.ticks, (unsigned)((clock_now() - begun) / THREADS_WAIT) + 1);
    }
}
