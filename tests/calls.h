/*
 * calls.h - the N-th call of a kind fails, in this process and only of what is linked into it
 *
 * By the linker's --wrap: what the library and the tests call is meant, not what the C library or libpng call for
 * themselves.  So every failed call is one whose error path is ours.  tests/faults does the same to whole programs,
 * from outside.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_CALLS_H
#define CHEX_TESTS_CALLS_H

#include "base/error.h"

/*
 * The kinds, with what is wrapped: malloc, calloc, realloc; pread; pwrite, write; fsync; close (which closes all the
 * same); fstat and fstatat; openat, open and opendir; renameat, linkat (which with EEXIST links all the same, as over
 * NFS when the answer is lost); unlinkat; readdir.
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
 * Pauses between two tries take no time while calls fail.
 *
 * From now on call number `nth` (1, 2, ...) of this kind fails with `error`; with `ever` all behind it too.  Meanwhile
 * no fsync() reaches the disk.
 */
void calls_fail(enum call kind, unsigned nth, bool ever, int error);
/* All succeed again; how many failed. */
unsigned calls_end(void);

/*
 * From now on the disk has a bad block at this offset of every file, until -1: pread() gives the bytes before it, and
 * from there on fails with ENXIO, which is not tried again.
 */
void calls_bad_block(int64_t offset);

/* Before the next renameat() that does not fail, once: what a rival does at that moment. */
void calls_before_rename(void (*rival)(void));

/*
 * Something to be done; it frees what it makes, whatever happens.  Check allocates too, so nothing is asserted in it.
 */
typedef enum chex_status calls_act(struct chex_error *err);
/* What is done when nothing fails any more. */
typedef void calls_after(void);

/*
 * Each call of the kind fails, once and for ever.  Where one failed the status is `wanted`, with a text, or it was done
 * without: `spare` is how many may fail and nothing is said, since it was done once more, in another way, or need not
 * be
 * done.  Where none failed it is done.
 */
void calls_each(enum call kind, int error, calls_act *act, calls_after *then, enum chex_status wanted, unsigned spare);

#endif
