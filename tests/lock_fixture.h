/*
 * lock_fixture.h - a folder, and locks in it that other processes seem to hold
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_LOCK_FIXTURE_H
#define CHEX_TESTS_LOCK_FIXTURE_H

#include "io/lock_private.h"

/* Of the test at hand. */
struct lock_fixture {
    char base[512]; /* the folder, new and empty */
    struct folder folder;
    char host[128], boot[64]; /* of this machine */
    struct chex_error err;
};

extern struct lock_fixture locked;

void lock_setup(void);
void lock_teardown(void);

void lock_write_text(const char *text);
/* The inode of this process's namespace of process numbers. */
unsigned long long lock_own_space(void);
/* A lock of a process of this pid namespace, which began at this time; without one it began at 1. */
void lock_write_holder_of(const char *holder_host, long pid, const char *holder_boot, unsigned long long space,
                          unsigned long long start);
void lock_write_holder(const char *holder_host, long pid, const char *holder_boot);
/* A process number that nobody has: that of a child that has ended. */
long lock_dead_pid(void);

/* How many files are in the folder: a taken lock is one, and nothing is left beside it. */
unsigned lock_files(void);
/* It cannot be taken, and the error has this text. */
void lock_expect_locked(bool break_lock, const char *text);
void lock_expect_taken(bool break_lock);

#endif
