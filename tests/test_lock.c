/*
 * test_lock.c - one writer for a folder (lock.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "calls.h"
#include "cases.h"
#include "io/lock_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- helpers -------------------------------------------------------------------------------------------------- */

static char base[512], host[128], boot[64];
static struct folder folder;
static struct chex_error err;

static void
setup(void)
{
    static unsigned count;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

    snprintf(base, sizeof(base), "%s/lock-%ld-%u", unit_folder(), (long)getpid(), count++);
    ck_assert_msg(folder_open(base, true, &folder, &err) == CHEX_OK, "%s", err.text);
    ck_assert_int_eq(gethostname(host, sizeof(host)), 0);
    ck_assert(f && fgets(boot, sizeof(boot), f));
    fclose(f);
    boot[strcspn(boot, "\n")] = '\0';
}

static void
teardown(void)
{
    folder_close(&folder);
}

static void
write_lock(const char *text)
{
    int fd = openat(folder.fd, LOCK_NAME, O_CREAT | O_TRUNC | O_WRONLY, 0666);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static unsigned long long
own_space(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 ? (unsigned long long)st.st_ino : 0;
}

/* A lock of a process of this pid namespace, which began at this time. */
static void
write_holder_of(const char *holder_host, long pid, const char *holder_boot, unsigned long long space,
                unsigned long long start)
{
    char text[512];

    snprintf(text, sizeof(text), "host %s\npid %ld\nboot %s\nspace %llu\nstart %llu\nsince 2024-02-29T10:31:00\n",
             holder_host, pid, holder_boot, space, start);
    write_lock(text);
}

static void
write_holder(const char *holder_host, long pid, const char *holder_boot)
{
    write_holder_of(holder_host, pid, holder_boot, own_space(), 1);
}

/* How many files are in the folder: a taken lock is one, and nothing is left beside it. */
static unsigned
files(void)
{
    DIR *dir = opendir(base);
    unsigned count = 0;

    ck_assert_ptr_nonnull(dir);
    for (struct dirent *d; (d = readdir(dir));)
        count += strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
    closedir(dir);
    return count;
}

static void
expect_locked(bool break_lock, const char *text)
{
    struct lock lock;

    ck_assert_int_eq(lock_take(&lock, &folder, break_lock, &err), CHEX_ERR_LOCKED);
    ck_assert_msg(strstr(err.text, text), "\"%s\" is not in \"%s\"", text, err.text);
    ck_assert(!lock.held);
    lock_drop(&lock, NULL); /* does nothing: it is another's */
    ck_assert_uint_eq(files(), 1);
}

static void
expect_taken(bool break_lock)
{
    struct lock lock;

    ck_assert_msg(lock_take(&lock, &folder, break_lock, &err) == CHEX_OK, "%s", err.text);
    ck_assert(lock.held);
    ck_assert_uint_eq(files(), 1);
    lock_drop(&lock, NULL);
    lock_drop(&lock, NULL);
    ck_assert_uint_eq(files(), 0);
}

/* A process number that nobody has: that of a child that has ended. */
static long
dead_pid(void)
{
    pid_t child = fork();

    if (child == 0)
        _exit(0);
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    return (long)child;
}

/* ---- tests ---------------------------------------------------------------------------------------------------- */

START_TEST(a_lock_says_who_holds_it)
{
    char wanted[512], text[512] = "";
    struct lock lock;
    int fd;

    ck_assert_int_eq(lock_take(&lock, &folder, false, &err), CHEX_OK);
    fd = openat(folder.fd, LOCK_NAME, O_RDONLY);
    ck_assert_int_gt(read(fd, text, sizeof(text) - 1), 0);
    close(fd);
    snprintf(wanted, sizeof(wanted), "host %s\npid %ld\nboot %s\nspace %llu\nstart ", host, (long)getpid(), boot,
             own_space());
    ck_assert_msg(strncmp(text, wanted, strlen(wanted)) == 0, "%s", text);
    lock_drop(&lock, NULL);
    ck_assert_uint_eq(files(), 0);
    expect_taken(false);
}
END_TEST

START_TEST(a_lock_of_a_living_process_is_not_taken)
{
    char wanted[256];
    int ready[2];
    pid_t child;

    ck_assert_int_eq(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        struct lock lock;
        char good = lock_take(&lock, &folder, false, NULL) == CHEX_OK ? 'y' : 'n';

        if (write(ready[1], &good, 1) == 1)
            pause();
        _exit(1);
    }
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(read(ready[0], wanted, 1), 1);
    ck_assert_int_eq(wanted[0], 'y');
    snprintf(wanted, sizeof(wanted), "is in use by host %s pid %ld since 2", host, (long)child);
    expect_locked(false, wanted);
    expect_locked(true, ", which is alive"); /* a word against better knowledge */
    /* kill -9 leaves the lock; it is taken over. */
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_uint_eq(files(), 1);
    expect_taken(false);
    close(ready[0]);
    close(ready[1]);
}
END_TEST

START_TEST(a_lock_of_a_dead_process_is_taken_over)
{
    write_holder(host, dead_pid(), boot);
    expect_taken(false);
    write_holder(host, 0, boot); /* kill(0) would mean the whole process group, kill(-1) everyone */
    expect_taken(false);
    write_holder(host, -1, boot);
    expect_taken(false);
}
END_TEST

/* What this process would say had it locked before its machine was booted; *up is when that was. */
static struct lock_holder
holder_of_earlier_boot(struct lock_holder *self)
{
    struct lock_holder holder;

    lock_describe_self(self);
    snprintf(self->machine, sizeof(self->machine), "0123456789abcdef0123456789abcdef");
    self->space = LOCK_FIRST_SPACE;
    self->machine_up = self->made - 100;
    holder = *self;
    snprintf(holder.boot, sizeof(holder.boot), "00000000-1111-2222-3333-444444444444");
    holder.made -= 200;
    return holder;
}

START_TEST(a_lock_from_before_the_last_boot_is_taken_over)
{
    struct lock_holder self, holder = holder_of_earlier_boot(&self), read;
    char text[LOCK_TEXT];

    ck_assert_int_eq(lock_life(&holder, &self), LOCK_DEAD);
    lock_format_holder(&holder, text);
    ck_assert(lock_parse_holder(text, &read));
    ck_assert_int_eq(lock_life(&read, &self), LOCK_DEAD);
}
END_TEST

/* Virtual machines, containers: of one name, with other boot ids, and alive as far as anybody knows. */
START_TEST(a_lock_of_another_machine_of_this_name_is_taken_only_by_force)
{
    struct lock_holder self, holder = holder_of_earlier_boot(&self);

    snprintf(holder.machine, sizeof(holder.machine), "ffffffffffffffffffffffffffffffff");
    ck_assert_int_eq(lock_life(&holder, &self), LOCK_UNKNOWN);
    holder = holder_of_earlier_boot(&self);
    snprintf(self.machine, sizeof(self.machine), "unknown");
    snprintf(holder.machine, sizeof(holder.machine), "unknown");
    ck_assert_int_eq(lock_life(&holder, &self), LOCK_UNKNOWN);
    /* Copies of one image have one machine-id: a lock that is younger than this boot is of no earlier one. */
    holder = holder_of_earlier_boot(&self);
    holder.made = self.machine_up + 1;
    ck_assert_int_eq(lock_life(&holder, &self), LOCK_UNKNOWN);
    holder = holder_of_earlier_boot(&self);
    holder.space = 4026532000; /* in a container */
    ck_assert_int_eq(lock_life(&holder, &self), LOCK_UNKNOWN);
    holder = holder_of_earlier_boot(&self);
    self.space = 4026532000;
    ck_assert_int_eq(lock_life(&holder, &self), LOCK_UNKNOWN);
    /* One of 0.1, which does not say. */
    write_holder(host, (long)getppid(), "00000000-1111-2222-3333-444444444444");
    expect_locked(false, "(--break-lock if that is dead)");
    expect_taken(true);
}
END_TEST

START_TEST(what_is_no_file_is_no_lock_and_is_not_waited_for)
{
    struct lock lock;

    ck_assert_int_eq(mkfifoat(folder.fd, LOCK_NAME, 0666), 0);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(lock_take(&lock, &folder, false, &err), CHEX_ERR_WRITE);
        ck_assert_msg(strstr(err.text, "is not a file"), "%s", err.text);
        expect_taken(true);
        ck_assert_int_eq(mkdirat(folder.fd, LOCK_NAME, 0777), 0);
    }
    expect_taken(true);
}
END_TEST

START_TEST(a_lock_of_another_host_is_taken_only_by_force)
{
    write_holder("n07.cluster", dead_pid(), boot);
    expect_locked(false, "is in use by host n07.cluster pid ");
    expect_locked(false, "since 2024-02-29T10:31:00");
    expect_taken(true);
}
END_TEST

START_TEST(a_lock_that_nobody_understands_is_taken_only_by_force)
{
    static const char *const texts[] = {"", "\n", "host", "garbage\n", "host a\npid x\nboot b\nsince c\n"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        write_lock(texts[i]);
        expect_locked(false, "is in use by host unknown");
        expect_taken(true);
    }
}
END_TEST

/* The user's word counts whatever the file is. */
START_TEST(a_lock_that_is_far_too_long_is_taken_only_by_force)
{
    char text[2000];

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    write_lock(text);
    expect_locked(false, LOCK_NAME);
    expect_taken(true);
}
END_TEST

/* The parent lives, but began at another time than the holder: the number was used again. */
START_TEST(a_number_that_was_used_again_is_another_process)
{
    write_holder(host, (long)getppid(), boot);
    expect_taken(false);
}
END_TEST

/* A container has its own numbers: who is meant cannot be known here. */
START_TEST(a_lock_of_another_pid_namespace_is_taken_only_by_force)
{
    write_holder_of(host, (long)getppid(), boot, own_space() + 1, 1);
    expect_locked(false, "(--break-lock if that is dead)");
    expect_taken(true);
}
END_TEST

START_TEST(a_lock_that_was_broken_is_noticed_and_left_alone)
{
    struct lock lock;

    ck_assert_int_eq(lock_take(&lock, &folder, false, &err), CHEX_OK);
    ck_assert(lock_check(&lock, NULL) == CHEX_OK);
    write_holder("n07.cluster", 1, boot);
    ck_assert(lock_check(&lock, NULL) != CHEX_OK);
    lock_drop(&lock, NULL);
    ck_assert_uint_eq(files(), 1);
    expect_taken(true);
}
END_TEST

START_TEST(a_folder_that_cannot_be_written_to_cannot_be_locked)
{
    struct folder proc;
    struct lock lock;

    ck_assert_int_eq(folder_open("/proc/self", false, &proc, &err), CHEX_OK);
    ck_assert_int_eq(lock_take(&lock, &proc, true, &err), CHEX_ERR_WRITE);
    ck_assert_msg(strstr(err.text, "cannot write to the folder '/proc/self'"), "%s", err.text);
    ck_assert(!lock.held);
    folder_close(&proc);
}
END_TEST

/* Both find the same dead lock at the same time. */
START_TEST(of_two_that_take_over_one_wins)
{
    enum { ROUNDS = 8, PROCESSES = 2 };

    for (unsigned round = 0; round < ROUNDS; round++) {
        pid_t child[PROCESSES];
        unsigned winners = 0;
        int start[2], answer[2];
        char c;

        write_holder(host, dead_pid(), boot);
        ck_assert(pipe(start) == 0 && pipe(answer) == 0);
        for (unsigned i = 0; i < PROCESSES; i++) {
            child[i] = fork();
            if (child[i] == 0) {
                struct lock lock;

                close(start[1]);
                if (read(start[0], &c, 1) == 0)
                    c = lock_take(&lock, &folder, false, NULL) == CHEX_OK ? 'y' : 'n';
                if (write(answer[1], &c, 1) == 1)
                    pause();
                _exit(1);
            }
            ck_assert_int_gt(child[i], 0);
        }
        close(start[1]); /* go */
        for (unsigned i = 0; i < PROCESSES; i++) {
            ck_assert_int_eq(read(answer[0], &c, 1), 1);
            winners += c == 'y';
        }
        for (unsigned i = 0; i < PROCESSES; i++) {
            kill(child[i], SIGKILL);
            waitpid(child[i], NULL, 0);
        }
        close(start[0]);
        close(answer[0]);
        close(answer[1]);
        ck_assert_uint_eq(winners, 1);
        ck_assert_uint_eq(files(), 1);
    }
}
END_TEST

/* ---- calls that fail ------------------------------------------------------------------------------------------ */

static enum chex_status
take_and_drop(void)
{
    struct lock lock;
    enum chex_status status = lock_take(&lock, &folder, false, &err);

    return status == CHEX_OK ? lock_drop(&lock, &err) : status;
}

/* exFAT, some network file systems */
START_TEST(where_there_are_no_hard_links_a_lock_is_taken_all_the_same)
{
    static const int errors[] = {EPERM, ENOSYS, ENOTSUP, EMLINK};

    for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        calls_fail(CALL_RENAME, 1, true, errors[i]);
        ck_assert_msg(take_and_drop() == CHEX_OK, "%s", err.text);
        ck_assert_uint_eq(calls_end(), 1);
        ck_assert_uint_eq(files(), 0);
    }
    calls_fail(CALL_RENAME, 1, true, EIO);
    ck_assert_int_eq(take_and_drop(), CHEX_ERR_WRITE);
    ck_assert_uint_eq(calls_end(), 1);
    ck_assert_uint_eq(files(), 0);
}
END_TEST

START_TEST(a_link_whose_answer_was_lost_is_a_lock)
{
    calls_fail(CALL_RENAME, 1, false, EEXIST);
    ck_assert_msg(take_and_drop() == CHEX_OK, "%s", err.text);
    ck_assert_uint_eq(calls_end(), 1);
    ck_assert_uint_eq(files(), 0);
}
END_TEST

static void
rival_takes_over(void)
{
    unlinkat(folder.fd, LOCK_NAME, 0);
    write_holder("n07.cluster", 1, boot);
}

static void
rival_takes_over_without_links(void)
{
    rival_takes_over();
    calls_fail(CALL_RENAME, 1, true, EPERM);
}

/* Between looking at a dead lock and moving it aside. */
START_TEST(the_lock_of_a_rival_that_was_faster_is_put_back)
{
    for (unsigned links = 0; links < 2; links++) {
        enum chex_status status;

        write_holder(host, dead_pid(), boot);
        calls_before_rename(links ? rival_takes_over : rival_takes_over_without_links);
        status = take_and_drop();
        calls_end();
        ck_assert_int_eq(status, CHEX_ERR_LOCKED);
        ck_assert_msg(strstr(err.text, "in use by host n07.cluster"), "%s", err.text);
        ck_assert_uint_eq(files(), 1);
        expect_taken(true);
    }
}
END_TEST

START_TEST(of_two_that_break_a_lock_the_second_does_not_break_that_of_the_first)
{
    write_holder("n08.cluster", 1, boot);
    calls_before_rename(rival_takes_over);
    expect_locked(true, "in use by host n07.cluster");
    expect_taken(true);
}
END_TEST

/* Who got the lock meanwhile took the file for a leftover and removed it: the link then fails with ENOENT. */
START_TEST(a_rival_that_cleans_up_is_given_four_tries)
{
    calls_fail(CALL_RENAME, 1, false, ENOENT);
    ck_assert_int_eq(take_and_drop(), CHEX_OK);
    ck_assert_uint_eq(calls_end(), 1);
    calls_fail(CALL_RENAME, 1, true, ENOENT);
    ck_assert_int_eq(take_and_drop(), CHEX_ERR_LOCKED);
    ck_assert_uint_eq(calls_end(), 4);
    ck_assert_msg(strstr(err.text, "is being taken over by another process"), "%s", err.text);
    ck_assert_uint_eq(files(), 0);
}
END_TEST

START_TEST(a_lock_that_is_a_link_to_nothing_is_taken_only_by_force)
{
    struct lock lock;

    ck_assert_int_eq(symlinkat("nowhere", folder.fd, LOCK_NAME), 0);
    ck_assert_int_eq(take_and_drop(), CHEX_ERR_LOCKED);
    ck_assert_msg(strstr(err.text, "is a link that leads nowhere (--break-lock removes it)"), "%s", err.text);
    ck_assert_msg(lock_take(&lock, &folder, true, &err) == CHEX_OK, "%s", err.text);
    ck_assert_int_eq(lock_drop(&lock, &err), CHEX_OK);
    ck_assert_uint_eq(files(), 0);
}
END_TEST

START_TEST(a_stale_lock_that_cannot_be_moved_aside_stays)
{
    write_holder(host, dead_pid(), boot);
    calls_fail(CALL_RENAME, 2, true, EACCES); /* 1: the link, which is there already */
    ck_assert_int_ne(take_and_drop(), CHEX_OK);
    ck_assert_uint_gt(calls_end(), 0);
    ck_assert_uint_eq(files(), 1);
    expect_taken(false);
}
END_TEST

START_TEST(a_lock_that_cannot_be_read_is_anothers)
{
    write_holder(host, dead_pid(), boot);
    calls_fail(CALL_STAT, 1, true, EIO);
    ck_assert_int_eq(take_and_drop(), CHEX_ERR_LOCKED);
    ck_assert_uint_gt(calls_end(), 0);
    ck_assert_msg(strstr(err.text, LOCK_NAME), "%s", err.text);
    expect_taken(false);
}
END_TEST

START_TEST(a_lock_is_written_whole_or_not_at_all)
{
    static const enum call kinds[] = {CALL_WRITE, CALL_SYNC, CALL_CLOSE};

    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        calls_fail(kinds[i], 1, true, ENOSPC);
        ck_assert_int_eq(take_and_drop(), CHEX_ERR_WRITE);
        ck_assert_uint_gt(calls_end(), 0);
        ck_assert_msg(strstr(err.text, "disk full"), "%s", err.text);
        ck_assert_uint_eq(files(), 0);
    }
    calls_fail(CALL_WRITE, 1, false, EINTR);
    ck_assert_int_eq(take_and_drop(), CHEX_OK);
    ck_assert_uint_eq(calls_end(), 1);
    calls_fail(CALL_CLOSE, 1, false, EINTR); /* on Linux it is closed */
    ck_assert_int_eq(take_and_drop(), CHEX_OK);
    ck_assert_uint_eq(calls_end(), 1);
}
END_TEST

START_TEST(a_lock_that_cannot_be_read_again_or_is_gone_is_not_removed)
{
    struct lock lock;

    ck_assert_int_eq(lock_take(&lock, &folder, false, &err), CHEX_OK);
    ck_assert(lock_is_held(&folder));
    calls_fail(CALL_READ, 1, true, ENXIO);
    ck_assert_int_eq(lock_check(&lock, &err), CHEX_ERR_WRITE); /* the disk's fault, and nobody has taken it */
    ck_assert(!lock_is_held(&folder));
    ck_assert_int_eq(lock_drop(&lock, &err), CHEX_ERR_WRITE);
    calls_end();
    ck_assert_msg(strstr(err.text, "cannot remove the lock"), "%s", err.text);
    ck_assert_uint_eq(files(), 1);
    ck_assert(lock_check(&lock, NULL) != CHEX_OK); /* it was given up */
    unlinkat(folder.fd, LOCK_NAME, 0);

    ck_assert_int_eq(lock_take(&lock, &folder, false, &err), CHEX_OK);
    unlinkat(folder.fd, LOCK_NAME, 0);
    ck_assert_int_eq(lock_check(&lock, &err), CHEX_ERR_LOCKED);
    ck_assert(!lock_is_held(&folder));
    ck_assert_int_eq(lock_drop(&lock, &err), CHEX_OK);
}
END_TEST

static void
write_beside(const char *suffix, const char *text)
{
    char name[256];
    int fd;

    snprintf(name, sizeof(name), LOCK_NAME "%s", suffix);
    fd = openat(folder.fd, name, O_CREAT | O_TRUNC | O_WRONLY, 0666);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* What killed processes left beside a lock goes; what may be somebody's, or is no lock's, stays. */
START_TEST(leftovers_of_the_dead_are_removed)
{
    char dead[512], living[512];
    struct lock lock;

    snprintf(dead, sizeof(dead), "host %s\npid %ld\nboot %s\nspace %llu\nstart 1\nsince x\n", host, dead_pid(), boot,
             own_space());
    snprintf(living, sizeof(living), "host n07.cluster\npid 1\nboot b\nspace 1\nstart 1\nsince x\n");
    write_beside(".new.17.4", "");
    write_beside(".stale.17", dead);
    write_beside("-00001-of-00004.new.17.4", "");
    write_beside(".stale.18", living);
    write_beside(".stale.19", "torn");
    write_beside("notes", "");
    write_beside(".old", "");
    ck_assert_msg(lock_take(&lock, &folder, false, &err) == CHEX_OK, "%s", err.text);
    ck_assert_uint_eq(files(), 1 + 4);
    ck_assert_int_eq(lock_drop(&lock, &err), CHEX_OK);
}
END_TEST

void
lock_case(Suite *suite)
{
    TCase *lock = tcase_create("lock");

    tcase_add_checked_fixture(lock, setup, teardown);
    tcase_add_test(lock, a_lock_says_who_holds_it);
    tcase_add_test(lock, a_lock_of_a_living_process_is_not_taken);
    tcase_add_test(lock, a_lock_of_a_dead_process_is_taken_over);
    tcase_add_test(lock, a_lock_from_before_the_last_boot_is_taken_over);
    tcase_add_test(lock, a_lock_of_another_machine_of_this_name_is_taken_only_by_force);
    tcase_add_test(lock, what_is_no_file_is_no_lock_and_is_not_waited_for);
    tcase_add_test(lock, a_lock_of_another_host_is_taken_only_by_force);
    tcase_add_test(lock, a_lock_that_nobody_understands_is_taken_only_by_force);
    tcase_add_test(lock, a_lock_that_is_far_too_long_is_taken_only_by_force);
    tcase_add_test(lock, a_number_that_was_used_again_is_another_process);
    tcase_add_test(lock, a_lock_of_another_pid_namespace_is_taken_only_by_force);
    tcase_add_test(lock, a_lock_that_was_broken_is_noticed_and_left_alone);
    tcase_add_test(lock, a_folder_that_cannot_be_written_to_cannot_be_locked);
    tcase_add_test(lock, of_two_that_take_over_one_wins);
    tcase_add_test(lock, where_there_are_no_hard_links_a_lock_is_taken_all_the_same);
    tcase_add_test(lock, a_link_whose_answer_was_lost_is_a_lock);
    tcase_add_test(lock, the_lock_of_a_rival_that_was_faster_is_put_back);
    tcase_add_test(lock, of_two_that_break_a_lock_the_second_does_not_break_that_of_the_first);
    tcase_add_test(lock, a_rival_that_cleans_up_is_given_four_tries);
    tcase_add_test(lock, a_lock_that_is_a_link_to_nothing_is_taken_only_by_force);
    tcase_add_test(lock, a_stale_lock_that_cannot_be_moved_aside_stays);
    tcase_add_test(lock, a_lock_that_cannot_be_read_is_anothers);
    tcase_add_test(lock, a_lock_is_written_whole_or_not_at_all);
    tcase_add_test(lock, a_lock_that_cannot_be_read_again_or_is_gone_is_not_removed);
    tcase_add_test(lock, leftovers_of_the_dead_are_removed);
    suite_add_tcase(suite, lock);
}
