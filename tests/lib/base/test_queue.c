/*
 * test_queue.c - the bounded queue between reader threads and worker threads (queue.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/clock.h"
#include "base/queue.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static struct chex_error err;

/* ---- the queue ------------------------------------------------------------------------------------------------ */

static struct threads alone;
static atomic_bool stop;

/* A waiting thread sees the stop and returns NULL: there is none within THREADS_WAIT. */
static struct queue *
queue_shared(unsigned consumers, unsigned entries)
{
    alone = (struct threads){.stop = &stop};
    atomic_store(&stop, false);
    threads_init(&alone);
    return queue_new(&alone, consumers, entries, 1000);
}

static struct queue *
queue_alone(unsigned entries)
{
    return queue_shared(1, entries);
}

static void
stop_it(void *context)
{
    (void)context;
    atomic_store(&stop, true);
}

/* Is there no room for this size?  Detected by waiting. */
static bool
is_full(struct queue *q, uint64_t size)
{
    double before = clock_now();
    bool full;

    alone.tick = stop_it;
    alone.ticked = before;
    full = queue_reserve(q, size) == NULL && clock_now() - before >= THREADS_WAIT * 0.9;
    alone.tick = NULL;
    atomic_store(&stop, false);
    return full;
}

static void
free_alone(struct queue *q)
{
    queue_free(q);
    ck_assert_int_eq(threads_end(&alone, &err), CHEX_OK);
}

TEST_CASE("store", "queue", NULL, NULL);

TEST(a_queue_has_no_more_entries_than_requested)
{
    struct queue *q = queue_alone(2);
    struct queue_entry *a = queue_reserve(q, 1), *b = queue_reserve(q, 1);

    ck_assert(a && b && a != b);
    ck_assert(is_full(q, 1));
    queue_return(q, a);
    ck_assert_ptr_eq(queue_reserve(q, 1), a);
    free_alone(q);
}

TEST(several_entries_returned_at_once_make_room_for_as_many)
{
    struct queue *q = queue_alone(2);
    struct queue_entry *both[2] = {queue_reserve(q, 500), queue_reserve(q, 500)};

    queue_return_all(q, both, 2);
    ck_assert_ptr_nonnull(queue_reserve(q, 500));
    ck_assert_ptr_nonnull(queue_reserve(q, 500));
    ck_assert(is_full(q, 0));
    free_alone(q);
}

TEST(bytes_are_bounded_but_for_one_that_is_larger_and_alone)
{
    struct queue *q = queue_alone(8);
    struct queue_entry *a = queue_reserve(q, 600), *b;

    ck_assert(is_full(q, 401));
    b = queue_reserve(q, 400);
    ck_assert_ptr_nonnull(b);
    ck_assert(is_full(q, 1));
    queue_return(q, a);
    ck_assert(is_full(q, 1001));
    queue_return(q, b);
    a = queue_reserve(q, UINT64_MAX);
    ck_assert_ptr_nonnull(a);
    ck_assert(is_full(q, 0));
    queue_return(q, a);
    ck_assert_ptr_nonnull(queue_reserve(q, 1000));
    free_alone(q);
}

TEST(an_unused_reservation_is_free_after_push)
{
    struct queue *q = queue_alone(8);
    struct queue_entry *a = queue_reserve(q, 1000), *b;

    ck_assert_int_eq(buffer_append(&a->bytes, "0123456789", 10, &err), CHEX_OK);
    queue_push(q, a);
    b = queue_reserve(q, 990);
    ck_assert_ptr_nonnull(b);
    ck_assert_uint_eq(b->bytes.size, 0);
    free_alone(q);
}

static struct queue_entry *
pop_one(struct queue *q)
{
    struct queue_entry *e;

    return queue_pop(q, &e, 1) > 0 ? e : NULL;
}

TEST(entries_come_out_as_they_went_in)
{
    struct queue *q = queue_alone(8);
    struct queue_entry *e;

    for (uint32_t i = 0; i < 5; i++) {
        e = queue_reserve(q, 10);
        e->row = i;
        error_set(&e->reason, CHEX_ERR_EMPTY, "none");
        queue_push(q, e);
    }
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert(!queue_is_drained(q));
        e = pop_one(q);
        ck_assert_uint_eq(e->row, i);
        queue_return(q, e);
    }
    e = queue_reserve(q, 10);
    ck_assert_int_eq(e->reason.status, CHEX_OK); /* the previous image has been cleared */
    ck_assert(!queue_is_drained(q));
    queue_close(q);
    ck_assert_ptr_null(pop_one(q)); /* a queue that is not closed waits for ever */
    ck_assert(queue_is_drained(q));
    free_alone(q);
}

/* The last images of a run: one consumer does not take four while the others have none. */
TEST(entries_are_shared_among_consumers)
{
    struct queue *q = queue_shared(4, 16);
    struct queue_entry *e[4];

    for (uint32_t i = 0; i < 14; i++)
        queue_push(q, queue_reserve(q, 10));
    queue_close(q);
    ck_assert_uint_eq(queue_pop(q, e, 4), 3); /* 14 / 4 */
    queue_return_all(q, e, 3);
    for (uint32_t left = 11; left > 1; left -= 2) {
        ck_assert_uint_eq(queue_pop(q, e, 4), 2); /* a pair is faster than two images one after the other */
        queue_return_all(q, e, 2);
    }
    ck_assert_uint_eq(queue_pop(q, e, 4), 1);
    queue_return_all(q, e, 1);
    ck_assert(queue_is_drained(q));
    free_alone(q);
}

TEST(several_entries_come_out_at_once)
{
    struct queue *q = queue_alone(8);
    struct queue_entry *e[4];

    for (uint32_t i = 0; i < 5; i++) {
        e[0] = queue_reserve(q, 10);
        e[0]->row = i;
        queue_push(q, e[0]);
    }
    queue_close(q);
    ck_assert_uint_eq(queue_pop(q, e, 4), 4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(e[i]->row, i);
        queue_return(q, e[i]);
    }
    ck_assert_uint_eq(queue_pop(q, e, 4), 1); /* those that are there; it does not wait for more */
    ck_assert_uint_eq(e[0]->row, 4);
    queue_return(q, e[0]);
    ck_assert_uint_eq(queue_pop(q, e, 4), 0);
    ck_assert(queue_is_drained(q));
    free_alone(q);
}

TEST(a_closed_queue_with_entries_is_not_drained)
{
    struct queue *q = queue_alone(2);

    queue_push(q, queue_reserve(q, 10));
    queue_close(q);
    ck_assert(!queue_is_drained(q));
    atomic_store(&stop, true);
    ck_assert_ptr_null(pop_one(q)); /* stopped: the entries stay */
    ck_assert_ptr_null(queue_reserve(q, 10));
    ck_assert(!queue_is_drained(q));
    free_alone(q);
}

/* ---- readers and workers -------------------------------------------------------------------------------------- */

enum { ITEMS = 2000, NEVER = ITEMS + 1 };

static struct {
    struct threads threads;
    struct queue *queue;
    atomic_size_t next;
    atomic_uint active, seen[ITEMS], mistakes;
    size_t reader_fails, worker_fails, stops;
    bool endless; /* readers continue after ITEMS; only a failure or a stop ends the run */
    atomic_bool stop;
} job;

static void
begin(unsigned entries)
{
    memset(&job, 0, sizeof(job));
    job.reader_fails = job.worker_fails = job.stops = NEVER;
    job.threads.stop = &job.stop;
    threads_init(&job.threads);
    job.queue = queue_new(&job.threads, 2, entries, 100);
}

static enum chex_status
read_items(void *context, uint64_t *item, struct chex_error *e)
{
    struct queue_entry *entry;

    (void)context;
    atomic_fetch_add(&job.active, 1);
    while ((entry = queue_reserve(job.queue, 30)) != NULL) {
        size_t i = atomic_fetch_add(&job.next, 1);

        if (i < ITEMS ? i == job.reader_fails : !job.endless) {
            queue_return(job.queue, entry);
            *item = ITEMS;
            if (i < ITEMS)
                return error_set(e, CHEX_ERR_READ, "reader at %zu", i);
            break;
        }
        entry->row = (uint32_t)i;
        entry->shard = (uint32_t)i / 256;
        entry->index = (uint32_t)i % 256;
        snprintf(entry->path, sizeof(entry->path), "%zu", i);
        buffer_append(&entry->bytes, "0123456789", i % 10, e);
        queue_push(job.queue, entry);
    }
    if (atomic_fetch_sub(&job.active, 1) == 1 && threads_running(&job.threads))
        queue_close(job.queue);
    return CHEX_OK;
}

static enum chex_status
work_on(const struct queue_entry *entry, struct chex_error *e)
{
    size_t i = entry->row;

    if (i >= ITEMS)
        return CHEX_OK;
    atomic_fetch_add(&job.mistakes, entry->shard * 256 + entry->index != i || (size_t)atoi(entry->path) != i ||
                                        entry->bytes.size != i % 10);
    atomic_fetch_add(&job.seen[i], 1);
    if (i == job.stops)
        atomic_store(&job.stop, true);
    return i == job.worker_fails ? error_set(e, CHEX_ERR_LIMIT, "worker at %zu", i) : CHEX_OK;
}

static enum chex_status
work(void *context, uint64_t *item, struct chex_error *e)
{
    enum chex_status status = CHEX_OK;
    struct queue_entry *entry;

    (void)context;
    while (status == CHEX_OK && queue_pop(job.queue, &entry, 1) > 0) {
        *item = entry->row;
        status = work_on(entry, e);
        queue_return(job.queue, entry);
    }
    return status;
}

static void
consume(void *context, struct queue_entry *entry)
{
    struct chex_error e;

    (void)context;
    if (work_on(entry, &e) != CHEX_OK)
        threads_fail(&job.threads, entry->row, &e);
}

/* Runs readers and workers like a conversion. */
static enum chex_status
run(unsigned readers, unsigned threads)
{
    enum chex_status status;

    if (threads_start(&job.threads, readers, read_items, NULL) == 0) {
        queue_consume(job.queue, consume, NULL);
        threads_call(&job.threads, read_items, NULL);
    } else if (threads < 2 || threads_start(&job.threads, threads, work, NULL) == 0) {
        threads_call(&job.threads, work, NULL);
    }
    status = threads_end(&job.threads, &err);
    ck_assert_uint_eq(atomic_load(&job.mistakes), 0);
    ck_assert_int_eq(queue_is_drained(job.queue), status == CHEX_OK && !atomic_load(&job.stop));
    queue_free(job.queue);
    return status;
}

static size_t
seen_once(void)
{
    size_t count = 0;

    for (size_t i = 0; i < ITEMS; i++) {
        ck_assert_uint_le(atomic_load(&job.seen[i]), 1);
        count += atomic_load(&job.seen[i]);
    }
    return count;
}

static const unsigned counts[] = {1, 2, 8};

TEST(each_fetched_entry_is_processed_once)
{
    for (int r = 0; r < 3; r++) {
        for (int t = 0; t < 3; t++) {
            begin(r == t ? 1 : 6); /* one entry for all of them, too */
            ck_assert_int_eq(run(counts[r], counts[t]), CHEX_OK);
            ck_assert_uint_eq(seen_once(), ITEMS);
        }
    }
}

TEST(a_reader_that_fails_ends_the_run)
{
    for (int r = 0; r < 3; r++) {
        for (int t = 0; t < 3; t++) {
            begin(4);
            job.endless = true;
            job.reader_fails = 321;
            ck_assert_int_eq(run(counts[r], counts[t]), CHEX_ERR_READ);
            ck_assert_str_eq(err.text, "reader at 321");
            seen_once();
        }
    }
}

TEST(a_worker_that_fails_ends_the_readers)
{
    for (int r = 0; r < 3; r++) {
        for (int t = 0; t < 3; t++) {
            begin(4);
            job.endless = true;
            job.worker_fails = 99;
            ck_assert_int_eq(run(counts[r], counts[t]), CHEX_ERR_LIMIT);
            ck_assert_str_eq(err.text, "worker at 99");
            seen_once();
        }
    }
}

TEST(a_stop_ends_readers_and_workers)
{
    for (int r = 0; r < 3; r++) {
        for (int t = 0; t < 3; t++) {
            begin(4);
            job.endless = true;
            job.stops = 99;
            ck_assert_int_eq(run(counts[r], counts[t]), CHEX_OK);
            seen_once();
        }
    }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif

#ifndef HAS_SANITIZER
/* Limits the address space, so that no further thread can get a stack. */
static void
forbid_threads(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    struct rlimit limit;

    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%lu", &pages), 1);
    fclose(f);
    limit.rlim_cur = limit.rlim_max = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (3 << 20);
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
}

TEST(where_no_thread_can_be_started_the_caller_does_it_all)
{
    forbid_threads();
    for (int fail = 0; fail < 4; fail++) {
        begin(1);
        job.reader_fails = fail == 1 ? 500 : NEVER;
        job.worker_fails = fail == 2 ? 500 : NEVER;
        job.stops = fail == 3 ? 500 : NEVER;
        ck_assert_int_eq(run(3, 4), fail == 0   ? CHEX_OK
                                    : fail == 1 ? CHEX_ERR_READ
                                    : fail == 2 ? CHEX_ERR_LIMIT
                                                : CHEX_OK);
        ck_assert_uint_eq(seen_once(), fail == 0 ? ITEMS : fail == 1 ? 500 : 501);
    }
}
#endif
