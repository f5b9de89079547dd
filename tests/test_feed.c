/*
 * test_feed.c - the bounded place between readers and workers (feed.h), and both in a pipeline (pipeline.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "base/feed.h"
#include "base/pipeline.h"
#include "base/progress.h"
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static struct chex_error err;

/* ---- the feed alone ------------------------------------------------------------------------------------------- */

START_TEST(there_are_no_more_places_than_asked_for)
{
    struct feed *f = feed_new(2, 1000);
    struct feed_place *a = feed_reserve(f, 1), *b = feed_reserve(f, 1);
    double before = progress_clock();

    ck_assert(a && b && a != b);
    ck_assert_ptr_null(feed_reserve(f, 1));
    ck_assert(progress_clock() - before >= FEED_WAIT * 0.9);
    feed_return(f, a);
    ck_assert_ptr_eq(feed_reserve(f, 1), a);
    feed_free(f);
}
END_TEST

START_TEST(bytes_are_bounded_but_for_one_that_is_larger_and_alone)
{
    struct feed *f = feed_new(8, 1000);
    struct feed_place *a = feed_reserve(f, 600), *b;

    ck_assert_ptr_null(feed_reserve(f, 401));
    b = feed_reserve(f, 400);
    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_null(feed_reserve(f, 1));
    feed_return(f, a);
    ck_assert_ptr_null(feed_reserve(f, 1001));
    feed_return(f, b);
    a = feed_reserve(f, UINT64_MAX);
    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_null(feed_reserve(f, 0));
    feed_return(f, a);
    ck_assert_ptr_nonnull(feed_reserve(f, 1000));
    feed_free(f);
}
END_TEST

START_TEST(what_was_reserved_in_vain_is_free_after_put)
{
    struct feed *f = feed_new(8, 1000);
    struct feed_place *a = feed_reserve(f, 1000), *b;

    ck_assert_int_eq(buffer_append(&a->bytes, "0123456789", 10, &err), CHEX_OK);
    feed_put(f, a);
    b = feed_reserve(f, 990);
    ck_assert_ptr_nonnull(b);
    ck_assert_uint_eq(b->bytes.size, 0);
    feed_free(f);
}
END_TEST

START_TEST(images_come_out_as_they_went_in)
{
    struct feed *f = feed_new(8, 1000);
    struct feed_place *p;
    double before;

    for (size_t i = 0; i < 5; i++) {
        p = feed_reserve(f, 10);
        p->item = i;
        chex_fail(&p->why, CHEX_ERR_EMPTY, "none");
        feed_put(f, p);
    }
    for (size_t i = 0; i < 5; i++) {
        p = feed_take(f, true);
        ck_assert_uint_eq(p->item, i);
        feed_return(f, p);
    }
    p = feed_reserve(f, 10);
    ck_assert_int_eq(p->why.status, CHEX_OK); /* nothing is left of the last image */
    ck_assert_ptr_null(feed_take(f, false));
    feed_close(f);
    before = progress_clock();
    ck_assert_ptr_null(feed_take(f, true));
    ck_assert(progress_clock() - before < FEED_WAIT / 2);
    feed_free(f);
}
END_TEST

/* ---- readers and workers -------------------------------------------------------------------------------------- */

enum { ITEMS = 2000, NEVER = ITEMS + 1 };

static struct {
    struct feed *feed;
    atomic_size_t next;
    atomic_uint seen[ITEMS];
    atomic_uint ends, mistakes;
    size_t reader_fails, worker_fails, stops;
    atomic_bool stop;
} job;

struct hand {
    struct feed_place *place;
};

static void
begin(unsigned places)
{
    memset(&job, 0, sizeof(job));
    job.reader_fails = job.worker_fails = job.stops = NEVER;
    job.feed = feed_new(places, 100);
}

static enum chex_status
read_one(void *context, unsigned reader, bool *more, struct chex_error *e)
{
    struct feed_place *p = feed_reserve(job.feed, 30);
    size_t item;

    (void)context;
    (void)reader;
    if (!p)
        return CHEX_OK;
    item = atomic_fetch_add(&job.next, 1);
    *more = item < ITEMS;
    if (item >= ITEMS) {
        feed_return(job.feed, p);
        return CHEX_OK;
    }
    if (item == job.reader_fails) {
        feed_return(job.feed, p);
        return chex_fail(e, CHEX_ERR_READ, "reader at %zu", item);
    }
    p->item = item;
    buffer_append(&p->bytes, "0123456789", item % 10, e);
    feed_put(job.feed, p);
    return CHEX_OK;
}

static void
read_end(void *context)
{
    (void)context;
    atomic_fetch_add(&job.ends, 1);
    feed_close(job.feed);
}

static void *
hand_new(void *context)
{
    (void)context;
    return calloc(1, sizeof(struct hand));
}

static bool
next_one(void *context, void *worker, bool wait, size_t *item)
{
    struct hand *hand = worker;

    (void)context;
    hand->place = feed_take(job.feed, wait);
    if (hand->place)
        *item = hand->place->item;
    return hand->place != NULL;
}

static enum chex_status
work_one(void *context, void *worker, size_t item, struct chex_error *e)
{
    struct hand *hand = worker;

    (void)context;
    atomic_fetch_add(&job.mistakes, hand->place->item != item || hand->place->bytes.size != item % 10);
    atomic_fetch_add(&job.seen[item], 1);
    feed_return(job.feed, hand->place);
    if (item == job.stops)
        atomic_store(&job.stop, true);
    return item == job.worker_fails ? chex_fail(e, CHEX_ERR_LIMIT, "worker at %zu", item) : CHEX_OK;
}

static enum chex_status
run(unsigned readers, unsigned threads)
{
    struct pipeline p = {.count = ITEMS,
                         .threads = threads,
                         .work = work_one,
                         .worker_new = hand_new,
                         .worker_free = free,
                         .stop = &job.stop,
                         .readers = readers,
                         .read = read_one,
                         .read_end = read_end,
                         .next = next_one};
    enum chex_status status = pipeline_run(&p, &err);

    ck_assert_uint_ge(p.threads_used, 1);
    ck_assert_uint_le(p.threads_used, threads);
    ck_assert_uint_eq(atomic_load(&job.mistakes), 0);
    feed_free(job.feed);
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

START_TEST(what_readers_fetch_is_worked_on_once)
{
    for (int r = 0; r < 3; r++) {
        for (int t = 0; t < 3; t++) {
            begin(r == t ? 1 : 6); /* one place for all of them, too */
            ck_assert_int_eq(run(counts[r], counts[t]), CHEX_OK);
            ck_assert_uint_eq(seen_once(), ITEMS);
            ck_assert_uint_eq(atomic_load(&job.ends), 1);
        }
    }
}
END_TEST

START_TEST(a_reader_that_fails_ends_the_run)
{
    for (int r = 0; r < 3; r++) {
        for (int t = 0; t < 3; t++) {
            begin(4);
            job.reader_fails = 321;
            ck_assert_int_eq(run(counts[r], counts[t]), CHEX_ERR_READ);
            ck_assert_str_eq(err.text, "reader at 321");
            ck_assert_uint_lt(seen_once(), ITEMS);
        }
    }
}
END_TEST

START_TEST(a_worker_that_fails_ends_the_readers)
{
    for (int r = 0; r < 3; r++) {
        for (int t = 0; t < 3; t++) {
            begin(4);
            job.worker_fails = 99;
            ck_assert_int_eq(run(counts[r], counts[t]), CHEX_ERR_LIMIT);
            ck_assert_str_eq(err.text, "worker at 99");
            ck_assert_uint_lt(seen_once(), ITEMS);
        }
    }
}
END_TEST

START_TEST(a_stop_ends_readers_and_workers)
{
    for (int r = 0; r < 3; r++) {
        for (int t = 0; t < 3; t++) {
            begin(4);
            job.stops = 99;
            ck_assert_int_eq(run(counts[r], counts[t]), CHEX_ERR_STOPPED);
            ck_assert_uint_lt(seen_once(), ITEMS);
        }
    }
}
END_TEST

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif

#ifndef HAS_SANITIZER
/* From here on no stack of a thread fits into the address space. */
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

START_TEST(where_no_thread_can_be_started_the_caller_does_it_all)
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
                                                : CHEX_ERR_STOPPED);
        ck_assert_uint_eq(seen_once(), fail == 0 ? ITEMS : fail == 1 ? 500 : 501);
    }
}
END_TEST
#endif

void
feed_case(Suite *suite)
{
    TCase *tests = tcase_create("feed");

    tcase_add_test(tests, there_are_no_more_places_than_asked_for);
    tcase_add_test(tests, bytes_are_bounded_but_for_one_that_is_larger_and_alone);
    tcase_add_test(tests, what_was_reserved_in_vain_is_free_after_put);
    tcase_add_test(tests, images_come_out_as_they_went_in);
    tcase_add_test(tests, what_readers_fetch_is_worked_on_once);
    tcase_add_test(tests, a_reader_that_fails_ends_the_run);
    tcase_add_test(tests, a_worker_that_fails_ends_the_readers);
    tcase_add_test(tests, a_stop_ends_readers_and_workers);
#ifndef HAS_SANITIZER
    tcase_add_test(tests, where_no_thread_can_be_started_the_caller_does_it_all);
#endif
    suite_add_tcase(suite, tests);
}
