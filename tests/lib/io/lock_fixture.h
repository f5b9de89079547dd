/*
 * lock_fixture.h - a folder, and locks in it that seem to belong to other processes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_LOCK_FIXTURE_H
#define CHEX_TESTS_LOCK_FIXTURE_H

#include "io/lock_private.h"

/* The state of the current test. */
struct lock_fixture {
    char base[512]; /* the folder, new and empty */
    struct folder folder;
    char host[128], boot[64]; /* names of this machine */
    struct chex_error err;
};

extern struct lock_fixture locked;

void lock_setup(void);
void lock_teardown(void);

void lock_write_text(const char *text);
/* Returns the inode of this process's pid namespace. */
unsigned long long lock_own_space(void);
/* Writes a lock of a process in this pid namespace with this start time; the second form uses 1. */
void lock_write_holder_of(const char *holder_host, long pid, const char *holder_boot, unsigned long long space,
                          unsigned long long start);
void lock_write_holder(const char *holder_host, long pid, const char *holder_boot);
/* Returns an unused process number: that of a child that has ended. */
long lock_dead_pid(void);

/* Returns the number of files in the folder: 1 for a lock without leftovers. */
unsigned lock_files(void);
/* Requires that the lock cannot be taken, with this text. */
void lock_expect_locked(bool break_lock, const char *text);
void lock_expect_taken(bool break_lock);

#endif
