/*
 * test_lock_faults.c - locks when calls fail, and when other processes take them at the same time (lock.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calls.h"
#include "lock_fixture.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum chex_status
take_and_drop(void)
{
    struct lock lock;
    enum chex_status status = lock_take(&lock, &locked.folder, false, &locked.err);

    return status == CHEX_OK ? lock_drop(&lock, &locked.err) : status;
}

TEST_CASE("file", "lock faults", lock_setup, lock_teardown);

/* exFAT, some network file systems */
TEST(without_hard_links_a_lock_is_still_taken)
{
    static const int errors[] = {EPERM, ENOSYS, ENOTSUP, EMLINK};

    for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        calls_fail(CALL_RENAME, 1, true, errors[i]);
        ck_assert_msg(take_and_drop() == CHEX_OK, "%s", locked.err.text);
        ck_assert_uint_eq(calls_end(), 1);
        ck_assert_uint_eq(lock_files(), 0);
    }
    calls_fail(CALL_RENAME, 1, true, EIO);
    ck_assert_int_eq(take_and_drop(), CHEX_ERR_WRITE);
    ck_assert_uint_eq(calls_end(), 1);
    ck_assert_uint_eq(lock_files(), 0);
}

TEST(a_link_whose_answer_was_lost_is_a_lock)
{
    calls_fail(CALL_RENAME, 1, false, EEXIST);
    ck_assert_msg(take_and_drop() == CHEX_OK, "%s", locked.err.text);
    ck_assert_uint_eq(calls_end(), 1);
    ck_assert_uint_eq(lock_files(), 0);
}

static void
rival_takes_over(void)
{
    unlinkat(locked.folder.fd, LOCK_NAME, 0);
    lock_write_holder("n07.cluster", 1, locked.boot);
}

static void
rival_takes_over_without_links(void)
{
    rival_takes_over();
    calls_fail(CALL_RENAME, 1, true, EPERM);
}

/* Between the check of a dead lock and its rename. */
TEST(the_lock_of_a_rival_that_was_faster_is_put_back)
{
    for (unsigned links = 0; links < 2; links++) {
        enum chex_status status;

        lock_write_holder(locked.host, lock_dead_pid(), locked.boot);
        calls_before_rename(links ? rival_takes_over : rival_takes_over_without_links);
        status = take_and_drop();
        calls_end();
        ck_assert_int_eq(status, CHEX_ERR_LOCKED);
        ck_assert_msg(strstr(locked.err.text, "in use by host n07.cluster"), "%s", locked.err.text);
        ck_assert_uint_eq(lock_files(), 1);
        lock_expect_taken(true);
    }
}

TEST(if_two_processes_break_a_lock_the_new_lock_of_the_first_survives)
{
    lock_write_holder("n08.cluster", 1, locked.boot);
    calls_before_rename(rival_takes_over);
    lock_expect_locked(true, "in use by host n07.cluster");
    lock_expect_taken(true);
}

/* The process that got the lock meanwhile removed our file as a leftover; the link then fails with ENOENT. */
TEST(a_rival_that_cleans_up_is_given_four_tries)
{
    calls_fail(CALL_RENAME, 1, false, ENOENT);
    ck_assert_int_eq(take_and_drop(), CHEX_OK);
    ck_assert_uint_eq(calls_end(), 1);
    calls_fail(CALL_RENAME, 1, true, ENOENT);
    ck_assert_int_eq(take_and_drop(), CHEX_ERR_LOCKED);
    ck_assert_uint_eq(calls_end(), 4);
    ck_assert_msg(strstr(locked.err.text, "is being taken over by another process"), "%s", locked.err.text);
    ck_assert_uint_eq(lock_files(), 0);
}

TEST(a_lock_that_is_a_link_to_nothing_is_taken_only_by_force)
{
    struct lock lock;

    ck_assert_int_eq(symlinkat("nowhere", locked.folder.fd, LOCK_NAME), 0);
    ck_assert_int_eq(take_and_drop(), CHEX_ERR_WRITE);
    ck_assert_msg(strstr(locked.err.text, "cannot be read as a lock (--break-lock removes it): not a regular file"),
                  "%s", locked.err.text);
    ck_assert_msg(lock_take(&lock, &locked.folder, true, &locked.err) == CHEX_OK, "%s", locked.err.text);
    ck_assert_int_eq(lock_drop(&lock, &locked.err), CHEX_OK);
    ck_assert_uint_eq(lock_files(), 0);
}

TEST(a_stale_lock_that_cannot_be_moved_aside_stays)
{
    lock_write_holder(locked.host, lock_dead_pid(), locked.boot);
    calls_fail(CALL_RENAME, 2, true, EACCES); /* 1 is the link, which succeeded */
    ck_assert_int_ne(take_and_drop(), CHEX_OK);
    ck_assert_uint_gt(calls_end(), 0);
    ck_assert_uint_eq(lock_files(), 1);
    lock_expect_taken(false);
}

TEST(a_lock_that_cannot_be_read_is_anothers)
{
    lock_write_holder(locked.host, lock_dead_pid(), locked.boot);
    calls_fail(CALL_STAT, 1, true, EIO);
    ck_assert_int_eq(take_and_drop(), CHEX_ERR_LOCKED);
    ck_assert_uint_gt(calls_end(), 0);
    ck_assert_msg(strstr(locked.err.text, LOCK_NAME), "%s", locked.err.text);
    lock_expect_taken(false);
}

TEST(a_lock_is_written_completely_or_not_at_all)
{
    static const enum call kinds[] = {CALL_WRITE, CALL_SYNC, CALL_CLOSE};

    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        calls_fail(kinds[i], 1, true, ENOSPC);
        ck_assert_int_eq(take_and_drop(), CHEX_ERR_WRITE);
        ck_assert_uint_gt(calls_end(), 0);
        ck_assert_msg(strstr(locked.err.text, "disk full"), "%s", locked.err.text);
        ck_assert_uint_eq(lock_files(), 0);
    }
    calls_fail(CALL_WRITE, 1, false, EINTR);
    ck_assert_int_eq(take_and_drop(), CHEX_OK);
    ck_assert_uint_eq(calls_end(), 1);
    calls_fail(CALL_CLOSE, 1, false, EINTR); /* on Linux it is closed nevertheless */
    ck_assert_int_eq(take_and_drop(), CHEX_OK);
    ck_assert_uint_eq(calls_end(), 1);
}

TEST(a_lock_that_cannot_be_read_again_or_is_gone_is_not_removed)
{
    struct lock lock;

    ck_assert_int_eq(lock_take(&lock, &locked.folder, false, &locked.err), CHEX_OK);
    ck_assert(lock_is_held(&locked.folder));
    calls_fail(CALL_READ, 1, true, ENXIO);
    ck_assert_int_eq(lock_check(&lock, &locked.err),
                     CHEX_ERR_WRITE); /* the disk fails, but no other process has the lock */
    ck_assert(!lock_is_held(&locked.folder));
    ck_assert_int_eq(lock_drop(&lock, &locked.err), CHEX_ERR_WRITE);
    calls_end();
    ck_assert_msg(strstr(locked.err.text, "cannot release the folder"), "%s", locked.err.text);
    ck_assert_uint_eq(lock_files(), 1);
    ck_assert(lock_check(&lock, NULL) != CHEX_OK); /* it was dropped */
    unlinkat(locked.folder.fd, LOCK_NAME, 0);

    ck_assert_int_eq(lock_take(&lock, &locked.folder, false, &locked.err), CHEX_OK);
    unlinkat(locked.folder.fd, LOCK_NAME, 0);
    ck_assert_int_eq(lock_check(&lock, &locked.err), CHEX_ERR_LOCKED);
    ck_assert(!lock_is_held(&locked.folder));
    ck_assert_int_eq(lock_drop(&lock, &locked.err), CHEX_OK);
}

TEST(an_own_lock_that_cannot_be_read_was_not_taken_over)
{
    static const enum call kinds[] = {CALL_OPEN, CALL_STAT, CALL_READ};
    static const int errors[] = {EACCES, EPERM, EIO, ENXIO};
    struct lock lock;

    ck_assert_int_eq(lock_take(&lock, &locked.folder, false, &locked.err), CHEX_OK);
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
            calls_fail(kinds[k], 1, true, errors[i]);
            ck_assert_int_eq(lock_check(&lock, &locked.err), CHEX_ERR_WRITE);
            ck_assert_uint_gt(calls_end(), 0);
            ck_assert_msg(strstr(locked.err.text, "the lock '"), "%s", locked.err.text);
        }
    }
    calls_fail(CALL_OPEN, 1, true, EMFILE);
    ck_assert_int_eq(lock_check(&lock, &locked.err), CHEX_ERR_MEMORY);
    calls_end();
    ck_assert_int_eq(lock_drop(&lock, &locked.err), CHEX_OK);
}

/* Empty, cut anywhere, or too long. */
TEST(an_own_lock_that_is_damaged_was_not_taken_over)
{
    char text[2 * LOCK_TEXT];
    struct lock lock;

    ck_assert_int_eq(lock_take(&lock, &locked.folder, false, &locked.err), CHEX_OK);
    for (size_t length = 0; length < strlen(lock.text); length++) {
        snprintf(text, sizeof(text), "%.*s", (int)length, lock.text);
        lock_write_text(text);
        ck_assert_int_eq(lock_check(&lock, &locked.err), CHEX_ERR_WRITE);
        ck_assert_msg(strstr(locked.err.text, "is damaged: "), "%s", locked.err.text);
    }
    snprintf(text, sizeof(text), "%s%0*d", lock.text, LOCK_TEXT, 0);
    lock_write_text(text);
    ck_assert_int_eq(lock_check(&lock, &locked.err), CHEX_ERR_WRITE);
    ck_assert_int_eq(lock_drop(&lock, &locked.err), CHEX_ERR_WRITE);
    ck_assert_uint_eq(lock_files(), 1);
}

TEST(an_own_lock_that_another_process_replaced_names_that_process)
{
    struct lock lock;

    ck_assert_int_eq(lock_take(&lock, &locked.folder, false, &locked.err), CHEX_OK);
    rival_takes_over();
    ck_assert_int_eq(lock_check(&lock, &locked.err), CHEX_ERR_LOCKED);
    ck_assert_msg(strstr(locked.err.text, "was taken over by host n07.cluster pid 1"), "%s", locked.err.text);
    unlinkat(locked.folder.fd, LOCK_NAME, 0);
    ck_assert_int_eq(lock_check(&lock, &locked.err), CHEX_ERR_LOCKED);
    ck_assert_msg(strstr(locked.err.text, "was removed"), "%s", locked.err.text);
}

static void
write_next_to_lock(const char *suffix, const char *text)
{
    char name[256];
    int fd;

    snprintf(name, sizeof(name), LOCK_NAME "%s", suffix);
    fd = openat(locked.folder.fd, name, O_CREAT | O_TRUNC | O_WRONLY, 0666);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* The leftovers of killed processes are removed; files that may belong to a live process, or to no lock, stay. */
TEST(leftovers_of_the_dead_are_removed)
{
    char dead[512], living[512];
    struct lock lock;

    snprintf(dead, sizeof(dead), "host %s\npid %ld\nboot %s\nspace %llu\nstart 1\nsince x\nmachine m\nmade 1\n",
             locked.host, lock_dead_pid(), locked.boot, lock_own_space());
    snprintf(living, sizeof(living), "host n07.cluster\npid 1\nboot b\nspace 1\nstart 1\nsince x\nmachine m\nmade 1\n");
    write_next_to_lock(".new.17.4", "");
    write_next_to_lock(".stale.17", dead);
    write_next_to_lock("-00001-of-00004.new.17.4", "");
    write_next_to_lock(".stale.18", living);
    write_next_to_lock(".stale.19", "torn");
    write_next_to_lock("notes", "");
    write_next_to_lock(".old", "");
    ck_assert_msg(lock_take(&lock, &locked.folder, false, &locked.err) == CHEX_OK, "%s", locked.err.text);
    ck_assert_uint_eq(lock_files(), 1 + 4);
    ck_assert_int_eq(lock_drop(&lock, &locked.err), CHEX_OK);
}
