/*
 * test_file_read.c - reads a file at once or in pieces (file.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calls.h"
#include "file_fixture.h"
#include "io/file.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

TEST_CASE("file", "file read", files_setup, files_teardown);

TEST(a_file_is_read_up_to_the_limit)
{
    files_put("a", "0123456789");
    files_put("empty", "");
    ck_assert_int_eq(file_read(files.folder.fd, "a", 10, &files.content, &files.err), CHEX_OK);
    ck_assert_uint_eq(files.content.size, 10);
    ck_assert_int_eq(file_read(files.folder.fd, "empty", 0, &files.content, &files.err), CHEX_OK);
    ck_assert_uint_eq(files.content.size, 0);
    files_expect_error(file_read(files.folder.fd, "a", 9, &files.content, &files.err), CHEX_ERR_LIMIT,
                       "10 bytes are more than the 9 allowed");
    ck_assert_uint_eq(files.content.size, 0);
    ck_assert_int_eq(file_read(files.folder.fd, "a", UINT64_MAX, &files.content, &files.err), CHEX_OK);
}

TEST(only_regular_files_are_read_and_others_refused_without_waiting)
{
    files_expect_error(file_read(files.folder.fd, "missing", 9, &files.content, &files.err), CHEX_ERR_MISSING,
                       "No such file");
    files_expect_error(file_read(files.folder.fd, ".", 9, &files.content, &files.err), CHEX_ERR_NOT_IMAGE,
                       "not a regular file");
    /* Opening a FIFO without a writer would block forever. */
    ck_assert_int_eq(mkfifoat(files.folder.fd, "fifo", 0666), 0);
    files_expect_error(file_read(files.folder.fd, "fifo", 9, &files.content, &files.err), CHEX_ERR_NOT_IMAGE,
                       "not a regular file");
    files_expect_error(file_read(AT_FDCWD, "/dev/zero", 9, &files.content, &files.err), CHEX_ERR_NOT_IMAGE,
                       "not a regular file");
    ck_assert_int_eq(symlinkat("loop", files.folder.fd, "loop"), 0);
    files_expect_error(file_read(files.folder.fd, "loop", 9, &files.content, &files.err), CHEX_ERR_MISSING,
                       "symbolic links");
}

/* Files in /proc have size 0 but have content, like a file that grew between stat and read. */
TEST(more_bytes_than_the_size_said_are_noticed)
{
    files_expect_error(file_read(AT_FDCWD, "/proc/self/status", 1 << 20, &files.content, &files.err), CHEX_ERR_READ,
                       "changed while it was read");
    ck_assert_uint_eq(files.content.size, 0);
}

static atomic_bool stop_growing;

static void *
grow(void *argument)
{
    int fd = *(int *)argument;

    while (!atomic_load(&stop_growing))
        if (write(fd, "aaaaaaaa", 8) != 8)
            break;
    return NULL;
}

TEST(a_growing_file_is_read_completely_or_not_at_all)
{
    int fd = openat(files.folder.fd, "log", O_CREAT | O_WRONLY | O_APPEND, 0666);
    unsigned changed = 0, tries;
    pthread_t thread;

    files_put("before", "");
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, grow, &fd), 0);
    for (tries = 0; tries < 20000 && changed == 0; tries++) {
        enum chex_status status = file_read(files.folder.fd, "log", 64 << 20, &files.content, &files.err);

        if (status == CHEX_ERR_READ)
            changed++;
        else
            ck_assert_int_eq(status, CHEX_OK);
        ck_assert_uint_eq(files.content.size % 8, 0);
    }
    atomic_store(&stop_growing, true);
    pthread_join(thread, NULL);
    close(fd);
    ck_assert_uint_eq(changed, 1);
}

/* Reads a file into a buffer that has `memory` bytes.  `stats`: the calls of fstatat() that this takes. */
static void
expect_read(const char *name, const char *content, size_t memory, unsigned stats)
{
    for (unsigned nth = stats; nth <= stats + 1; nth++) {
        struct buffer b = {0};
        enum chex_status status;

        if (memory > 0)
            ck_assert_int_eq(buffer_reserve(&b, memory, &files.err), CHEX_OK);
        calls_fail(CALL_STAT, nth, true, ENXIO);
        status = file_read(files.folder.fd, name, 4096, &b, &files.err);
        ck_assert_uint_eq(calls_end(), nth == stats);
        ck_assert_int_eq(status, nth == stats ? CHEX_ERR_READ : CHEX_OK);
        ck_assert_uint_eq(b.size, nth == stats ? 0 : strlen(content));
        ck_assert(b.size == 0 || memcmp(b.data, content, b.size) == 0);
        buffer_release(&b);
    }
}

/* Its state before the reading is not needed if it was not changed for a while, and fits the memory of the buffer. */
TEST(a_file_that_is_not_young_is_read_with_one_stat)
{
    static const struct timespec long_ago[2] = {{1000000000, 0}, {1000000000, 0}};

    files_put("a", "0123456789");
    calls_age(3600);
    expect_read("a", "0123456789", 0, 2);
    expect_read("a", "0123456789", 9, 2);
    expect_read("a", "0123456789", 10, 1);
    expect_read("a", "0123456789", 100, 1);
    calls_age(30);
    expect_read("a", "0123456789", 100, 2);
    calls_age(0);
    ck_assert_int_eq(utimensat(files.folder.fd, "a", long_ago, 0), 0);
    expect_read("a", "0123456789", 100, 2); /* someone has just set its time */
}

TEST(the_checks_of_a_file_that_is_not_young_are_the_same)
{
    files_put("a", "0123456789");
    ck_assert_int_eq(file_read(files.folder.fd, "a", 10, &files.content, &files.err), CHEX_OK);
    calls_age(3600);
    files_expect_error(file_read(files.folder.fd, "a", 9, &files.content, &files.err), CHEX_ERR_LIMIT,
                       "10 bytes are more than the 9 allowed");
    ck_assert_uint_eq(files.content.size, 0);
    files_expect_error(file_read(AT_FDCWD, "/proc/self/status", 1 << 20, &files.content, &files.err), CHEX_ERR_READ,
                       "changed while it was read");
    files_expect_error(file_read(files.folder.fd, ".", 9, &files.content, &files.err), CHEX_ERR_NOT_IMAGE,
                       "not a regular file");
    files_expect_error(file_read(AT_FDCWD, "/dev/zero", 9, &files.content, &files.err), CHEX_ERR_NOT_IMAGE,
                       "not a regular file");
    files_put("empty", "");
    ck_assert_int_eq(file_read(files.folder.fd, "empty", 9, &files.content, &files.err), CHEX_OK);
    ck_assert_uint_eq(files.content.size, 0);
    calls_fail(CALL_READ, 1, true, EIO);
    files_expect_error(file_read(files.folder.fd, "a", 10, &files.content, &files.err), CHEX_ERR_READ,
                       "read error at byte 0");
    ck_assert_uint_eq(calls_end(), 4); /* once, and three times again */
    calls_age(0);
}

TEST(a_piece_is_read_up_to_the_end)
{
    uint8_t data[16];
    uint64_t size;
    size_t got;
    int fd;

    files_put("a", "0123456789");
    ck_assert_int_eq(file_open(files.folder.fd, "a", &fd, &size, &files.err), CHEX_OK);
    ck_assert_uint_eq(size, 10);
    ck_assert_int_eq(file_pread(fd, 7, data, sizeof(data), &got, &files.err), CHEX_OK);
    ck_assert_uint_eq(got, 3);
    ck_assert_mem_eq(data, "789", 3);
    ck_assert_int_eq(file_pread(fd, 100, data, sizeof(data), &got, &files.err), CHEX_OK);
    ck_assert_uint_eq(got, 0);
    close(fd);
    files_expect_error(file_pread(fd, 5, data, 1, &got, &files.err), CHEX_ERR_READ,
                       "read error at byte 5: Bad file descriptor");
}

/* Calls on the output are only interrupted. */
TEST(an_interrupted_call_is_not_an_error)
{
    static const enum call kinds[] = {CALL_OPEN, CALL_SYNC, CALL_WRITE, CALL_STAT, CALL_READ};

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        unsigned failed = 1;

        for (unsigned n = 1; failed > 0; n++) {
            struct buffer b = {0};

            calls_fail(kinds[k], n, false, EINTR);
            ck_assert_msg(safe_file_put(&files.folder, "small", "text", 4, &files.err) == CHEX_OK, "%s",
                          files.err.text);
            ck_assert_msg(file_read(files.folder.fd, "small", 9, &b, &files.err) == CHEX_OK, "%s", files.err.text);
            failed = calls_end();
            ck_assert_uint_eq(b.size, 4);
            ck_assert(n > 1 || failed > 0);
            buffer_release(&b);
        }
    }
}

/* A call that is interrupted forever must not keep the process from ending. */
TEST(a_call_that_is_interrupted_for_ever_ends)
{
    static const enum call kinds[] = {CALL_OPEN, CALL_SYNC, CALL_STAT, CALL_READ};
    struct buffer b = {0};

    ck_assert_int_eq(safe_file_put(&files.folder, "there", "text", 4, &files.err), CHEX_OK);
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        enum chex_status status;

        calls_fail(kinds[k], 1, true, EINTR);
        status = kinds[k] == CALL_SYNC ? safe_file_put(&files.folder, "small", "text", 4, &files.err)
                                       : file_read(files.folder.fd, "there", 9, &b, &files.err);
        ck_assert_uint_gt(calls_end(), 1000);
        ck_assert_int_eq(status, kinds[k] == CALL_SYNC ? CHEX_ERR_WRITE : CHEX_ERR_READ);
        ck_assert_msg(strstr(files.err.text, "Interrupted system call"), "%s", files.err.text);
    }
    buffer_release(&b);
}

TEST(an_input_that_cannot_be_opened_for_a_moment_is_read)
{
    static const int errors[] = {EIO, ESTALE, ETIMEDOUT, EAGAIN};
    struct buffer b = {0};

    ck_assert_int_eq(safe_file_put(&files.folder, "small", "text", 4, &files.err), CHEX_OK);
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        calls_fail(CALL_OPEN, 1, false, errors[i]);
        ck_assert_msg(file_read(files.folder.fd, "small", 9, &b, &files.err) == CHEX_OK, "%s", files.err.text);
        ck_assert_uint_eq(calls_end(), 1);
        calls_fail(CALL_OPEN, 1, true, errors[i]);
        files_expect_error(file_read(files.folder.fd, "small", 9, &b, &files.err), CHEX_ERR_READ, "cannot open");
        ck_assert_uint_eq(calls_end(), 4);
    }
    buffer_release(&b);
}

/* The page at address 0 is not mapped, so reading it through /proc/self/mem gives EIO, like a bad block. */
TEST(an_input_output_error_is_tried_again_and_then_reported)
{
    struct timespec a, b;
    uint8_t data[16];
    size_t got = 1;
    int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    clock_gettime(CLOCK_MONOTONIC, &a);
    files_expect_error(file_pread(fd, 0, data, sizeof(data), &got, &files.err), CHEX_ERR_READ, "read error at byte 0");
    clock_gettime(CLOCK_MONOTONIC, &b);
    ck_assert_uint_eq(got, 0);
    /* 20 + 80 + 320 ms, file.c */
    ck_assert_double_ge((double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9, 0.419);
    close(fd);
}
