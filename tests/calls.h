/*
 * calls.h - makes the N-th call of a kind fail, in this process and only in code that is linked into it
 *
 * The linker's --wrap replaces the calls of the library and of the tests, but not those that the C library or libpng
 * make internally.  So every failed call is one whose error path is in our code.  tests/faults does the same to whole
 * programs, from outside.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_CALLS_H
#define CHEX_TESTS_CALLS_H

#include "base/error.h"

/*
 * The kinds and the wrapped functions: malloc, calloc, realloc; pread; pwrite, write; fsync; close (which closes in any
 * case); fstat and fstatat; openat, open and opendir; renameat, linkat (with EEXIST it links nevertheless, as NFS does
 * when the answer is lost); unlinkat; readdir.
 */
enum call {
    CALL_MEMORY,
    CALL_READ,
    CALL_WRITE,
    CALL_SYNC,
    CALL_CLOSE,
    CALL_STAT,
    CALL_OPEN,
    CALL_RENAME,
    CALL_UNLINK,
    CALL_LIST,
    CALLS
};

/*
 * Makes call number `nth` (1, 2, ...) of this kind fail with `error`; with `ever`, all later ones too.  Until
 * calls_end() no fsync() reaches the disk, and pauses between two tries take no time.
 */
void calls_fail(enum call kind, unsigned nth, bool ever, int error);
/* Makes all calls succeed again; returns how many failed. */
unsigned calls_end(void);

/*
 * Simulates a bad block at this offset of every file, until -1: pread() returns the bytes before it, and from there on
 * fails with ENXIO, which is not tried again.
 */
void calls_bad_block(int64_t offset);

/* Makes all files appear to have been changed this number of seconds earlier, until 0. */
void calls_age(long seconds);

/* Calls this once, before the next renameat() that does not fail: the action of a rival at that moment. */
void calls_before_rename(void (*rival)(void));

/* An action; it must free what it allocates, whatever happens.  Check allocates memory too, so it must not assert. */
typedef enum chex_status calls_act(struct chex_error *err);
/* An action after the failures are over. */
typedef void calls_after(void);

/*
 * Makes each call of the kind fail, once and then permanently.  If a call failed, either the status is `wanted` and
 * there is a text, or the action succeeded.  It may succeed in up to `spare` cases, because the call was tried again or
 * was not needed.  If no call failed, the action must succeed.
 */
void calls_each(enum call kind, int error, calls_act *act, calls_after *then, enum chex_status wanted, unsigned spare);

#endif
