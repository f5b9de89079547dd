/*
 * test_file.c - writing a file safely and reading one whole (file.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "calls.h"
#include "cases.h"
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- helpers -------------------------------------------------------------------------------------------------- */

static char base[512];
static struct folder folder;
static struct chex_error err;
static struct buffer content;

/* Each test has a folder of its own. */
static void
setup(void)
{
    static unsigned count;

    snprintf(base, sizeof(base), "%s/file-%ld-%u", unit_folder(), (long)getpid(), count++);
    ck_assert_msg(folder_open(base, true, &folder, &err) == CHEX_OK, "%s", err.text);
}

static void
teardown(void)
{
    folder_close(&folder);
    buffer_release(&content);
}

static bool
is_there(const char *name)
{
    struct stat st;

    return fstatat(folder.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static off_t
size_of(const char *name)
{
    struct stat st;

    ck_assert_int_eq(fstatat(folder.fd, name, &st, 0), 0);
    return st.st_size;
}

static void
expect_content(const char *name, const char *wanted)
{
    ck_assert_msg(file_read(folder.fd, name, 1 << 20, &content, &err) == CHEX_OK, "%s: %s", name, err.text);
    ck_assert_uint_eq(content.size, strlen(wanted));
    ck_assert_mem_eq(content.data, wanted, content.size);
}

static void
put(const char *name, const char *text)
{
    int fd = openat(folder.fd, name, O_CREAT | O_EXCL | O_WRONLY, 0666);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* ".NAME.tmp.PID": file.h */
static const char *
temporary_of(const char *name)
{
    static char text[300];

    snprintf(text, sizeof(text), ".%s.tmp.%ld", name, (long)getpid());
    return text;
}

static struct safe_file *
create(const char *name, enum safe_file_kind kind, uint64_t size)
{
    struct safe_file *f;

    ck_assert_msg(safe_file_create(&folder, name, kind, size, &f, &err) == CHEX_OK, "%s", err.text);
    return f;
}

static void
expect_error(enum chex_status got, enum chex_status wanted, const char *text)
{
    ck_assert_int_eq(got, wanted);
    ck_assert_int_eq(err.status, wanted);
    ck_assert_msg(strstr(err.text, text), "\"%s\" is not in \"%s\"", text, err.text);
}

/* ---- folders -------------------------------------------------------------------------------------------------- */

START_TEST(a_folder_is_made_where_its_parent_is)
{
    char path[600];
    struct folder f;

    snprintf(path, sizeof(path), "%s/new", base);
    expect_error(folder_open(path, false, &f, &err), CHEX_ERR_MISSING, "No such file");
    ck_assert(f.fd == -1 && !f.path);
    ck_assert_int_eq(folder_open(path, true, &f, &err), CHEX_OK);
    folder_close(&f);
    folder_close(&f);
    ck_assert_int_eq(folder_open(path, true, &f, &err), CHEX_OK); /* it is there now */
    ck_assert_int_eq(folder_sync(&f, &err), CHEX_OK);
    folder_close(&f);
    snprintf(path, sizeof(path), "%s/no/new", base);
    expect_error(folder_open(path, true, &f, &err), CHEX_ERR_WRITE, "cannot create the folder");
    put("file", "");
    snprintf(path, sizeof(path), "%s/file", base);
    expect_error(folder_open(path, true, &f, &err), CHEX_ERR_WRITE, "cannot open the folder");
    f = (struct folder){0};
    folder_close(&f); /* a zeroed one: fd 0 is not closed */
    ck_assert_int_ge(fcntl(0, F_GETFD), 0);
}
END_TEST

/* Else a power loss could take a whole data set with it. */
START_TEST(the_name_of_a_new_folder_is_synced)
{
    const char *tails[] = {"/synced", "/synced///"};
    char path[600];
    struct folder f;
    enum chex_status status;

    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s%s", base, tails[i]);
        calls_fail(CALL_SYNC, 1, true, EIO);
        status = folder_open(path, true, &f, &err);
        ck_assert_uint_eq(calls_end(), 1);
        expect_error(status, CHEX_ERR_WRITE, "cannot create the folder");
        calls_fail(CALL_SYNC, 1, true, EINVAL);
        status = folder_open(path, true, &f, &err);
        ck_assert_uint_eq(calls_end(), 1);
        ck_assert_int_eq(status, CHEX_OK);
        folder_close(&f);
    }
    calls_fail(CALL_SYNC, 1, true, EIO);
    status = folder_open(path, false, &f, &err);
    ck_assert_uint_eq(calls_end(), 0);
    ck_assert_int_eq(status, CHEX_OK);
    folder_close(&f);
}
END_TEST

START_TEST(a_file_that_is_not_there_is_removed_already)
{
    put("a", "x");
    ck_assert_int_eq(folder_remove(&folder, "a", &err), CHEX_OK);
    ck_assert(!is_there("a"));
    ck_assert_int_eq(folder_remove(&folder, "a", &err), CHEX_OK);
    ck_assert_int_eq(mkdirat(folder.fd, "d", 0777), 0);
    expect_error(folder_remove(&folder, "d", &err), CHEX_ERR_WRITE, "cannot remove");
    ck_assert(is_there("d"));
}
END_TEST

START_TEST(a_folder_that_is_moved_meanwhile_stays_the_same)
{
    char moved[600];
    struct safe_file *f = create("a", SAFE_FILE_NEW, 0);

    snprintf(moved, sizeof(moved), "%s-moved", base);
    ck_assert_int_eq(rename(base, moved), 0);
    ck_assert_int_eq(safe_file_write(f, "x", 1, &err), CHEX_OK);
    ck_assert_int_eq(safe_file_commit(f, true, &err), CHEX_OK);
    expect_content("a", "x");
}
END_TEST

/* ---- new files ------------------------------------------------------------------------------------------------ */

START_TEST(a_new_file_has_its_name_only_after_commit)
{
    struct safe_file *f = create("a", SAFE_FILE_NEW, 0);

    ck_assert_int_eq(safe_file_write(f, "one ", 4, &err), CHEX_OK);
    ck_assert_int_eq(safe_file_write(f, "", 0, &err), CHEX_OK);
    ck_assert_int_eq(safe_file_write(f, "two", 3, &err), CHEX_OK);
    ck_assert_int_eq(safe_file_pwrite(f, 1, "N", 1, &err), CHEX_OK);
    ck_assert(is_there(temporary_of("a")) && !is_there("a"));
    ck_assert_int_eq(safe_file_commit(f, true, &err), CHEX_OK);
    ck_assert(!is_there(temporary_of("a")));
    expect_content("a", "oNe two");
}
END_TEST

START_TEST(an_abandoned_new_file_leaves_nothing)
{
    struct safe_file *f = create("a", SAFE_FILE_NEW, 0);

    ck_assert_int_eq(safe_file_write(f, "x", 1, &err), CHEX_OK);
    safe_file_free(f);
    ck_assert(!is_there(temporary_of("a")) && !is_there("a"));
    safe_file_free(NULL);
}
END_TEST

START_TEST(a_file_is_replaced_as_a_whole)
{
    struct safe_file *f;

    put("a", "the old text");
    f = create("a", SAFE_FILE_NEW, 0);
    ck_assert_int_eq(safe_file_write(f, "new", 3, &err), CHEX_OK);
    expect_content("a", "the old text");
    ck_assert_int_eq(safe_file_commit(f, false, &err), CHEX_OK);
    expect_content("a", "new");
    ck_assert_int_eq(safe_file_put(&folder, "a", "third", 5, &err), CHEX_OK);
    expect_content("a", "third");
    ck_assert_int_eq(safe_file_put(&folder, "empty", NULL, 0, &err), CHEX_OK);
    expect_content("empty", "");
}
END_TEST

/* A process of this number on another host, writing to the same folder over a network. */
START_TEST(the_temporary_file_of_a_rival_is_neither_overwritten_nor_removed)
{
    struct safe_file *f;

    put(temporary_of("a"), "the rival's");
    ck_assert_int_eq(safe_file_create(&folder, "a", SAFE_FILE_NEW, 0, &f, &err), CHEX_OK);
    ck_assert_int_eq(safe_file_write(f, "ours", 4, &err), CHEX_OK);
    expect_content(temporary_of("a"), "the rival's");
    ck_assert_int_eq(safe_file_commit(f, true, &err), CHEX_OK);
    expect_content("a", "ours");
    expect_content(temporary_of("a"), "the rival's");
}
END_TEST

START_TEST(a_new_file_that_cannot_be_renamed_is_removed)
{
    struct safe_file *f = create("d", SAFE_FILE_NEW, 0);

    ck_assert_int_eq(mkdirat(folder.fd, "d", 0777), 0);
    expect_error(safe_file_commit(f, true, &err), CHEX_ERR_WRITE, "cannot rename to");
    ck_assert(!is_there(temporary_of("d")));
}
END_TEST

START_TEST(a_folder_that_takes_no_files_is_a_write_error)
{
    struct folder proc;
    struct safe_file *f;

    /* Nobody makes files there, not even root. */
    ck_assert_int_eq(folder_open("/proc/self", false, &proc, &err), CHEX_OK);
    expect_error(safe_file_create(&proc, "a", SAFE_FILE_NEW, 0, &f, &err), CHEX_ERR_WRITE,
                 "cannot create '/proc/self/a'");
    folder_close(&proc);
}
END_TEST

/* ---- parts ---------------------------------------------------------------------------------------------------- */

START_TEST(a_part_survives_and_goes_on)
{
    struct safe_file *f = create("s", SAFE_FILE_PARTIAL, 8);
    uint8_t back[16];
    size_t got;

    ck_assert_int_eq(safe_file_pwrite(f, 4, "late", 4, &err), CHEX_OK);
    safe_file_free(f);
    ck_assert(is_there(".s.part") && !is_there("s"));
    f = create("s", SAFE_FILE_PARTIAL, 8);
    ck_assert_int_eq(safe_file_pwrite(f, 0, "soon", 4, &err), CHEX_OK);
    ck_assert_int_eq(safe_file_pread(f, 0, back, sizeof(back), &got, &err), CHEX_OK);
    ck_assert_uint_eq(got, 8);
    ck_assert_mem_eq(back, "soonlate", 8);
    ck_assert_int_eq(safe_file_commit(f, true, &err), CHEX_OK);
    ck_assert(!is_there(".s.part"));
    expect_content("s", "soonlate");
}
END_TEST

/* Whatever a damaged file system or a copy left behind it would end up in the shard, outside its checksum. */
START_TEST(a_part_has_its_size_from_the_start)
{
    struct safe_file *f = create("s", SAFE_FILE_PARTIAL, 100000);

    ck_assert_int_eq(size_of(".s.part"), 100000);
    safe_file_free(f);
    put(".t.part", "0123456789");
    f = create("t", SAFE_FILE_PARTIAL, 4);
    ck_assert_int_eq(safe_file_commit(f, true, &err), CHEX_OK);
    expect_content("t", "0123");
}
END_TEST

START_TEST(a_part_that_cannot_be_renamed_stays)
{
    struct safe_file *f = create("d", SAFE_FILE_PARTIAL, 4);

    ck_assert_int_eq(mkdirat(folder.fd, "d", 0777), 0);
    expect_error(safe_file_commit(f, true, &err), CHEX_ERR_WRITE, "cannot rename to");
    ck_assert(is_there(".d.part"));
}
END_TEST

START_TEST(a_link_in_the_place_of_a_part_is_not_followed)
{
    struct safe_file *f;

    put("precious", "do not touch");
    ck_assert_int_eq(symlinkat("precious", folder.fd, ".s.part"), 0);
    expect_error(safe_file_create(&folder, "s", SAFE_FILE_PARTIAL, 4, &f, &err), CHEX_ERR_WRITE, "cannot create");
    expect_content("precious", "do not touch");
    ck_assert_int_eq(symlinkat("precious", folder.fd, temporary_of("n")), 0);
    ck_assert_int_eq(safe_file_put(&folder, "n", "new", 3, &err), CHEX_OK);
    expect_content("n", "new");
    expect_content("precious", "do not touch");
}
END_TEST

/* ---- limits --------------------------------------------------------------------------------------------------- */

static void
limit_file_size(rlim_t bytes)
{
    const struct rlimit limit = {bytes, RLIM_INFINITY};

    signal(SIGXFSZ, SIG_IGN); /* as the tools do */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(a_file_size_limit_is_a_write_error_and_leaves_nothing)
{
    static const char large[20000];
    struct safe_file *f;

    limit_file_size(10000);
    expect_error(safe_file_put(&folder, "a", large, sizeof(large), &err), CHEX_ERR_WRITE, "File too large");
    ck_assert(!is_there("a") && !is_there(temporary_of("a")));
    f = create("b", SAFE_FILE_NEW, 0);
    ck_assert_int_eq(safe_file_write(f, large, 9000, &err), CHEX_OK);
    expect_error(safe_file_write(f, large, 9000, &err), CHEX_ERR_WRITE, "cannot write");
    safe_file_free(f);
    ck_assert(!is_there("b") && !is_there(temporary_of("b")));
    limit_file_size(RLIM_INFINITY);
}
END_TEST

START_TEST(a_part_that_is_too_large_is_refused_at_once)
{
    struct safe_file *f;

    limit_file_size(10000);
    expect_error(safe_file_create(&folder, "s", SAFE_FILE_PARTIAL, 20000, &f, &err), CHEX_ERR_WRITE, "File too large");
    ck_assert_ptr_null(f);
    ck_assert(!is_there("s"));
    limit_file_size(RLIM_INFINITY);
}
END_TEST

/* ---- reading -------------------------------------------------------------------------------------------------- */

START_TEST(a_file_is_read_up_to_the_limit)
{
    put("a", "0123456789");
    put("empty", "");
    ck_assert_int_eq(file_read(folder.fd, "a", 10, &content, &err), CHEX_OK);
    ck_assert_uint_eq(content.size, 10);
    ck_assert_int_eq(file_read(folder.fd, "empty", 0, &content, &err), CHEX_OK);
    ck_assert_uint_eq(content.size, 0);
    expect_error(file_read(folder.fd, "a", 9, &content, &err), CHEX_ERR_LIMIT, "10 bytes are more than the 9 allowed");
    ck_assert_uint_eq(content.size, 0);
    ck_assert_int_eq(file_read(folder.fd, "a", UINT64_MAX, &content, &err), CHEX_OK);
}
END_TEST

START_TEST(what_is_no_regular_file_is_refused_without_waiting)
{
    expect_error(file_read(folder.fd, "missing", 9, &content, &err), CHEX_ERR_MISSING, "No such file");
    expect_error(file_read(folder.fd, ".", 9, &content, &err), CHEX_ERR_NOT_IMAGE, "not a regular file");
    /* A FIFO without a writer would block an open for ever. */
    ck_assert_int_eq(mkfifoat(folder.fd, "fifo", 0666), 0);
    expect_error(file_read(folder.fd, "fifo", 9, &content, &err), CHEX_ERR_NOT_IMAGE, "not a regular file");
    expect_error(file_read(AT_FDCWD, "/dev/zero", 9, &content, &err), CHEX_ERR_NOT_IMAGE, "not a regular file");
    ck_assert_int_eq(symlinkat("loop", folder.fd, "loop"), 0);
    expect_error(file_read(folder.fd, "loop", 9, &content, &err), CHEX_ERR_MISSING, "symbolic links");
}
END_TEST

/* Files in /proc have size 0 and content all the same: like a file that grew between stat and read. */
START_TEST(more_bytes_than_the_size_said_are_noticed)
{
    expect_error(file_read(AT_FDCWD, "/proc/self/status", 1 << 20, &content, &err), CHEX_ERR_READ,
                 "changed while it was read");
    ck_assert_uint_eq(content.size, 0);
}
END_TEST

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

START_TEST(a_file_that_grows_is_read_whole_or_not_at_all)
{
    int fd = openat(folder.fd, "log", O_CREAT | O_WRONLY | O_APPEND, 0666);
    unsigned changed = 0, tries;
    pthread_t thread;

    put("before", "");
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, grow, &fd), 0);
    for (tries = 0; tries < 20000 && changed == 0; tries++) {
        enum chex_status status = file_read(folder.fd, "log", 64 << 20, &content, &err);

        if (status == CHEX_ERR_READ)
            changed++;
        else
            ck_assert_int_eq(status, CHEX_OK);
        ck_assert_uint_eq(content.size % 8, 0);
    }
    atomic_store(&stop_growing, true);
    pthread_join(thread, NULL);
    close(fd);
    ck_assert_uint_eq(changed, 1);
}
END_TEST

START_TEST(a_piece_is_read_up_to_the_end)
{
    uint8_t data[16];
    uint64_t size;
    size_t got;
    int fd;

    put("a", "0123456789");
    ck_assert_int_eq(file_open(folder.fd, "a", &fd, &size, &err), CHEX_OK);
    ck_assert_uint_eq(size, 10);
    ck_assert_int_eq(file_pread(fd, 7, data, sizeof(data), &got, &err), CHEX_OK);
    ck_assert_uint_eq(got, 3);
    ck_assert_mem_eq(data, "789", 3);
    ck_assert_int_eq(file_pread(fd, 100, data, sizeof(data), &got, &err), CHEX_OK);
    ck_assert_uint_eq(got, 0);
    close(fd);
    expect_error(file_pread(fd, 5, data, 1, &got, &err), CHEX_ERR_READ, "read error at byte 5: Bad file descriptor");
}
END_TEST

/* Of the output: an interruption alone. */
START_TEST(an_interrupted_call_is_no_failure)
{
    static const enum call kinds[] = {CALL_OPEN, CALL_SYNC, CALL_WRITE, CALL_STAT, CALL_READ};

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        unsigned failed = 1;

        for (unsigned n = 1; failed > 0; n++) {
            struct buffer b = {0};

            calls_fail(kinds[k], n, false, EINTR);
            ck_assert_msg(safe_file_put(&folder, "small", "text", 4, &err) == CHEX_OK, "%s", err.text);
            ck_assert_msg(file_read(folder.fd, "small", 9, &b, &err) == CHEX_OK, "%s", err.text);
            failed = calls_end();
            ck_assert_uint_eq(b.size, 4);
            ck_assert(n > 1 || failed > 0);
            buffer_release(&b);
        }
    }
}
END_TEST

/* A call that is interrupted for ever must not keep the process from its end. */
START_TEST(a_call_that_is_interrupted_for_ever_ends)
{
    static const enum call kinds[] = {CALL_OPEN, CALL_SYNC, CALL_STAT, CALL_READ};
    struct buffer b = {0};

    ck_assert_int_eq(safe_file_put(&folder, "there", "text", 4, &err), CHEX_OK);
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        enum chex_status status;

        calls_fail(kinds[k], 1, true, EINTR);
        status = kinds[k] == CALL_SYNC ? safe_file_put(&folder, "small", "text", 4, &err)
                                       : file_read(folder.fd, "there", 9, &b, &err);
        ck_assert_uint_gt(calls_end(), 1000);
        ck_assert_int_eq(status, kinds[k] == CALL_SYNC ? CHEX_ERR_WRITE : CHEX_ERR_READ);
        ck_assert_msg(strstr(err.text, "Interrupted system call"), "%s", err.text);
    }
    buffer_release(&b);
}
END_TEST

START_TEST(an_input_that_cannot_be_opened_for_a_moment_is_read)
{
    static const int errors[] = {EIO, ESTALE, ETIMEDOUT, EAGAIN};
    struct buffer b = {0};

    ck_assert_int_eq(safe_file_put(&folder, "small", "text", 4, &err), CHEX_OK);
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        calls_fail(CALL_OPEN, 1, false, errors[i]);
        ck_assert_msg(file_read(folder.fd, "small", 9, &b, &err) == CHEX_OK, "%s", err.text);
        ck_assert_uint_eq(calls_end(), 1);
        calls_fail(CALL_OPEN, 1, true, errors[i]);
        expect_error(file_read(folder.fd, "small", 9, &b, &err), CHEX_ERR_READ, "cannot open");
        ck_assert_uint_eq(calls_end(), 4);
    }
    buffer_release(&b);
}
END_TEST

/* The page at address 0 is not mapped: reading it through /proc/self/mem is EIO, like a bad block. */
START_TEST(an_input_output_error_is_tried_again_and_then_reported)
{
    struct timespec a, b;
    uint8_t data[16];
    size_t got = 1;
    int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    clock_gettime(CLOCK_MONOTONIC, &a);
    expect_error(file_pread(fd, 0, data, sizeof(data), &got, &err), CHEX_ERR_READ, "read error at byte 0");
    clock_gettime(CLOCK_MONOTONIC, &b);
    ck_assert_uint_eq(got, 0);
    /* 20 + 80 + 320 ms, file.c */
    ck_assert_double_ge((double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9, 0.419);
    close(fd);
}
END_TEST

Suite *
file_suite(void)
{
    Suite *suite = suite_create("file");
    TCase *file = tcase_create("file");

    tcase_add_checked_fixture(file, setup, teardown);
    tcase_add_test(file, a_folder_is_made_where_its_parent_is);
    tcase_add_test(file, the_name_of_a_new_folder_is_synced);
    tcase_add_test(file, a_file_that_is_not_there_is_removed_already);
    tcase_add_test(file, a_folder_that_is_moved_meanwhile_stays_the_same);
    tcase_add_test(file, a_new_file_has_its_name_only_after_commit);
    tcase_add_test(file, an_abandoned_new_file_leaves_nothing);
    tcase_add_test(file, a_file_is_replaced_as_a_whole);
    tcase_add_test(file, the_temporary_file_of_a_rival_is_neither_overwritten_nor_removed);
    tcase_add_test(file, a_new_file_that_cannot_be_renamed_is_removed);
    tcase_add_test(file, a_folder_that_takes_no_files_is_a_write_error);
    tcase_add_test(file, a_part_survives_and_goes_on);
    tcase_add_test(file, a_part_has_its_size_from_the_start);
    tcase_add_test(file, a_part_that_cannot_be_renamed_stays);
    tcase_add_test(file, a_link_in_the_place_of_a_part_is_not_followed);
    tcase_add_test(file, a_file_size_limit_is_a_write_error_and_leaves_nothing);
    tcase_add_test(file, a_part_that_is_too_large_is_refused_at_once);
    tcase_add_test(file, a_file_is_read_up_to_the_limit);
    tcase_add_test(file, what_is_no_regular_file_is_refused_without_waiting);
    tcase_add_test(file, more_bytes_than_the_size_said_are_noticed);
    tcase_add_test(file, a_file_that_grows_is_read_whole_or_not_at_all);
    tcase_add_test(file, a_piece_is_read_up_to_the_end);
    tcase_add_test(file, an_interrupted_call_is_no_failure);
    tcase_add_test(file, a_call_that_is_interrupted_for_ever_ends);
    tcase_add_test(file, an_input_that_cannot_be_opened_for_a_moment_is_read);
    tcase_add_test(file, an_input_output_error_is_tried_again_and_then_reported);
    suite_add_tcase(suite, file);
    lock_case(suite);
    lock_faults_case(suite);
    return suite;
}
