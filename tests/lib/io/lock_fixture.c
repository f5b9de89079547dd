/*
 * lock_fixture.c - see lock_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "lock_fixture.h"

#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct lock_fixture locked;

void
lock_setup(void)
{
    static unsigned count;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

    snprintf(locked.base, sizeof(locked.base), "%s/lock-%ld-%u", unit_folder(), (long)getpid(), count++);
    ck_assert_msg(folder_open(locked.base, true, &locked.folder, &locked.err) == CHEX_OK, "%s", locked.err.text);
    ck_assert_int_eq(gethostname(locked.host, sizeof(locked.host)), 0);
    ck_assert(f && fgets(locked.boot, sizeof(locked.boot), f));
    fclose(f);
    locked.boot[strcspn(locked.boot, "\n")] = '\0';
}

void
lock_teardown(void)
{
    folder_close(&locked.folder);
}

void
lock_write_text(const char *text)
{
    int fd = openat(locked.folder.fd, LOCK_NAME, O_CREAT | O_TRUNC | O_WRONLY, 0666);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

unsigned long long
lock_own_space(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 ? (unsigned long long)st.st_ino : 0;
}

void
lock_write_holder_of(const char *holder_host, long pid, const char *holder_boot, unsigned long long space,
                     unsigned long long start)
{
    char text[512];

    snprintf(text, sizeof(text),
             "host %s\npid %ld\nboot %s\nspace %llu\nstart %llu\nsince 2024-02-29T10:31:00\nmachine m\nmade 1\n",
             holder_host, pid, holder_boot, space, start);
    lock_write_text(text);
}

void
lock_write_holder(const char *holder_host, long pid, const char *holder_boot)
{
    lock_write_holder_of(holder_host, pid, holder_boot, lock_own_space(), 1);
}

unsigned
lock_files(void)
{
    return unit_count_files(locked.base);
}

void
lock_expect_locked(bool break_lock, const char *text)
{
    struct lock lock;

    ck_assert_int_eq(lock_take(&lock, &locked.folder, break_lock, &locked.err), CHEX_ERR_LOCKED);
    ck_assert_msg(strstr(locked.err.text, text), "\"%s\" is not in \"%s\"", text, locked.err.text);
    ck_assert(!lock.held);
    lock_drop(&lock, NULL); /* does nothing: another process owns it */
    ck_assert_uint_eq(lock_files(), 1);
}

void
lock_expect_taken(bool break_lock)
{
    struct lock lock;

    ck_assert_msg(lock_take(&lock, &locked.folder, break_lock, &locked.err) == CHEX_OK, "%s", locked.err.text);
    ck_assert(lock.held);
    ck_assert_uint_eq(lock_files(), 1);
    lock_drop(&lock, NULL);
    lock_drop(&lock, NULL);
    ck_assert_uint_eq(lock_files(), 0);
}

long
lock_dead_pid(void)
{
    pid_t child = fork();

    if (child == 0)
        _exit(0);
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    return (long)child;
}
