/*
 * unit.h - definition of unit tests
 *
 * unit.c runs all tests that are linked with it.  The name of a test is a sentence, and an expected value cites its
 * source.  No test here takes longer than a second.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_UNIT_H
#define CHEX_TESTS_UNIT_H

#include <check.h>
#include <stdbool.h>

/*
 * Check writes the position of every passed assertion to a pipe, so that it can name the last one before a crash.  In a
 * loop over pixels these system calls take most of a test's time.  So an assertion is only reported if it is not the
 * one that this file and thread reported last.
 */
static inline void
unit_mark(const char *file, int line)
{
    static _Thread_local int last;

    if (line == last)
        return;
    last = line;
    _mark_point(file, line);
}
#define _mark_point(file, line) unit_mark(file, line)

/*
 * Tests register themselves:
 *
 *     TEST_CASE("store", "queue", setup, teardown);   suite and test case of the tests that follow in this file; the
 *                                                     functions run before and after each test, or are NULL
 *     TEST(a_closed_queue_is_drained) { ... }
 *     LOOP_TEST(each_form_is_decoded, 0, FORMS) { ... }           once for each _i from 0 to FORMS - 1
 *     SIGNAL_TEST(an_endless_wait_is_caught, SIGABRT) { ... }     the process must end with this signal
 */
#define TEST(name)                   UNIT_TEST(name, 0, 0, 1)
#define LOOP_TEST(name, first, end)  UNIT_TEST(name, 0, first, end)
#define SIGNAL_TEST(name, ends_with) UNIT_TEST(name, ends_with, 0, 1)

#define TEST_CASE(suite_name, case_name, before, after) TEST_CASE_IF(true, suite_name, case_name, before, after)
/* If the condition is false, these tests are left out. */
#define TEST_CASE_IF(condition, suite_name, case_name, before, after)                                                \
    __attribute__((constructor)) static void UNIT_JOIN(unit_case_, __LINE__)(void)                                   \
    {                                                                                                                \
        static struct unit_item item = {.file = __FILE__, .line = __LINE__, .suite = suite_name, .name = case_name}; \
                                                                                                                     \
        item.setup = before;                                                                                         \
        item.teardown = after;                                                                                       \
        item.left_out = !(condition);                                                                                \
        unit_add(&item);                                                                                             \
    }                                                                                                                \
    struct unit_item /* for the semicolon */

#define UNIT_TEST(test_name, ends_with, first, beyond)                                            \
    static const TTest *test_name;                                                                \
    __attribute__((constructor)) static void test_name##_add(void)                                \
    {                                                                                             \
        static struct unit_item item = {.file = __FILE__, .line = __LINE__, .signal = ends_with}; \
                                                                                                  \
        item.test = test_name;                                                                    \
        item.from = first;                                                                        \
        item.end = beyond;                                                                        \
        unit_add(&item);                                                                          \
    }                                                                                             \
    START_TEST(test_name)
#define UNIT_JOIN(a, b)  UNIT_JOIN_(a, b)
#define UNIT_JOIN_(a, b) a##b

/* A test case, or a test. */
struct unit_item {
    const char *file;
    int line;
    const char *suite, *name; /* of a test case; NULL for a test */
    SFun setup, teardown;
    bool left_out;
    const TTest *test;
    int signal, from, end;
    struct unit_item *next;
};
void unit_add(struct unit_item *item);

/*
 * Seconds after which a test counts as hung: CK_DEFAULT_TIMEOUT of Check, for the main functions.  It is more than ten
 * times the slowest test on a quiet machine with a sanitizer, because the machine may be busy.
 */
#define UNIT_TIMEOUT "1200"

/*
 * Writes a file with this content in the test's own folder, which is removed with it; returns its path (static, until
 * the next call).
 */
const char *unit_file(const char *name, const void *data, size_t size);
/* Returns the folder of this test process; made on first use, removed at exit. */
const char *unit_folder(void);
/* Returns the number of files in a folder. */
unsigned unit_count_files(const char *path);

#endif
