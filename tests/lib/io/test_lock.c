/*
 * test_lock.c - one writer for a folder (lock.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "lock_fixture.h"
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TEST_CASE("file", "lock", lock_setup, lock_teardown);

TEST(a_lock_names_its_owner)
{
    char wanted[512], text[512] = "";
    struct lock lock;
    int fd;

    ck_assert_int_eq(lock_take(&lock, &locked.folder, false, &locked.err), CHEX_OK);
    fd = openat(locked.folder.fd, LOCK_NAME, O_RDONLY);
    ck_assert_int_gt(read(fd, text, sizeof(text) - 1), 0);
    close(fd);
    snprintf(wanted, sizeof(wanted), "host %s\npid %ld\nboot %s\nspace %llu\nstart ", locked.host, (long)getpid(),
             locked.boot, lock_own_space());
    ck_assert_msg(strncmp(text, wanted, strlen(wanted)) == 0, "%s", text);
    lock_drop(&lock, NULL);
    ck_assert_uint_eq(lock_files(), 0);
    lock_expect_taken(false);
}

TEST(a_lock_of_a_living_process_is_not_taken)
{
    char wanted[256];
    int ready[2];
    pid_t child;

    ck_assert_int_eq(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        struct lock lock;
        char good = lock_take(&lock, &locked.folder, false, NULL) == CHEX_OK ? 'y' : 'n';

        if (write(ready[1], &good, 1) == 1)
            pause();
        _exit(1);
    }
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(read(ready[0], wanted, 1), 1);
    ck_assert_int_eq(wanted[0], 'y');
    snprintf(wanted, sizeof(wanted), "is in use by host %s pid %ld since 2", locked.host, (long)child);
    lock_expect_locked(false, wanted);
    lock_expect_locked(true, ", which is alive"); /* --break-lock, although the holder is known to be alive */
    /* A process killed by kill -9 leaves its lock, which is taken over. */
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_uint_eq(lock_files(), 1);
    lock_expect_taken(false);
    close(ready[0]);
    close(ready[1]);
}

TEST(a_lock_of_a_dead_process_is_taken_over)
{
    lock_write_holder(locked.host, lock_dead_pid(), locked.boot);
    lock_expect_taken(false);
    lock_write_holder(locked.host, 0,
                      locked.boot); /* kill(0) would reach the whole process group, kill(-1) every process */
    lock_expect_taken(false);
    lock_write_holder(locked.host, -1, locked.boot);
    lock_expect_taken(false);
}

/* The lock of this process if it were from before the machine was booted; *up is that time. */
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

TEST(a_lock_from_before_the_last_boot_is_taken_over)
{
    struct lock_holder self, holder = holder_of_earlier_boot(&self), read;
    char text[LOCK_TEXT];

    ck_assert_int_eq(lock_life(&holder, &self), LOCK_DEAD);
    lock_format_holder(&holder, text);
    ck_assert(lock_parse_holder(text, &read));
    ck_assert_int_eq(lock_life(&read, &self), LOCK_DEAD);
}

/* Virtual machines or containers with the same name: other boot ids, and possibly alive. */
TEST(a_lock_of_another_machine_of_this_name_is_taken_only_by_force)
{
    struct lock_holder self, holder = holder_of_earlier_boot(&self);

    snprintf(holder.machine, sizeof(holder.machine), "ffffffffffffffffffffffffffffffff");
    ck_assert_int_eq(lock_life(&holder, &self), LOCK_UNKNOWN);
    holder = holder_of_earlier_boot(&self);
    snprintf(self.machine, sizeof(self.machine), "unknown");
    snprintf(holder.machine, sizeof(holder.machine), "unknown");
    ck_assert_int_eq(lock_life(&holder, &self), LOCK_UNKNOWN);
    /* Copies of one image share a machine-id, so a lock that is newer than this boot is not from an earlier one. */
    holder = holder_of_earlier_boot(&self);
    holder.made = self.machine_up + 1;
    ck_assert_int_eq(lock_life(&holder, &self), LOCK_UNKNOWN);
    holder = holder_of_earlier_boot(&self);
    holder.space = 4026532000; /* in a container */
    ck_assert_int_eq(lock_life(&holder, &self), LOCK_UNKNOWN);
    holder = holder_of_earlier_boot(&self);
    self.space = 4026532000;
    ck_assert_int_eq(lock_life(&holder, &self), LOCK_UNKNOWN);
    /* Also as a file. */
    lock_write_holder(locked.host, (long)getppid(), "00000000-1111-2222-3333-444444444444");
    lock_expect_locked(false, "(--break-lock if that is dead)");
    lock_expect_taken(true);
}

TEST(only_a_regular_file_is_a_lock_and_nothing_else_is_waited_for)
{
    struct lock lock;

    ck_assert_int_eq(mkfifoat(locked.folder.fd, LOCK_NAME, 0666), 0);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(lock_take(&lock, &locked.folder, false, &locked.err), CHEX_ERR_WRITE);
        ck_assert_msg(strstr(locked.err.text, "not a regular file"), "%s", locked.err.text);
        lock_expect_taken(true);
        ck_assert_int_eq(mkdirat(locked.folder.fd, LOCK_NAME, 0777), 0);
    }
    lock_expect_taken(true);
}

TEST(a_lock_of_another_host_is_taken_only_by_force)
{
    lock_write_holder("n07.cluster", lock_dead_pid(), locked.boot);
    lock_expect_locked(false, "is in use by host n07.cluster pid ");
    lock_expect_locked(false, "since 2024-02-29T10:31:00");
    lock_expect_taken(true);
}

TEST(a_lock_that_nobody_understands_is_taken_only_by_force)
{
    static const char *const texts[] = {"", "\n", "host", "garbage\n", "host a\npid x\nboot b\nsince c\n"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        lock_write_text(texts[i]);
        lock_expect_locked(false, "is in use by host unknown");
        lock_expect_taken(true);
    }
}

/* The option overrides any content of the file. */
TEST(a_lock_that_is_far_too_long_is_taken_only_by_force)
{
    char text[2000];

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    lock_write_text(text);
    lock_expect_locked(false, LOCK_NAME);
    lock_expect_taken(true);
}

/* The parent is alive, but has another start time than the holder: the number was reused. */
TEST(a_number_that_was_used_again_is_another_process)
{
    lock_write_holder(locked.host, (long)getppid(), locked.boot);
    lock_expect_taken(false);
}

/* A container has its own process numbers, so the process is unknown here. */
TEST(a_lock_of_another_pid_namespace_is_taken_only_by_force)
{
    lock_write_holder_of(locked.host, (long)getppid(), locked.boot, lock_own_space() + 1, 1);
    lock_expect_locked(false, "(--break-lock if that is dead)");
    lock_expect_taken(true);
}

TEST(a_lock_that_was_broken_is_noticed_and_left_alone)
{
    struct lock lock;

    ck_assert_int_eq(lock_take(&lock, &locked.folder, false, &locked.err), CHEX_OK);
    ck_assert(lock_check(&lock, NULL) == CHEX_OK);
    lock_write_holder("n07.cluster", 1, locked.boot);
    ck_assert(lock_check(&lock, NULL) != CHEX_OK);
    lock_drop(&lock, NULL);
    ck_assert_uint_eq(lock_files(), 1);
    lock_expect_taken(true);
}

TEST(a_folder_that_cannot_be_written_to_cannot_be_locked)
{
    struct folder proc;
    struct lock lock;

    ck_assert_int_eq(folder_open("/proc/self", false, &proc, &locked.err), CHEX_OK);
    ck_assert_int_eq(lock_take(&lock, &proc, true, &locked.err), CHEX_ERR_WRITE);
    ck_assert_msg(strstr(locked.err.text, "cannot write to the folder '/proc/self'"), "%s", locked.err.text);
    ck_assert(!lock.held);
    folder_close(&proc);
}

/* Both find the same dead lock at the same time. */
TEST(of_two_that_take_over_one_wins)
{
    enum { ROUNDS = 8, PROCESSES = 2 };

    for (unsigned round = 0; round < ROUNDS; round++) {
        pid_t child[PROCESSES];
        unsigned winners = 0;
        int start[2], answer[2];
        char c;

        lock_write_holder(locked.host, lock_dead_pid(), locked.boot);
        ck_assert(pipe(start) == 0 && pipe(answer) == 0);
        for (unsigned i = 0; i < PROCESSES; i++) {
            child[i] = fork();
            if (child[i] == 0) {
                struct lock lock;

                close(start[1]);
                if (read(start[0], &c, 1) == 0)
                    c = lock_take(&lock, &locked.folder, false, NULL) == CHEX_OK ? 'y' : 'n';
                if (write(answer[1], &c, 1) == 1)
                    pause();
                _exit(1);
            }
            ck_assert_int_gt(child[i], 0);
        }
        close(start[1]); /* start both */
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
        ck_assert_uint_eq(lock_files(), 1);
    }
}
